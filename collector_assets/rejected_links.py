"""Store: links that stayed out of the frontier, counted by reason and detail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.storable import clean_text

SQL = statements("rejected_links")


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedLinks:
    """One reason: how many links, and one of them with the page it was found on."""

    reason: str
    detail: str
    """The scheme of what is no web address, the kind that is unknown, the pattern of a trap."""
    count: int
    example: str
    referrer: str | None


def count(
    connection: Connection,
    source: str,
    window_start: datetime,
    *,
    reason: str,
    detail: str,
    number: int,
    example: str,
    referrer: str | None,
) -> None:
    """Add to the count of a reason; the first example is kept. Beyond 100 details of a reason the rest is one."""
    connection.execute(
        SQL["count_rejected_links"],
        {
            "source": source,
            "window_start": window_start,
            "reason": reason,
            "detail": clean_text(detail),
            "count": number,
            "example": clean_text(example),
            "referrer": referrer,
        },
    )


def listed(connection: Connection, source: str, window_start: datetime) -> list[RejectedLinks]:
    """Every reason of a window and its details, most frequent first."""
    with connection.cursor(row_factory=class_row(RejectedLinks)) as cursor:
        cursor.execute(SQL["list_rejected_links"], {"source": source, "window_start": window_start})
        return cursor.fetchall()
