"""Why the newest window that was opened does not make its source fresh."""

from __future__ import annotations

from datetime import datetime

from collector_assets.causes.facts import Attempts, Facts, Standing
from collector_assets.causes.judgement import Cause, Judgement, plus, stale
from collector_assets.causes.runs import of_run, run_failed
from collector_assets.causes.words import length, shown


def of_newest(facts: Facts) -> Judgement | None:
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
    too_old = plus(newest.window.start, facts.freshness)
    return too_old if newest.names_window else min(too_old, newest.closes_at)


def _unreachable(facts: Facts, newest: Standing, attempts: Attempts) -> Judgement:
    ends = ", ".join(f"{name} {count}×" for name, count in sorted(attempts.outcomes.items()))
    last = f"the last good page came {shown(attempts.last_good_at)}" if attempts.last_good_at else "no page came"
    said = f"window {newest.window.key}: {attempts.without_answer} attempts ended without an answer ({ends}); {last}"
    fix = "see whether the site is up and its address right; requests that failed for good need `collector replay`"
    return stale(
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
    return stale(
        facts, Cause.BUDGET_TOO_SMALL, newest.window.key, said, fix,
        requests=requests, gap_s=pace.gap_s, mean_response_s=round(pace.mean_response_s or 0.0, 3), slots=pace.slots,
        share=round(pace.share, 3), needed_s=round(needed), allowed_s=round(allowed),
    )  # fmt: skip


def _backlog(facts: Facts, newest: Standing) -> Judgement:
    key, run = newest.window.key, facts.runs.get(newest.window.key)
    oldest = newest.oldest_waiting_at
    waits = f", the oldest for {length((facts.now - oldest).total_seconds())}" if oldest else ""
    due = f"; the next is due {shown(newest.next_due_at)}" if newest.next_due_at else ""
    said = f"window {key}: {newest.to_fetch:,} of {newest.planned:,} requests wait{waits}{due}; {of_run(run)}"
    fix = "it goes on by itself when its work is due; `collector work` helps it along"
    if newest.resumes_without_progress:
        said += f"; resumed {newest.resumes_without_progress} times without progress"
        fix = "look at its last run, then materialize the partition"
    waiting_s = round((facts.now - oldest).total_seconds()) if oldest else 0
    return stale(
        facts, Cause.BACKLOG, key, said, fix,
        to_fetch=newest.to_fetch, planned=newest.planned, oldest_waiting_s=waiting_s,
        resumes_without_progress=newest.resumes_without_progress,
    )  # fmt: skip


def _failed_check(facts: Facts, newest: Standing) -> Judgement:
    names = ", ".join(each.check for each in newest.objections)
    messages = "; ".join(f"{each.check}: {each.message}" for each in newest.objections)
    fix = "mend the cause (extract, schema, expectations), then materialize `records` and `latest`; nothing is fetched"
    return stale(facts, Cause.FAILED_CHECK, newest.window.key, messages, fix, checks=names)


def _unpublished(facts: Facts, newest: Standing) -> Judgement:
    """Collected, or superseded, and not in `latest`."""
    key, run = newest.window.key, facts.runs.get(newest.window.key)
    if run and run.status in {"waiting", "working"}:
        said = f"window {key} is collected and not published yet: {of_run(run)}"
        return stale(facts, Cause.BACKLOG, key, said, "it goes on by itself", to_read=newest.to_read, run=run.run_id)
    if run and run.status == "failed":
        return run_failed(facts, key, run)
    said = f"window {key} is collected but was never read and published; {of_run(run)}"
    fix = "materialize `records` and `latest` of the window; nothing is fetched"
    return stale(facts, Cause.NOT_PUBLISHED, key, said, fix, collect=key, to_read=newest.to_read)
