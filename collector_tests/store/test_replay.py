"""Replay: exactly the chosen failed(fetch) requests, a new budget of attempts, and who did it, when and why."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from collector_assets import frontier, interventions, put_back, replay, selected, windows
from collector_assets.contract import Source, replace
from collector_assets.database import Database
from collector_assets.errors import BadSelection, LateRefused, ReasonMissing, ReplayRefused, UnknownWindow
from collector_assets.outcome import Outcome
from collector_assets.put_back import PutBack, Wish
from collector_assets.request import Lease
from collector_assets.selection import MOST_IDS, Selection
from collector_assets.sources.shop import SHOP
from collector_tests.fixtures.frontier import LEASE, Work, name_of, open_work, request, requests, wait_for_blocked

WHY = "the site was down on Monday"
FAILED = Selection(states=("failed(fetch)",))


@pytest.fixture
def work(database: Database) -> Work:
    return open_work(database, names_window=True)


def wish(work: Work, selection: Selection, source: Source = SHOP, **more: Any) -> Wish:
    values: dict[str, Any] = {"everything": False, "reason": WHY, "by": "ada", "dry_run": False} | more
    return Wish(source=source, window=work.start.isoformat(), selection=selection, **values)


def put(work: Work, selection: Selection, source: Source = SHOP, **more: Any) -> PutBack:
    return replay.run(wish(work, selection, source, **more), work.database)


def in_every_state(work: Work) -> dict[str, Lease]:
    """A request in each state, named by it; the leases of those that were claimed."""
    names = ("done", "fetched", "timed_out", "not_found", "unread", "skipped", "leased")
    work.add([request(name) for name in names])
    leases = {name_of(lease): lease for lease in work.claim(len(names))}
    mine = {name: (lease.request_id, lease.fence) for name, lease in leases.items()}
    work.finish(
        frontier.Done(*mine["done"]),
        frontier.Fetched(*mine["fetched"]),
        frontier.Failed(*mine["timed_out"], "fetch", Outcome.TIMEOUT, "no byte for 30 s"),
        frontier.Failed(*mine["not_found"], "fetch", Outcome.GONE, "404 Not Found"),
        frontier.Failed(*mine["unread"], "read", Outcome.NO_RECORDS, "empty"),
        frontier.Skipped(*mine["skipped"], Outcome.OUT_OF_SCOPE, "another host"),
    )
    work.add([request("queued"), request("candidate")])
    return leases


def kept(work: Work) -> list[interventions.Intervention]:
    with work.database.transaction() as connection:
        return interventions.listed(connection, work.source, work.start)


def test_only_failed_in_fetching_is_put_back(work: Work) -> None:
    """Rule 15: done, fetched, failed(read), skipped and what is on its way stay what they are."""
    # Mutation: replay._failed_in_fetching compares the state alone
    in_every_state(work)
    before = work.rows()
    done = replay.run(wish(work, Selection(), everything=True), work.database)
    after = work.rows()
    assert done.requests == 2
    assert done.were == {"failed(fetch) gone": 1, "failed(fetch) timeout": 1}
    assert {name for name, row in after.items() if row != before[name]} == {"timed_out", "not_found"}
    assert sum(done.left_alone.values()) == 7
    assert work.counts().planned == 9


def test_a_named_request_that_is_not_failed_in_fetching_refuses_the_whole_wish(work: Work) -> None:
    """Rule 15: only failed(fetch) is replayed by sending."""
    # Mutation: put_back.run without object_to
    leases = in_every_state(work)
    before = work.rows()
    for name in ("done", "fetched", "unread", "skipped", "leased"):
        ids = (leases["timed_out"].request_id, leases[name].request_id)
        with pytest.raises(ReplayRefused, match=rf"request {leases[name].request_id} is .*only failed\(fetch\)"):
            put(work, Selection(ids=ids))
    assert work.rows() == before
    assert kept(work) == []


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (Selection(outcomes=("timeout",)), {"detail-*-0", "detail-*-1"}),
        (Selection(reason_has="BYTE FOR"), {"detail-*-0"}),
        (Selection(entities=("b2",)), {"b"}),
        (Selection(kinds=("listing",)), {"listing-*-0"}),
        (Selection(url_has="/detail-*-1"), {"detail-*-1"}),
        (Selection(outcomes=("timeout", "gone"), reason_has="byte"), {"detail-*-0"}),
        (Selection(outcomes=("timeout",), kinds=("listing",)), set[str]()),
    ],
)
def test_exactly_what_fits_every_criterion_is_chosen(work: Work, selection: Selection, chosen: set[str]) -> None:
    # Mutation: drop the outcomes from group_selected
    work.add([*requests(2), request("b", entity="b2"), *requests(1, "listing")])
    ends = {"detail-*-0": ("timeout", "no byte for 30 s"), "detail-*-1": ("timeout", "connecting took 10 s")}
    for lease in work.claim(4):
        outcome, reason = ends.get(name_of(lease), ("gone", "404 Not Found"))
        work.finish(frontier.Failed(lease.request_id, lease.fence, "fetch", Outcome(outcome), reason))
    done = put(work, selection)
    assert {name for name, row in work.rows().items() if row.state == "candidate"} == chosen
    assert done.requests == len(chosen)


def test_the_new_budget_of_attempts_is_as_large_as_the_first(work: Work) -> None:
    """Rule 3: what was attempted stays counted, and the fence grows."""
    # Mutation: max_attempts = r.max_attempts in put_back -> attempts_within_budget refuses the claim
    work.add(requests(1), max_attempts=2)
    source = replace(SHOP, max_attempts=2)
    fences = list[int]()
    for _ in range(2):
        (lease,) = work.claim()
        work.finish(frontier.Retry(lease.request_id, lease.fence, timedelta(0), Outcome.TIMEOUT, "silence"))
        fences.append(lease.fence)
    assert put(work, FAILED, source).attempts == 2
    for attempt in (3, 4):
        (lease,) = work.claim()
        assert (lease.attempt, lease.max_attempts) == (attempt, 4)
        assert lease.fence > fences[-1]
        work.finish(frontier.Retry(lease.request_id, lease.fence, timedelta(0), Outcome.TIMEOUT, "silence"))
    (row,) = work.rows().values()
    assert (row.state, row.failed_phase, row.attempts) == ("failed", "fetch", 4)


def test_a_request_that_failed_at_once_gets_the_whole_budget_and_no_more(work: Work) -> None:
    work.add(requests(1), max_attempts=3)
    (lease,) = work.claim()
    work.finish(frontier.Failed(lease.request_id, lease.fence, "fetch", Outcome.GONE, "404"))
    put(work, FAILED)
    (row,) = work.rows().values()
    assert (row.attempts, row.max_attempts) == (1, 1 + SHOP.max_attempts)


def test_who_when_and_why_are_kept_with_what_was_there(work: Work) -> None:
    leases = in_every_state(work)
    done = put(work, Selection(ids=(leases["timed_out"].request_id,)))
    (found,) = kept(work)
    assert (found.intervention_id, found.verb, found.by_whom, found.reason) == (done.intervention, "replay", "ada", WHY)
    assert found.selection == {"ids": [leases["timed_out"].request_id]}
    assert (found.requests, found.were) == (1, {"failed(fetch) timeout": 1})
    row = work.rows()["timed_out"]
    assert row.intervention_id == found.intervention_id
    assert (row.state, row.failed_phase, row.outcome, row.reason) == ("candidate", None, None, None)


def test_a_dry_run_counts_and_changes_nothing(work: Work) -> None:
    # Mutation: put_back.run asks for ids only, not for dry_run
    in_every_state(work)
    before = work.rows()
    done = put(work, FAILED, dry_run=True)
    assert (done.requests, done.intervention) == (2, None)
    assert [row.outcome for row in done.examples] == ["timeout", "gone"]
    assert work.rows() == before
    assert kept(work) == []


def test_nothing_that_fits_is_no_intervention(work: Work) -> None:
    in_every_state(work)
    done = put(work, Selection(outcomes=("no_records",)))
    assert (done.requests, done.intervention, done.left_alone) == (0, None, {"failed(read) no_records": 1})
    assert "no request fits" in done.next_step
    assert kept(work) == []


@pytest.mark.parametrize(
    ("selection", "more", "problem"),
    [
        (Selection(), {}, "nothing is selected"),
        (Selection(outcomes=("timeout",)), {"everything": True}, "say which of the two"),
        (Selection(outcomes=("time_out",)), {}, "no outcome is called 'time_out'"),
        (Selection(kinds=("book",)), {}, "no kind is called 'book'; there are: listing, detail"),
        (Selection(states=("lost",)), {}, "no state is called 'lost'"),
        (Selection(ids=(987_654,)), {}, "the window has no request 987654"),
        (Selection(ids=tuple(range(MOST_IDS + 1))), {}, f"at most {MOST_IDS}"),
    ],
)
def test_a_selection_that_cannot_be_meant_is_refused(
    work: Work, selection: Selection, more: dict[str, Any], problem: str
) -> None:
    in_every_state(work)
    with pytest.raises(BadSelection, match=problem):
        put(work, selection, **more)
    assert kept(work) == []


@pytest.mark.parametrize(
    "more", [{"reason": ""}, {"reason": " \n"}, {"by": ""}, {"reason": "x" * (put_back.LONGEST_REASON + 1)}]
)
def test_without_a_reason_and_a_name_nothing_happens(work: Work, more: dict[str, Any]) -> None:
    in_every_state(work)
    with pytest.raises(ReasonMissing):
        put(work, FAILED, **more)
    assert kept(work) == []


def test_the_window_must_have_been_opened(work: Work) -> None:
    nowhere = Wish(
        source=SHOP, window="2026-01-30", selection=FAILED, everything=False, reason=WHY, by="ada", dry_run=False
    )
    with pytest.raises(UnknownWindow, match="never opened"):
        replay.run(nowhere, work.database)


def test_a_closed_window_of_a_source_that_refuses_late_work_is_left_alone(database: Database) -> None:
    """Rule 22: what cannot be collected in truth is collected late, or not at all."""
    # Mutation: put_back._is_late without the raise
    work = open_work(database, names_window=False)
    in_every_state(work)
    before = work.rows()
    with pytest.raises(LateRefused, match='late="refuse"'):
        put(work, FAILED, replace(SHOP, late="refuse"))
    assert work.rows() == before
    assert put(work, FAILED).is_late


def test_a_superseded_window_is_taken_up_again(database: Database) -> None:
    """Rule 22: a person goes on with it; a newer window ends it again when it is still unfinished then."""
    # Mutation: put_back.run without windows.take_up
    work = open_work(database)
    in_every_state(work)
    newer = work.start + timedelta(days=1)
    open_work(database, start=newer)

    def superseded_at() -> datetime | None:
        with database.transaction() as connection:
            return windows.require(connection, "shop", work.start.isoformat()).superseded_at

    def supersede() -> list[str]:
        with database.transaction() as connection:
            return windows.supersede_older(connection, "shop", newer)

    assert supersede() == [work.start.isoformat()]
    put(work, FAILED, dry_run=True)
    assert superseded_at() is not None
    put(work, FAILED)
    assert superseded_at() is None
    assert supersede() == [work.start.isoformat()]


def test_the_capacity_holds_for_what_is_put_back(database: Database) -> None:
    """Rule 2: it waits as candidates, however much it is."""
    # Mutation: state = 'queued' in put_back
    work = open_work(database, capacity=2)
    work.add(requests(5))
    for _ in range(5):
        for lease in work.claim(1):
            work.finish(frontier.Failed(lease.request_id, lease.fence, "fetch", Outcome.TIMEOUT, "silence"))
    assert put(work, FAILED).requests == 5
    assert (work.counts().queued, work.counts().candidate) == (0, 5)
    assert len(work.claim(5)) == 2


def test_the_window_s_row_is_locked_first(work: Work) -> None:
    """Rule 6: a replay waits for whoever counts in the window, and sees what they did."""
    # Mutation: put_back.run without windows.lock -> it holds requests while it waits for the row: LockNotAvailable
    leases = in_every_state(work)
    done = list[PutBack]()
    with work.database.transaction() as connection:
        windows.lock(connection, work.source, work.start)
        thread = threading.Thread(target=lambda: done.append(put(work, FAILED)))
        thread.start()
        wait_for_blocked(work.database, 1)
        with work.database.transaction() as other:
            other.execute("SET LOCAL lock_timeout = '2s'")
            selected.put_back(other, work.start, [leases["not_found"].request_id], attempts=3, intervention=0)
    thread.join(10)
    assert [each.were for each in done] == [{"failed(fetch) timeout": 1}]


def test_a_lease_is_never_taken_from_its_holder(work: Work) -> None:
    """Rule 4: the guard is in the statement, whoever calls it."""
    # Mutation: drop the states from put_back and lock_ended -> leased_has_holder refuses, or the lease is gone
    leases = in_every_state(work)
    lease = leases["leased"]
    with work.database.transaction() as connection:
        assert selected.put_back(connection, work.start, [lease.request_id], attempts=3, intervention=0) == 0
    assert work.renew(lease, lease=LEASE) == {lease.request_id}


def test_a_kind_that_the_source_has_no_more_is_left_alone(work: Work) -> None:
    # Mutation: put_back.run without `group.kind in source.kind_map`
    work.add([request("old", "pamphlet"), request("new")])
    for lease in work.claim(2):
        work.finish(frontier.Failed(lease.request_id, lease.fence, "fetch", Outcome.TIMEOUT, "silence"))
    done = put(work, FAILED)
    assert (done.requests, done.left_alone) == (1, {"failed(fetch) timeout": 1})
    assert work.rows()["old"].state == "failed"
