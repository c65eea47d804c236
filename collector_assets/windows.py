"""Store of collection windows. The row of a window is the lock for everything that is counted in it (rule 2).

Every function takes an open connection and works inside the caller's transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString, TypeVar, cast

from psycopg.rows import dict_row

from collector_assets.database import Connection, statements
from collector_assets.errors import ContractError, UnknownWindow
from collector_assets.window import Window, utc

SQL: Final = statements("windows")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRow:
    """One collection window of one source; times in UTC."""

    source: str
    window: Window
    capacity: int
    max_requests: int
    names_window: bool
    """Whether the source's starts name the window: only then can an old one be truly collected."""
    planned: int
    """Requests that were accepted so far."""
    opened_at: datetime
    closes_at: datetime
    """End + grace: what is collected from here on is late."""
    bound_reached: str | None
    superseded_at: datetime | None
    late_results: int
    """Results refused because their lease had moved on or expired."""
    counted_version: str | None
    """The extractor version whose observations count (rule 17)."""
    published_at: datetime | None
    discarded_at: datetime | None
    """Pages of it were discarded, because they were older than the source keeps them."""


def open_window(
    connection: Connection,
    *,
    source: str,
    window: Window,
    capacity: int,
    max_requests: int,
    names_window: bool,
    closes_at: datetime,
    reach: bytes | None = None,
) -> tuple[WindowRow, bool]:
    """The window's row, and whether it is new; one that exists takes the new limits.

    `reach` is a digest of what decides which pages it can show (`Source.reach`); one that changes while the window is
    open is forgotten.
    Raises `ContractError` when the key names another interval already (the schedule or its time zone was changed).
    """
    values = {
        "source": source, "window_start": window.start, "window_end": window.end, "window_key": window.key,
        "capacity": capacity, "max_requests": max_requests, "names_window": names_window, "closes_at": closes_at,
        "reach": reach,
    }  # fmt: skip
    if row := _one(connection, SQL["insert_window"], values):
        return row, True
    if row := _one(connection, SQL["update_limits"], values):
        return row, False
    raise ContractError(
        "window", f"{window.key!r} named another interval when it was opened: the schedule was changed", source=source
    )


def clock(connection: Connection) -> datetime:
    """Now, by the database's clock."""
    row = connection.execute(SQL["clock"]).fetchone()
    assert row is not None  # noqa: S101  a SELECT without FROM has one row
    return utc(cast("datetime", row[0]))


def find(connection: Connection, source: str, key: str) -> WindowRow | None:
    """The window of this key, if it was opened."""
    return _one(connection, SQL["find_window"], {"source": source, "key": key})


def require(connection: Connection, source: str, key: str) -> WindowRow:
    """The window of this key; UnknownWindow when it was never opened."""
    row = find(connection, source, key)
    if row is None:
        raise UnknownWindow(source, key, "it was never opened; materialize its `frontier` first")
    return row


def lock(connection: Connection, source: str, window_start: datetime) -> WindowRow:
    """The row, held until the transaction ends; the first lock of every transaction that takes it (rule 6)."""
    row = _one(connection, SQL["lock_window"], {"source": source, "window_start": window_start})
    return _known(row, source, window_start)


def is_late(connection: Connection, source: str, window_start: datetime, now: datetime | None = None) -> bool:
    """Whether what is collected now is late; never, where the starts name the window."""
    values = {"source": source, "window_start": window_start, "now": now}
    row = connection.execute(SQL["is_late"], values).fetchone()
    return bool(_known(row, source, window_start)[0])


def mark_bound(connection: Connection, source: str, window_start: datetime, bound: str) -> None:
    """Note which bound stopped discovery; the first one stays."""
    _change(connection, SQL["mark_bound"], source, window_start, bound=bound)


def supersede_older(connection: Connection, source: str, window_start: datetime) -> list[str]:
    """End the older windows that cannot be finished any more; their keys, oldest first (rule 22).

    Those are the ones with something left to fetch whose starts do not name them. What is fetched can still be read.
    """
    values = {"source": source, "window_start": window_start}
    ended: list[Any] = connection.execute(SQL["supersede_older"], values).fetchall()
    return [key for _, key in sorted(ended)]


def take_up(connection: Connection, source: str, window_start: datetime) -> None:
    """A person goes on with the window: it is not superseded, until a newer one opens and finds it unfinished again."""
    _change(connection, SQL["take_up"], source, window_start)


def count_late_results(connection: Connection, source: str, window_start: datetime, late_results: int) -> None:
    """Count results that were refused."""
    _change(connection, SQL["count_late_results"], source, window_start, late_results=late_results)


def set_counted_version(connection: Connection, source: str, window_start: datetime, version: str | None) -> None:
    """Say which extractor version's observations count, or that none does."""
    _change(connection, SQL["set_counted_version"], source, window_start, version=version)


def set_published(connection: Connection, source: str, window_start: datetime) -> None:
    """Note that the window is in `latest` as of now."""
    _change(connection, SQL["set_published"], source, window_start)


def set_whole(connection: Connection, source: str, window_start: datetime, whole_at: datetime | None) -> None:
    """Say that the window shows everything there was from then on, or that it does not."""
    _change(connection, SQL["set_whole"], source, window_start, whole_at=whole_at)


def ended(connection: Connection, source: str, *, before: datetime) -> list[WindowRow]:
    """The windows that ended before and have pages, newest first."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return [_row(found) for found in cursor.execute(SQL["ended_windows"], {"source": source, "before": before})]


def mark_discarded(connection: Connection, source: str, window_start: datetime) -> None:
    """Note that pages of the window are discarded."""
    _change(connection, SQL["mark_discarded"], source, window_start)


def newest(connection: Connection, source: str) -> WindowRow | None:
    """The newest window that was opened."""
    return _one(connection, SQL["newest_window"], {"source": source})


def all_windows(connection: Connection, source: str | None = None) -> list[WindowRow]:
    """Every window of a source, or of all; newest first."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return [_row(found) for found in cursor.execute(SQL["list_windows"], {"source": source})]


def _one(connection: Connection, statement: LiteralString, values: dict[str, Any]) -> WindowRow | None:
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(statement, values).fetchone()
    return _row(found) if found else None


def _row(found: dict[str, Any]) -> WindowRow:
    return WindowRow(
        source=found["source"],
        window=Window(key=found["window_key"], start=utc(found["window_start"]), end=utc(found["window_end"])),
        capacity=found["capacity"],
        max_requests=found["max_requests"],
        names_window=found["names_window"],
        planned=found["planned"],
        opened_at=utc(found["opened_at"]),
        closes_at=utc(found["closes_at"]),
        bound_reached=found["bound_reached"],
        superseded_at=found["superseded_at"] and utc(found["superseded_at"]),
        late_results=found["late_results"],
        counted_version=found["counted_version"],
        published_at=found["published_at"] and utc(found["published_at"]),
        discarded_at=found["discarded_at"] and utc(found["discarded_at"]),
    )


def _change(
    connection: Connection, statement: LiteralString, source: str, window_start: datetime, **values: Any
) -> None:
    row = connection.execute(statement, {"source": source, "window_start": window_start, **values}).fetchone()
    _known(row, source, window_start)


def _known(row: Found | None, source: str, window_start: datetime) -> Found:
    if row is None:
        raise UnknownWindow(source, window_start.isoformat(), "it was never opened")
    return row
