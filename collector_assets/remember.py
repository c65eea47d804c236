"""Part of collecting: known items are not fetched again before their time, and a listing of known ones ends its chain.

What a kind remembers (`refetch`) is skipped(known): counted, shown, not fetched. A time after which it is fetched again
comes earlier where the site says that the page changed since (a sitemap's lastmod, `Link.changed_at`); such a claim
never keeps a page from being fetched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from collector_assets import known
from collector_assets.contract import Source
from collector_assets.database import Connection
from collector_assets.links import Found, RejectedLink
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.request import Lease, NewRequest
from collector_assets.windows import WindowRow

CHAIN_ENDED: Final = "known_chain_ended"
Fetched = Mapping[bytes, datetime]


def leave_out(connection: Connection, source: Source, row: WindowRow, batch: Sequence[Found]) -> list[Found]:
    """The batch with known items marked, and without the ways on from listings that show nothing else."""
    if not source.remembered:
        return list(batch)
    keys = {request.unique_key for found in batch for request in found.requests if request.kind in source.remembered}
    fetched = known.find(connection, source.name, source.remembered, keys) if keys else {}
    return [_ended(source, row, _marked(source, row, found, fetched), fetched) for found in batch]


def note(
    connection: Connection,
    source: Source,
    window_start: datetime,
    ended: Sequence[tuple[Lease, Outcome]],
    fetched_at: datetime,
) -> None:
    """Items whose pages have just been stored are known from now on."""
    if not source.remembered:
        return
    good = [
        lease.request_id
        for lease, outcome in ended
        if policy(outcome) is Policy.KEEP and lease.kind in source.remembered
    ]
    if good:
        known.note(connection, window_start, good, fetched_at)


def _marked(source: Source, row: WindowRow, found: Found, fetched: Fetched) -> Found:
    requests = [
        replace(r, is_known=is_known(source, r, fetched.get(r.unique_key), row.window.end)) for r in found.requests
    ]
    return replace(found, requests=requests)


def is_known(source: Source, request: NewRequest, fetched_at: datetime | None, window_end: datetime) -> bool:
    """Whether the item need not be fetched in a window that ends then."""
    refetch = source.kind_map[request.kind].refetch
    if fetched_at is None or refetch == "window":
        return False
    if not isinstance(refetch, timedelta):
        return True
    has_changed = request.changed_at is not None and request.changed_at > fetched_at
    # By the window's end, so that a daily window finds what is due on its day, at whatever hour it runs.
    return not has_changed and fetched_at + refetch >= window_end


def _ended(source: Source, row: WindowRow, found: Found, fetched: Fetched) -> Found:
    """Without ways on, where its last items, and those of listings before it, were known when the window opened."""
    limit = source.kind_map[found.kind].stop_after_known if found.kind else None
    if limit is None:
        return found
    run = found.known_run
    for request in found.requests:
        if request.kind in source.remembered:
            at = fetched.get(request.unique_key)
            run = run + 1 if at and at < row.opened_at else 0
    ways = [request for request in found.requests if request.kind == found.kind]
    others = [request for request in found.requests if request.kind != found.kind]
    if run < limit:
        return replace(found, requests=[*others, *(replace(way, known_run=run) for way in ways)])
    out = [RejectedLink(reason=CHAIN_ENDED, value=way.url[:200], referrer=way.referrer) for way in ways]
    return replace(found, requests=others, rejected=[*found.rejected, *out])
