"""Store of observations: records as seen in one window by one extractor version. Written from what is staged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.rows import dict_row

from collector_assets.database import Connection, statements, stream

SQL: Final = statements("observations")

OURS: Final = (
    "entity", "window_start", "window_key", "collected_at", "source_revised_at", "late", "page_id", "extractor_version",
)  # fmt: skip
"""Columns of history that follow the record's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What a run did to the observations of its window and version."""

    new: int
    changed: int
    gone: int
    """There before, not among what was read now."""


def replace(connection: Connection, *, source: str, window_start: datetime, version: str) -> Replaced:
    """Make the window's observations by this version what is staged. Rows that are the same are not touched."""
    values = {"source": source, "window_start": window_start, "version": version}
    stale: Any = connection.execute(SQL["delete_stale"], values).fetchone()
    changed, gone = stale
    inserted = connection.execute(SQL["insert_new"], values).rowcount
    return Replaced(new=inserted - changed, changed=changed, gone=gone)


def count(connection: Connection, source: str, window_start: datetime, version: str | None = None) -> Mapping[str, int]:
    """Observations by record type; of one extractor version, or of the one that counts."""
    values = {"source": source, "window_start": window_start, "version": version}
    rows: list[Any] = connection.execute(SQL["count_observations"], values).fetchall()
    return dict(rows)


def preview(
    connection: Connection, source: str, window_start: datetime, version: str | None = None, *, limit: int = 10
) -> list[dict[str, Any]]:
    """A few records as people read them: type and entity, then the fields."""
    values = {"source": source, "window_start": window_start, "version": version, "limit": limit}
    with connection.cursor(row_factory=dict_row) as cursor:
        return [
            {"record_type": row["record_type"], "entity": row["entity"], **row["data"]}
            for row in cursor.execute(SQL["preview_observations"], values)
        ]


def rows(connection: Connection, source: str, record_type: str, *, at_once: int) -> Iterator[list[tuple[Any, ...]]]:
    """Every observation that counts, oldest window first: the values as JSON text, then ours in the order of `OURS`."""
    return stream(connection, SQL["read_history"], {"source": source, "record_type": record_type}, at_once=at_once)


def has_lost_pages(connection: Connection, source: str, window_start: datetime) -> bool:
    """Whether a page of an observation that counts is discarded: reading the window again would lose it."""
    values = {"source": source, "window_start": window_start}
    row: Any = connection.execute(SQL["has_lost_pages"], values).fetchone()
    return bool(row[0])


def delete_history(connection: Connection, source: str, *, before: datetime, is_dry: bool) -> int:
    """Delete the observations of windows that ended before, or only count them; what `latest` stands on stays."""
    values = {"source": source, "before": before, "is_dry": is_dry}
    row: Any = connection.execute(SQL["delete_history"], values).fetchone()
    return int(row[0])
