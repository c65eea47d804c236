"""The row of a window: the lock for whatever is counted in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.errors import UnknownWindow

SQL: Final = statements("frontier")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedWindow:
    """What a window's row says while it is ours."""

    capacity: int
    planned: int
    turns: dict[str, dict[str, int]]


def lock_window(connection: Connection, values: Mapping[str, Any]) -> LockedWindow:
    """The window, whose row is ours from here to the end of the transaction."""
    with connection.cursor(row_factory=class_row(LockedWindow)) as cursor:
        found = cursor.execute(SQL["lock_window"], values).fetchone()
    if found is None:
        raise UnknownWindow(values["source"], values["window_start"].isoformat(), "it was never opened")
    return found
