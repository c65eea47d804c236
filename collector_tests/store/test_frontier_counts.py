"""Counting (rule 20), reading verdicts (rule 15), and the order of locks (rule 6)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count

import pytest

from collector_assets import frontier, selected
from collector_assets.database import Database
from collector_assets.outcome import Outcome
from collector_assets.request import Lease
from collector_assets.selection import Selection
from collector_tests.fixtures.frontier import NOON, Work, open_work, requests, wait_for_blocked

SECOND = timedelta(seconds=1)


@pytest.fixture
def work(database: Database) -> Work:
    return open_work(database, capacity=8)


def in_every_state(work: Work) -> dict[str, Lease]:
    """One request in each state, and two candidates."""
    work.add(requests(10))
    names = ("fetched", "done", "failed", "unread", "skipped", "retried", "leased", "queued")
    leases: dict[str, Lease] = dict(zip(names, work.claim(8, now=NOON), strict=True))
    mine = {name: (lease.request_id, lease.fence) for name, lease in leases.items()}
    work.finish(
        frontier.Fetched(*mine["fetched"]),
        frontier.Done(*mine["done"]),
        frontier.Failed(*mine["failed"], "fetch", Outcome.GONE, "404"),
        frontier.Failed(*mine["unread"], "read", Outcome.DISCOVERY_FAILED, "KeyError"),
        frontier.Skipped(*mine["skipped"], Outcome.OUT_OF_SCOPE, "elsewhere"),
        frontier.Retry(*mine["retried"], SECOND, Outcome.TIMEOUT, "slow"),
        frontier.Released(*mine["queued"]),
        now=NOON,
    )
    return leases


def test_planned_is_done_failed_skipped_and_outstanding(work: Work):
    """Rule 20."""
    # Mutation: leave "fetched" out of `outstanding` -> one is missing.
    in_every_state(work)
    counts = work.counts()
    assert counts.planned == counts.done + counts.failed + counts.skipped + counts.outstanding == 10
    assert (counts.candidate, counts.queued, counts.leased, counts.fetched) == (2, 2, 1, 1)
    assert (counts.done, counts.failed, counts.failed_fetch, counts.failed_read, counts.skipped) == (1, 2, 1, 1, 1)
    assert (counts.to_fetch, counts.to_read, counts.outstanding) == (5, 1, 6)
    assert (counts.attempts, counts.retries) == (7, 0)
    assert counts.oldest_waiting_at is not None


def test_outcome_table_has_a_line_for_each_end(work: Work):
    in_every_state(work)
    lines = {(row["state"], row["outcome"]): row["requests"] for row in work.counts().outcome_table()}
    assert lines == {
        ("candidate", ""): 2,
        ("done", "ok"): 1,
        ("failed(fetch)", "gone"): 1,
        ("failed(read)", "discovery_failed"): 1,
        ("fetched", "ok"): 1,
        ("leased", ""): 1,
        ("queued", "timeout"): 1,
        ("queued", ""): 1,
        ("skipped", "out_of_scope"): 1,
    }


def test_counts_are_per_kind(work: Work):
    work.add([*requests(3), *requests(2, "listing")])
    assert work.counts().by_kind("listing").planned == 2
    assert work.counts().by_kind("listing", "detail").planned == 5
    assert work.counts().by_kind().planned == 0


def test_requests_are_listed_by_state(work: Work):
    leases = in_every_state(work)
    with work.database.transaction() as connection:
        (failed, unread) = selected.listed(connection, work.source, work.start, Selection(states=("failed",)))
        assert len(selected.listed(connection, work.source, work.start, limit=3)) == 3
    assert (failed.request_id, unread.request_id) == (leases["failed"].request_id, leases["unread"].request_id)
    assert (failed.reason, failed.finished_at) == ("404", NOON)


def test_reading_moves_fetched_done_and_failed_in_reading_and_nothing_else(work: Work):
    """Rule 15."""
    # Mutation: drop the states from lock_readable and mark_read -> failed(fetch) and queued ones become done.
    leases = in_every_state(work)
    before = work.rows()
    movable = {"fetched", "done", "unread"}
    results = [frontier.Read(lease.request_id, "failed", Outcome.NO_RECORDS, "empty") for lease in leases.values()]
    assert work.read(*results) == 3
    after = {row.request_id: row for row in work.rows().values()}
    assert {name for name, lease in leases.items() if after[lease.request_id].outcome == "no_records"} == movable
    unmoved = {leases[name].request_id for name in leases.keys() - movable}
    assert [row for row in before.values() if row.request_id in unmoved] == [after[i] for i in sorted(unmoved)]


def test_reading_twice_changes_nothing(work: Work):
    """Rules 14 and 15."""
    leases = in_every_state(work)
    read = frontier.Read(leases["fetched"].request_id, "done", Outcome.OK, None)
    assert work.read(read) == 1
    before = work.rows()
    assert work.read(read) == 0
    assert work.rows() == before


def test_reading_again_may_change_the_verdict_both_ways(work: Work):
    """Rule 15: done <-> failed(read)."""
    request_id = in_every_state(work)["fetched"].request_id
    for state, outcome, reason in [("failed", Outcome.NO_RECORDS, "x" * 900), ("done", Outcome.OK, None)] * 2:
        assert work.read(frontier.Read(request_id, state, outcome, reason)) == 1
    assert work.read() == 0
    counts = work.counts()
    assert (counts.done, counts.failed_read, counts.fetched) == (2, 1, 0)


def test_heartbeat_and_results_of_one_worker_cannot_deadlock(work: Work):
    """Rule 6: requests are locked by id first, whatever the order in which a batch of results changes them."""
    # Mutation: drop lock_leases from `finish` -> DeadlockDetected.
    work.add(requests(2))
    low, high = work.claim(2)
    mixed = [
        frontier.Retry(high.request_id, high.fence, SECOND, Outcome.TIMEOUT, "slow"),
        frontier.Fetched(low.request_id, low.fence),
    ]
    with ThreadPoolExecutor(2) as pool:
        with work.database.transaction() as holder:
            holder.execute("SELECT FROM requests WHERE request_id = %s FOR UPDATE", [low.request_id])
            renewed = pool.submit(work.renew, low, high)
            wait_for_blocked(work.database, 1)
            finished = pool.submit(work.finish, *mixed)
            wait_for_blocked(work.database, 2)
        assert renewed.result() == finished.result() == {low.request_id, high.request_id}


def test_everything_at_once_never_deadlocks_and_adds_up(database: Database):
    """Rule 6: eight threads add, claim, renew, finish, sweep and read, with one order of locks."""
    # Mutation: drop the states from lock_readable and mark_read -> more are done than ended.
    work = open_work(database, capacity=30)
    every = [*requests(400), *requests(400, lane="b"), *requests(200, "listing")]
    numbers: Iterator[int] = count()
    until = threading.Event()

    def sweep() -> None:
        while not until.is_set():
            work.take_back()
            work.counts()

    def live(thread: int) -> int:
        ended = 0
        for step in range(25):
            start = (thread * 113 + step * 31) % 900
            work.add(every[start : start + 60] if thread % 2 else every[start : start + 60][::-1])
            leases = work.claim(12, kinds=["listing"] if step % 5 == 0 else None, worker=f"thread-{thread}")
            work.renew(*(leases[::-1] if next(numbers) % 2 else leases))
            half = len(leases) // 2
            back = [frontier.Released(lease.request_id, lease.fence) for lease in leases[:half:3]]
            ended += len(work.fetched(*[lease for n, lease in enumerate(leases[:half]) if n % 3]))
            work.finish(*back)
            ended += len(work.fetched(*leases[half:][::-1]))
            work.read(*(frontier.Read(lease.request_id, "done", Outcome.OK, None) for lease in leases))
        return ended

    with ThreadPoolExecutor(7) as pool:
        sweeper = pool.submit(sweep)
        ended = sum(pool.map(live, range(6)))
        until.set()
        sweeper.result()
    counts = work.counts()
    assert counts.done == ended
    assert counts.leased == 0
    assert counts.planned == counts.done + counts.outstanding
