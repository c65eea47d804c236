"""Store of rejects: records that did not pass, with every reason. Written from what is staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements

SQL: Final = statements("rejects")


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectRow:
    """A record that did not pass, and where it came from."""

    record_type: str
    entity: str | None
    reasons: Sequence[Mapping[str, Any]]
    """[{"column", "check", "value"}, …]"""
    data: Mapping[str, Any]
    """As it was yielded."""
    url: str
    request_id: int
    page_id: int
    ordinal: int
    """Which record of the page, from 0."""
    extractor_version: str
    collected_at: datetime


def replace(connection: Connection, *, source: str, window_start: datetime, version: str) -> int:
    """Make the window's rejects by this version what is staged; how many rows changed. Twice changes nothing."""
    values = {"source": source, "window_start": window_start, "version": version}
    return sum(connection.execute(SQL[name], values).rowcount for name in ("delete_stale", "insert_new"))


def list_rejects(
    connection: Connection, source: str, window_start: datetime, version: str | None = None, *, limit: int = 10
) -> list[RejectRow]:
    """Rejects in the order of their requests; of one extractor version, or of the newest verdict's."""
    values = {"source": source, "window_start": window_start, "version": version, "limit": limit}
    with connection.cursor(row_factory=class_row(RejectRow)) as cursor:
        return cursor.execute(SQL["list_rejects"], values).fetchall()


def count(connection: Connection, source: str, window_start: datetime, version: str | None = None) -> int:
    """How many there are; of one extractor version, or of the newest verdict's."""
    values = {"source": source, "window_start": window_start, "version": version}
    row: Any = connection.execute(SQL["count_rejects"], values).fetchone()
    return int(row[0])


def delete(connection: Connection, source: str, *, before: datetime, is_dry: bool) -> int:
    """Delete the rejects of windows that ended before, or only count them."""
    values = {"source": source, "before": before, "is_dry": is_dry}
    row: Any = connection.execute(SQL["delete_rejects"], values).fetchone()
    return int(row[0])
