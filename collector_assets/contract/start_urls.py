"""URLs that a window starts with: they may name it."""

from __future__ import annotations

import re

from collector_assets.request import Link
from collector_assets.window import Window

NAMED_WINDOW = re.compile(r"\{window\.(start|end)(?::([^}]*))?\}|\{window\.key\}")


def named_url(url: str, window: Window) -> str:
    """The URL with {window.start:FORMAT}, {window.end:FORMAT} and {window.key} filled in, in the source's time zone."""

    def fill(match: re.Match[str]) -> str:
        if match[1] is None:
            return window.key
        moment = window.start if match[1] == "start" else window.end
        return moment.strftime(match[2] or "%Y-%m-%d")

    return NAMED_WINDOW.sub(fill, url)


def url_of(item: str | Link) -> str:
    """The URL of a start, however it is written."""
    return item if isinstance(item, str) else item.url


def plain_url(url: str) -> str:
    """The URL with something in place of the window, so that it can be parsed."""
    return NAMED_WINDOW.sub("0", url)
