"""Freshness from the data (rules 19, 22): injected in a real database, each cause is found and named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from collector_assets import freshness, mutes, resume, resumes
from collector_assets.causes import Cause, Run, Scheduling, Span
from collector_assets.contract import Budget, Source, hours, replace, seconds
from collector_assets.database import Database
from collector_assets.frontier import Retry
from collector_assets.outcome import Outcome
from collector_assets.resumes import Resumable
from collector_assets.sources.shop import SHOP
from collector_tests.fixtures.frontier import KEY, NOON, START, Work, open_work, requests
from collector_tests.fixtures.stored import FIRST_DAY, Stored
from collector_tests.store.test_publish import SOURCE as ITEMS

SOURCE = replace(ITEMS, freshness=hours(26))
SHOPS = replace(SHOP, freshness=hours(26))
YESTERDAY = START - timedelta(days=1)
ON = Scheduling(
    is_on=True, name="shop_windows", on_since=START - timedelta(days=30), last_tick_at=START, heartbeat_at=NOON
)


@dataclass
class Calendar:
    """What Dagster would say: daily windows, and whatever a test sets."""

    state: Scheduling = ON
    found: dict[str, Run] = field(default_factory=dict)

    def due(self, source: Source, now: datetime) -> Span | None:  # noqa: ARG002
        start = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return Span(key=start.isoformat(), start=start, end=start + timedelta(days=1))

    def scheduling(self, source: Source) -> Scheduling:  # noqa: ARG002
        return self.state

    def runs(self, source: Source, window_keys: Sequence[str]) -> Mapping[str, Run]:  # noqa: ARG002
        return {key: run for key, run in self.found.items() if key in window_keys}


def item(sku: str, price: int = 1) -> list[dict[str, object]]:
    """The body of a page with one thing."""
    return [{"sku": sku, "price": price}]


def look(
    database: Database, source: Source = SHOPS, calendar: Calendar | None = None, now: datetime = NOON
) -> freshness.Found:
    (found,) = freshness.judge([source], database=database, scheduler=calendar or Calendar(), now=now)
    return found


# --- The window that counts ------------------------------------------------------------------------------------------


def collected(stored: Stored, number: int, *, late: bool = False) -> None:
    """A window of one record, published."""
    row = stored.window(SOURCE, number)
    stored.add(SOURCE, row, [item(f"sku-{number}")], late=late)
    assert stored.process(SOURCE, row).verdict.passed
    stored.publish(SOURCE, row)


def at(number: int, hour: int = 12) -> datetime:
    return FIRST_DAY + timedelta(days=number, hours=hour)


def test_the_newest_published_window_counts_by_its_start(stored: Stored) -> None:
    """Rule 19: 26 hours from the window's start, whenever it was fetched."""
    # Mutation: window_end for window_start in standings.counting
    collected(stored, 3)
    assert look(stored.database, SOURCE, now=at(4, 1)).judgement.is_fresh
    assert not look(stored.database, SOURCE, now=at(4, 2)).judgement.is_fresh


def test_a_backfilled_old_window_turns_nothing_green(stored: Stored) -> None:
    """Rule 19: published just now, and as old as it is."""
    # Mutation: ORDER BY w.published_at DESC, and its age by published_at
    collected(stored, 1)
    collected(stored, 0)
    found = look(stored.database, SOURCE, now=at(4))
    assert not found.judgement.is_fresh
    assert found.judgement.numbers["counting_window"] == "2026-03-02"


def test_a_window_collected_too_late_does_not_count(stored: Stored) -> None:
    """Rule 22: late work does not count for the window's freshness."""
    # Mutation: drop `AND NOT p.late`
    collected(stored, 2)
    collected(stored, 3, late=True)
    wide = replace(SOURCE, freshness=hours(24 * 30))
    assert look(stored.database, wide, now=at(9)).judgement.window_key == "2026-03-03"


def test_a_window_that_is_late_in_part_counts(stored: Stored) -> None:
    row = stored.window(SOURCE, 3)
    stored.add(SOURCE, row, [item("a")])
    stored.add(SOURCE, row, [item("b")], late=True)
    stored.process(SOURCE, row)
    stored.publish(SOURCE, row)
    assert look(stored.database, SOURCE, now=at(3)).judgement.is_fresh


def test_collected_and_not_published_is_not_fresh(stored: Stored) -> None:
    """Rule 19: what the consumer cannot see is not there."""
    # Mutation: drop `w.published_at IS NOT NULL`
    row = stored.window(SOURCE, 3)
    stored.add(SOURCE, row, [item("a")])
    stored.process(SOURCE, row)
    assert look(stored.database, SOURCE, now=at(3)).judgement.cause is Cause.NOT_PUBLISHED


