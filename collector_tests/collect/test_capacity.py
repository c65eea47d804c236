"""Rules 2 and 3 through the use cases: no pass waits for another's work, a worker holds only what it may send."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from collector_assets import frontier
from collector_assets.collect import Ending
from collector_assets.contract import Budget, Source, replace, seconds
from collector_assets.desk import claims
from collector_assets.sources import books
from collector_tests.collect.conftest import FAST, QUICK, TODAY, TOMORROW, Hands, ends

BOOKS = replace(
    books.SOURCE, start_urls=("http://books.localhost:8765/catalogue/page-1.html",), budget=FAST, in_flight=8
)


def test_books_whose_details_exceed_the_capacity_finish_pass_1(hands: Hands) -> None:
    """Rule 2: fifty listings, a thousand books, room for five hundred: a listing never waits behind the details."""
    assert BOOKS.capacity == 500
    passed = hands.discover(BOOKS)
    assert passed.collected.ending is Ending.DRAINED
    counts = hands.status(BOOKS).counts
    assert (counts.by_kind("listing").done, counts.by_kind("detail").candidate) == (50, 1000)
    assert len(hands.arrivals("books.localhost")) == 50
    assert hands.collect(BOOKS).ending is Ending.DRAINED
    reading = hands.read(BOOKS)
    assert (reading.records_total, reading.rejects, reading.verdict.passed) == (1000, 0, True)


def test_listings_go_on_where_details_fill_the_capacity(hands: Hands) -> None:
    """Rule 2: what an interrupted pass 2 had admitted makes room for the listings that are left."""
    small = replace(QUICK, capacity=3, patience=seconds(0))
    hands.open(small)
    hands.do("INSERT INTO lanes (source, window_start, kind, lane) VALUES ('shop', %s, 'detail', '*')", TODAY.start)
    hands.do(
        "INSERT INTO requests (source, window_start, unique_key, kind, lane, url, budget_key, state, edition,"
        " max_attempts, method) SELECT 'shop', %s, decode(md5(n::text), 'hex'), 'detail', '*',"
        " 'http://shop.localhost:8765/missing/' || n, 'shop.localhost', 'queued', 1, 3, 'GET'"
        " FROM generate_series(1, 3) AS n",
        TODAY.start,
    )
    assert hands.discover(small).collected.ending is Ending.DRAINED
    assert hands.status(small).counts.by_kind("listing").done == 3
    assert [arrival.path for arrival in hands.arrivals() if "missing" in arrival.path] == []


def test_window_is_not_blocked_by_one_that_was_abandoned_half_way(hands: Hands) -> None:
    """Rule 2: the capacity is a window's own; a dead worker's leases in another window do not count."""
    small = replace(QUICK, capacity=10, names_window=True, patience=seconds(0))
    hands.discover(small, TODAY)
    _hold_everything(hands, small)
    assert hands.status(small, TODAY).counts.leased == 10
    status = hands.whole(small, TOMORROW)
    assert ends(status) == {"planned": 63, "done": 63, "failed": 0, "skipped": 0, "outstanding": 0}
    assert hands.status(small, TODAY).counts.leased == 10


def _hold_everything(hands: Hands, source: Source) -> None:
    """A worker that claimed all that it could and is gone."""
    with hands.database.transaction() as connection:
        frontier.claim(
            connection, source=source.name, window_start=TODAY.start, budget_key="shop.localhost", worker="gone",
            count=1_000, lease=timedelta(hours=1), kinds=None, lane_weights=source.lanes, discovering=("listing",),
            interleave=None,
        )  # fmt: skip


# --- One claim, one attempt ------------------------------------------------------------------------------------------

PACED = replace(QUICK, budget=Budget(gap=seconds(0.1), slots=2), in_flight=2, patience=seconds(0))


@contextmanager
def watching(hands: Hands) -> Iterator[list[int]]:
    """How many requests were leased, looked at all the time."""
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            seen.append(hands.column("SELECT count(*) FROM requests WHERE state = 'leased'")[0])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def test_worker_claims_only_what_it_may_send_now(hands: Hands) -> None:
    """Rule 3: two slots, ten requests a second each: a handful in hand, though sixty are due."""
    hands.discover(QUICK)
    with watching(hands) as leased:
        collected = hands.collect(replace(PACED, turn=seconds(1.5)))
    assert collected.sent > 15
    assert max(leased) <= 8


def test_end_of_a_turn_gives_unsent_requests_back_with_their_attempts(hands: Hands) -> None:
    """Rule 3: attempts are what the site's log shows, and nothing stays leased."""
    hands.discover(QUICK)
    before = len(hands.arrivals())
    assert hands.collect(replace(PACED, turn=seconds(1))).ending is Ending.TURN_OVER
    counts = hands.status(QUICK).counts.by_kind("detail")
    assert counts.leased == 0
    assert hands.column("SELECT sum(attempts) FROM requests WHERE kind = 'detail'") == [len(hands.arrivals()) - before]
    assert 0 < counts.fetched < 60


