"""Store of sessions: one row per source and window, begun by one worker and used by all of them.

`standing` says what a row is good for now. Passwords are never here; cookies and tokens are, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from collector_assets.cookies import Cookie
from collector_assets.database import Connection, statements
from collector_assets.storable import clean_text

SQL: Final = statements("sessions")

MOST_OVER: Final = 2
"""Sessions of a window that may be found over within `OVER_WITHIN`; after one more nobody logs in for a while."""
OVER_WITHIN: Final = timedelta(hours=1)
FIRST_WAIT: Final = timedelta(seconds=10)
LONGEST_WAIT: Final = timedelta(minutes=15)
"""Between logins that do not work yet; they double from the first."""
DENIED_FOR: Final = timedelta(minutes=1)
"""A login that was denied is not tried again before, whoever asks."""
EARLY: Final = 30.0
EARLY_SHARE: Final = 0.1
"""A token is fetched anew so many seconds before its end, or in the last tenth of its life, whichever is shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Whose session."""

    source: str
    window_start: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row; times in seconds from the moment of reading."""

    generation: int = 0
    cookies: Sequence[Mapping[str, Any]] = ()
    changes: int = 0
    token: str | None = field(default=None, repr=False)
    is_proven: bool = False
    is_over: bool = False
    failures: int = 0
    problem: str | None = None
    claimed_by: str | None = None
    valid_for_s: float | None = None
    lifetime_s: float | None = None
    next_try_in_s: float | None = None
    denied_ago_s: float | None = None
    claimed_for_s: float | None = None
    again_in_s: float | None = None

    @property
    def good_for_s(self) -> float | None:
        """Until it is to be renewed; None: nobody said."""
        if self.valid_for_s is None:
            return None
        return self.valid_for_s - min(EARLY, EARLY_SHARE * (self.lifetime_s or 0.0))

    @property
    def jar(self) -> tuple[Cookie, ...]:
        """Its cookies."""
        return tuple(Cookie(**each) for each in self.cookies)


@dataclass(frozen=True, slots=True)
class Live:
    """It may be used."""

    row: Row = field(repr=False)


@dataclass(frozen=True, slots=True)
class Denied:
    """The site does not let us in."""

    problem: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Nobody logs in for so long."""

    for_s: float
    problem: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """Another worker is logging in."""

    for_s: float


@dataclass(frozen=True, slots=True)
class Due:
    """It is to be begun, by whoever claims it."""


Standing: TypeAlias = Live | Denied | Pause | Claimed | Due


def standing(row: Row, *, holder: str, holder_age_s: float) -> Standing:
    """What a row is good for now, to a worker of that age that would claim it as `holder`."""
    if row.denied_ago_s is not None and row.denied_ago_s < max(DENIED_FOR.total_seconds(), holder_age_s):
        return Denied(row.problem or "")
    if row.generation and not row.is_over and (row.good_for_s is None or row.good_for_s > 0):
        return Live(row)
    if _s(row.next_try_in_s) > 0:
        return Pause(_s(row.next_try_in_s), row.problem or "")
    if row.is_over and _s(row.again_in_s) > 0:
        said = f"{MOST_OVER + 1} sessions were over within {OVER_WITHIN.total_seconds() / 60:.0f} minutes"
        return Pause(_s(row.again_in_s), said)
    if _s(row.claimed_for_s) > 0 and row.claimed_by != holder:
        return Claimed(_s(row.claimed_for_s))
    return Due()


def _s(seconds: float | None) -> float:
    return 0.0 if seconds is None else seconds


def read(connection: Connection, key: Key, *, now: datetime | None = None) -> Row:
    """What is known of the session; locks nothing."""
    values = asdict(key) | {"most": MOST_OVER, "within": OVER_WITHIN, "now": now}
    with connection.cursor(row_factory=class_row(Row)) as cursor:
        return cursor.execute(SQL["read_session"], values).fetchone() or Row()


def claim(
    connection: Connection, key: Key, seen: Row, *, holder: str, lasts: timedelta, now: datetime | None = None
) -> bool:
    """Be the one who logs in, as long as the row is as it was seen; again, to go on for longer."""
    values = asdict(key) | {
        "holder": holder, "lasts": lasts, "generation": seen.generation, "failures": seen.failures, "now": now,
    }  # fmt: skip
    return connection.execute(SQL["claim_session"], values).fetchone() is not None


def let_go(connection: Connection, key: Key, *, holder: str) -> None:
    """Give a claim back: it was not tried after all."""
    connection.execute(SQL["let_go"], asdict(key) | {"holder": holder})


def begin(
    connection: Connection,
    key: Key,
    *,
    holder: str,
    cookies: Sequence[Cookie],
    token: str | None,
    lifetime: timedelta | None,
    is_proven: bool,
    now: datetime | None = None,
) -> bool:
    """We are in; False when the claim is somebody else's by now. Old sessions of the source are forgotten."""
    values = asdict(key) | {
        "holder": holder, "cookies": _stored(cookies), "token": token, "lifetime": lifetime, "is_proven": is_proven,
        "now": now,
    }  # fmt: skip
    connection.execute(SQL["forget_old"], values)
    return connection.execute(SQL["begin_session"], values).fetchone() is not None


def delay(
    connection: Connection, key: Key, *, holder: str, problem: str, least: timedelta, now: datetime | None = None
) -> None:
    """The login did not work yet; `least`: how long at least until the next try."""
    values = asdict(key) | {
        "holder": holder, "problem": clean_text(problem), "least": least, "first": FIRST_WAIT, "longest": LONGEST_WAIT,
        "now": now,
    }  # fmt: skip
    connection.execute(SQL["delay_session"], values)


def deny(connection: Connection, key: Key, *, holder: str, problem: str, now: datetime | None = None) -> None:
    """The site does not let us in."""
    values = asdict(key) | {"holder": holder, "problem": clean_text(problem), "now": now}
    connection.execute(SQL["deny_session"], values)


def end(connection: Connection, key: Key, generation: int, *, now: datetime | None = None) -> bool:
    """It was found to be over; whether it had ever let us in. True where somebody knew already."""
    values = asdict(key) | {"generation": generation, "most": MOST_OVER + 1, "now": now}
    row: Any = connection.execute(SQL["end_session"], values).fetchone()
    return row is None or bool(row[0])


def save(
    connection: Connection, key: Key, *, generation: int, changes: int, cookies: Sequence[Cookie], is_proven: bool
) -> bool:
    """Write what pages have changed; False when others were first."""
    values = asdict(key) | {
        "generation": generation, "changes": changes, "cookies": _stored(cookies), "is_proven": is_proven,
    }  # fmt: skip
    return connection.execute(SQL["save_session"], values).fetchone() is not None


def _stored(cookies: Sequence[Cookie]) -> Jsonb:
    return Jsonb([asdict(each) for each in cookies])
