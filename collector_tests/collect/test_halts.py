"""A site that refuses us is left alone by everybody until a person resumes it (rule 9), judged by its log."""

from __future__ import annotations

import threading
import time

import pytest

from collector_assets import listing, resume_origin
from collector_assets.collect import Ending
from collector_assets.contract import Budget, Kind, Link, OnStatus, Source, replace, seconds
from collector_assets.desk import claims
from collector_assets.errors import BadSelection, OriginHalted, ReasonMissing
from collector_assets.put_back import Wish
from collector_assets.replay import run as replay
from collector_assets.selection import Selection
from collector_assets.sources.shop import extract
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands, ends

SHOP, OTHER = "http://shop.localhost:8765", "http://api.shop.localhost:8765"
PAGES = tuple(Link(f"{SHOP}/catalogue/page-1.html?{number}") for number in range(12))
SERIAL = replace(
    QUICK, discover=None, extract=None, kinds={"detail": Kind(extract=extract, may_be_empty=True)}, start_urls=PAGES,
    budget=Budget(gap=seconds(0), slots=1),
)  # fmt: skip


def refused(hands: Hands, source: Source = SERIAL, **rule: object) -> OriginHalted:
    hands.site.misbehave("status", prefix="/catalogue/", arg="403", **rule)
    hands.open(source)
    with pytest.raises(OriginHalted) as caught:
        hands.collect(source)
    return caught.value


def test_refusals_in_a_row_halt_the_origin_for_everybody(hands: Hands) -> None:
    """Rule 9: three are sent; what is left stays queued, and the step says what to do."""
    # Mutation: claim what waits for a halted origin.
    error = refused(hands)
    assert len(hands.arrivals()) == 3
    assert error.origins == (SHOP,)
    assert f"9 requests wait for {SHOP}, which refused us and is halted since" in str(error)
    assert f"collector resume {SHOP} --reason" in str(error)
    assert ends(hands.status(SERIAL)) == {"planned": 12, "done": 0, "failed": 3, "skipped": 0, "outstanding": 9}
    assert hands.column("SELECT max(attempts) FROM requests WHERE state <> 'failed'") == [0]


def test_another_worker_window_and_source_send_nothing_either(hands: Hands) -> None:
    """Rule 9: a halt is the origin's, not the window's."""
    refused(hands)
    hands.site.behave()
    other = replace(SERIAL, name="other_shop")
    for source, window in ((SERIAL, TODAY), (SERIAL, TOMORROW), (other, TODAY)):
        hands.open(source, window)
        with pytest.raises(OriginHalted):
            hands.collect(source, window)
    assert len(hands.arrivals()) == 3