def test_worker_that_lost_its_slots_gives_unsent_requests_back(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 3: while others hold every slot, what it had claimed ahead waits for whoever may send it."""
    monkeypatch.setattr(claims, "CLAIM_AHEAD_S", 30.0)  # claims far ahead, so that there is something to give back
    hands.discover(QUICK)
    hands.site.misbehave("delay", prefix="/catalogue/", arg="0.05")
    own = replace(PACED, turn=seconds(4))
    worker = threading.Thread(target=hands.collect, args=(own,))
    worker.start()
    try:
        _until(lambda: _leased(hands) > 10, "claimed ahead")
        _take_all_slots(hands)
        _until(lambda: _leased(hands) == 0, "given back")
    finally:
        worker.join()
    assert hands.column("SELECT max(attempts) FROM requests") == [1]


def test_closed_key_gives_unsent_requests_back(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 3: the worker hears of it at its next renewal and keeps nothing for later."""
    monkeypatch.setattr(claims, "CLAIM_AHEAD_S", 30.0)
    hands.discover(QUICK)
    hands.site.misbehave("delay", prefix="/catalogue/", arg="0.05")
    worker = threading.Thread(target=hands.collect, args=(replace(PACED, turn=seconds(4)),))
    worker.start()
    try:
        _until(lambda: _leased(hands) > 10, "claimed ahead")
        hands.do("UPDATE budget_keys SET closed_until = now() + interval '1 hour', closed_reason = 'a test'")
        _until(lambda: _leased(hands) == 0, "given back")
        sent = len(hands.arrivals())
    finally:
        worker.join()
    assert len(hands.arrivals()) == sent
    assert hands.column("SELECT max(attempts) FROM requests") == [1]


def _leased(hands: Hands) -> int:
    return hands.column("SELECT count(*) FROM requests WHERE state = 'leased'")[0]


def _take_all_slots(hands: Hands) -> None:
    """Somebody else's from now on, as after a stop that outlasted the lease."""
    hands.do(
        "UPDATE budget_slots SET holder = 'another', fence = nextval('fences'), held_until = now() + interval '1 hour',"
        " back_at = now() + interval '1 hour'"
    )


def _until(holds: Callable[[], bool], what: str, *, within_s: float = 3.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_slots_are_kept_while_answers_that_fill_the_capacity_are_stored(hands: Hands) -> None:
    """A claim that finds no room is no reason to give the slots back and to ask for them again."""
    small = replace(QUICK, capacity=8)
    hands.discover(small)
    before = _fences(hands)
    assert hands.collect(small).sent == 60
    granted = _fences(hands) - before - 60
    # Mutation: in Claims.next drop the branch that waits for `outbox.deposited()` (56 grants instead of 8).
    assert granted <= 2 * FAST.slots


def _fences(hands: Hands) -> int:
    """Fences given out so far: one for each claim of a request, one for each grant of a slot."""
    return hands.column("SELECT last_value FROM fences")[0]
