"""What a window still has to do: what is due and when, what is in use, what waits for a halted origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.errors import UnknownWindow

SQL: Final = statements("frontier")


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What a claim would find."""

    by_key: Mapping[str, int]
    """Budget key -> requests that can be claimed now, candidates for which there is room included."""
    next_due_in: float | None
    """Seconds until the next wait or lease of somebody else ends; None when there is none."""
    to_fetch: int
    """Everything of these kinds that is not fetched yet, whoever holds it."""
    halted: int
    """Of these, what waits for origins that are halted."""


def due(
    connection: Connection,
    source: str,
    window_start: datetime,
    kinds: Sequence[str] | None = None,
    now: datetime | None = None,
) -> Due:
    """What a pass over these kinds (all when None) can do now, and when to look again. Raises `UnknownWindow`."""
    values = {
        "source": source,
        "window_start": window_start,
        "kinds": None if kinds is None else list(kinds),
        "now": now,
    }
    outlook: Any = connection.execute(SQL["outlook"], values).fetchone()
    if outlook is None:
        raise UnknownWindow(source, window_start.isoformat(), "it was never opened")
    to_fetch, halted, room, next_due_in = outlook
    by_key: list[Any] = connection.execute(SQL["due_by_key"], values | {"room": room}).fetchall()
    return Due(by_key=dict(by_key), next_due_in=next_due_in, to_fetch=to_fetch, halted=halted)


def in_use(connection: Connection, source: str, window_start: datetime) -> str:
    """Why the window's pages are needed as they are; empty when they are not."""
    row: Any = connection.execute(SQL["is_in_use"], {"source": source, "window_start": window_start}).fetchone()
    is_held, is_unread = row
    return "a worker holds requests of it" if is_held else "pages of it are not read yet" if is_unread else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUp:
    """What waits for a halted origin."""

    origin: str
    halted_at: datetime
    reason: str
    requests: int


def held_up(
    connection: Connection, source: str, window_start: datetime, kinds: Sequence[str] | None = None
) -> list[HeldUp]:
    """The halted origins for which requests of these kinds (all when None) wait, the one that holds up most first."""
    values = {"source": source, "window_start": window_start, "kinds": None if kinds is None else list(kinds)}
    with connection.cursor(row_factory=class_row(HeldUp)) as cursor:
        return cursor.execute(SQL["work_by_halt"], values).fetchall()
