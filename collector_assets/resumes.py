"""Store of resumes: unfinished windows that can go on, and how often each was resumed in vain (rule 23)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from collector_assets.database import Connection, statements
from collector_assets.window import utc

SQL: Final = statements("resumes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumable:
    """An unfinished window with work that is due."""

    source: str
    window_key: str
    window_start: datetime


def due(
    connection: Connection, sources: Sequence[str], *, rest: timedelta, now: datetime | None = None
) -> list[Resumable]:
    """Windows of these sources that may go on now, oldest first; `rest` is the least time between two resumes."""
    values = {"sources": list(sources), "rest": rest, "now": now}
    rows: list[Any] = connection.execute(SQL["resumable_windows"], values).fetchall()
    return [Resumable(source=source, window_key=key, window_start=utc(start)) for source, key, start in rows]


def claim(
    connection: Connection, window: Resumable, *, rest: timedelta, most: int, now: datetime | None = None
) -> int | None:
    """The right to resume a window: how often it was resumed in vain before; None when it may not be resumed.

    Of several callers one gets it. After `most` resumes without progress nobody does, until a person moves the window.
    """
    values = {
        "source": window.source, "window_start": window.window_start, "rest": rest, "most": most, "now": now,
    }  # fmt: skip
    row: Any = connection.execute(SQL["claim_resume"], values).fetchone()
    return row[0] if row else None
