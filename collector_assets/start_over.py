"""Part of collecting: a chain of listings whose cursor is dead starts over, a bounded number of times.

A cursor that was given out an hour ago leads nowhere, but the first page of its chain gives out a new one. So that page
is fetched once more, and its listings are new work (`request.again`); what is no listing of the chain has its key as
before, so nothing that is known is collected twice. The listing that ended so is skipped(chain_restarted).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from collector_assets import frontier
from collector_assets.contract import Source
from collector_assets.database import Connection
from collector_assets.links import Found
from collector_assets.outcome import Outcome
from collector_assets.request import Lease, again


def judged(source: Source, lease: Lease, said: str) -> tuple[Outcome, str]:
    """Whether the chain of a listing whose cursor is dead starts over, or has failed; and why."""
    said, most = said or "the cursor is dead", source.kind_map[lease.kind].max_restarts
    if lease.found_on is None:
        return Outcome.CURSOR_EXPIRED, f"{said}; no page led to it, so there is nothing to start over from"
    # Who puts a request back wants its chain once more.
    is_put_back = lease.max_attempts > source.max_attempts
    if lease.restarts >= most and not is_put_back:
        return Outcome.CURSOR_EXPIRED, f"{said}; the chain has started over {lease.restarts} times (max_restarts)"
    return Outcome.CHAIN_RESTARTED, said


def starts(connection: Connection, window_start: datetime, ended: Sequence[Lease]) -> list[Found]:
    """What the chains of these listings begin with, as new work; listings of one chain ask for the same, once."""
    if not ended:
        return []
    first = frontier.chain_starts(connection, window_start, [lease.request_id for lease in ended])
    return [Found(requests=[replace(r, unique_key=again(r.unique_key), restarts=r.restarts + 1) for r in first])]


def reopen(connection: Connection, source: Source, window_start: datetime, found: Sequence[Found]) -> int:
    """Ask again what ended by a dead cursor where a page that was fetched once more leads to it unchanged; how many.

    The token of a form may be bound to a visit of the form, and look the same.
    """
    led_to = [request for each in found if each.listing and each.listing.restarts for request in each.requests]
    return frontier.reopen(connection, source.name, window_start, led_to) if led_to else 0
