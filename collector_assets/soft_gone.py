"""Pages that say "not found" with status 200: whether one does, by the source's marker. Pure.

Once is not proof: a shop may answer so for a minute. The item counts as gone when it says so again on another day.
"""

from __future__ import annotations

import io
import logging
from datetime import timedelta
from typing import Final

from collector_assets.contract import Source
from collector_assets.page import Page
from collector_assets.spool import SPOOLED_FROM

LOG = logging.getLogger(__name__)

ANOTHER_DAY: Final = timedelta(hours=20)
"""Between two sightings that confirm each other; daily windows are not collected to the minute."""


def says_gone(source: Source, page: Page) -> bool:
    """Whether the marker of the source is on a page that should hold records; a download of many megabytes is none.

    A marker that raises says nothing: the page goes on to the extractor, whose verdict is shown.
    """
    marker = source.soft_gone
    if marker is None or source.kind_map[page.kind].extract is None or page.open().seek(0, io.SEEK_END) > SPOOLED_FROM:
        return False
    try:
        return page.tree.css_matches(marker) if isinstance(marker, str) else bool(marker(page))
    except Exception as error:  # noqa: BLE001  the source's code
        LOG.warning("%s: soft_gone raised on %s: %s: %s", source.name, page.url, type(error).__name__, error)
        return False
