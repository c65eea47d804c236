"""Admission and capacity (rule 2)."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from collector_assets import frontier
from collector_assets.database import Database
from collector_assets.frontier import claiming
from collector_assets.outcome import Outcome
from collector_tests.fixtures.frontier import START, Work, name_of, open_work, request, requests, wait_for_blocked

KINDS = ("one", "two", "three")


def active(work: Work) -> int:
    counts = work.counts()
    return counts.queued + counts.leased


def test_what_is_over_the_capacity_stays_a_candidate_and_is_admitted_later(database: Database):
    """Rule 2: nothing is dropped."""
    # Mutation: admit MOST_ADMITTED instead of what there is room for -> 10 queued or leased.
    work = open_work(database, capacity=4)
    work.add(requests(10))
    leases = work.claim(3)
    assert (work.counts().leased, work.counts().queued, work.counts().candidate) == (3, 1, 6)
    done = 0
    while leases:
        done += len(work.fetched(*leases))
        leases = work.claim(3)
        assert active(work) <= 4
    assert done == 10


def test_claims_of_different_kinds_at_once_cannot_both_take_the_last_places(database: Database):
    """Rule 2: the second waits at the window's row until the first has counted and committed."""
    # Mutation: drop FOR NO KEY UPDATE from lock_window -> 8 leased under a capacity of 4.
    work = open_work(database, capacity=4)
    work.add([*requests(4, "one"), *requests(4, "two")])
    with ThreadPoolExecutor(1) as pool:
        with database.transaction() as connection:
            first = frontier.claim(connection, **work.claim_arguments(4, kinds=["one"]))
            second = pool.submit(work.claim, 4, kinds=["two"])
            wait_for_blocked(database, 1)
        assert (len(first), second.result()) == (4, [])
    assert active(work) == 4


def drain(dsn: str, kind: str | None) -> None:
    """One process's work: claim, and end each request in some way, until nothing is left."""
    with Database(dsn, application_name="drain") as database:
        work = Work(database=database)
        while work.due([kind] if kind else None).to_fetch:
            for lease in work.claim(3, kinds=[kind] if kind else None, worker=f"process-{kind}"):
                mine = (lease.request_id, lease.fence)
                if lease.attempt == 1 and lease.request_id % 3 == 0:
                    work.finish(frontier.Retry(*mine, timedelta(0), Outcome.TIMEOUT, "slow"))
                elif lease.request_id % 3 == 1 and not lease.hints:
                    work.finish(frontier.Done(*mine))
                else:
                    work.fetched(lease)


def test_capacity_holds_with_several_processes(database: Database, dsn: str):
    """Rule 2, from outside: a bystander counts all the time and never sees more than the capacity."""
    work = open_work(database, capacity=5)
    for kind in KINDS:
        work.add(requests(40, kind))
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=drain, args=(dsn, kind)) for kind in (*KINDS, None)]
    for process in processes:
        process.start()
    most = 0
    with database.connect(autocommit=True) as bystander:
        while any(process.is_alive() for process in processes):
            row: Any = bystander.execute("SELECT count(*) FROM requests WHERE state IN ('queued', 'leased')").fetchone()
            most = max(most, row[0])
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert 0 < most <= 5
    counts = work.counts()
    assert counts.planned == counts.done + counts.fetched == 120


def test_listing_never_waits_behind_the_details_it_found(database: Database):
    """Rule 2: pass 1 finds the capacity full of queued details, and makes room for its listings."""
    # Mutation: drop send_back_foreign from _admit -> either nothing is claimed or the capacity is exceeded.
    work = open_work(database, capacity=5)
    work.add(requests(20))
    held = work.claim(2)
    work.add(requests(9, "listing"))
    assert [name_of(lease) for lease in work.claim(9, kinds=["listing"])] == [
        "listing-*-0",
        "listing-*-1",
        "listing-*-2",
    ]
    counts = work.counts()
    assert (counts.leased, counts.queued, counts.candidate) == (5, 0, 24)
    work.fetched(*held)
    assert len(work.claim(9, kinds=["listing"])) == 2
    assert active(work) == 5


def test_pass_that_finds_nothing_to_admit_sends_nothing_back(database: Database):
    work = open_work(database, capacity=3)
    work.add(requests(5))
    work.claim(1)
    assert work.claim(5, kinds=["listing"]) == []
    assert work.counts().queued == 2


def test_pass_claims_only_the_kinds_it_drains(database: Database):
    """Rule 2."""
    work = open_work(database)
    work.add([*requests(3), *requests(2, "listing")])
    assert {lease.kind for lease in work.claim(9, kinds=["listing"])} == {"listing"}
    assert work.counts().by_kind("detail").candidate == 3
    assert len(work.claim(9)) == 3


def test_abandoned_window_does_not_block_the_next(database: Database):
    """Rule 2: the capacity is a window's own."""
    old = open_work(database, capacity=3)
    old.add(requests(9))
    assert len(old.claim(9)) == 3
    new = open_work(database, capacity=3, start=START + timedelta(days=1))
    new.add(requests(9))
    assert len(new.claim(9)) == 3


def test_smaller_capacity_admits_nothing_until_there_is_room(database: Database):
    work = open_work(database, capacity=6)
    work.add(requests(10))
    leases = work.claim(4)
    open_work(database, capacity=2)
    work.fetched(*leases[:1])
    work.claim(1)
    assert (work.counts().leased, work.counts().queued, work.counts().candidate) == (4, 1, 4)


def test_admission_of_a_large_capacity_goes_in_steps(database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claiming, "MOST_ADMITTED", 3)
    work = open_work(database, capacity=50)
    work.add(requests(10))
    work.claim(1)
    assert work.counts().queued + work.counts().leased == 3
    assert len(work.claim(50)) == 5


def test_due_says_what_a_claim_would_find(database: Database):
    work = open_work(database, capacity=4)
    work.add([*requests(3), request("far", budget_key="other.localhost"), *requests(6, "listing")])
    assert work.due(["detail"]).by_key == {"shop.localhost": 3, "other.localhost": 1}
    assert work.due(["detail"]).to_fetch == 4
    assert sum(work.due().by_key.values()) == 4
    assert work.due().to_fetch == 10
    work.claim(4, kinds=["detail"])
    assert work.due(["listing"]).by_key == {"shop.localhost": 1}
    assert work.due(["listing"]).to_fetch == 6


def test_candidate_that_waits_for_a_place_is_not_due(database: Database):
    work = open_work(database, capacity=2)
    work.add(requests(5))
    work.claim(2)
    due = work.due()
    assert (due.by_key, due.to_fetch) == ({}, 5)
    assert due.next_due_in is not None
    assert 55 < due.next_due_in <= 60


def test_row_lock_of_the_window_is_the_first_thing_a_claim_takes(database: Database):
    """Rule 6: with the window's row held by somebody else, a claim has touched nothing yet."""
    work = open_work(database)
    work.add(requests(2))
    work.claim(1, lease=timedelta(milliseconds=1))
    with database.connect() as holder, database.connect() as other:
        holder.execute("SELECT FROM windows FOR NO KEY UPDATE")
        other.execute("SET lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable, match="windows"):
            frontier.claim(other, **work.claim_arguments(1))
