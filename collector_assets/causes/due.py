"""Why the window that is due by the calendar was not even opened: no run, no schedule, no daemon."""

from __future__ import annotations

from datetime import timedelta

from collector_assets.causes.facts import Facts, Run, Span
from collector_assets.causes.judgement import UNEXPLAINED, Cause, Judgement, stale
from collector_assets.causes.runs import of_run, run_failed
from collector_assets.causes.words import length, shown

DAEMON_SILENT_AFTER = timedelta(minutes=5)
"""A daemon writes a heartbeat every 30 s."""
START_TAKES = timedelta(minutes=5)
"""From a window's start until its run has opened it: tick, queue, start of a process."""


def of_due(facts: Facts) -> Judgement | None:
    """Why the window that is due by the calendar was not even opened."""
    due = facts.due
    if due is None:
        return stale(facts, Cause.NEVER_COLLECTED, None, "the first window has not begun", "wait, or start earlier")
    if facts.counting and facts.counting.start >= due.start:
        return _promise(facts, due)
    if facts.newest and facts.newest.window.start >= due.start:
        return None
    run = facts.runs.get(due.key)
    if run and run.status in {"waiting", "working"}:
        said = f"window {due.key} is not opened yet: {of_run(run)}"
        return stale(facts, Cause.BACKLOG, due.key, said, "see what is before it in the run queue", run=run.run_id)
    return _of_schedule(facts, due) or _of_run_before_opening(facts, due, run)


def _promise(facts: Facts, due: Span) -> Judgement:
    said = f"freshness is {length(facts.freshness.total_seconds())}, but window {due.key} runs until {shown(due.end)}"
    fix = "in the source, a freshness longer than a window, or shorter windows"
    return stale(facts, Cause.PROMISE_TOO_SHORT, due.key, said, fix)


def _of_schedule(facts: Facts, due: Span) -> Judgement | None:
    scheduling, name = facts.scheduling, facts.scheduling.name
    if scheduling.is_on is False:
        never = facts.newest is None
        said = f"schedule {name} is off" + (" and no window was ever collected" if never else "")
        cause = Cause.NEVER_COLLECTED if never else Cause.SCHEDULE_OFF
        return stale(facts, cause, due.key, said, f"turn on {name}, or materialize window {due.key}")
    if not scheduling.is_on:
        return None
    if facts.now - due.start < START_TAKES:
        said = f"window {due.key} began {length((facts.now - due.start).total_seconds())} ago and is not opened yet"
        return stale(facts, Cause.BACKLOG, due.key, said, f"{name} starts it")
    return _of_tick(facts, due)


def _of_tick(facts: Facts, due: Span) -> Judgement | None:
    """Of a schedule that is on."""
    scheduling, name = facts.scheduling, facts.scheduling.name
    on_since, tick, beat = scheduling.on_since, scheduling.last_tick_at, scheduling.heartbeat_at
    missed = tick is None or tick < due.start
    if missed and on_since and on_since > due.start:
        said = f"schedule {name} was turned on {shown(on_since)}, after window {due.key} had begun"
        fix = f"materialize window {due.key}; the next one starts by itself"
        return stale(facts, Cause.SCHEDULE_OFF, due.key, said, fix, collect=due.key)
    if missed or (beat is not None and facts.now - beat > DAEMON_SILENT_AFTER):
        said = f"{name} is on, but did not start window {due.key} ({shown(due.start)}): last tick {shown(tick)}"
        said += f", last sign of life of the daemon {shown(beat)}"
        fix = "see that the Dagster daemon runs (`collector dev` starts one) and stays up"
        return stale(facts, Cause.DAEMON_WAS_DOWN, due.key, said, fix, collect=due.key, last_tick_at=shown(tick))
    if scheduling.tick_error is not None:
        said = f"the tick of {name} at {shown(tick)} failed: {scheduling.tick_error}"
        return stale(facts, Cause.SCHEDULE_FAILED, due.key, said, "read the tick's error", collect=due.key)
    return None


def _of_run_before_opening(facts: Facts, due: Span, run: Run | None) -> Judgement | None:
    if run and run.status in {"failed", "canceled"}:
        return run_failed(facts, due.key, run)
    if facts.newest is None:
        said = f"no window was ever collected; {of_run(run)}"
        return stale(facts, Cause.NEVER_COLLECTED, due.key, said, f"materialize window {due.key}", collect=due.key)
    said, fix = UNEXPLAINED
    return stale(facts, Cause.UNEXPLAINED, due.key, f"window {due.key} was not opened and {said}", fix, collect=due.key)
