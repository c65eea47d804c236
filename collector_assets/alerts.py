"""Store of alerts: one row per source and cause, so that a storm is one message with a count.

A message goes out when a cause appears, when it comes back after it was gone for a while, and once a day as long as
it goes on. What could not be delivered is tried again, only to the channels that do not have it yet.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.storable import clean_text

SQL: Final = statements("alerts")
GONE_AFTER: Final = timedelta(hours=6)
"""Without a sign this long, a cause is over; the next time is news."""
AGAIN_AFTER: Final = timedelta(hours=24)
"""What goes on is told again, with a count."""
GIVE_UP_AFTER: Final = timedelta(days=2)
"""News that could not be told for so long is none."""
HOLD: Final = timedelta(minutes=5)
"""How long whoever sends a message has it alone."""
LONGEST_WAIT: Final = timedelta(hours=1)
MOST_TITLE, MOST_BODY, MOST_CAUSE = 200, 1_500, 120

CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+")
"""Control characters, and those that turn the direction of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A message that the caller must send."""

    source: str
    cause: str
    owners: list[str]
    title: str
    body: str
    first_at: datetime
    last_at: datetime
    count: int
    attempts: int
    delivered: list[str]
    """Channels that have it already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An alert as people see it."""

    source: str
    cause: str
    title: str
    body: str
    first_at: datetime
    last_at: datetime
    count: int
    sent_at: datetime | None
    problem: str | None


def note(
    connection: Connection,
    *,
    source: str,
    cause: str,
    title: str,
    body: str,
    owners: Sequence[str] = (),
    repeats: bool = True,
    now: datetime | None = None,
) -> None:
    """It happened, once more; `repeats` tells it again each day while it goes on."""
    values = {
        "source": _line(source, MOST_CAUSE), "cause": _line(cause, MOST_CAUSE), "owners": list(owners),
        "title": _line(title, MOST_TITLE), "body": _bounded(CONTROL.sub(" ", clean_text(body)), MOST_BODY),
        "repeats": repeats, "gone_after": GONE_AFTER, "now": now,
    }  # fmt: skip
    connection.execute(SQL["note_alert"], values)


def claim(connection: Connection, *, most: int, now: datetime | None = None) -> list[Pending]:
    """Messages that the caller must send now; nobody else gets them for some minutes."""
    values = {
        "hold": HOLD, "again_after": AGAIN_AFTER, "give_up_after": GIVE_UP_AFTER, "most": most, "now": now,
    }  # fmt: skip
    with connection.cursor(row_factory=class_row(Pending)) as cursor:
        found = cursor.execute(SQL["claim_alerts"], values).fetchall()
    return sorted(found, key=lambda pending: (pending.last_at, pending.source, pending.cause))


def settle(
    connection: Connection,
    pending: Pending,
    *,
    delivered: Collection[str],
    problem: str | None,
    now: datetime | None = None,
) -> bool:
    """Note what became of a message: sent, or a problem and another attempt later; False when it was claimed anew."""
    wait = min(timedelta(minutes=2 ** min(pending.attempts - 1, 6)), LONGEST_WAIT)
    values = {
        "source": pending.source, "cause": pending.cause, "attempts": pending.attempts,
        "delivered": sorted(delivered), "problem": problem, "wait": wait, "now": now,
    }  # fmt: skip
    return connection.execute(SQL["settle_alert"], values).fetchone() is not None


def listed(connection: Connection, source: str | None = None, *, limit: int = 100) -> list[Listed]:
    """Alerts of one source or of all, the newest first."""
    with connection.cursor(row_factory=class_row(Listed)) as cursor:
        return cursor.execute(SQL["list_alerts"], {"source": source, "limit": limit}).fetchall()


def _line(text: str, most: int) -> str:
    return _bounded(" ".join(CONTROL.sub(" ", clean_text(text)).split()), most)


def _bounded(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