def test_a_failed_check_is_named_with_its_message(stored: Stored) -> None:
    row = stored.window(SOURCE, 3)
    stored.add(SOURCE, row, [item("a", price=-1)])
    assert not stored.process(SOURCE, row).verdict.passed
    found = look(stored.database, SOURCE, now=at(3)).judgement
    assert found.cause is Cause.FAILED_CHECK
    assert "schema_holds" in str(found.numbers["checks"])
    assert "schema_holds" in found.message


# --- Six causes, injected --------------------------------------------------------------------------------------------


def halted(database: Database) -> Calendar:
    open_work(database).add(requests(3))
    halt(database, f"http://{KEY}:8765")
    halt(database, "http://other.localhost:8765")
    return Calendar()


def halt(database: Database, origin: str) -> None:
    sql(database, "INSERT INTO origins (origin, halted_at, halted_reason) VALUES (%s, now(), '403 ×3')", origin)


def small_budget(database: Database) -> Calendar:
    open_work(database).add(requests(50_000))  # 50,000 × 2 s / 1 slot: a day and four hours
    return Calendar()


def backlog(database: Database) -> Calendar:
    open_work(database).add(requests(50))
    return Calendar()


def schedule_off(database: Database) -> Calendar:
    open_work(database, start=YESTERDAY - timedelta(days=3))
    return Calendar(state=replace_state(is_on=False))


def daemon_down(database: Database) -> Calendar:
    open_work(database, start=YESTERDAY - timedelta(days=3))
    return Calendar(state=replace_state(last_tick_at=YESTERDAY - timedelta(days=3)))


def unreachable(database: Database) -> Calendar:
    work = open_work(database)
    work.add(requests(5))
    for lease in work.claim(2, now=NOON):
        work.finish(Retry(lease.request_id, lease.fence, seconds(1), Outcome.CONNECT_ERROR, "refused"), now=NOON)
    return Calendar()


def never(database: Database) -> Calendar:
    return Calendar(state=replace_state(is_on=False))


CAUSES: dict[Cause, Callable[[Database], Calendar]] = {
    Cause.HALTED: halted,
    Cause.BUDGET_TOO_SMALL: small_budget,
    Cause.BACKLOG: backlog,
    Cause.SCHEDULE_OFF: schedule_off,
    Cause.DAEMON_WAS_DOWN: daemon_down,
    Cause.UNREACHABLE: unreachable,
    Cause.NEVER_COLLECTED: never,
}


def replace_state(**more: object) -> Scheduling:
    return dataclasses.replace(ON, **more)


def sql(database: Database, statement: str, *values: object) -> None:
    with database.transaction() as connection:
        connection.execute(statement.encode(), values)


@pytest.mark.parametrize(("cause", "inject"), CAUSES.items())
def test_each_injected_cause_is_found_in_the_data(
    database: Database, cause: Cause, inject: Callable[[Database], Calendar]
) -> None:
    """Rule 19: different causes have different names."""
    slow = replace(SHOPS, budget=Budget(gap=seconds(2), slots=1))
    found = look(database, slow, inject(database))
    assert found.judgement.cause is cause
    (known,) = freshness.known(database, "shop")
    assert (known.cause, known.is_fresh, known.judged_at) == (str(cause), False, NOON)


def test_a_backlog_says_when_a_site_that_asked_for_a_pause_is_asked_again(database: Database) -> None:
    # Mutation: _next_in without budget.closed
    open_work(database).add(requests(3))
    assert "the next is due" not in look(database).judgement.message
    sql(
        database,
        "INSERT INTO budget_keys (budget_key, per, closed_until, closed_reason)"
        " VALUES (%s, 'domain', %s, 'Retry-After')",
        KEY, NOON + timedelta(minutes=5),
    )  # fmt: skip
    assert "3 of 3 requests wait" in (said := look(database).judgement.message)
    assert "; the next is due 2026-01-29 12:05:00 UTC" in said


