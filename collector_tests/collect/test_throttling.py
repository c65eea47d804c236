"""A site that says "slow down" or is down is left alone by everybody (rule 9), judged by its log."""

from __future__ import annotations

import threading
import time

import pytest

from collector_assets.collect import Ending
from collector_assets.contract import Budget, Kind, Link, replace, seconds
from collector_assets.sources.shop import extract
from collector_tests.collect.conftest import QUICK, TOMORROW, Hands, ends

DETAILS = replace(
    QUICK,
    discover=None,
    extract=None,
    kinds={"detail": Kind(extract=extract, may_be_empty=True)},
    start_urls=tuple(Link(f"http://shop.localhost:8765/catalogue/page-1.html?{number}") for number in range(20)),
    retry_wait=seconds(0.05),
)
SERIAL = replace(DETAILS, budget=Budget(gap=seconds(0), slots=1))
IMPATIENT = replace(SERIAL, patience=seconds(0))


def test_429_closes_the_key_as_long_as_it_asks_and_costs_no_attempt(hands: Hands) -> None:
    """Rule 9: the request waits and the others wait with it; then everything goes on."""
    # Mutation: the key is not closed, the request alone waits.
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/1", times=1)
    hands.open(SERIAL)
    collected = hands.collect(SERIAL)
    assert (collected.ending, collected.outcomes) == (Ending.DRAINED, {"throttled": 1, "ok": 20})
    assert hands.column("SELECT max(attempts) FROM requests") == [1]
    refused, *others = hands.arrivals()
    assert refused.status == 429
    assert len(others) == 20
    assert others[0].arrived - refused.ended >= 1.0


def test_eight_under_way_are_one_incident(hands: Hands) -> None:
    """Several 429s of requests that were sent before the key was closed do not make it longer each time."""
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/3600")
    several = replace(DETAILS, patience=seconds(0))
    hands.open(several)
    hands.collect(several)
    assert 1 <= len(hands.arrivals()) <= 8
    assert hands.rows("SELECT incidents FROM budget_keys") == [(1,)]


def test_the_worker_itself_stops_before_anything_is_stored(hands: Hands) -> None:
    """Rule 9: eight slots; what was under way comes in, nothing follows."""
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/3600")
    patient = replace(DETAILS, patience=seconds(0))
    hands.open(patient)
    collected = hands.collect(patient)
    assert collected.ending is Ending.WAITING
    assert collected.next_due_in_s == pytest.approx(3600, abs=10)
    assert len(hands.arrivals()) <= 8
    assert hands.column("SELECT DISTINCT attempts FROM requests") == [0]


def test_another_process_hears_of_it_within_a_second(hands: Hands) -> None:
    """Rule 9: a worker that holds its slot and asks for nothing stops at its next renewal."""
    urls = [f"http://shop.localhost:8765/misbehave/delay/0.05?{number}" for number in range(200)]
    held = {"budget": Budget(gap=seconds(0), slots=2), "in_flight": 1, "patience": seconds(0)}
    slow = replace(DETAILS, name="slow", start_urls=tuple(map(Link, urls)), **held)
    throttled = replace(DETAILS, **held)
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/3600")
    for source in (slow, throttled):
        hands.open(source)
    worker = threading.Thread(target=hands.collect, args=(slow,))
    worker.start()
    try:
        while not hands.arrivals():
            time.sleep(0.05)
        assert hands.collect(throttled).ending is Ending.WAITING
    finally:
        worker.join()
    told = min(arrival.ended for arrival in hands.arrivals() if arrival.status == 429)
    assert max(arrival.arrived for arrival in hands.arrivals()) <= told + 1.2


def test_a_new_worker_after_a_restart_waits_too(hands: Hands) -> None:
    """The pause is in the database: another run, and another window, send nothing before it is over."""
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/2", times=1)
    hands.open(IMPATIENT)
    assert hands.collect(IMPATIENT).ending is Ending.WAITING
    assert len(hands.arrivals()) == 1
    hands.open(SERIAL, TOMORROW)
    hands.collect(SERIAL, TOMORROW)
    refused, *others = hands.arrivals()
    assert others[0].arrived - refused.ended >= 2.0


def test_another_domain_goes_on(hands: Hands) -> None:
    other = Link("http://books.localhost:8765/catalogue/page-1.html?other")
    both = replace(IMPATIENT, start_urls=(*IMPATIENT.start_urls, other), scope=("shop.localhost", "books.localhost"))
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/3600", host="shop.localhost")
    hands.open(both)
    assert hands.collect(both).outcomes == {"throttled": 1, "ok": 1}


def test_garbage_in_retry_after_is_told_and_the_key_backs_off_by_itself(hands: Hands) -> None:
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/soon")
    hands.open(IMPATIENT)
    collected = hands.collect(IMPATIENT)
    assert 55 <= (collected.next_due_in_s or 0) <= 75
    (reason,) = hands.column("SELECT reason FROM requests WHERE outcome = 'throttled'")
    assert reason == "429 Too Many Requests; Retry-After is neither a number nor a date: 'soon'"


def test_a_request_that_is_always_throttled_ends(hands: Hands) -> None:
    """Rule 9: ten times it costs nothing; then each time is an attempt."""
    # Mutation: no bound on snoozes.
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/0")
    one = replace(SERIAL, start_urls=SERIAL.start_urls[:1], max_attempts=2)
    hands.open(one)
    hands.do("UPDATE requests SET snoozes = 10")
    assert hands.collect(one).outcomes == {"throttled": 2}
    assert hands.rows("SELECT state, failed_phase, outcome, attempts, snoozes FROM requests") == [
        ("failed", "fetch", "throttled", 2, 10)
    ]


def test_one_url_that_is_never_available_ends_by_its_own_retries(hands: Hands) -> None:
    """As before: 503 without Retry-After on one URL is that URL's trouble."""
    never = Link("http://shop.localhost:8765/misbehave/status/503")
    some = replace(SERIAL, start_urls=(*SERIAL.start_urls[:5], never))
    hands.open(some)
    assert hands.collect(some).outcomes == {"ok": 5, "unavailable": 3}
    assert hands.column("SELECT closed_until FROM budget_keys") == [None]


def test_a_site_that_is_down_is_left_alone_after_three_requests_and_nothing_fails(hands: Hands) -> None:
    """HTTP-20: an outage is not the end of forty pages; what was charged are two attempts."""
    slow = replace(IMPATIENT, retry_wait=seconds(5))
    hands.site.misbehave("status", prefix="/catalogue/", arg="503")
    hands.open(slow)
    collected = hands.collect(slow)
    assert (collected.ending, collected.sent) == (Ending.WAITING, 3)
    assert ends(hands.status(slow))["failed"] == 0
    assert hands.rows("SELECT attempts, count(*) FROM requests GROUP BY attempts ORDER BY attempts") == [
        (0, 18),
        (1, 2),
    ]
    (reason,) = hands.column("SELECT closed_reason FROM budget_keys")
    assert reason == "503 Service Unavailable"
    hands.site.behave()
    hands.do("UPDATE budget_keys SET closed_until = now()")
    hands.do("UPDATE requests SET not_before = NULL WHERE state = 'queued'")
    assert hands.collect(slow).outcomes == {"ok": 20}


def test_unavailable_with_retry_after_closes_the_key(hands: Hands) -> None:
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="503/1", times=1)
    hands.open(SERIAL)
    assert hands.collect(SERIAL).outcomes == {"unavailable": 1, "ok": 20}
    first, second, *_ = hands.arrivals()
    assert second.arrived - first.ended >= 1.0
    assert hands.column("SELECT max(attempts) FROM requests") == [1]
