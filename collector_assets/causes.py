"""Whether a source is fresh, and if it is not, why: a pure decision over facts (rules 19, 22, 23).

Fresh means: the newest window that counts began less than `freshness` ago. When the pages were fetched, and which
window was collected last, does not matter: a back-filled old window changes nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal

FEWEST_UNREACHABLE = 3
"""Attempts in a row without an answer that make a site unreachable, where it answered earlier in the window."""
DAEMON_SILENT_AFTER = timedelta(minutes=5)
"""A daemon writes a heartbeat every 30 s."""
START_TAKES = timedelta(minutes=5)
"""From a window's start until its run has opened it: tick, queue, start of a process."""


class Cause(StrEnum):
    """Why a source is not fresh; a closed list, in the words of alerts, metadata and `collector status`."""

    HALTED = "halted_by_refusal"
    UNREACHABLE = "source_unreachable"
    FAILED_CHECK = "failed_check"
    BUDGET_TOO_SMALL = "budget_too_small"
    BACKLOG = "backlog"
    NOT_PUBLISHED = "not_published"
    RUN_FAILED = "run_failed"
    SCHEDULE_OFF = "schedule_off"
    SCHEDULE_FAILED = "schedule_failed"
    DAEMON_WAS_DOWN = "daemon_was_down"
    PAUSED = "paused"
    NEVER_COLLECTED = "never_collected"
    PROMISE_TOO_SHORT = "promise_too_short"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A window: its key and its times."""

    key: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """A check for which a window's newest verdict is not a pass."""

    check: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The newest window that was opened."""

    window: Span
    closes_at: datetime
    names_window: bool
    planned: int
    to_fetch: int
    to_read: int
    oldest_waiting_at: datetime | None
    next_due_at: datetime | None
    """When the next request may be sent, if none may be sent now."""
    is_superseded: bool
    is_published: bool
    objections: tuple[Objection, ...]
    resumes_without_progress: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """An origin that refused us."""

    origin: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How the attempts of a window ended since its last good page."""

    last_good_at: datetime | None
    without_answer: int
    with_answer: int
    """Failed too, but the site was there."""
    outcomes: Mapping[str, int]

    @property
    def is_unreachable(self) -> bool:
        """Whether the newest attempts all ended without an answer."""
        enough = 1 if self.last_good_at is None else FEWEST_UNREACHABLE
        return not self.with_answer and self.without_answer >= enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The slowest budget key of a window: how fast its requests may be sent."""

    budget_key: str
    requests_left: int
    gap_s: float
    slots: int
    share: float
    """Of the key's requests that are this source's, by weight among the live ones; 1 when it is alone."""
    mean_response_s: float | None
    """Of the window's last good pages; None when there are none yet."""

    def seconds_for(self, requests: int) -> float:
        """How long this many requests take at the least."""
        return requests * (self.gap_s + (self.mean_response_s or 0.0)) / (self.slots * self.share)

    def arithmetic(self, requests: int) -> str:
        """The same, for a person."""
        response = "answers of 0 s, none is known" if self.mean_response_s is None else f"{self.mean_response_s:.2f} s"
        share = "" if self.share >= 1 else f" × {self.share:.0%} share of {self.budget_key}"
        return (
            f"{requests:,} requests × ({self.gap_s:g} s gap + {response} answer) / ({self.slots} slots{share})"
            f" = {length(self.seconds_for(requests))}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """What Dagster says about the source's schedule; None where it was not asked or does not know."""

    is_on: bool | None = None
    name: str = ""
    on_since: datetime | None = None
    last_tick_at: datetime | None = None
    tick_error: str | None = None
    """Why the newest tick failed; None when it did not."""
    heartbeat_at: datetime | None = None
    """Of the daemon that evaluates schedules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The newest run that collects a window."""

    run_id: str
    status: Literal["waiting", "working", "failed", "canceled", "succeeded"]
    at: datetime
    """When it was asked for, began or ended."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that decides about one source at one moment."""

    now: datetime
    freshness: timedelta
    due: Span | None
    """The window that is running now by the calendar; None before the first."""
    counting: Span | None
    """The newest window in `latest` that was published and not collected too late."""
    newest: Standing | None
    halts: tuple[Halt, ...] = ()
    attempts: Attempts | None = None
    pace: Pace | None = None
    scheduling: Scheduling = Scheduling()
    runs: Mapping[str, Run] = field(default_factory=dict)
    """By window key."""
    paused: tuple[datetime, str] | None = None
    """Until when and why the source is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Fresh, or the one cause why not, with what led to it."""

    is_fresh: bool
    cause: Cause | None
    window_key: str | None
    """The window that the cause is about; when fresh, the one that counts."""
    message: str
    fix: str
    numbers: Mapping[str, str | int | float]
    since: datetime | None
    """When it went stale, or when it will."""
    collect: str | None = None
    """The window that would be fresh again if it were collected; None where collecting again cannot help."""

    @property
    def is_error(self) -> bool:
        """Whether somebody must look; what a person decided or has not begun yet only warns."""
        return not self.is_fresh and self.cause not in {Cause.PAUSED, Cause.NEVER_COLLECTED}


def judge(facts: Facts) -> Judgement:
    """Fresh, or the first cause that applies: what a person must do goes before what passes by itself."""
    found = fresh(facts) or _of_person(facts) or _of_newest(facts) or _of_due(facts)
    return found or _stale(facts, Cause.UNEXPLAINED, None, *UNEXPLAINED)


def fresh(facts: Facts) -> Judgement | None:
    """That the source is fresh, if it is; needs nothing but the window that counts."""
    counting = facts.counting
    if counting is None or facts.now - counting.start >= facts.freshness:
        return None
    age, promise = (facts.now - counting.start).total_seconds(), facts.freshness.total_seconds()
    return Judgement(
        is_fresh=True, cause=None, window_key=counting.key, since=_plus(counting.start, facts.freshness), fix="",
        message=f"window {counting.key} counts; it began {length(age)} ago, freshness is {length(promise)}",
        numbers={"age_s": round(age), "freshness_s": round(promise)},
    )  # fmt: skip


UNEXPLAINED = (
    "none of the known causes applies",
    "look at the source's runs and at the ticks of its schedule",
)


# --- Causes, in their order ------------------------------------------------------------------------------------------


def _of_person(facts: Facts) -> Judgement | None:
    if facts.paused:
        until, reason = facts.paused
        said = f"paused until {shown(until)}: {reason}"
        return _stale(facts, Cause.PAUSED, None, said, "`collector unmute` ends the pause")
    if facts.halts:
        first = min(facts.halts, key=lambda halt: halt.at)
        more = f", and {len(facts.halts) - 1} more origins" if len(facts.halts) > 1 else ""
        said = f"{first.origin} refused us and is halted since {shown(first.at)} ({first.reason}){more}"
        fix = f"clear it up with the site, then `collector resume {first.origin}`; nothing is sent until a person does"
        return _stale(facts, Cause.HALTED, None, said, fix, origins=len(facts.halts), halted_at=shown(first.at))
    return None


def _of_newest(facts: Facts) -> Judgement | None:
    """What holds up the newest window that was opened, as long as it could still make the source fresh."""
    newest = facts.newest
    if newest is None or not _can_help(facts, newest):
        return None
    if facts.attempts and facts.attempts.is_unreachable:
        return _unreachable(facts, newest, facts.attempts)
    if newest.to_fetch and not newest.is_superseded:
        return _too_slow(facts, newest) or _backlog(facts, newest)
    if newest.objections:
        return _failed_check(facts, newest)
    if newest.is_published:
        return None
    return _unpublished(facts, newest)


def _can_help(facts: Facts, newest: Standing) -> bool:
    is_newer = facts.counting is None or newest.window.start > facts.counting.start
    is_current = facts.due is None or newest.window.start >= facts.due.start
    return is_newer and (is_current or facts.now < _deadline(facts, newest))


def _deadline(facts: Facts, newest: Standing) -> datetime:
    """Done later than this the window makes nothing fresh: it would be too old, or late."""
    too_old = _plus(newest.window.start, facts.freshness)
    return too_old if newest.names_window else min(too_old, newest.closes_at)


def _unreachable(facts: Facts, newest: Standing, attempts: Attempts) -> Judgement:
    ends = ", ".join(f"{name} {count}×" for name, count in sorted(attempts.outcomes.items()))
    last = f"the last good page came {shown(attempts.last_good_at)}" if attempts.last_good_at else "no page came"
    said = f"window {newest.window.key}: {attempts.without_answer} attempts ended without an answer ({ends}); {last}"
    fix = "see whether the site is up and its address right; requests that failed for good need `collector replay`"
    return _stale(
        facts, Cause.UNREACHABLE, newest.window.key, said, fix, attempts_without_answer=attempts.without_answer
    )


def _too_slow(facts: Facts, newest: Standing) -> Judgement | None:
    pace = facts.pace
    if pace is None:
        return None
    deadline = _deadline(facts, newest)
    left = (deadline - facts.now).total_seconds()
    # Once the time is up, what counts is whether the window could ever have been in time.
    requests = pace.requests_left if left > 0 else newest.planned
    allowed = left if left > 0 else (deadline - newest.window.start).total_seconds()
    needed = pace.seconds_for(requests)
    if needed <= allowed:
        return None
    have = f"{length(left)} are left until {shown(deadline)}" if left > 0 else f"a window has {length(allowed)}"
    said = f"window {newest.window.key} cannot be done in time: {pace.arithmetic(requests)}; {have}"
    fix = "where the site allows it, a smaller gap, more slots, a greater weight; else fewer requests, longer windows"
    return _stale(
        facts, Cause.BUDGET_TOO_SMALL, newest.window.key, said, fix,
        requests=requests, gap_s=pace.gap_s, mean_response_s=round(pace.mean_response_s or 0.0, 3), slots=pace.slots,
        share=round(pace.share, 3), needed_s=round(needed), allowed_s=round(allowed),
    )  # fmt: skip


def _backlog(facts: Facts, newest: Standing) -> Judgement:
    key, run = newest.window.key, facts.runs.get(newest.window.key)
    oldest = newest.oldest_waiting_at
    waits = f", the oldest for {length((facts.now - oldest).total_seconds())}" if oldest else ""
    due = f"; the next is due {shown(newest.next_due_at)}" if newest.next_due_at else ""
    said = f"window {key}: {newest.to_fetch:,} of {newest.planned:,} requests wait{waits}{due}; {_of_run(run)}"
    fix = "it goes on by itself when its work is due; `collector work` helps it along"
    if newest.resumes_without_progress:
        said += f"; resumed {newest.resumes_without_progress} times without progress"
        fix = "look at its last run, then materialize the partition"
    waiting_s = round((facts.now - oldest).total_seconds()) if oldest else 0
    return _stale(
        facts, Cause.BACKLOG, key, said, fix,
        to_fetch=newest.to_fetch, planned=newest.planned, oldest_waiting_s=waiting_s,
        resumes_without_progress=newest.resumes_without_progress,
    )  # fmt: skip


def _failed_check(facts: Facts, newest: Standing) -> Judgement:
    names = ", ".join(each.check for each in newest.objections)
    messages = "; ".join(f"{each.check}: {each.message}" for each in newest.objections)
    fix = "mend the cause (extract, schema, expectations), then materialize `records` and `latest`; nothing is fetched"
    return _stale(facts, Cause.FAILED_CHECK, newest.window.key, messages, fix, checks=names)


def _unpublished(facts: Facts, newest: Standing) -> Judgement:
    """Collected, or superseded, and not in `latest`."""
    key, run = newest.window.key, facts.runs.get(newest.window.key)
    if run and run.status in {"waiting", "working"}:
        said = f"window {key} is collected and not published yet: {_of_run(run)}"
        return _stale(facts, Cause.BACKLOG, key, said, "it goes on by itself", to_read=newest.to_read, run=run.run_id)
    if run and run.status == "failed":
        return _run_failed(facts, key, run)
    said = f"window {key} is collected but was never read and published; {_of_run(run)}"
    fix = "materialize `records` and `latest` of the window; nothing is fetched"
    return _stale(facts, Cause.NOT_PUBLISHED, key, said, fix, collect=key, to_read=newest.to_read)


def _of_due(facts: Facts) -> Judgement | None:
    """Why the window that is due by the calendar was not even opened."""
    due = facts.due
    if due is None:
        return _stale(facts, Cause.NEVER_COLLECTED, None, "the first window has not begun", "wait, or start earlier")
    if facts.counting and facts.counting.start >= due.start:
        return _promise(facts, due)
    if facts.newest and facts.newest.window.start >= due.start:
        return None
    run = facts.runs.get(due.key)
    if run and run.status in {"waiting", "working"}:
        said = f"window {due.key} is not opened yet: {_of_run(run)}"
        return _stale(facts, Cause.BACKLOG, due.key, said, "see what is before it in the run queue", run=run.run_id)
    return _of_schedule(facts, due) or _of_run_before_opening(facts, due, run)


def _promise(facts: Facts, due: Span) -> Judgement:
    said = f"freshness is {length(facts.freshness.total_seconds())}, but window {due.key} runs until {shown(due.end)}"
    fix = "in the source, a freshness longer than a window, or shorter windows"
    return _stale(facts, Cause.PROMISE_TOO_SHORT, due.key, said, fix)


def _of_schedule(facts: Facts, due: Span) -> Judgement | None:
    scheduling, name = facts.scheduling, facts.scheduling.name
    if scheduling.is_on is False:
        never = facts.newest is None
        said = f"schedule {name} is off" + (" and no window was ever collected" if never else "")
        cause = Cause.NEVER_COLLECTED if never else Cause.SCHEDULE_OFF
        return _stale(facts, cause, due.key, said, f"turn on {name}, or materialize window {due.key}")
    if not scheduling.is_on:
        return None
    if facts.now - due.start < START_TAKES:
        said = f"window {due.key} began {length((facts.now - due.start).total_seconds())} ago and is not opened yet"
        return _stale(facts, Cause.BACKLOG, due.key, said, f"{name} starts it")
    return _of_tick(facts, due)


def _of_tick(facts: Facts, due: Span) -> Judgement | None:
    """Of a schedule that is on."""
    scheduling, name = facts.scheduling, facts.scheduling.name
    on_since, tick, beat = scheduling.on_since, scheduling.last_tick_at, scheduling.heartbeat_at
    missed = tick is None or tick < due.start
    if missed and on_since and on_since > due.start:
        said = f"schedule {name} was turned on {shown(on_since)}, after window {due.key} had begun"
        fix = f"materialize window {due.key}; the next one starts by itself"
        return _stale(facts, Cause.SCHEDULE_OFF, due.key, said, fix, collect=due.key)
    if missed or (beat is not None and facts.now - beat > DAEMON_SILENT_AFTER):
        said = f"{name} is on, but did not start window {due.key} ({shown(due.start)}): last tick {shown(tick)}"
        said += f", last sign of life of the daemon {shown(beat)}"
        fix = "see that the Dagster daemon runs (`collector dev` starts one) and stays up"
        return _stale(facts, Cause.DAEMON_WAS_DOWN, due.key, said, fix, collect=due.key, last_tick_at=shown(tick))
    if scheduling.tick_error is not None:
        said = f"the tick of {name} at {shown(tick)} failed: {scheduling.tick_error}"
        return _stale(facts, Cause.SCHEDULE_FAILED, due.key, said, "read the tick's error", collect=due.key)
    return None


def _of_run_before_opening(facts: Facts, due: Span, run: Run | None) -> Judgement | None:
    if run and run.status in {"failed", "canceled"}:
        return _run_failed(facts, due.key, run)
    if facts.newest is None:
        said = f"no window was ever collected; {_of_run(run)}"
        return _stale(facts, Cause.NEVER_COLLECTED, due.key, said, f"materialize window {due.key}", collect=due.key)
    said, fix = UNEXPLAINED
    return _stale(
        facts, Cause.UNEXPLAINED, due.key, f"window {due.key} was not opened and {said}", fix, collect=due.key
    )


def _run_failed(facts: Facts, key: str, run: Run) -> Judgement:
    # One that was cancelled was somebody's decision.
    again = key if run.status == "failed" else None
    said = f"window {key}: {_of_run(run)}"
    return _stale(
        facts, Cause.RUN_FAILED, key, said, "read the run's error, then materialize the window", collect=again,
        run=run.run_id,
    )  # fmt: skip


# --- Words -----------------------------------------------------------------------------------------------------------


def _stale(
    facts: Facts,
    cause: Cause,
    window_key: str | None,
    message: str,
    fix: str,
    *,
    collect: str | None = None,
    **numbers: str | float,
) -> Judgement:
    counting = facts.counting
    known: dict[str, str | int | float] = {"freshness_s": round(facts.freshness.total_seconds())}
    if counting:
        known |= {"counting_window": counting.key, "age_s": round((facts.now - counting.start).total_seconds())}
    return Judgement(
        is_fresh=False, cause=cause, window_key=window_key, message=message, fix=fix, numbers=known | numbers,
        since=_plus(counting.start, facts.freshness) if counting else None, collect=collect,
    )  # fmt: skip


def _of_run(run: Run | None) -> str:
    if run is None:
        return "no run works on it"
    what = {
        "waiting": "waits in the queue since",
        "working": "works since",
        "failed": "failed",
        "canceled": "was cancelled",
        "succeeded": "ended without finishing it",
    }[run.status]
    return f"run {run.run_id[:8]} {what} {shown(run.at)}" + (f": {run.error}" if run.error else "")


def _plus(moment: datetime, span: timedelta) -> datetime:
    """The sum, or the end of time for a promise of for ever."""
    try:
        return moment + span
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def shown(moment: datetime | None) -> str:
    """A moment for a person, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment else "never"


def length(seconds: float) -> str:
    """A length of time for a person, in its two greatest units."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
