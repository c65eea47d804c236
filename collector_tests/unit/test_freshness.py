"""Fresh or not, and the one cause why not (rule 19): the decision over facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from collector_assets.causes import (
    Attempts,
    Cause,
    Facts,
    Halt,
    Objection,
    Pace,
    Run,
    Scheduling,
    Span,
    Standing,
    judge,
    length,
)

NOW = datetime(2026, 3, 10, 6, tzinfo=UTC)
DAY = timedelta(days=1)


def day(number: int) -> Span:
    start = datetime(2026, 3, number, tzinfo=UTC)
    return Span(key=f"2026-03-{number:02}", start=start, end=start + DAY)


TODAY = Standing(
    window=day(10), closes_at=day(10).end + timedelta(hours=1), names_window=False, planned=1_000, to_fetch=400,
    to_read=0, oldest_waiting_at=NOW - timedelta(hours=5), next_due_at=None, is_superseded=False, is_published=False,
    objections=(), resumes_without_progress=0,
)  # fmt: skip
COLLECTED = replace(TODAY, to_fetch=0, oldest_waiting_at=None)
ON = Scheduling(
    is_on=True, name="shop_windows", on_since=day(1).start, last_tick_at=day(10).start, heartbeat_at=NOW,
)  # fmt: skip
STALE = Facts(
    now=NOW, freshness=timedelta(hours=26), due=day(10), counting=day(8), newest=None, scheduling=ON,
)  # fmt: skip
PACE = Pace(budget_key="shop.example", requests_left=400, gap_s=2.0, slots=1, share=1.0, mean_response_s=0.5)
GONE = Attempts(last_good_at=None, without_answer=3, with_answer=0, outcomes={"timeout": 2, "host_unresolved": 1})
ALIVE = Attempts(last_good_at=NOW, without_answer=0, with_answer=0, outcomes={})

SIX = {
    Cause.HALTED: replace(
        STALE, newest=TODAY, halts=(Halt(origin="https://shop.example:443", at=NOW - DAY, reason="403 three times"),)
    ),
    Cause.BUDGET_TOO_SMALL: replace(STALE, newest=TODAY, attempts=ALIVE, pace=replace(PACE, gap_s=300.0)),
    Cause.BACKLOG: replace(STALE, newest=TODAY, attempts=ALIVE, pace=PACE),
    Cause.FAILED_CHECK: replace(
        STALE, newest=replace(COLLECTED, objections=(Objection(check="schema_holds", message="60 of 60 rejected"),))
    ),
    Cause.SCHEDULE_OFF: replace(
        STALE, newest=replace(COLLECTED, window=day(8), is_published=True), scheduling=replace(ON, is_on=False)
    ),
    Cause.DAEMON_WAS_DOWN: replace(
        STALE, newest=replace(COLLECTED, window=day(8), is_published=True),
        scheduling=replace(ON, last_tick_at=day(8).start),
    ),
    Cause.UNREACHABLE: replace(STALE, newest=TODAY, attempts=GONE, pace=PACE),
    Cause.NEVER_COLLECTED: replace(STALE, counting=None, scheduling=replace(ON, is_on=False)),
}  # fmt: skip


@pytest.mark.parametrize(("cause", "facts"), SIX.items())
def test_each_injected_cause_is_named(cause: Cause, facts: Facts) -> None:
    """Rule 19: the cause, not a symptom."""
    # Mutation: drop any of the branches of causes.judge
    found = judge(facts)
    assert (found.is_fresh, found.cause) == (False, cause)
    assert found.message
    assert found.fix
    assert len(found.message) < 600


def test_the_window_that_counts_decides_and_nothing_else() -> None:
    """Rule 19: no failure behind it and no work on an older window changes a promise that is kept."""
    for facts in SIX.values():
        found = judge(replace(facts, counting=day(9), now=day(9).start + timedelta(hours=25, minutes=59)))
        assert found.is_fresh
        assert found.since == day(9).start + timedelta(hours=26)


def test_it_is_stale_from_the_very_second() -> None:
    """Rule 19: 26 hours are 26 hours."""
    # Mutation: `>` for `>=` in causes.fresh
    assert not judge(replace(SIX[Cause.BACKLOG], counting=day(9), now=day(9).start + timedelta(hours=26))).is_fresh


def test_the_arithmetic_of_a_small_budget_is_told() -> None:
    # Mutation: `needed <= 0` instead of `needed <= allowed`
    facts = replace(
        SIX[Cause.BUDGET_TOO_SMALL], pace=replace(PACE, gap_s=150.0, mean_response_s=12.0, slots=2, share=0.25)
    )
    found = judge(facts)
    assert found.cause is Cause.BUDGET_TOO_SMALL
    # 400 × (150 + 12) / (2 × ¼) = 129,600 s
    assert (
        "400 requests × (150 s gap + 12.00 s answer) / (2 slots × 25% share of shop.example) = 1 d 12 h"
        in found.message
    )
    assert found.numbers["needed_s"] == 129_600
    assert found.numbers["allowed_s"] == 19 * 3600  # from 6:00 to 1:00, when the window closes
    assert "19 h are left until 2026-03-11 01:00:00 UTC" in found.message


def test_a_window_whose_starts_name_it_may_take_until_it_would_be_too_old() -> None:
    named = replace(TODAY, names_window=True)
    # 400 × 175 s = 70,000 s: more than the 19 h until it closes, less than the 20 h until its freshness is over
    facts = replace(STALE, newest=named, attempts=ALIVE, pace=replace(PACE, gap_s=175.0, mean_response_s=0.0))
    assert judge(facts).cause is Cause.BACKLOG
    assert judge(replace(facts, newest=TODAY)).cause is Cause.BUDGET_TOO_SMALL


def test_a_window_that_could_have_been_in_time_is_a_backlog_after_its_time() -> None:
    facts = replace(
        STALE, now=day(10).start + timedelta(hours=2), freshness=timedelta(hours=1), newest=TODAY, attempts=ALIVE
    )
    assert judge(replace(facts, pace=PACE)).cause is Cause.BACKLOG  # 1,000 × 2.5 s would have been 42 minutes
    too_slow = judge(replace(facts, pace=replace(PACE, gap_s=4.0)))
    assert too_slow.cause is Cause.BUDGET_TOO_SMALL
    assert too_slow.numbers["requests"] == 1_000


def test_a_site_that_answers_is_not_unreachable() -> None:
    # Mutation: drop `not self.with_answer`
    answered = Attempts(last_good_at=None, without_answer=9, with_answer=1, outcomes={"timeout": 9, "gone": 1})
    assert judge(replace(SIX[Cause.UNREACHABLE], attempts=answered)).cause is Cause.BACKLOG


def test_one_timeout_after_many_good_pages_is_not_the_site_being_gone() -> None:
    # Mutation: FEWEST_UNREACHABLE = 1
    one = Attempts(last_good_at=NOW, without_answer=1, with_answer=0, outcomes={"timeout": 1})
    assert judge(replace(SIX[Cause.UNREACHABLE], attempts=one)).cause is Cause.BACKLOG


def test_a_site_that_is_gone_goes_before_the_check_that_fails_because_of_it() -> None:
    failed = replace(SIX[Cause.FAILED_CHECK], attempts=GONE)
    assert judge(failed).cause is Cause.UNREACHABLE


def test_yesterdays_failed_check_is_not_blamed_once_today_was_not_even_started() -> None:
    # Mutation: _can_help always true
    yesterday = replace(COLLECTED, window=day(7), closes_at=day(7).end, objections=(Objection(check="c", message="m"),))
    facts = replace(SIX[Cause.DAEMON_WAS_DOWN], counting=day(6), newest=yesterday)
    assert judge(facts).cause is Cause.DAEMON_WAS_DOWN


def test_a_schedule_that_was_turned_on_after_the_window_began_was_off() -> None:
    found = judge(replace(SIX[Cause.DAEMON_WAS_DOWN], scheduling=replace(ON, last_tick_at=None, on_since=NOW)))
    assert (found.cause, found.collect) == (Cause.SCHEDULE_OFF, "2026-03-10")


def test_a_daemon_without_a_sign_of_life_is_down_whatever_ticked() -> None:
    silent = replace(ON, heartbeat_at=NOW - timedelta(hours=1))
    facts = replace(SIX[Cause.DAEMON_WAS_DOWN], scheduling=silent)
    assert judge(facts).cause is Cause.DAEMON_WAS_DOWN


def test_a_window_that_has_just_begun_is_not_anybodys_fault() -> None:
    # Mutation: START_TAKES = timedelta(0)
    facts = replace(SIX[Cause.DAEMON_WAS_DOWN], now=day(10).start + timedelta(minutes=1))
    assert judge(facts).cause is Cause.BACKLOG


RUN = Run(run_id="0123456789", status="failed", at=NOW, error="No space left on device")


@pytest.mark.parametrize(
    ("facts", "cause", "collect"),
    [
        (SIX[Cause.DAEMON_WAS_DOWN], Cause.DAEMON_WAS_DOWN, "2026-03-10"),
        (replace(STALE, newest=COLLECTED), Cause.NOT_PUBLISHED, "2026-03-10"),
        (replace(STALE, newest=COLLECTED, runs={"2026-03-10": RUN}), Cause.RUN_FAILED, "2026-03-10"),
        (replace(STALE, runs={"2026-03-10": RUN}), Cause.RUN_FAILED, "2026-03-10"),
        (replace(STALE, runs={"2026-03-10": replace(RUN, status="canceled")}), Cause.RUN_FAILED, None),
        (replace(STALE, scheduling=replace(ON, tick_error="boom")), Cause.SCHEDULE_FAILED, "2026-03-10"),
        (replace(STALE, runs={"2026-03-10": replace(RUN, status="waiting")}), Cause.BACKLOG, None),
        (replace(STALE, newest=COLLECTED, runs={"2026-03-10": replace(RUN, status="working")}), Cause.BACKLOG, None),
        (replace(STALE, counting=None), Cause.NEVER_COLLECTED, "2026-03-10"),
        (replace(STALE, newest=replace(COLLECTED, window=day(8), is_published=True)), Cause.UNEXPLAINED, "2026-03-10"),
        (replace(STALE, freshness=timedelta(hours=5), counting=day(10)), Cause.PROMISE_TOO_SHORT, None),
        (replace(STALE, due=None, counting=None), Cause.NEVER_COLLECTED, None),
        (replace(STALE, paused=(NOW + DAY, "the site is rebuilt")), Cause.PAUSED, None),
        (SIX[Cause.HALTED], Cause.HALTED, None),
        (SIX[Cause.BUDGET_TOO_SMALL], Cause.BUDGET_TOO_SMALL, None),
        (SIX[Cause.FAILED_CHECK], Cause.FAILED_CHECK, None),
        (SIX[Cause.SCHEDULE_OFF], Cause.SCHEDULE_OFF, None),
        (SIX[Cause.UNREACHABLE], Cause.UNREACHABLE, None),
    ],
)
def test_collecting_again_is_asked_for_only_where_it_can_help(facts: Facts, cause: Cause, collect: str | None) -> None:
    found = judge(facts)
    assert (found.cause, found.collect) == (cause, collect)


def test_what_a_person_decided_or_has_not_begun_only_warns() -> None:
    warns = {cause for cause, facts in SIX.items() if not judge(facts).is_error}
    assert warns == {Cause.NEVER_COLLECTED}
    assert not judge(replace(SIX[Cause.BACKLOG], paused=(NOW, "x"))).is_error


def test_a_promise_of_for_ever_is_kept_once() -> None:
    assert judge(replace(STALE, freshness=timedelta.max)).is_fresh
    assert not judge(replace(STALE, freshness=timedelta.max, counting=None, newest=TODAY)).is_fresh


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.6, "1 min"), (3_661, "1 h 1 min"), (90_061, "1 d 1 h"), (-5, "0 s"), (7, "7 s")],
)
def test_a_length_of_time_in_its_two_greatest_units(seconds: float, text: str) -> None:
    assert length(seconds) == text
