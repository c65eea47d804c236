"""New requests become candidates, each unique key once (rule 1)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.frontier.columns import as_json, clean
from collector_assets.frontier.locking import lock_window
from collector_assets.request import NewRequest, RequestId
from collector_assets.storable import clean_text

SQL: Final = statements("frontier")


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of a batch of new requests; the three add up to it."""

    new: int
    known: int
    """There already, in whatever state, or twice in the batch."""
    over_bound: int
    """Not inserted, because the window holds `max_requests`."""


def add(
    connection: Connection,
    *,
    source: str,
    window_start: datetime,
    requests: Sequence[NewRequest],
    edition: int,
    max_attempts: int,
    max_requests: int,
) -> Added:
    """Accept requests as candidates, each unique key once; ids follow the order given (rule 1).

    Raises `UnknownWindow`. Writers of one window wait for each other at its row, so no order of keys can deadlock.
    """
    values: dict[str, Any] = {"source": source, "window_start": window_start}
    planned = lock_window(connection, values).planned
    if not requests:
        return Added(new=0, known=0, over_bound=0)
    room = max(0, max_requests - planned)
    values |= _columns(requests) | {"edition": edition, "max_attempts": max_attempts, "room": room}
    row: Any = connection.execute(SQL["add_requests"], values).fetchone()
    new, fresh = row
    over_bound = max(0, fresh - room)
    return Added(new=new, known=len(requests) - new - over_bound, over_bound=over_bound)


def known(connection: Connection, source: str, window_start: datetime, unique_keys: Collection[bytes]) -> set[bytes]:
    """Which of these unique keys the window has already."""
    values = {"source": source, "window_start": window_start, "unique_keys": list(unique_keys)}
    rows: list[Any] = connection.execute(SQL["known_keys"], values).fetchall()
    return {bytes(unique_key) for (unique_key,) in rows}


def chain_starts(connection: Connection, window_start: datetime, ids: Sequence[RequestId]) -> list[NewRequest]:
    """The requests with which the chains of these listings begin."""
    with connection.cursor(row_factory=class_row(NewRequest)) as cursor:
        return cursor.execute(SQL["chain_starts"], {"window_start": window_start, "ids": list(ids)}).fetchall()


def reopen(connection: Connection, source: str, window_start: datetime, requests: Sequence[NewRequest]) -> int:
    """Make those of these requests candidates again that ended when their chain had started over less often."""
    values = {
        "source": source, "window_start": window_start, "unique_keys": [r.unique_key for r in requests],
        "restarts": [r.restarts for r in requests],
    }  # fmt: skip
    return connection.execute(SQL["reopen_requests"], values).rowcount


def _columns(requests: Sequence[NewRequest]) -> dict[str, list[Any]]:
    return {
        "unique_keys": [r.unique_key for r in requests],
        "kinds": [r.kind for r in requests],
        "lanes": [clean_text(r.lane) for r in requests],
        "priorities": [r.priority for r in requests],
        "entities": [clean(r.entity) for r in requests],
        "urls": [clean_text(r.url) for r in requests],
        "budget_keys": [clean_text(r.budget_key) for r in requests],
        "methods": [r.method for r in requests],
        "bodies": [r.body for r in requests],
        "headers": [as_json(r.headers) for r in requests],
        "secrets": [json.dumps(list(r.secrets)) if r.secrets else None for r in requests],
        "hints": [as_json(r.hints) for r in requests],
        "depths": [r.depth for r in requests],
        "referrers": [clean(r.referrer) for r in requests],
        "barren": [r.barren for r in requests],
        "above": [r.above for r in requests],
        "known_runs": [r.known_run for r in requests],
        "found_on": [r.found_on for r in requests],
        "restarts": [r.restarts for r in requests],
        "known": [r.is_known for r in requests],
    }
