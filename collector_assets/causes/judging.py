"""The decision: the causes in their order, what a person must do before what passes by itself."""

from __future__ import annotations

from collector_assets.causes.due import of_due
from collector_assets.causes.facts import Facts
from collector_assets.causes.judgement import UNEXPLAINED, Cause, Judgement, plus, stale
from collector_assets.causes.newest import of_newest
from collector_assets.causes.words import length, shown


def judge(facts: Facts) -> Judgement:
    """Fresh, or the first cause that applies: what a person must do goes before what passes by itself."""
    found = fresh(facts) or _of_person(facts) or of_newest(facts) or of_due(facts)
    return found or stale(facts, Cause.UNEXPLAINED, None, *UNEXPLAINED)


def fresh(facts: Facts) -> Judgement | None:
    """That the source is fresh, if it is; needs nothing but the window that counts."""
    counting = facts.counting
    if counting is None or facts.now - counting.start >= facts.freshness:
        return None
    age, promise = (facts.now - counting.start).total_seconds(), facts.freshness.total_seconds()
    return Judgement(
        is_fresh=True, cause=None, window_key=counting.key, since=plus(counting.start, facts.freshness), fix="",
        message=f"window {counting.key} counts; it began {length(age)} ago, freshness is {length(promise)}",
        numbers={"age_s": round(age), "freshness_s": round(promise)},
    )  # fmt: skip


def _of_person(facts: Facts) -> Judgement | None:
    if facts.paused:
        until, reason = facts.paused
        said = f"paused until {shown(until)}: {reason}"
        return stale(facts, Cause.PAUSED, None, said, "`collector unmute` ends the pause")
    if facts.halts:
        first = min(facts.halts, key=lambda halt: halt.at)
        more = f", and {len(facts.halts) - 1} more origins" if len(facts.halts) > 1 else ""
        said = f"{first.origin} refused us and is halted since {shown(first.at)} ({first.reason}){more}"
        fix = f"clear it up with the site, then `collector resume {first.origin}`; nothing is sent until a person does"
        return stale(facts, Cause.HALTED, None, said, fix, origins=len(facts.halts), halted_at=shown(first.at))
    return None
