"""Store of what windows say about entities that are not in them: "not seen" is not "removed" (rule 18).

A window that shows everything is noted as such when it is published, with what it leaves open. An entity is removed
when enough such windows in a row do not show it (a listing that shifts while it is read hides an item once, and another
the next time), or when its own page says that it is gone. It follows from the stored windows alone, whatever their
order: what is seen again is there again, and a window that was read before the entity was seen says nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements

SQL: Final = statements("removals")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What decides whether a window shows everything."""

    planned: int
    outstanding: int
    failed: int
    unread_listings: int
    """Requests of kinds that lead to others which are not done."""
    is_trapped: bool
    """Links were left out because they led on and on."""
    began_at: datetime | None
    """When its first good page was fetched; what was collected before is older than the window's word."""
    late: int
    """Pages that were fetched after the window had closed."""

    def unsettled(self, max_error_rate: float) -> str:
        """What is in the way of its being settled; empty when it is."""
        if self.outstanding:
            return f"{self.outstanding} requests are outstanding"
        if self.failed > max_error_rate * self.planned:
            return f"{self.failed} of {self.planned} requests failed"
        return ""

    def partial(self) -> str:
        """What is in the way of its showing everything, being settled; empty when it does."""
        if self.unread_listings:
            return f"{self.unread_listings} pages that lead to others were not read"
        if self.is_trapped:
            return "links that led on and on were left out"
        if self.late:
            return f"{self.late} pages are late"
        return "" if self.began_at else "there is no good page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """What became of the marks of a source."""

    removed: int
    """Marked now."""
    returned: int
    """Marked until now."""
    held_back: int
    """Would be marked, but they are more than the source allows at once."""
    there: int
    """Entities without a mark."""
    changed: int
    """Rows that were written."""


def look(connection: Connection, source: str, window_start: datetime, *, listings: Sequence[str], trap: str) -> Look:
    """What there is of a window; `listings` are the kinds that lead to others, `trap` the reason of links left out."""
    values = {"source": source, "window_start": window_start, "listings": list(listings), "trap": trap}
    with connection.cursor(row_factory=class_row(Look)) as cursor:
        found = cursor.execute(SQL["look_at_window"], values).fetchone()
    assert found is not None  # noqa: S101  an aggregate has one row
    return found


def note_doubts(connection: Connection, source: str, window_start: datetime, *, is_settled: bool) -> None:
    """Note what the window leaves open, instead of what was noted before; nothing of one that is not settled."""
    values = {"source": source, "window_start": window_start}
    connection.execute(SQL["forget_doubts"], values)
    if is_settled:
        connection.execute(SQL["note_doubts"], values)


def mark(connection: Connection, source: str, *, is_full: bool, windows: int, most: float) -> Marked:
    """Mark what is gone and unmark what is there again; `windows` must not show it, `most` is a share of what is there.

    Without `is_full` nothing is gone. The source's lock (`latest.lock`) is held.
    """
    values = {"source": source, "is_full": is_full, "windows": windows, "most": most}
    with connection.cursor(row_factory=class_row(Marked)) as cursor:
        found = cursor.execute(SQL["mark_removed"], values).fetchone()
    assert found is not None  # noqa: S101
    return found
