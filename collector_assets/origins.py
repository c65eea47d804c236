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
    """A row: how often in a row it refused, and whether it is halted."""

    origin: str
    """scheme://host[:port] (`urls.origin`)."""
    budget_key: str | None
    refusals: int
    """Since the last good page."""
    halted_at: datetime | None
    halted_reason: str | None
    """Also of the last halt, after a person resumed it."""
    halted_by: str | None
    """The source whose refusal was one too many."""
    resumed_at: datetime | None
    resumed_reason: str | None
    resumed_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A glance at the clock and at what is not as it should be."""

    now: datetime
    origins: frozenset[str]
    """That refused since their last good page."""
    budget_keys: frozenset[str]
    """Where a request was unavailable since the last good page."""


def look(
    connection: Connection, origins: Collection[str], budget_keys: Collection[str], *, now: datetime | None = None
) -> Look:
    """The database's time, and what of these is in trouble; locks nothing."""
    values = {"origins": list(origins), "budget_keys": list(budget_keys), "now": now}
    row: Any = connection.execute(SQL["look"], values).fetchone()
    return Look(now=utc(row[0]), origins=frozenset(row[1]), budget_keys=frozenset(row[2]))


def locked(connection: Connection, keys: Mapping[str, str]) -> dict[str, Origin]:
    """The rows of these origins (with their budget keys), made where there is none, under their locks."""
    names = sorted(keys)
    connection.execute(SQL["note_origins"], {"origins": names, "budget_keys": [keys[name] for name in names]})
    with connection.cursor(row_factory=class_row(Origin)) as cursor:
        return {row.origin: row for row in cursor.execute(SQL["lock_origins"], {"origins": names})}


def count_refusals(connection: Connection, origin: str, refusals: int) -> None:
    """Write how many are in a row now; the caller holds the lock."""
    connection.execute(SQL["count_refusals"], {"origin": origin, "refusals": refusals})


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
    rows: list[Any] = connection.execute(SQL["halted_names"]).fetchall()
    return frozenset(row[0] for row in rows)


def listed(connection: Connection) -> list[Origin]:
    """Every origin that was ever in trouble, the halted first."""
    with connection.cursor(row_factory=class_row(Origin)) as cursor:
        return cursor.execute(SQL["list_origins"]).fetchall()
