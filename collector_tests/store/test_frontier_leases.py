"""Claims, leases and fences (rules 3 and 4)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from collector_assets import frontier
from collector_assets.database import Database
from collector_assets.outcome import Outcome
from collector_assets.request import Lease
from collector_tests.fixtures.frontier import LEASE, NOON, Work, name_of, open_work, request, requests

SECOND = timedelta(seconds=1)
LATER = NOON + LEASE


@pytest.fixture
def work(database: Database) -> Work:
    return open_work(database)


def one(work: Work, *, max_attempts: int = 3) -> Lease:
    work.add(requests(1), max_attempts=max_attempts)
    (lease,) = work.claim(now=NOON)
    return lease


def ways_to_end(lease: Lease) -> list[frontier.Result]:
    mine = (lease.request_id, lease.fence)
    return [
        frontier.Fetched(*mine),
        frontier.Done(*mine),
        frontier.Failed(*mine, "fetch", Outcome.GONE, "404"),
        frontier.Retry(*mine, SECOND, Outcome.TIMEOUT, "slow"),
        frontier.Snoozed(*mine, SECOND),
        frontier.Released(*mine),
        frontier.Moved(*mine, {"url": "http://other.localhost/"}, "shop.localhost", "302"),
        frontier.Skipped(*mine, Outcome.OUT_OF_SCOPE, "elsewhere"),
    ]


# --- One claim is one attempt (rule 3) -------------------------------------------------------------------------------


def test_one_claim_is_one_attempt(work: Work):
    """Rule 3."""
    # Mutation: drop `attempts = r.attempts + 1` from claim_requests.
    lease = one(work)
    assert lease.attempt == 1
    work.finish(frontier.Retry(lease.request_id, lease.fence, SECOND, Outcome.TIMEOUT, "slow"), now=NOON)
    (again,) = work.claim(now=NOON + SECOND)
    assert again.attempt == 2


def test_leased_request_is_given_to_nobody_else(work: Work):
    one(work)
    assert work.claim(now=NOON + LEASE - SECOND) == []


@pytest.mark.parametrize("way", [4, 5, 6], ids=["snooze", "release", "move"])
def test_release_and_snooze_give_the_attempt_back_but_not_the_fence(work: Work, way: int):
    """Rule 3; so does a redirect, whose next hop is another claim."""
    # Mutation: drop `attempts = r.attempts - …` from finish_requests -> attempt 2.
    lease = one(work, max_attempts=1)
    work.finish(ways_to_end(lease)[way], now=NOON)
    (again,) = work.claim(now=NOON + SECOND)
    assert again.attempt == 1
    assert again.fence > lease.fence


def test_redirected_request_is_claimed_at_its_next_address_and_is_at_home_when_it_ended(work: Work):
    lease = one(work, max_attempts=1)
    work.finish(
        frontier.Moved(lease.request_id, lease.fence, {"url": "http://o.localhost/"}, "o.localhost", "302"), now=NOON
    )
    assert work.due(now=NOON).by_key == {"o.localhost": 1}
    assert work.claim(now=NOON) == []
    (moved,) = work.claim(now=NOON, budget_key="o.localhost")
    assert (moved.address, moved.url, moved.budget_key) == ("http://o.localhost/", lease.url, "o.localhost")
    assert work.take_back(LATER) == 1
    assert keys_and_chains(work) == [(lease.budget_key, None)]


@pytest.mark.parametrize("way", [4, 5], ids=["snooze", "release"])
def test_chain_of_redirects_stays_while_its_request_waits(work: Work, way: int):
    lease = one(work)
    work.finish(
        frontier.Moved(lease.request_id, lease.fence, {"url": "http://o.localhost/"}, "o.localhost", "302"), now=NOON
    )
    (moved,) = work.claim(now=NOON, budget_key="o.localhost")
    work.finish(ways_to_end(moved)[way], now=NOON)
    assert keys_and_chains(work) == [("o.localhost", {"url": "http://o.localhost/", "home": lease.budget_key})]


def keys_and_chains(work: Work) -> list[Any]:
    with work.database.transaction() as connection:
        return connection.execute("SELECT budget_key, chain FROM requests").fetchall()


def test_snoozed_and_retried_requests_wait_for_their_time(work: Work):
    work.add(requests(2))
    first, second = work.claim(2, now=NOON)
    work.finish(
        frontier.Snoozed(first.request_id, first.fence, 10 * SECOND),
        frontier.Retry(second.request_id, second.fence, 20 * SECOND, Outcome.TIMEOUT, "slow"),
        now=NOON,
    )
    assert work.claim(2, now=NOON + 9 * SECOND) == []
    due = work.due(now=NOON + 4 * SECOND)
    assert (due.by_key, due.next_due_in, due.to_fetch) == ({}, 6.0, 2)
    assert [lease.request_id for lease in work.claim(2, now=NOON + 10 * SECOND)] == [first.request_id]
    assert [lease.request_id for lease in work.claim(2, now=NOON + 20 * SECOND)] == [second.request_id]


def test_retry_after_the_last_attempt_is_a_failure_in_fetch_with_its_reason(work: Work):
    """Rule 3."""
    # Mutation: drop `%(is_retry)s AND r.attempts >= r.max_attempts` -> queued, and the next claim breaks a CHECK.
    lease = one(work, max_attempts=1)
    assert work.finish(frontier.Retry(lease.request_id, lease.fence, SECOND, Outcome.TIMEOUT, "slow"), now=NOON)
    (row,) = work.rows().values()
    assert (row.state, row.failed_phase, row.outcome, row.reason) == ("failed", "fetch", "timeout", "slow")
    assert (row.attempts, row.not_before, row.finished_at) == (1, None, NOON)


def test_expired_lease_counts_as_an_attempt_and_fails_after_the_last(work: Work):
    """Rule 3."""
    # Mutation: `attempts = r.attempts - 1` in take_back_expired -> claimed for ever.
    work.add(requests(1), max_attempts=3)
    now = NOON
    for attempt in (1, 2, 3):
        (lease,) = work.claim(now=now, worker="worker-that-dies")
        assert lease.attempt == attempt
        now += LEASE
    assert work.claim(now=now) == []
    (row,) = work.rows().values()
    assert (row.state, row.failed_phase, row.outcome) == ("failed", "fetch", "lease_expired")
    assert row.reason
    assert "attempt 3 of 3" in row.reason
    assert "worker-that-dies" in row.reason


@pytest.mark.parametrize("way", [0, 1, 2], ids=["failed", "retry", "skipped"])
def test_reasons_are_bounded_and_clean(work: Work, way: int):
    """Rule 3: what a server says may be endless and may hold NUL."""
    # Mutation: drop left(…, 500) -> reason_is_bounded is violated and the batch is lost.
    lease = one(work, max_attempts=1)
    mine = (lease.request_id, lease.fence)
    endless = (Outcome.TIMEOUT, "é\0" * 10_000)
    ways = [
        frontier.Failed(*mine, "fetch", *endless),
        frontier.Retry(*mine, SECOND, *endless),
        frontier.Skipped(*mine, *endless),
    ]
    work.finish(ways[way], now=NOON)
    (row,) = work.rows().values()
    assert row.reason == "é" * 500


# --- Every write carries its fence (rule 4) --------------------------------------------------------------------------


@pytest.mark.parametrize("way", range(8))
def test_late_worker_cannot_end_a_request_that_moved_on(work: Work, way: int):
    """Rule 4: the lease went to another worker; no row back means that the guard held."""
    # Mutation: drop `r.fence = ANY (…)` from lock_leases and finish_requests -> all eight fail.
    lease = one(work)
    (moved_on,) = work.claim(now=LATER, worker="worker-2")
    before = work.rows()
    assert work.finish(ways_to_end(lease)[way], now=LATER) == set()
    assert work.rows() == before
    assert work.fetched(moved_on, now=LATER) == {moved_on.request_id}


@pytest.mark.parametrize("way", range(8))
def test_late_worker_cannot_end_a_request_whose_lease_expired(work: Work, way: int):
    """Rule 4: also when nobody has taken it back yet."""
    # Mutation: drop `r.leased_until > …` from lock_leases and finish_requests -> all eight fail.
    lease = one(work)
    before = work.rows()
    assert work.finish(ways_to_end(lease)[way], now=LATER) == set()
    assert work.rows() == before


def test_late_worker_cannot_renew(work: Work):
    """Rule 4, for the heartbeat."""
    # Mutation: drop the fence, then the expiry, from lock_leases and renew_leases.
    lease = one(work)
    assert work.renew(lease, now=LATER) == set()
    (moved_on,) = work.claim(now=LATER)
    assert work.renew(lease, now=LATER) == set()
    assert work.renew(lease, moved_on, now=LATER) == {lease.request_id}


def test_batch_is_applied_where_it_is_ours_and_refused_where_it_is_not(work: Work):
    work.add(requests(3))
    short, held, ended = work.claim(3, now=NOON)
    work.renew(held, ended, lease=2 * LEASE, now=NOON)
    work.fetched(ended, now=NOON)
    assert work.fetched(short, held, ended, now=LATER) == {held.request_id}


def test_result_is_applied_once(work: Work):
    lease = one(work)
    assert work.fetched(lease, now=NOON) == {lease.request_id}
    for result in ways_to_end(lease):
        assert work.finish(result, now=NOON) == set()


def test_renewed_lease_holds_and_is_never_shortened(work: Work):
    lease = one(work)
    assert work.renew(lease, now=NOON + 30 * SECOND) == {lease.request_id}
    assert work.renew(lease, lease=SECOND, now=NOON + 31 * SECOND) == {lease.request_id}
    assert work.take_back(NOON + 89 * SECOND) == 0
    assert work.fetched(lease, now=NOON + 89 * SECOND) == {lease.request_id}


def test_fences_grow_and_are_never_used_again(work: Work):
    """Rule 4: they come from a sequence, so neither a rollback nor another window gives one twice."""
    # Mutation: `fence = coalesce(r.fence, 0) + 1` in claim_requests -> equal fences.
    other = open_work(work.database, source="lab")
    fences: list[int] = []
    for one_work in (work, other):
        one_work.add(requests(3))
        fences += [lease.fence for lease in one_work.claim(3, now=NOON)]
        fences += [lease.fence for lease in one_work.claim(3, now=LATER)]
    assert len(set(fences)) == len(fences) == 12
    assert max(fences[:3]) < min(fences[3:6])


def test_nothing_renewed_and_nothing_finished_is_nothing(work: Work):
    assert work.renew() == set()
    assert work.finish() == set()
    assert work.claim(0) == []


# --- Taking back -----------------------------------------------------------------------------------------------------


def test_row_that_somebody_locks_does_not_stop_the_taking_back(work: Work):
    """Rule 4: it is left for the next time."""
    # Mutation: drop SKIP LOCKED from take_back_expired -> it waits until lock_timeout.
    work.add(requests(3))
    locked, *_ = work.claim(3, now=NOON)
    with work.database.connect() as holder, work.database.connect() as sweeper:
        holder.execute("SELECT FROM requests WHERE request_id = %s FOR UPDATE", [locked.request_id])
        sweeper.execute("SET lock_timeout = '1s'")
        assert frontier.take_back_expired(sweeper, work.source, work.start, LATER) == 2
    assert work.take_back(LATER) == 1


def test_poison_row_does_not_stop_the_taking_back(work: Work):
    """Rule 4: a row whose reason would break a CHECK does not take the others with it."""
    # Mutation: drop left(…, 500) from take_back_expired -> CheckViolation, nothing is taken back.
    work.add(requests(3))
    poison, *_ = work.claim(3, now=NOON)
    with work.database.transaction() as connection:
        values = ["w" * 10_000, poison.request_id]
        connection.execute("UPDATE requests SET worker = %s WHERE request_id = %s", values)
    assert work.take_back(LATER) == 3
    assert {row.state for row in work.rows().values()} == {"queued"}


def test_name_of_a_worker_is_bounded_and_clean(work: Work):
    work.add(requests(1))
    assert len(work.claim(worker="w\0" * 1_000)) == 1
    (row,) = work.rows().values()
    assert row.worker == "w" * frontier.LONGEST_WORKER_NAME


def test_taking_back_leaves_live_leases_and_other_windows_alone(work: Work):
    other = open_work(work.database, source="lab")
    for one_work in (work, other):
        one_work.add(requests(2))
        one_work.claim(1, now=NOON)
        one_work.claim(1, now=NOON + 30 * SECOND)
    assert work.take_back(LATER) == 1
    with work.database.transaction() as connection:
        assert frontier.take_back_expired(connection, now=LATER + 30 * SECOND) == 3


def test_two_sweepers_take_each_lease_back_once(work: Work):
    work.add(requests(200))
    work.claim(200, now=NOON)
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda _: work.take_back(LATER), range(4)))
    assert sum(taken) == 200
    assert {row.attempts for row in work.rows().values()} == {1}


def test_result_and_taking_back_at_once_have_one_winner(work: Work):
    """Rule 4: the sweeper passes over a row whose result is being written, and finds it ended afterwards."""
    lease = one(work)
    with work.database.transaction() as connection:
        mine = [frontier.Fetched(lease.request_id, lease.fence)]
        assert frontier.finish(connection, work.start, mine, LATER - SECOND) == {lease.request_id}
        assert work.take_back(LATER) == 0
    assert work.take_back(LATER) == 0
    assert work.counts().fetched == 1


# --- Whose clock, whose book-keeping ---------------------------------------------------------------------------------


def test_worker_with_a_fast_clock_takes_nothing(work: Work, monkeypatch: pytest.MonkeyPatch):
    """Case DBQ-11, rule 6: expiry is judged by the database clock."""
    work.add(requests(1))
    (lease,) = work.claim()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 600)
    assert work.claim(worker="worker-with-a-fast-clock") == []
    assert work.take_back() == 0
    assert work.fetched(lease) == {lease.request_id}


def test_worker_that_comes_back_under_its_old_name_keeps_nothing_alive(work: Work):
    """Case DBQ-13: expiry belongs to the request's row, not to a list of workers."""
    work.add(requests(2))
    (lost,) = work.claim(worker="pod-7", now=NOON)
    (held,) = work.claim(worker="pod-7", now=NOON + 30 * SECOND)
    assert work.renew(held, now=LATER - SECOND) == {held.request_id}
    (again,) = work.claim(worker="pod-7", now=LATER)
    assert again.request_id == lost.request_id
    assert again.fence > lost.fence


def test_lease_that_expired_unnoticed_is_due(work: Work):
    one(work)
    assert work.due(now=LATER - SECOND).by_key == {}
    assert work.due(now=LATER - SECOND).next_due_in == 1.0
    assert work.due(now=LATER).by_key == {"shop.localhost": 1}


# --- Which requests --------------------------------------------------------------------------------------------------


def test_claim_takes_one_budget_key_at_a_time(work: Work):
    """A worker claims what its permissions let it send."""
    work.add([*requests(2), request("far", budget_key="other.localhost")])
    assert [name_of(lease) for lease in work.claim(9, budget_key="other.localhost")] == ["far"]
    assert len(work.claim(9)) == 2
    assert work.claim(9, budget_key="nowhere.localhost") == []


def test_order_in_a_lane_is_by_priority_then_by_age_across_kinds(work: Work):
    work.add(
        [
            request("old"),
            request("low", priority=-1),
            request("list", kind="listing"),
            request("high", priority=5),
            request("high-list", kind="listing", priority=5),
            request("young"),
        ]
    )
    assert [name_of(lease) for lease in work.claim(9)] == ["high", "high-list", "old", "list", "young", "low"]


def test_lease_ends_when_the_database_says(work: Work):
    assert one(work).leased_until == LATER
