"""Use case: whether what the consumer needs of each source is fresh, and the one cause why not (rules 19, 22).

The decision is in `causes/`; here its facts are gathered. What only Dagster knows (the calendar of a source, its
schedule, its runs) is asked through `Scheduler`, so that this also runs without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from collector_assets import budget, causes, frontier, mutes, standings, urls, verdicts, windows
from collector_assets.causes import Facts, Judgement, Objection, Pace, Run, Scheduling, Span, Standing
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.mutes import Mute
from collector_assets.standings import Demand, KeyWork, Known
from collector_assets.windows import WindowRow


class Scheduler(Protocol):
    """What Dagster knows about sources."""

    def due(self, source: Source, now: datetime) -> Span | None:
        """The window that is running at this moment; None before the first."""
        ...

    def scheduling(self, source: Source) -> Scheduling:
        """The state of the source's schedule."""
        ...

    def runs(self, source: Source, window_keys: Sequence[str]) -> Mapping[str, Run]:
        """The newest run of each of these windows that has one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A judgement, and since when exactly it holds."""

    source: Source
    judgement: Judgement
    found_at: datetime
    now: datetime

    @property
    def held_for(self) -> timedelta:
        """How long the same has been found."""
        return self.now - self.found_at


def judge(
    sources: Iterable[Source], *, database: Database, scheduler: Scheduler, now: datetime | None = None
) -> Iterator[Found]:
    """Judge every source that promises a freshness, and record what was found. One cheap statement for the fresh."""
    promising = [source for source in sources if source.freshness is not None]
    with database.transaction() as connection:
        at = now or windows.clock(connection)
        counting = standings.counting(connection, [source.name for source in promising])
        halted = standings.halts(connection)
        muted = mutes.active(connection, at)
    for source in promising:
        known = Facts(
            now=at,
            freshness=source.freshness or timedelta.max,
            due=None,
            counting=counting.get(source.name),
            newest=None,
            halts=tuple(halt for halt in halted if source.in_scope(urls.host(halt.origin))),
            paused=_pause(muted.get(source.name)),
        )
        judgement = causes.fresh(known) or causes.judge(_of_stale(known, source, database, scheduler))
        with database.transaction() as connection:
            found_at = standings.record(connection, source.name, judgement, at)
        yield Found(source=source, judgement=judgement, found_at=found_at, now=at)


def ask_once(found: Found, window_key: str, database: Database) -> bool:
    """Whether the caller may ask for this window for the cause that was found; one caller may, once."""
    with database.transaction() as connection:
        cause = str(found.judgement.cause)
        return standings.ask_once(connection, found.source.name, window_key, cause, found.now)


def known(database: Database, source: str | None = None) -> list[Known]:
    """What was found last, of one source or of all; `judged_at` says how old that is."""
    with database.transaction() as connection:
        return list(standings.known(connection, source))


# --- Gathering the facts ---------------------------------------------------------------------------------------------


def _pause(mute: Mute | None) -> tuple[datetime, str] | None:
    return (mute.until, mute.reason) if mute and mute.pauses else None


def _of_stale(known: Facts, source: Source, database: Database, scheduler: Scheduler) -> Facts:
    """Everything else that decides. No transaction is open while Dagster is asked."""
    with database.transaction() as connection:
        row = windows.newest(connection, source.name)
    due = scheduler.due(source, known.now)
    keys = {span.key for span in (row and row.window, due) if span}
    asked = replace(known, due=due, scheduling=scheduler.scheduling(source), runs=scheduler.runs(source, sorted(keys)))
    if row is None:
        return asked
    with database.transaction() as connection:
        return replace(
            asked,
            newest=_standing(connection, row, known.now),
            attempts=standings.attempts(connection, source.name, row.window.start),
            pace=_pace(connection, source, row, known.now),
        )


def _standing(connection: Connection, row: WindowRow, now: datetime) -> Standing:
    source, start = row.source, row.window.start
    counts = frontier.counts(connection, source, start)
    verdict, due = verdicts.newest(connection, source, start), frontier.due(connection, source, start, now=now)
    objections = () if verdict is None else verdict.objections
    return Standing(
        window=Span(key=row.window.key, start=start, end=row.window.end),
        closes_at=row.closes_at,
        names_window=row.names_window,
        planned=counts.planned,
        to_fetch=counts.to_fetch,
        to_read=counts.to_read,
        oldest_waiting_at=counts.oldest_waiting_at,
        next_due_at=None if (next_in := _next_in(connection, due, now)) is None else now + timedelta(seconds=next_in),
        is_superseded=row.superseded_at is not None,
        is_published=row.published_at is not None,
        objections=tuple(Objection(check=each.check, message=each.message) for each in objections),
        resumes_without_progress=standings.resumes_without_progress(connection, source, start),
    )


def _next_in(connection: Connection, due: frontier.Due, now: datetime) -> float | None:
    """Seconds until something may be sent; None when it may now, or when nothing is waited for."""
    closed = budget.closed(connection, due.by_key, now=now)
    if set(due.by_key) - set(closed):
        return None
    return min((*closed.values(), *([] if due.next_due_in is None else [due.next_due_in])), default=None)


def _pace(connection: Connection, source: Source, row: WindowRow, now: datetime) -> Pace | None:
    """Of the budget key that takes the longest."""
    mean = standings.mean_response_s(connection, source.name, row.window.start)
    keys = standings.work_by_key(connection, source.name, row.window.start, now)
    paces = [_pace_of(source, key, mean) for key in keys]
    return max(paces, key=lambda pace: pace.seconds_for(pace.requests_left), default=None)


def _pace_of(source: Source, key: KeyWork, mean_response_s: float | None) -> Pace:
    budget = source.budget
    own = Demand(source=source.name, gap_s=budget.gap.total_seconds(), slots=budget.slots, weight=budget.weight)
    demands = [own, *(demand for demand in key.demands if demand.source != source.name)]
    return Pace(
        budget_key=key.budget_key,
        requests_left=key.requests,
        gap_s=max(demand.gap_s for demand in demands),
        slots=min(demand.slots for demand in demands),
        share=own.weight / sum(demand.weight for demand in demands),
        mean_response_s=mean_response_s,
    )
