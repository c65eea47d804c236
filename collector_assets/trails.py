"""Store: what the listings of one sort of address showed in a window; the caller holds the window's row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from collector_assets.database import Connection, statements
from collector_assets.storable import clean_text
from collector_assets.traps import Trail

SQL: Final = statements("trails")


def read(connection: Connection, source: str, window_start: datetime, patterns: Collection[str]) -> dict[str, Trail]:
    """The trails of these patterns; an empty one for each that has none yet."""
    values = {"source": source, "window_start": window_start, "patterns": [clean_text(each) for each in patterns]}
    rows: list[Any] = connection.execute(SQL["read_trails"], values).fetchall()
    found = {pattern: Trail(barren=barren, recent=tuple(recent)) for pattern, barren, recent in rows}
    return {pattern: found.get(clean_text(pattern), Trail()) for pattern in patterns}


def write(connection: Connection, source: str, window_start: datetime, trails: Mapping[str, Trail]) -> None:
    """Keep them for the next batch."""
    values = [
        {
            "source": source,
            "window_start": window_start,
            "pattern": clean_text(pattern),
            "barren": trail.barren,
            "recent": list(trail.recent),
        }
        for pattern, trail in sorted(trails.items())
    ]
    with connection.cursor() as cursor:
        cursor.executemany(SQL["write_trail"], values)
