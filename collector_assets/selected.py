"""Store of requests as a person selects them: counted, listed, put back. The queue itself is `frontier`.

Every function takes an open connection and works inside the caller's transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.request import RequestId
from collector_assets.selection import Selection

SQL: Final = statements("selected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Selected requests of one kind in one place."""

    kind: str
    state: str
    failed_phase: str | None
    outcome: str | None
    ids: list[RequestId]

    @property
    def place(self) -> str:
        """The state as people read it."""
        return f"failed({self.failed_phase})" if self.failed_phase else self.state


def places(groups: Sequence[Group]) -> dict[str, int]:
    """Requests by place and outcome, most first: `failed(fetch) timeout`."""
    tally = Counter[str]()
    for group in groups:
        tally[" ".join(filter(None, (group.place, group.outcome)))] += len(group.ids)
    return dict(tally.most_common())


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One request, for a person."""

    request_id: RequestId
    kind: str
    lane: str
    priority: int
    entity: str | None
    url: str
    state: str
    failed_phase: str | None
    outcome: str | None
    reason: str | None
    attempts: int
    max_attempts: int
    not_before: datetime | None
    leased_until: datetime | None
    worker: str | None
    created_at: datetime
    finished_at: datetime | None
    intervention_id: int | None
    """The newest replay or recollect that put it back."""

    @property
    def place(self) -> str:
        """The state as people read it."""
        return f"failed({self.failed_phase})" if self.failed_phase else self.state


def groups(connection: Connection, source: str, window_start: datetime, selection: Selection) -> list[Group]:
    """Every selected request, by kind, state and outcome."""
    values = {"source": source, "window_start": window_start} | selection.arguments()
    with connection.cursor(row_factory=class_row(Group)) as cursor:
        return cursor.execute(SQL["group_selected"], values).fetchall()


def listed(
    connection: Connection,
    source: str,
    window_start: datetime,
    selection: Selection | None = None,
    limit: int = 100,
) -> list[RequestRow]:
    """The oldest of the selected requests; without a selection of all."""
    values = {"source": source, "window_start": window_start, "limit": limit} | (selection or Selection()).arguments()
    with connection.cursor(row_factory=class_row(RequestRow)) as cursor:
        return cursor.execute(SQL["list_selected"], values).fetchall()


def put_back(
    connection: Connection, window_start: datetime, ids: Sequence[RequestId], *, attempts: int, intervention: int
) -> int:
    """Make requests that ended candidates again, each with so many more attempts; how many.

    The caller holds the window's row. Attempts made so far and the fence stay: a page of an earlier claim keeps its
    place, and the next claim gets a higher fence. What is still to be fetched is left alone.
    """
    values = {"window_start": window_start, "ids": list(ids), "attempts": attempts, "intervention": intervention}
    connection.execute(SQL["lock_ended"], values)
    return connection.execute(SQL["put_back"], values).rowcount