def test_the_share_of_a_busy_domain_is_in_the_arithmetic(database: Database) -> None:
    # Mutation: share=1.0
    open_work(database).add(requests(20_000))
    slow = replace(SHOPS, budget=Budget(gap=seconds(2), slots=1))
    assert look(database, slow).judgement.cause is Cause.BACKLOG  # 11 h of the 13 that are left
    sql(database, "INSERT INTO budget_keys (budget_key, per) VALUES (%s, 'domain')", KEY)
    sql(
        database,
        "INSERT INTO budget_demands (budget_key, source, gap_s, slots, weight, active_at, live_until)"
        " VALUES (%s, 'other', 2, 4, 3, %s, %s)",
        KEY, NOON, NOON + timedelta(seconds=30),
    )  # fmt: skip
    found = look(database, slow).judgement
    assert found.cause is Cause.BUDGET_TOO_SMALL
    assert (found.numbers["share"], found.numbers["slots"]) == (0.25, 1)


def test_a_site_that_answered_since_is_reachable(database: Database, stored: Stored) -> None:
    # Mutation: drop `coalesce(r.finished_at, r.not_before) > good.at`
    row = stored.window(SOURCE, 3)
    work = Work(database=database, source=SOURCE.name, start=row.window.start)
    work.add(requests(3, kind="listing"))
    for lease in work.claim(3, now=at(3, 1)):
        work.finish(Retry(lease.request_id, lease.fence, seconds(1), Outcome.TIMEOUT, "silent"), now=at(3, 1))
    assert look(database, SOURCE, now=at(3)).judgement.cause is Cause.UNREACHABLE
    stored.add(SOURCE, row, [item("a")], fetched_at=at(3, 2))
    assert look(database, SOURCE, now=at(3)).judgement.cause is Cause.BACKLOG


def test_since_when_a_cause_holds_is_kept_and_starts_anew_with_another(database: Database) -> None:
    # Mutation: `THEN excluded.found_at` in record_judgement
    backlog(database)
    assert look(database, now=NOON).found_at == NOON
    later = NOON + timedelta(minutes=5)
    assert look(database, now=later).held_for == timedelta(minutes=5)
    halt(database, f"http://{KEY}:8765")
    assert look(database, now=later).held_for == timedelta(0)


def test_a_paused_source_says_so(database: Database) -> None:
    backlog(database)
    put(database, until=NOON + timedelta(days=1), pauses=False)
    assert look(database).judgement.cause is Cause.BACKLOG  # muted is not paused
    put(database, until=NOON + timedelta(days=1), pauses=True)
    found = look(database).judgement
    assert (found.cause, found.is_error) == (Cause.PAUSED, False)
    assert look(database, now=NOON + timedelta(days=2)).judgement.cause is not Cause.PAUSED


def put(database: Database, *, until: datetime, pauses: bool) -> None:
    with database.transaction() as connection:
        mutes.put(connection, source="shop", until=until, pauses=pauses, reason="rebuilt", by_whom="me", now=NOON)


def test_a_window_is_asked_for_once_per_cause(database: Database) -> None:
    """Two daemons, or two ticks, have one right between them."""
    # Mutation: `ON CONFLICT … DO UPDATE SET asked_at` without its WHERE
    found = look(database, calendar=daemon_down(database))
    assert freshness.ask_once(found, "2026-01-29", database)
    assert not freshness.ask_once(found, "2026-01-29", database)
    assert freshness.ask_once(found, "2026-01-30", database)
    other = look(database, calendar=Calendar(state=replace_state(is_on=False)))
    assert freshness.ask_once(other, "2026-01-29", database)


def test_a_source_without_a_promise_is_not_judged(database: Database) -> None:
    assert list(freshness.judge([replace(SHOP, freshness=None)], database=database, scheduler=Calendar())) == []


def test_two_hundred_sources_are_judged_in_a_tick(database: Database) -> None:
    many = [replace(SHOPS, name=f"shop{number}") for number in range(200)]
    for source in many[::4]:
        open_work(database, source=source.name).add(requests(20))
    started = datetime.now(UTC)
    found = list(freshness.judge(many, database=database, scheduler=Calendar(), now=NOON))
    assert len(found) == 200
    assert (datetime.now(UTC) - started).total_seconds() < 20  # seen: 1.5 s


# --- Unfinished windows that go on -----------------------------------------------------------------------------------


def chosen(
    database: Database, *, now: datetime = NOON, free: Callable[[Resumable], bool] = lambda _: True, most: int = 20
) -> list[str]:
    found = resume.choose([SHOPS, replace(SHOPS, name="other")], database=database, is_free=free, most=most, now=now)
    return [f"{window.source} {window.window_start:%m-%d}" for window in found]


