"""Store of interventions: what a person did to a window's requests, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from collector_assets.database import Connection, statements

SQL: Final = statements("interventions")
Verb: TypeAlias = Literal["replay", "recollect", "resume", "supersede"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """Who did what, when and why."""

    intervention_id: int
    verb: Verb
    source: str
    window_start: datetime | None
    selection: Mapping[str, Any]
    """What was asked for."""
    requests: int
    """How many it put back."""
    were: Mapping[str, int]
    """Where those were, with their outcomes: `failed(fetch) timeout`."""
    reason: str
    by_whom: str
    at: datetime


def add(
    connection: Connection,
    *,
    verb: Verb,
    source: str,
    window_start: datetime | None,
    selection: Mapping[str, Any],
    requests: int,
    were: Mapping[str, int],
    reason: str,
    by_whom: str,
) -> int:
    """Keep an intervention, in the transaction that carries it out; its id."""
    values = {
        "verb": verb, "source": source, "window_start": window_start, "selection": Jsonb(dict(selection)),
        "requests": requests, "were": Jsonb(dict(were)), "reason": reason, "by_whom": by_whom,
    }  # fmt: skip
    row: Any = connection.execute(SQL["insert_intervention"], values).fetchone()
    return int(row[0])


def listed(connection: Connection, source: str, window_start: datetime, *, limit: int = 10) -> list[Intervention]:
    """The newest interventions in a window, newest first."""
    values = {"source": source, "window_start": window_start, "limit": limit}
    with connection.cursor(row_factory=class_row(Intervention)) as cursor:
        return cursor.execute(SQL["list_interventions"], values).fetchall()
