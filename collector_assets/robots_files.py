"""Store of robots.txt files: one row per origin, fetched by one worker and read by all.

A row keeps the newest answer that settled what may be fetched, and, beside it, how later tries went. `standing` says
what a row is good for now; the numbers are RFC 9309's where it has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from psycopg.rows import class_row

from collector_assets import urls
from collector_assets.database import Connection, statements
from collector_assets.outcome import Outcome
from collector_assets.storable import clean_text

SQL: Final = statements("robots_files")

FRESH_FOR: Final = timedelta(hours=12)
"""After this an answer is fetched anew; until `GOOD_FOR` it still serves when that does not work."""
GOOD_FOR: Final = timedelta(hours=24)
"""RFC 9309 §2.4: not longer, unless the file is unreachable."""
FIRST_WAIT: Final = timedelta(minutes=1)
LONGEST_WAIT: Final = timedelta(hours=1)
"""Between tries of a file that cannot be had; they double from the first."""
UNREACHABLE_FOR: Final = timedelta(days=30)
UNREACHABLE_TRIES: Final = 10
"""RFC 9309 §2.3.1.4: after so long, and so many tries, the last good copy serves, or else there is no file."""

Answer: TypeAlias = Literal["rules", "absent", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A row; times in seconds from the moment of reading."""

    origin: str
    answer: Answer | None
    status: int | None
    url: str | None
    body: bytes | None
    notes: Sequence[str]
    failures: int
    outcome: str | None
    problem: str | None
    claimed_by: str | None
    fetched_at: datetime | None
    age_s: float | None
    failing_for_s: float | None
    next_try_in_s: float | None
    claimed_for_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An answer on its way into its row."""

    answer: Answer
    status: int
    url: str
    body: bytes = b""
    crawl_delay_s: float | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A try that settled nothing."""

    outcome: Outcome
    problem: str
    first: timedelta = FIRST_WAIT
    """Until the next try; doubled with every further one that fails."""
    least: timedelta = timedelta(0)
    """At least so long: the site asked for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """What the row says holds for so long."""

    file: File
    answer: Answer
    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreachable:
    """Nobody knows what may be fetched; not before then is it tried again."""

    for_s: float
    outcome: Outcome
    problem: str
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """Another worker is fetching it."""

    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """It is to be fetched, by whoever claims it."""


Standing: TypeAlias = Usable | Unreachable | Claimed | Due


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A row for people."""

    origin: str
    answer: Answer | None
    status: int | None
    crawl_delay_s: float | None
    notes: Sequence[str]
    fetched_at: datetime | None
    failures: int
    failing_since: datetime | None
    problem: str | None
    next_try_at: datetime | None


def standing(file: File | None, holder: str) -> Standing:
    """What a row is good for now, to a worker that would claim it as `holder`."""
    if file is None:
        return Due()
    if file.answer and not file.failures and _s(file.age_s) < FRESH_FOR.total_seconds():
        return Usable(file=file, answer=file.answer, for_s=FRESH_FOR.total_seconds() - _s(file.age_s))
    if _s(file.next_try_in_s) > 0:
        return _while_failing(file)
    if _s(file.claimed_for_s) > 0 and file.claimed_by != holder:
        return Claimed(for_s=_s(file.claimed_for_s))
    return Due()


def _while_failing(file: File) -> Usable | Unreachable:
    next_in, good_for = _s(file.next_try_in_s), GOOD_FOR.total_seconds() - _s(file.age_s)
    if file.answer and good_for > 0:
        return Usable(file=file, answer=file.answer, for_s=min(next_in, good_for))
    if _s(file.failing_for_s) >= UNREACHABLE_FOR.total_seconds() and file.failures >= UNREACHABLE_TRIES:
        return Usable(file=file, answer=file.answer or "absent", for_s=next_in)
    outcome = Outcome(file.outcome or Outcome.ROBOTS_UNREACHABLE)
    return Unreachable(for_s=next_in, outcome=outcome, problem=file.problem or "", failures=file.failures)


def _s(seconds: float | None) -> float:
    return 0.0 if seconds is None else seconds


def read(connection: Connection, origin: str, *, now: datetime | None = None) -> File | None:
    """What is known of the origin's file; locks nothing."""
    with connection.cursor(row_factory=class_row(File)) as cursor:
        return cursor.execute(SQL["read_file"], {"origin": origin, "now": now}).fetchone()


def claim(
    connection: Connection,
    origin: str,
    seen: File | None,
    *,
    holder: str,
    lasts: timedelta,
    now: datetime | None = None,
) -> bool:
    """Be the one who fetches it, as long as the row is as it was seen; again, to go on for longer."""
    host = urls.host(origin)
    values = {
        "origin": origin, "host": host, "domain": urls.domain(host), "holder": holder, "lasts": lasts, "now": now,
        "seen_fetched_at": seen and seen.fetched_at, "seen_failures": seen.failures if seen else 0,
    }  # fmt: skip
    return connection.execute(SQL["claim_file"], values).fetchone() is not None


def let_go(connection: Connection, origin: str, *, holder: str) -> None:
    """Give a claim back: it was not sent after all."""
    connection.execute(SQL["let_go"], {"origin": origin, "holder": holder})


def store(
    connection: Connection, origin: str, got: Found | Missing, *, holder: str, now: datetime | None = None
) -> bool:
    """Write how the fetch ended; False when the claim is somebody else's by now."""
    mine = {"origin": origin, "holder": holder, "now": now}
    match got:
        case Found():
            values = {
                "answer": got.answer, "status": got.status, "url": clean_text(got.url), "body": got.body,
                "crawl_delay_s": got.crawl_delay_s, "notes": [clean_text(note) for note in got.notes],
            }  # fmt: skip
            return connection.execute(SQL["settle_file"], mine | values).fetchone() is not None
        case Missing():
            values = {
                "outcome": str(got.outcome), "problem": clean_text(got.problem), "least": got.least,
                "first": got.first, "most": LONGEST_WAIT,
            }  # fmt: skip
            return connection.execute(SQL["fail_file"], mine | values).fetchone() is not None


def listed(connection: Connection, origin: str | None = None) -> list[Listed]:
    """Every file that is known, or one."""
    with connection.cursor(row_factory=class_row(Listed)) as cursor:
        return cursor.execute(SQL["list_files"], {"origin": origin}).fetchall()