def test_an_unfinished_window_goes_on_when_its_work_is_due(database: Database) -> None:
    """Rule 23."""
    # Mutation: drop the EXISTS over not_before in resumable_windows
    work = open_work(database)
    work.add(requests(1))
    (lease,) = work.claim(1, now=NOON)
    work.finish(Retry(lease.request_id, lease.fence, hours(1), Outcome.UNAVAILABLE, "503"), now=NOON)
    assert chosen(database) == []
    assert chosen(database, now=NOON + timedelta(hours=1)) == ["shop 01-29"]


def test_a_finished_window_is_left_alone(database: Database) -> None:
    work = open_work(database)
    work.add(requests(2))
    work.fetched(*work.claim(2))
    assert chosen(database) == []


def test_nobody_is_disturbed_who_works_on_the_window(database: Database) -> None:
    # Mutation: drop `coalesce(l.until <= clock.now, true)`
    work = open_work(database)
    work.add(requests(3))
    work.claim(1, now=NOON)
    assert chosen(database) == []
    assert chosen(database, now=NOON + timedelta(minutes=2)) == ["shop 01-29"]


def test_a_window_that_closed_is_not_collected_late_unless_its_starts_name_it(database: Database) -> None:
    """Rule 22: late work never happens by a sensor."""
    # Mutation: drop `w.names_window OR clock.now < w.closes_at`
    open_work(database, start=YESTERDAY).add(requests(1))
    open_work(database, source="other", start=YESTERDAY, names_window=True).add(requests(1))
    assert chosen(database) == ["other 01-28"]


def test_a_superseded_window_rests(database: Database) -> None:
    # Mutation: drop `w.superseded_at IS NULL`
    open_work(database).add(requests(1))
    sql(database, "UPDATE windows SET superseded_at = now()")
    assert chosen(database) == []


def test_the_oldest_goes_first_and_a_source_has_one_at_a_time(database: Database) -> None:
    # Mutation: drop `window.source not in taken`
    for source, start in (("shop", START), ("shop", YESTERDAY), ("other", START)):
        open_work(database, source=source, start=start, names_window=True).add(requests(1))
    assert chosen(database) == ["shop 01-28", "other 01-29"]


def test_a_tick_asks_for_a_bounded_number(database: Database) -> None:
    for source in ("shop", "other"):
        open_work(database, source=source).add(requests(1))
    assert len(chosen(database, most=1)) == 1


def test_a_window_is_resumed_a_bounded_number_of_times_in_vain(database: Database) -> None:
    """Rule 23: without progress five times, then a person must look."""
    # Mutation: drop `p.without_progress + 1 < %(most)s`
    work = open_work(database, names_window=True)
    work.add(requests(5))
    ticks = [NOON + timedelta(minutes=10 * number) for number in range(8)]
    assert [len(chosen(database, now=now)) for now in ticks] == [1] * resume.MOST_IN_VAIN + [0, 0, 0]
    judged = look(database, now=ticks[-1]).judgement
    assert judged.cause is Cause.BACKLOG
    assert judged.numbers["resumes_without_progress"] == resume.MOST_IN_VAIN - 1


def test_progress_starts_the_count_anew_also_where_more_was_found(database: Database) -> None:
    # Mutation: compare to_fetch instead of what has ended
    work = open_work(database, names_window=True)
    work.add(requests(5))
    for number in range(8):
        now = NOON + timedelta(minutes=10 * number)
        assert chosen(database, now=now) == ["shop 01-29"]
        work.fetched(*work.claim(1, now=now), now=now)
        work.add(requests(2, lane=f"found-{number}"))


def test_two_ticks_at_once_resume_a_window_once(database: Database) -> None:
    """Rule 23: of two daemons one has the right."""
    # Mutation: drop `p.resumed_at <= excluded.resumed_at - %(rest)s`
    open_work(database).add(requests(1))
    with database.transaction() as connection:
        (window,) = resumes.due(connection, ["shop"], rest=resume.REST, now=NOON)
    rights = []
    for _ in range(2):
        with database.transaction() as connection:
            rights.append(resumes.claim(connection, window, rest=resume.REST, most=5, now=NOON))
    assert rights == [0, None]


def test_a_window_whose_run_waits_gets_no_second(database: Database) -> None:
    open_work(database).add(requests(1))
    assert chosen(database, free=lambda _: False) == []
    assert chosen(database) == ["shop 01-29"]


def test_a_paused_source_is_not_resumed(database: Database) -> None:
    # Mutation: names of all sources
    open_work(database).add(requests(1))
    put(database, until=NOON + timedelta(hours=1), pauses=True)
    assert chosen(database) == []
