"""Use case: look at a window's requests, its quarantine, and the sites that want nothing of us. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from collector_assets import budget, origins, rejects, selected, windows
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.errors import BadSelection
from collector_assets.rejects import RejectRow
from collector_assets.selected import RequestRow
from collector_assets.selection import Selection

MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An origin, or a whole budget key, that has refused us or wants to be left alone."""

    name: str
    """scheme://host[:port], or a budget key."""
    state: Literal["halted", "closed", "refused", "resumed"]
    """halted: until a person resumes it. closed: until a time. refused: fewer times in a row than halt it."""
    since: datetime | None
    for_s: float | None
    """Until it is open by itself."""
    why: str
    refusals: int = 0
    """In a row."""
    by: str | None = None
    """The source that was refused; where it is resumed, who did that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Selected requests: how many there are, and the first of them."""

    total: int
    places: Mapping[str, int]
    """By state and outcome: `failed(fetch) timeout`."""
    rows: Sequence[RequestRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejects:
    """The quarantine by the extractor version of the newest verdict: how many records there are, and the first."""

    total: int
    rows: Sequence[RejectRow]
    """Each with every failure case: column, check, value."""

    @property
    def cases(self) -> list[dict[str, Any]]:
        """The failure cases of these rows, one by one, for a table."""
        return [
            {
                "type": row.record_type, "entity": row.entity, "column": case["column"] or "(row)",
                "check": case["check"], "value": case["value"], "page": row.url,
            }
            for row in self.rows
            for case in row.reasons
        ]  # fmt: skip


def requests(source: Source, window: str, selection: Selection, database: Database, *, limit: int) -> Requests:
    """Requests of a window. Raises `UnknownWindow`, `BadSelection`."""
    _require_bounded(limit)
    selection = selection.checked(source.kind_map)
    with database.transaction() as connection:
        place = (connection, source.name, windows.require(connection, source.name, window).window.start)
        groups = selected.groups(*place, selection)
        rows = selected.listed(*place, selection, limit)
    places = selected.places(groups)
    return Requests(total=sum(places.values()), places=places, rows=rows)


def quarantine(source: Source, window: str, database: Database, *, limit: int) -> Rejects:
    """Rejects of a window. Raises `UnknownWindow`, `BadSelection`."""
    _require_bounded(limit)
    with database.transaction() as connection:
        place = (connection, source.name, windows.require(connection, source.name, window).window.start)
        return Rejects(total=rejects.count(*place), rows=rejects.list_rejects(*place, limit=limit))


def _require_bounded(limit: int) -> None:
    if not 1 <= limit <= MOST_ROWS:
        raise BadSelection(f"limit {limit}: list between 1 and {MOST_ROWS} rows")


def troubles(database: Database) -> list[Trouble]:
    """Every origin that was ever refused, the halted first, and every budget key that is closed now."""
    with database.transaction() as connection:
        rows, closed = origins.listed(connection), budget.closings(connection)
    keys = [Trouble(name=key.budget_key, state="closed", since=None, for_s=key.for_s, why=key.reason) for key in closed]
    return [*map(_trouble, rows), *keys]


def _trouble(row: origins.Origin) -> Trouble:
    if row.halted_at:
        return Trouble(
            name=row.origin, state="halted", since=row.halted_at, for_s=None, why=row.halted_reason or "",
            refusals=row.refusals, by=row.halted_by,
        )  # fmt: skip
    if row.refusals or not row.resumed_at:
        return Trouble(name=row.origin, state="refused", since=None, for_s=None, why="", refusals=row.refusals)
    return Trouble(
        name=row.origin, state="resumed", since=row.resumed_at, for_s=None, why=row.resumed_reason or "",
        by=row.resumed_by,
    )  # fmt: skip
