"""Store of `latest`: per entity the greatest observation that counts, by (collected_at, page id) (rule 17).

Every column but `published_at` follows from the observations that count, so any order of windows, backfills and
re-extractions ends in the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.rows import class_row, dict_row

from collector_assets.database import Connection, statements, stream

SQL: Final = statements("latest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """What publishing a window did to the entities that it holds or held."""

    inserted: int
    updated: int
    """Their values changed; `published_at` moved."""
    unchanged: int
    """Same values, perhaps seen again."""
    moved_back: int
    """Of the updated and unchanged: an older observation is the greatest now, because a newer one stopped counting."""
    withdrawn: int
    """No observation of them counts any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much there is."""

    total: int
    """Rows of the source."""
    from_window: int
    """Rows whose newest observation is of the window."""
    missing: int
    """Entities with an observation of the window that counts, and no row: always 0."""


def lock(connection: Connection, source: str) -> None:
    """One publisher per source at a time, until the transaction ends: two windows may hold the same entity."""
    connection.execute(SQL["lock_source"], {"source": source})


def recompute(connection: Connection, source: str, window_start: datetime) -> Recomputed:
    """Make the rows of every entity that the window holds or held what the counting observations say."""
    values = {"source": source, "window_start": window_start}
    with connection.cursor(row_factory=class_row(Recomputed)) as cursor:
        done = cursor.execute(SQL["recompute"], values).fetchone()
    assert done is not None  # noqa: S101  an aggregate has one row
    return done


def extent(connection: Connection, source: str, window_start: datetime) -> Extent:
    """How much there is, in all and from one window."""
    values = {"source": source, "window_start": window_start}
    with connection.cursor(row_factory=class_row(Extent)) as cursor:
        found = cursor.execute(SQL["extent"], values).fetchone()
    assert found is not None  # noqa: S101
    return found


def preview(connection: Connection, source: str, *, limit: int = 10) -> list[dict[str, Any]]:
    """A few rows as people read them, the newest first."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return [
            {
                "record_type": row["record_type"],
                "entity": row["entity"],
                **row["data"],
                "collected_at": row["collected_at"],
            }
            for row in cursor.execute(SQL["preview_latest"], {"source": source, "limit": limit})
        ]


def rows(connection: Connection, source: str, record_type: str, *, at_once: int) -> Iterator[list[tuple[Any, ...]]]:
    """Every row of a record type by entity: the values as JSON text, then ours in the order of `views.OURS`."""
    return stream(connection, SQL["read_latest"], {"source": source, "record_type": record_type}, at_once=at_once)


def values(
    connection: Connection, source: str, record_type: str | None, *, at_once: int
) -> Iterator[list[tuple[Any, ...]]]:
    """The values of every entity that is there, of one record type or of all, each in a row of its own."""
    return stream(connection, SQL["read_values"], {"source": source, "record_type": record_type}, at_once=at_once)


def is_published(connection: Connection, source: str) -> bool:
    """Whether a window of the source was ever published."""
    row = connection.execute(SQL["is_published"], {"source": source}).fetchone()
    return bool(row and row[0])
