"""Store: what a window's starts came from, counted and digested."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements

SQL: Final = statements("window_inputs")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowInput:
    """One input of a window, as it was read."""

    input: str
    edition: int
    """The source's, when it was read."""
    row_count: int
    digest: bytes
    """SHA-256 sums of the rows, in whatever order they came."""
    read_at: datetime


def note(
    connection: Connection, source: str, window_start: datetime, name: str, *, edition: int, rows: int, digest: bytes
) -> None:
    """Say that all of an input's rows have become starts."""
    values = {
        "source": source, "window_start": window_start, "input": name, "edition": edition, "row_count": rows,
        "digest": digest,
    }  # fmt: skip
    connection.execute(SQL["note_input"], values)


def listed(connection: Connection, source: str, window_start: datetime) -> list[WindowInput]:
    """The inputs of a window by name; none before all of its starts are in."""
    with connection.cursor(row_factory=class_row(WindowInput)) as cursor:
        return cursor.execute(SQL["list_inputs"], {"source": source, "window_start": window_start}).fetchall()
