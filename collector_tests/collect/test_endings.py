"""Rule 23 through the use case: a pass waits no longer than the patience and works no longer than the turn."""

from __future__ import annotations

import time

import pytest

from collector_assets.collect import Ending
from collector_assets.contract import replace, seconds
from collector_tests.collect.conftest import QUICK, Hands, ends

SLOW_RETRY = replace(QUICK, retry_wait=seconds(30), patience=seconds(2))


def test_work_that_is_not_due_within_the_patience_is_left(hands: Hands) -> None:
    """Rule 23: it says when the rest is due, and does not sit it out."""
    hands.discover(QUICK)
    hands.site.misbehave("status", prefix="/catalogue/", arg="503", every=20)
    began = time.monotonic()
    collected = hands.collect(SLOW_RETRY)
    assert time.monotonic() - began < 10
    assert collected.ending is Ending.WAITING
    assert collected.next_due_in_s == pytest.approx(33, abs=8)
    assert hands.status(QUICK).counts.queued == 3


def test_work_that_is_due_within_the_patience_is_waited_for(hands: Hands) -> None:
    """Rule 23: a wait of a second is not worth another run."""
    hands.site.misbehave("flaky", prefix="/catalogue/", arg="1", every=20)
    status = hands.whole(replace(QUICK, retry_wait=seconds(1), patience=seconds(5)))
    assert ends(status)["done"] == 63


def test_turn_ends_in_order_and_the_next_one_repeats_nothing(hands: Hands) -> None:
    """Rule 23: what is under way comes in, the rest goes back; finishing later sends each page once."""
    hands.discover(QUICK)
    hands.site.misbehave("delay", prefix="/catalogue/", arg="0.2")
    collected = hands.collect(replace(QUICK, turn=seconds(0.7)))
    assert collected.ending is Ending.TURN_OVER
    assert 0 < collected.sent < 60
    assert hands.status(QUICK).counts.leased == 0
    hands.site.behave()
    assert hands.collect(QUICK).ending is Ending.DRAINED
    paths = [arrival.path for arrival in hands.arrivals()]
    assert len(paths) == len(set(paths)) == 63
    assert hands.column("SELECT max(attempts) FROM requests") == [1]


def test_requests_leased_elsewhere_are_waited_for_no_longer_than_the_patience(hands: Hands) -> None:
    """Rule 23: another worker holds the rest and does not move."""
    hands.discover(QUICK)
    hands.do(
        "UPDATE requests SET state = 'leased', attempts = 1, fence = nextval('fences'), worker = 'elsewhere',"
        " leased_until = now() + interval '1 hour' WHERE kind = 'detail'"
    )
    began = time.monotonic()
    collected = hands.collect(replace(QUICK, patience=seconds(1)))
    assert time.monotonic() - began < 5
    assert (collected.ending, collected.sent) == (Ending.WAITING, 0)
    assert collected.next_due_in_s == pytest.approx(3600, abs=10)
