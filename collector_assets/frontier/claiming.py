"""Requests are admitted, held by a worker for a while, and taken back when it is gone (rules 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.frontier.columns import ids_of
from collector_assets.frontier.locking import lock_window
from collector_assets.frontier.turns import Sharing
from collector_assets.request import Fence, Lease, RequestId
from collector_assets.storable import clean_text

SQL: Final = statements("frontier")
MOST_ADMITTED: Final = 1_000
"""Candidates that one claim admits at most: bounds the work under the window's lock, not the capacity."""
LONGEST_WORKER_NAME: Final = 200


def claim(
    connection: Connection,
    *,
    source: str,
    window_start: datetime,
    budget_key: str,
    worker: str,
    count: int,
    lease: timedelta,
    kinds: Sequence[str] | None,
    lane_weights: Mapping[str, int],
    discovering: Sequence[str],
    interleave: tuple[int, int] | None,
    now: datetime | None = None,
) -> list[Lease]:
    """Hold at most `count` requests for `lease`, in the order in which they should be sent; each is one attempt.

    Takes back expired leases of the window first and admits candidates up to its capacity. `kinds` are those that this
    pass drains (all when None); `interleave` weighs (discovering kinds, others) against each other. Raises
    `UnknownWindow`.
    """
    if count < 1:
        return []
    scope = {
        "source": source,
        "window_start": window_start,
        "kinds": None if kinds is None else list(kinds),
        "now": now,
    }
    window = lock_window(connection, scope)
    sharing = Sharing(
        connection, scope, window.turns, lane_weights=lane_weights, discovering=discovering, interleave=interleave
    )
    _admit(connection, scope, sharing, window.capacity)
    ids = sharing.take("claim", "best_queued", count, {"budget_key": budget_key})
    sharing.save()
    values = scope | {"ids": ids, "worker": clean_text(worker)[:LONGEST_WORKER_NAME], "lease": lease}
    return _leases(connection, values) if ids else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Active:
    """What counts against the capacity."""

    active: int
    foreign_queued: int
    expired: int


def _count_active(connection: Connection, scope: dict[str, Any]) -> _Active:
    """Queued and leased requests, after expired leases were taken back."""
    with connection.cursor(row_factory=class_row(_Active)) as cursor:
        (found,) = cursor.execute(SQL["count_active"], scope)
        if found.expired and connection.execute(SQL["take_back_expired"], scope).rowcount:
            (found,) = cursor.execute(SQL["count_active"], scope)
    return found


def _admit(connection: Connection, scope: dict[str, Any], sharing: Sharing, capacity: int) -> None:
    """Candidates become queued while queued + leased < capacity; work of other passes makes room (rule 2)."""
    found = _count_active(connection, scope)
    room = capacity - found.active
    ids = sharing.take("admit", "best_candidates", min(room + found.foreign_queued, MOST_ADMITTED), {})
    if not ids:
        return
    if len(ids) > room:
        connection.execute(SQL["send_back_foreign"], scope | {"count": len(ids) - room})
    connection.execute(SQL["admit_requests"], scope | {"ids": ids})


def _leases(connection: Connection, values: dict[str, Any]) -> list[Lease]:
    with connection.cursor(row_factory=class_row(Lease)) as cursor:
        by_id = {lease.request_id: lease for lease in cursor.execute(SQL["claim_requests"], values)}
    return [by_id[request_id] for request_id in values["ids"] if request_id in by_id]


def take_back_expired(
    connection: Connection, source: str | None = None, window_start: datetime | None = None, now: datetime | None = None
) -> int:
    """Queue again, or fail at the last attempt, what is leased by somebody who is gone; how many."""
    values = {"source": source, "window_start": window_start, "now": now}
    return connection.execute(SQL["take_back_expired"], values).rowcount


def renew(
    connection: Connection,
    held: Sequence[tuple[RequestId, Fence]],
    window_start: datetime,
    lease: timedelta,
    now: datetime | None = None,
) -> set[RequestId]:
    """Prolong leases to `lease` from now; the requests that are still ours. The others are lost: drop them."""
    if not held:
        return set()
    ids, fences = zip(*held, strict=True)
    values = {"window_start": window_start, "ids": list(ids), "fences": list(fences), "now": now}
    connection.execute(SQL["lock_leases"], values)
    return ids_of(connection.execute(SQL["renew_leases"], values | {"lease": lease}))
