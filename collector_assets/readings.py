"""Store of readings: the verdict on one page by one extractor version (rule 15). Written from what is staged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from collector_assets.database import Connection, statements

SQL: Final = statements("readings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What reading a request's page came to."""

    request_id: int
    outcome: str
    reason: str | None


def replace(connection: Connection, *, source: str, window_start: datetime, version: str) -> int:
    """Make the window's readings by this version what is staged; how many rows changed. Twice changes nothing."""
    values = {"source": source, "window_start": window_start, "version": version}
    return sum(connection.execute(SQL[name], values).rowcount for name in ("delete_stale", "insert_new"))


def outcomes(connection: Connection, *, at_once: int = 5_000) -> Iterator[list[Outcome]]:
    """What the staged pages came to, in request id order, of those whose requests are moved by it."""
    after = 0
    while True:
        rows: list[Any] = connection.execute(SQL["outcomes"], {"after": after, "limit": at_once}).fetchall()
        if not rows:
            return
        yield [Outcome(request_id=row[0], outcome=row[1], reason=row[2]) for row in rows]
        after = rows[-1][0]
