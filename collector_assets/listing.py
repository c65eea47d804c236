"""Use case: look at a window's requests, and at its quarantine. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector_assets import rejects, selected, windows
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.errors import BadSelection
from collector_assets.rejects import RejectRow
from collector_assets.selected import RequestRow
from collector_assets.selection import Selection

MOST_ROWS = 10_000


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
