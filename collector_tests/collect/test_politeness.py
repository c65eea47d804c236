"""Rules 6, 7 and 8 as the site sees them, and what the frontier remembers of it."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

from collector_assets.collect import Ending
from collector_assets.contract import Budget, Link, replace, seconds
from collector_assets.demo.arrivals import violations
from collector_tests.collect.conftest import QUICK, Hands, ends

GAP = 0.05
POLITE = replace(QUICK, budget=Budget(gap=seconds(GAP), slots=2), in_flight=8)
ONE = replace(QUICK, start_urls=(Link("http://shop.localhost:8765/misbehave/flaky/2", kind="detail"),))


def test_both_passes_and_their_retries_keep_the_gap(hands: Hands) -> None:
    """Rule 7: a retry is a request too; judged by the site's log."""
    hands.site.misbehave("flaky", prefix="/catalogue/", arg="1", every=9)
    status = hands.whole(replace(POLITE, retry_wait=seconds(0.05)))
    assert ends(status)["done"] == 63
    arrivals = hands.arrivals()
    assert len(arrivals) > 63
    assert violations(arrivals, gap=GAP, slots=2) == []


def test_slow_answers_keep_the_gap_from_their_end(hands: Hands) -> None:
    """Rule 7: the gap runs from the end of a response, whatever it took."""
    slow = replace(POLITE, max_requests=12)
    hands.discover(slow)
    hands.site.misbehave("delay", prefix="/catalogue/", arg="0.15")
    hands.collect(slow)
    assert violations(hands.arrivals(), gap=GAP, slots=2) == []


def test_changed_budget_binds_at_once(hands: Hands) -> None:
    """Rule 7: each run writes its demand; what an earlier one asked for does not outlive its contract."""
    hands.discover(QUICK)
    seen = len(hands.arrivals())
    hands.collect(replace(POLITE, turn=seconds(1)))
    assert violations(hands.arrivals()[seen:], gap=GAP, slots=2) == []


def test_failed_attempts_wait_one_second_then_two(hands: Hands) -> None:
    """Seed of the lab: 503 is tried again after 1 s, then after 2 s, then it is a page like any other."""
    hands.open(ONE)
    assert hands.collect(ONE).outcomes == {"unavailable": 2, "ok": 1}
    arrivals = hands.arrivals()
    waits = [later.arrived - earlier.ended for earlier, later in pairwise(arrivals)]
    assert [arrival.status for arrival in arrivals] == [503, 503, 200]
    assert 1.0 <= waits[0] < 1.25 + 0.7
    assert 2.0 <= waits[1] < 2.5 + 0.7


def test_no_transaction_is_open_while_a_site_is_waited_for(hands: Hands) -> None:
    """Rule 6: eight requests under way for a second, and no session sits in a transaction."""
    hands.discover(QUICK)
    hands.site.misbehave("delay", prefix="/catalogue/", arg="1")
    worker = threading.Thread(target=hands.collect, args=(replace(QUICK, turn=seconds(1)),))
    worker.start()
    seen: list[float] = []
    while worker.is_alive():
        seen += hands.column(
            "SELECT extract(epoch FROM clock_timestamp() - xact_start)::float8 FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
        )
        time.sleep(0.02)
    assert max(seen, default=0.0) < 0.5


def test_long_request_keeps_its_lease_until_the_commit(hands: Hands) -> None:
    """Rule 4: the heartbeat renews what a worker holds; an answer after three leases is still welcome."""
    slow = replace(ONE, start_urls=(Link("http://shop.localhost:8765/misbehave/delay/3.2"),), lease=seconds(1))
    hands.open(slow)
    collected = hands.collect(slow)
    assert (collected.sent, collected.refused, collected.outcomes) == (1, 0, {"ok": 1})
    assert hands.column("SELECT attempts FROM requests") == [1]


def test_long_request_keeps_its_slot(hands: Hands) -> None:
    """Rule 8: the heartbeat renews the slot too, so nobody waits for the deadline of a holder that lives."""
    names = [f"http://shop.localhost:8765/misbehave/delay/4?{number}" for number in range(2)]
    slow = replace(
        QUICK, start_urls=tuple(Link(name) for name in names), budget=Budget(gap=seconds(0), slots=1), in_flight=1
    )
    hands.open(slow)
    hands.know_robots(slow)
    fences = hands.column("SELECT last_value FROM fences")[0]
    assert hands.collect(slow).ending is Ending.DRAINED
    granted = hands.column("SELECT last_value FROM fences")[0] - fences - 2  # each claim takes one as well
    assert granted == 1, "one grant of the slot for two requests that took longer than its lease"
    first, second = hands.arrivals()
    assert second.arrived - first.ended < 1


@pytest.mark.parametrize("misbehaviour", ["status/404", "oversized/100000", "garbage"])
def test_other_ends_have_their_outcomes(hands: Hands, misbehaviour: str) -> None:
    """What is no good page is a named end of its own, and never read."""
    expected = {"status/404": "gone", "oversized/100000": "too_large", "garbage": "protocol_error"}[misbehaviour]
    odd = replace(
        QUICK,
        start_urls=(Link(f"http://shop.localhost:8765/misbehave/{misbehaviour}"),),
        max_bytes=50_000,
        max_attempts=1,
    )
    hands.open(odd)
    assert hands.collect(odd).outcomes == {expected: 1}
    assert hands.rows("SELECT state, failed_phase, outcome FROM requests") == [("failed", "fetch", expected)]
    assert hands.read(odd).pages == 0
    assert hands.status(odd).error_rate == 1.0
