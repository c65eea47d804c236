"""Use case: look at a window's requests, its quarantine, and the sites that want nothing of us. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from collector_assets import budget, origins, rejects, robots_files, selected, windows
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.errors import BadSelection
from collector_assets.rejects import RejectRow
from collector_assets.robots_files import Listed
from collector_assets.selected import RequestRow
from collector_assets.selection import Selection

MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An origin, or a whole budget key, that has refused us or wants to be left alone."""

    name: str
    """scheme://host[:port], or a budget key."""
    state: Literal["halted", "closed", "refused", "resumed", "robots"]
    """halted: until a person resumes it. closed: until a time. refused: fewer times in a row than halt it.
    robots: nothing else is known than its robots.txt."""
    since: datetime | None
    for_s: float | None
    """Until it is open by itself."""
    why: str
    refusals: int = 0
    """In a row."""
    by: str | None = None
    """The source that was refused; where it is resumed, who did that."""
    robots: str = ""
    """What is known of the origin's robots.txt."""


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


def troubles(database: Database, *, is_all: bool = False) -> list[Trouble]:
    """Every origin that was ever refused, the halted first, and every budget key that is closed now.

    Then the origins whose robots.txt cannot be had, or is refused; with `is_all` all whose robots.txt is known.
    """
    with database.transaction() as connection:
        rows, closed, files = origins.listed(connection), budget.closings(connection), robots_files.listed(connection)
    known = {file.origin: file for file in files}
    keys = [Trouble(name=key.budget_key, state="closed", since=None, for_s=key.for_s, why=key.reason) for key in closed]
    seen = [replace(_trouble(row), robots=_said(known.pop(row.origin, None))) for row in rows]
    return [*seen, *keys, *(_of_robots(file) for file in known.values() if is_all or _is_trouble(file))]


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


def _is_trouble(file: Listed) -> bool:
    return file.failures > 0 or file.answer == "refused"


def _of_robots(file: Listed) -> Trouble:
    return Trouble(
        name=file.origin, state="robots", since=file.failing_since or file.fetched_at, for_s=None,
        why=file.problem or "", robots=_said(file),
    )  # fmt: skip


def _said(file: Listed | None) -> str:
    """A robots.txt for a person: what it was when it was had last, and how the tries since went."""
    if file is None:
        return ""
    answer = {"rules": "rules", "absent": "there is none", "refused": "refused", None: "never had"}[file.answer]
    parts = [f"{answer} ({file.status}), {file.fetched_at:%Y-%m-%d %H:%M} UTC" if file.fetched_at else answer]
    if file.crawl_delay_s:
        parts.append(f"Crawl-delay {file.crawl_delay_s:g} s")
    if file.failures and file.next_try_at:
        parts.append(f"{file.failures} tries failed, the next is due at {file.next_try_at:%Y-%m-%d %H:%M:%S} UTC")
    return "; ".join([*parts, *file.notes])
