"""Store of mutes and pauses: what a person decided about a source's alerts, until when, and why.

A mute keeps the alerts of a source back. A pause does that too, and nothing is started for the source by itself: no
schedule, no resume, no request for a fresh window. Whoever clicks or types still may.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements
from collector_assets.storable import clean_text

SQL: Final = statements("mutes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mute:
    """A source whose alerts are kept back."""

    source: str
    until: datetime
    pauses: bool
    reason: str
    by_whom: str
    at: datetime


def put(
    connection: Connection,
    *,
    source: str,
    until: datetime,
    pauses: bool,
    reason: str,
    by_whom: str,
    now: datetime | None = None,
) -> None:
    """Mute or pause a source; replaces what was decided before."""
    values = {
        "source": source, "until": until, "pauses": pauses, "reason": clean_text(reason),
        "by_whom": clean_text(by_whom), "now": now,
    }  # fmt: skip
    connection.execute(SQL["put_mute"], values)


def active(connection: Connection, now: datetime | None = None) -> dict[str, Mute]:
    """The mutes that hold now, by source."""
    with connection.cursor(row_factory=class_row(Mute)) as cursor:
        return {mute.source: mute for mute in cursor.execute(SQL["active_mutes"], {"now": now})}


def end(connection: Connection, source: str, now: datetime | None = None) -> bool:
    """End a mute or pause now; False when none held."""
    return connection.execute(SQL["end_mute"], {"source": source, "now": now}).fetchone() is not None
