"""What a source as a whole can never say: its fields, each fine by itself, taken together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector_assets.contract.checks.asking import (
    check_addresses,
    check_browser,
    check_headers,
    check_keys,
    check_rendering,
    check_session,
)
from collector_assets.contract.checks.kinds import (
    check_encodings,
    check_known,
    check_names,
    check_pages,
    check_sitemaps,
    check_soft_gone,
)
from collector_assets.contract.checks.limits import check_built, check_lanes, check_times
from collector_assets.contract.checks.records import check_records
from collector_assets.contract.checks.starts import check_inputs, check_starts

if TYPE_CHECKING:
    from collector_assets.contract.source import Source


def check(source: Source) -> None:
    """Refuse a source that cannot be collected: the first thing that is wrong, as a ContractError."""
    check_names(source)
    check_pages(source)
    check_sitemaps(source)
    check_known(source)
    check_inputs(source)
    check_starts(source)
    check_addresses(source)
    check_keys(source)
    check_soft_gone(source)
    check_browser(source)
    check_headers(source)
    check_rendering(source)
    check_session(source)
    check_encodings(source)
    check_records(source)
    check_lanes(source)
    check_times(source)
    check_built(source)