def test_a_worker_under_way_hears_of_it_within_a_second(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 9: another process that has slots and leases stops at its next renewal."""
    # Mutation: the heartbeat does not look for halts.
    monkeypatch.setattr(claims, "CLAIM_AHEAD_S", 30.0)
    held = {"budget": Budget(gap=seconds(0), slots=2), "in_flight": 1}
    urls = [f"{SHOP}/misbehave/delay/0.05?{number}" for number in range(200)]
    slow = replace(SERIAL, name="slow", start_urls=tuple(map(Link, urls)), **held)
    hands.open(slow)
    worker = threading.Thread(target=_halted, args=(hands, slow))
    worker.start()
    try:
        while not hands.arrivals():
            time.sleep(0.05)
        refused(hands, replace(SERIAL, refusal_limit=1, **held))
    finally:
        worker.join()
    told = min(arrival.ended for arrival in hands.arrivals() if arrival.status == 403)
    assert max(arrival.arrived for arrival in hands.arrivals()) <= told + 1.3


def _halted(hands: Hands, source: Source) -> None:
    with pytest.raises(OriginHalted):
        hands.collect(source)


def test_a_good_page_in_between_ends_the_row(hands: Hands) -> None:
    hands.site.misbehave("status", prefix="/catalogue/", arg="403", every=3)
    hands.open(SERIAL)
    assert hands.collect(SERIAL).outcomes == {"ok": 8, "refused": 4}
    assert hands.rows("SELECT refusals, halted_at FROM origins") == [(1, None)]


def test_other_origins_of_the_source_go_on(hands: Hands) -> None:
    """Also where the queue was full of what waits for the halted one, and it was found first."""
    both = replace(
        SERIAL, start_urls=(*PAGES, *(Link(f"{OTHER}/catalogue/page-1.html?{n}") for n in range(5))), capacity=4
    )
    error = refused(hands, both, host="shop.localhost")
    assert error.origins == (SHOP,)
    assert len(hands.arrivals(host="api.shop.localhost")) == 5
    assert ends(hands.status(both))["done"] + hands.status(both).counts.fetched == 5
    assert len(hands.arrivals()) == 3


def test_a_person_resumes_it_and_what_was_refused_is_replayed(hands: Hands) -> None:
    refused(hands)
    hands.site.behave()
    done = resume_origin.run(f"{SHOP}/", reason="they gave us a key", by="ana", database=hands.database)
    assert (done.origin, done.was, done.halted_by) == (SHOP, "refused: 403 Forbidden; 3 in a row", "shop")
    wish = Wish(
        source=SERIAL, window=TODAY.key, selection=Selection(outcomes=("refused",)), everything=False, reason="resumed",
        by="ana", dry_run=False,
    )  # fmt: skip
    assert replay(wish, hands.database).requests == 3
    assert hands.collect(SERIAL).outcomes == {"ok": 12}
    assert hands.rows("SELECT verb, source, window_start, selection, reason, by_whom FROM interventions LIMIT 1") == [
        ("resume", "shop", None, {"origin": SHOP}, "they gave us a key", "ana")
    ]


def test_after_a_resume_a_new_row_of_refusals_halts_again(hands: Hands) -> None:
    refused(hands)
    resume_origin.run(SHOP, reason="let us see", by="ana", database=hands.database)
    with pytest.raises(OriginHalted):
        hands.collect(SERIAL)
    assert len(hands.arrivals()) == 6


def test_what_is_not_halted_cannot_be_resumed_and_a_reason_is_needed(hands: Hands) -> None:
    with pytest.raises(BadSelection, match=r"shop\.localhost:8765 is not halted; halted: none is"):
        resume_origin.run(SHOP, reason="why not", by="ana", database=hands.database)
    with pytest.raises(BadSelection, match="no origin"):
        resume_origin.run("shop", reason="why not", by="ana", database=hands.database)
    refused(hands)
    with pytest.raises(ReasonMissing):
        resume_origin.run(SHOP, reason=" ", by="ana", database=hands.database)


def test_what_is_halted_and_what_is_closed_is_listed(hands: Hands) -> None:
    refused(hands)
    hands.do("UPDATE budget_keys SET closed_until = now() + interval '1 hour', closed_reason = '429'")
    halted, closed = listing.troubles(hands.database)
    assert (halted.name, halted.state, halted.why, halted.by) == (
        SHOP, "halted", "refused: 403 Forbidden; 3 in a row", "shop"
    )  # fmt: skip
    assert (closed.name, closed.state, round(closed.for_s or 0, -2)) == ("shop.localhost", "closed", 3600)


@pytest.mark.parametrize(("means", "ending"), [("skip", "unwanted"), ("gone", "gone"), ("fail", "refused")])
def test_a_declared_403_is_no_refusal(hands: Hands, means: OnStatus, ending: str) -> None:
    declared = replace(SERIAL, kinds={"detail": Kind(extract=extract, may_be_empty=True, on_status={403: means})})
    hands.site.misbehave("status", prefix="/catalogue/", arg="403")
    hands.open(declared)
    collected = hands.collect(declared)
    assert (collected.ending, collected.outcomes) == (Ending.DRAINED, {ending: 12})
    assert hands.column("SELECT DISTINCT state FROM requests") == ["failed" if means == "fail" else "skipped"]
    assert hands.rows("SELECT * FROM origins") == []


def test_not_yet_is_asked_again_until_the_window_has_closed(hands: Hands) -> None:
    kinds = {"detail": Kind(extract=extract, on_status={404: "not_yet"})}
    awaited = replace(SERIAL, kinds=kinds, start_urls=(Link(f"{SHOP}/nowhere"),), patience=seconds(0))
    hands.open(awaited)
    collected = hands.collect(awaited)
    assert collected.ending is Ending.WAITING
    assert 300 <= (collected.next_due_in_s or 0) <= 375
    assert hands.rows("SELECT state, outcome, attempts, snoozes FROM requests") == [("queued", "not_yet", 0, 1)]
    hands.do("UPDATE requests SET not_before = NULL")
    hands.do("UPDATE windows SET closes_at = now()")
    assert hands.collect(awaited).ending is Ending.DRAINED
    assert hands.rows("SELECT state, outcome, reason FROM requests") == [("skipped", "not_yet", "404 Not Found")]


def test_a_challenge_with_status_200_counts_and_is_never_read(hands: Hands) -> None:
    """Archived with its outcome, so it can be looked at; `records` takes only good pages."""
    hands.site.misbehave("challenge", prefix="/catalogue/")
    hands.open(SERIAL)
    with pytest.raises(OriginHalted, match="blocked: a challenge or block of Cloudflare; 3 in a row"):
        hands.collect(SERIAL)
    assert hands.rows("SELECT status, outcome, count(*) FROM pages GROUP BY status, outcome") == [(200, "blocked", 3)]
    assert hands.read(SERIAL).pages == 0


def test_a_login_wall_counts(hands: Hands) -> None:
    hands.site.misbehave("redirect", prefix="/catalogue/", arg="302/misbehave/login")
    hands.open(SERIAL)
    with pytest.raises(OriginHalted, match="led to a login"):
        hands.collect(SERIAL)
