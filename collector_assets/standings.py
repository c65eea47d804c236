"""Store of what decides about freshness, and of what was decided last (rule 19)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from collector_assets.causes import Attempts, Halt, Judgement, Span
from collector_assets.database import Connection, statements
from collector_assets.outcome import Outcome
from collector_assets.window import utc

SQL: Final = statements("standings")
WITHOUT_ANSWER: Final = frozenset(
    {Outcome.HOST_UNRESOLVED, Outcome.CONNECT_ERROR, Outcome.TIMEOUT, Outcome.CONNECTION_LOST, Outcome.UNAVAILABLE}
)
"""Ends of attempts to which the site, or what stands before it, was not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a source asks of a budget key."""

    source: str
    gap_s: float
    slots: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyWork:
    """What is left to fetch under one budget key, and who asks what of it."""

    budget_key: str
    requests: int
    demands: tuple[Demand, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The newest judgement on a source, as it was recorded."""

    source: str
    is_fresh: bool
    cause: str | None
    window_key: str | None
    message: str
    fix: str
    numbers: Mapping[str, Any]
    stale_at: datetime | None
    found_at: datetime
    """Since when exactly this holds."""
    judged_at: datetime


def counting(connection: Connection, sources: Sequence[str]) -> dict[str, Span]:
    """The newest window of each source that counts; a source without one is missing."""
    rows: list[Any] = connection.execute(SQL["counting_windows"], {"sources": list(sources)}).fetchall()
    return {source: Span(key=key, start=utc(start), end=utc(end)) for source, key, start, end in rows}


def halts(connection: Connection) -> list[Halt]:
    """Every halted origin, the oldest halt first."""
    rows: list[Any] = connection.execute(SQL["halted_origins"]).fetchall()
    return [Halt(origin=origin, at=utc(at), reason=reason) for origin, at, reason in rows]


def attempts(connection: Connection, source: str, window_start: datetime) -> Attempts:
    """How the attempts of a window ended since its last good page."""
    values = {"source": source, "window_start": window_start}
    rows: list[Any] = connection.execute(SQL["failures_since_good"], values).fetchall()
    outcomes = {outcome: count for _, outcome, count in rows if outcome}
    without = sum(count for outcome, count in outcomes.items() if outcome in WITHOUT_ANSWER)
    last = rows[0][0]
    return Attempts(
        last_good_at=last and utc(last), without_answer=without, with_answer=sum(outcomes.values()) - without,
        outcomes=outcomes,
    )  # fmt: skip


def work_by_key(
    connection: Connection, source: str, window_start: datetime, now: datetime | None = None
) -> list[KeyWork]:
    """What is left to fetch of a window, by budget key."""
    values = {"source": source, "window_start": window_start, "now": now}
    found: dict[str, tuple[int, list[Demand]]] = {}
    rows: list[Any] = connection.execute(SQL["work_by_key"], values).fetchall()
    for key, requests, name, gap_s, slots, weight in rows:
        demands = found.setdefault(key, (requests, []))[1]
        if name is not None:
            demands.append(Demand(source=name, gap_s=gap_s, slots=slots, weight=weight))
    return [KeyWork(budget_key=key, requests=n, demands=tuple(demands)) for key, (n, demands) in found.items()]


def mean_response_s(connection: Connection, source: str, window_start: datetime) -> float | None:
    """Mean seconds of some good answers of a window; None when there are none."""
    values = {"source": source, "window_start": window_start}
    row: Any = connection.execute(SQL["mean_response"], values).fetchone()
    return row[0]


def resumes_without_progress(connection: Connection, source: str, window_start: datetime) -> int:
    """How often the window was resumed in vain since it last moved."""
    values = {"source": source, "window_start": window_start}
    row: Any = connection.execute(SQL["resumes_without_progress"], values).fetchone()
    return row[0] if row else 0


def record(connection: Connection, source: str, judgement: Judgement, now: datetime | None = None) -> datetime:
    """Make this the newest judgement; since when exactly this holds."""
    values = {
        "source": source, "is_fresh": judgement.is_fresh, "cause": judgement.cause and str(judgement.cause),
        "window_key": judgement.window_key, "message": judgement.message, "fix": judgement.fix,
        "numbers": Jsonb(dict(judgement.numbers)), "stale_at": judgement.since, "now": now,
    }  # fmt: skip
    row: Any = connection.execute(SQL["record_judgement"], values).fetchone()
    return utc(row[0])


def known(connection: Connection, source: str | None = None) -> Iterator[Known]:
    """What was found last of a source, or of all, in the order of their names."""
    with connection.cursor(row_factory=class_row(Known)) as cursor:
        yield from cursor.execute(SQL["list_judgements"], {"source": source})


def ask_once(
    connection: Connection, source: str, window_key: str, cause: str, now: datetime | None = None
) -> bool:  # fmt: skip
    """Whether the caller is the one who may ask for this window for this cause."""
    values = {"source": source, "window_key": window_key, "cause": cause, "now": now}
    return connection.execute(SQL["ask_once"], values).fetchone() is not None
