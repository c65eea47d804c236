"""One request outside any window keeps to the budget like every other (rules 7 and 8)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from collector_assets import budget, links, origins, visit
from collector_assets.asking import demand_of
from collector_assets.contract import Budget, Link, replace, seconds
from collector_assets.demo.arrivals import violations
from collector_assets.errors import OriginHalted
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome
from collector_assets.politeness import Forbidden, Wait
from collector_assets.request import NewRequest
from collector_assets.sources.shop import SHOP
from collector_tests.collect.conftest import TODAY, Hands

ALONE = replace(SHOP, budget=Budget(gap=seconds(0.4), slots=1), patience=seconds(1))
KEY = "shop.localhost"


def request(path: str = "/catalogue/page-1.html") -> NewRequest:
    return links.of_starts(ALONE, [Link(f"http://{KEY}:8765{path}", kind="listing")]).requests[0]


def send(hands: Hands, path: str = "/catalogue/page-1.html") -> visit.Answer | visit.Busy | Forbidden | Wait:
    return visit.run(ALONE, TODAY, request(path), database=hands.database, fetcher=hands.fetcher)


def test_a_slot_that_is_held_is_waited_for_and_not_longer_than_the_patience(hands: Hands) -> None:
    """Rule 7: nothing is sent without a slot."""
    # Mutation: in errand.Errand.__init__ demand_of(source, "twin.localhost")
    demand = demand_of(ALONE, KEY)
    with hands.database.transaction() as connection:
        budget.declare(connection, demand)
        held = budget.acquire(connection, demand=demand, holder="other", want=1, lease=timedelta(minutes=1))
    assert len(held.grants) == 1
    answer = send(hands)
    assert isinstance(answer, visit.Busy)
    assert answer.waited_s >= 1
    assert hands.arrivals() == []
    assert hands.column("SELECT count(*) FROM budget_waiters") == [0], "nor is a turn kept for it"


def test_the_gap_runs_between_two_errands_and_the_slot_goes_back(hands: Hands) -> None:
    """Rule 7: the gap is the key's, whoever had the slot before."""
    # Mutation: in errand.Errand._leave do not give back (then the second one is Busy)
    for path in ("/catalogue/page-1.html", "/catalogue/page-2.html"):
        answer = send(hands, path)
        assert isinstance(answer, visit.Answer)
        assert answer.got.outcome is Outcome.OK
    first, second = hands.arrivals()
    assert second.arrived - first.ended >= 0.39
    assert hands.column("SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL") == [0]


def test_a_gap_longer_than_the_lease_is_waited_out(hands: Hands) -> None:
    """Rule 8: a permission that ended is asked for again, never used."""
    # Mutation: in errand.Errand.ready return False where wait_s is infinite and there was a permission
    slow = replace(ALONE, budget=Budget(gap=seconds(3.5), slots=1), patience=seconds(10))
    for _ in range(2):
        answer = visit.run(slow, TODAY, request(), database=hands.database, fetcher=hands.fetcher)
        assert isinstance(answer, visit.Answer)
    first, second = hands.arrivals()
    assert second.arrived - first.ended >= 3.49


def test_a_slow_answer_keeps_its_slot(hands: Hands) -> None:
    """Rule 8: nobody sends on the key while an answer is awaited for longer than the slot's lease."""
    # Mutation: in asking.demand_of deadline=timedelta(0)
    hands.site.misbehave("delay", prefix="/catalogue/page-1", arg="5")
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(send, hands)
        while hands.column("SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL") != [1]:
            time.sleep(0.01)
        other = replace(ALONE, name="other", patience=seconds(10))
        visit.run(other, TODAY, request("/catalogue/page-2.html"), database=hands.database, fetcher=hands.fetcher)
        answer = slow.result()
    assert isinstance(answer, visit.Answer)
    assert answer.got.outcome is Outcome.OK
    assert violations(hands.arrivals(), gap=0.4, slots=1) == []
    assert len(hands.arrivals()) == 2


def test_nothing_is_sent_to_a_halted_origin(hands: Hands) -> None:
    """Rule 9: a person who tries a source is no exception."""
    origin = f"http://{KEY}:8765"
    with hands.database.transaction() as connection:
        origins.locked(connection, {origin: KEY})
        origins.halt(connection, origin, source="shop", reason="refused: 403, 3 in a row")
    with pytest.raises(OriginHalted, match="collector resume http://shop.localhost:8765"):
        send(hands)
    assert hands.arrivals() == []


def test_what_an_errand_is_told_holds_for_everybody(hands: Hands) -> None:
    """Rule 9: 429 closes the key, a challenge counts as a refusal, a good page ends the row."""
    throttled = send(hands, "/misbehave/retry_after/429/100")
    assert isinstance(throttled, visit.Answer)
    assert hands.column("SELECT closed_until > now() + interval '90 s' FROM budget_keys") == [True]
    assert isinstance(send(hands), visit.Busy)
    hands.do("UPDATE budget_keys SET closed_until = now()")
    blocked = send(hands, "/misbehave/challenge")
    assert isinstance(blocked, visit.Answer)
    assert (blocked.got.outcome, blocked.got.reason) == (Outcome.BLOCKED, "a challenge or block of Cloudflare")
    assert hands.column("SELECT refusals FROM origins") == [1]
    send(hands)
    assert hands.column("SELECT refusals FROM origins") == [0]


# --- Redirects -------------------------------------------------------------------------------------------------------


def test_redirects_are_followed_as_in_a_window(hands: Hands) -> None:
    """Rule 7: each hop in its turn."""
    answer = send(hands, "/misbehave/redirect_chain/2")
    assert isinstance(answer, visit.Answer)
    assert isinstance(answer.got, Response)
    assert (answer.got.outcome, answer.got.final_url) == (
        Outcome.OK, f"http://{KEY}:8765/misbehave/redirect_chain/0",
    )  # fmt: skip
    arrivals = hands.arrivals()
    assert len(arrivals) == 3
    assert violations(arrivals, gap=0.39, slots=1) == []


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("/misbehave/redirect_loop", Outcome.REDIRECT_LOOP),
        ("/misbehave/redirect/302/http://elsewhere.localhost/", Outcome.OUT_OF_SCOPE),
        ("/misbehave/cut_gzip", Outcome.TRUNCATED),
    ],
)
def test_what_a_window_would_not_keep_is_told(hands: Hands, path: str, outcome: Outcome) -> None:
    answer = send(hands, path)
    assert isinstance(answer, visit.Answer)
    assert answer.got.outcome is outcome
    assert answer.got.reason
    assert len(hands.arrivals()) == 1
