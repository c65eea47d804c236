"""The links that pages lead on to enter the frontier; what stayed out is counted (rules 1 and 15)."""

from __future__ import annotations

from collections.abc import Sequence

from collector_assets import frontier, links, rejected_links, remember, sift, windows
from collector_assets.contract import Source
from collector_assets.database import Connection


def add_found(connection: Connection, source: Source, window: windows.WindowRow, found: Sequence[links.Found]) -> int:
    """Put found requests into the frontier and count what stayed out; the number of new requests.

    The caller holds the window's row. A bound that was reached is marked on the window and stops nothing else.
    """
    start = window.window.start
    found = remember.leave_out(connection, source, window, sift.sift(connection, source, start, found))
    added = frontier.add(
        connection,
        source=source.name,
        window_start=start,
        requests=[request for item in found for request in item.requests],
        edition=source.edition,
        max_attempts=source.max_attempts,
        max_requests=source.max_requests,
    )
    if added.over_bound:
        windows.mark_bound(connection, source.name, start, "max_requests")
    elif any(item.too_deep for item in found):
        windows.mark_bound(connection, source.name, start, "max_depth")
    out = [link for item in found for link in item.rejected]
    for number, first in links.by_reason(out):
        rejected_links.count(
            connection, source.name, start, reason=first.reason, detail=first.detail, number=number,
            example=first.value, referrer=first.referrer,
        )  # fmt: skip
    return added.new
