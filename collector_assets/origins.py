"""Store of origins as they treat us: refusals in a row, halts, and who resumed them (rule 9).

An origin has a row once something was wrong with it; one that only ever answered well has none. Lock order: after the
rows of budget keys, before requests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.storable import clean_text
from collector_assets.window import utc

SQL: Final = statements("origins")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A row: how often in a row it refused or was not available, and whether it is halted."""

    origin: str
    """scheme://host[:port] (`urls.origin`)."""
    budget_key: str | None = None
    refusals: int = 0
    unavailable: int = 0
    """Different requests in a row."""
    unavailable_request: int | None = None
    halted_at: datetime | None = None
    halted_reason: str | None = None
    """Also of the last halt, after a person resumed it."""
    halted_by: str | None = None
    """The source whose refusal was one too many."""
    resumed_at: datetime | None = None
    resumed_reason: str | None = None
    resumed_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A glance at the clock and at what is not as it should be."""

    now: datetime
    troubled: frozenset[str]
    """Origins that have refused, or were not available, since their last good page."""


def look(
    connection: Connection, origins: Collection[str], budget_keys: Collection[str] = (), *, now: datetime | None = None
) -> Look:
    """The database's time, and which of these origins, or of those under these keys, are in trouble; locks nothing."""
    values = {"origins": list(origins), "budget_keys": list(budget_keys), "now": now}
    row: Any = connection.execute(SQL["look_at_origins"], values).fetchone()
    return Look(now=utc(row[0]), troubled=frozenset(row[1]))


def locked(connection: Connection, keys: Mapping[str, str]) -> dict[str, Origin]:
    """The rows of these origins (with their budget keys), made where there is none, under their locks."""
    names = sorted(keys)
    connection.execute(SQL["note_origins"], {"origins": names, "budget_keys": [keys[name] for name in names]})
    with connection.cursor(row_factory=class_row(Origin)) as cursor:
        return {row.origin: row for row in cursor.execute(SQL["lock_origins"], {"origins": names})}


def write_counts(connection: Connection, row: Origin) -> None:
    """Write what is in a row now; the caller holds the lock."""
    values = {
        "origin": row.origin, "refusals": row.refusals, "unavailable": row.unavailable,
        "unavailable_request": row.unavailable_request,
    }  # fmt: skip
    connection.execute(SQL["write_counts"], values)


def halt(connection: Connection, origin: str, *, source: str, reason: str, now: datetime | None = None) -> bool:
    """Halt it for everybody, until a person resumes it; False when it is halted already."""
    values = {"origin": origin, "source": source, "reason": clean_text(reason), "now": now}
    return connection.execute(SQL["halt_origin"], values).rowcount == 1


def resume(connection: Connection, origin: str, *, reason: str, by_whom: str, now: datetime | None = None) -> bool:
    """End a halt, refusals are counted from none again; False when it was not halted."""
    values = {"origin": origin, "reason": clean_text(reason), "by_whom": clean_text(by_whom), "now": now}
    return connection.execute(SQL["resume_origin"], values).fetchone() is not None


def halted(connection: Connection) -> frozenset[str]:
    """Every origin that nothing may be sent to."""
    return frozenset(str(name) for (name,) in connection.execute(SQL["halted_names"]))


def listed(connection: Connection) -> list[Origin]:
    """Every origin that was ever in trouble, the halted first."""
    with connection.cursor(row_factory=class_row(Origin)) as cursor:
        return cursor.execute(SQL["list_origins"]).fetchall()
