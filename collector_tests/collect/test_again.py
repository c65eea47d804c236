"""Replay and recollect against the site: what is sent afterwards is exactly what was chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from collector_assets import collect, recollect, replay
from collector_assets.contract import Link, Page, replace
from collector_assets.demo.catalogue import book
from collector_assets.deposit import ending
from collector_assets.outcome import Outcome
from collector_assets.put_back import PutBack, Wish
from collector_assets.request import Fence, Lease, RequestId
from collector_assets.selection import Selection
from collector_assets.sources.templates import book_shop
from collector_assets.window import Window
from collector_tests.collect.conftest import LONG_AGO, QUICK, TODAY, Hands, ends

CHANGED = next(n for n in range(1, 61) if book(n, seed="demo", edition=2).changed_in == 2)


def wish(selection: Selection, window: Window = TODAY, source: Any = QUICK, **more: Any) -> Wish:
    values: dict[str, Any] = {"everything": False, "reason": "corrected today", "by": "ada", "dry_run": False} | more
    return Wish(source=source, window=window.key, selection=selection, **values)


def sent_after(hands: Hands, before: int) -> Counter[str]:
    return Counter(arrival.path for arrival in hands.arrivals()[before:])


def paths(hands: Hands, done: PutBack) -> Counter[str]:
    """Of the requests that an intervention put back."""
    query = "SELECT split_part(url, ':8765', 2) FROM requests WHERE intervention_id = %s"
    return Counter(hands.column(query, done.intervention))


def finish(hands: Hands, window: Window = TODAY) -> collect.Collected:
    """raw_pages, records and latest."""
    done = hands.collect(QUICK, window)
    hands.read(QUICK, window)
    hands.publish(QUICK, window)
    return done


def test_after_a_replay_exactly_the_chosen_requests_are_sent(hands: Hands) -> None:
    """Rule 15: nothing but the failed(fetch) requests that were chosen goes out again."""
    # Mutation: replay takes recollect's states
    hands.site.misbehave("status", prefix="/catalogue/", arg="404", every=10)
    before = hands.whole(QUICK)
    assert before.counts.failed_fetch == 6
    hands.site.behave()
    sent = len(hands.arrivals())
    chosen = hands.column("SELECT request_id FROM requests WHERE failed_phase = 'fetch' ORDER BY request_id LIMIT 2")
    done = replay.run(wish(Selection(ids=tuple(chosen))), hands.database)
    assert len(hands.arrivals()) == sent, "putting back sends nothing"
    assert hands.collect(QUICK).sent == 2
    assert sent_after(hands, sent) == paths(hands, done)
    hands.read(QUICK)
    assert ends(hands.status(QUICK)) == {"planned": 63, "done": 59, "failed": 4, "skipped": 0, "outstanding": 0}


def test_a_page_that_was_corrected_today_reaches_latest(hands: Hands) -> None:
    """Rule 17: recollect one entity; one request, a new observation, and the newest one in `latest`."""
    hands.whole(QUICK)
    hands.publish(QUICK)
    old, new = (book(CHANGED, seed="demo", edition=edition) for edition in (1, 2))
    price = "SELECT (data ->> 'price')::numeric FROM latest WHERE entity = %s"
    assert hands.column(price, old.upc) == [old.price]
    hands.site.switch(edition=2)
    sent, others = len(hands.arrivals()), hands.rows("SELECT * FROM latest WHERE entity <> %s", old.upc)
    done = recollect.run(wish(Selection(entities=(old.upc,))), hands.database)
    finish(hands)
    assert done.requests == 1
    assert sent_after(hands, sent) == paths(hands, done)
    assert new.price != old.price
    assert hands.column(price, old.upc) == [new.price]
    assert hands.rows("SELECT * FROM latest WHERE entity <> %s", old.upc) == others
    request = (
        "SELECT count(*) FROM pages WHERE request_id IN (SELECT request_id FROM requests WHERE intervention_id = %s)"
    )
    assert hands.column(request, done.intervention) == [2], "the page of the first time stays archived"


def test_recollecting_the_listings_finds_what_is_new_and_fetches_only_that(hands: Hands) -> None:
    """Rule 1: what is known is known, also when its listing is read again."""
    hands.whole(replace(QUICK, max_requests=100))
    hands.site.switch(books=65)
    sent = len(hands.arrivals())
    recollect.run(wish(Selection(kinds=("listing",))), hands.database)
    hands.discover(QUICK)
    hands.collect(QUICK)
    arrived = sent_after(hands, sent)
    assert set(arrived.values()) == {1}
    assert sum("page-" in path for path in arrived) == 4, "three again, and the one that they lead to"
    assert len(arrived) == 4 + 5
    assert hands.status(QUICK).counts.planned == 63 + 1 + 5


def test_what_is_recollected_after_the_window_closed_is_late(hands: Hands) -> None:
    """Rule 22."""
    hands.whole(QUICK, LONG_AGO)
    hands.do("UPDATE pages SET late = false")
    done = recollect.run(wish(Selection(kinds=("detail",)), LONG_AGO), hands.database)
    finish(hands, LONG_AGO)
    assert (done.is_late, done.requests) == (True, 60)
    assert hands.rows("SELECT late, count(*) FROM pages GROUP BY late ORDER BY late") == [(False, 63), (True, 60)]
    assert hands.rows("SELECT DISTINCT late FROM observations") == [(True,)]


def raises(page: Page) -> Iterator[Link]:
    raise LookupError(f"no cards on {page.url}")


def test_a_recollected_listing_is_fetched_and_not_mended_from_its_old_page(hands: Hands) -> None:
    """Rule 15: what its old page says is not taken for news."""
    # Mutation: put_back keeps the outcome -> the old page is read for links
    hands.discover(replace(QUICK, kinds={}, discover=raises))
    assert hands.status(QUICK).counts.failed_read == 1
    sent = len(hands.arrivals())
    recollect.run(wish(Selection(outcomes=(Outcome.DISCOVERY_FAILED,))), hands.database)
    assert hands.discover(replace(QUICK, discover=book_shop.discover)).mended == 0
    assert len(sent_after(hands, sent)) == 3


@pytest.mark.parametrize(
    ("attempt", "of", "counted"), [(1, 3, 1), (3, 3, 3), (4, 6, 1), (2, 4, 1), (3, 4, 2), (1, 9, 1)]
)
def test_a_new_budget_of_attempts_begins_with_short_waits(attempt: int, of: int, counted: int) -> None:
    """Rule 3: the attempts before count, and are not held against it."""
    # Mutation: _attempt_of_budget returns lease.attempt
    lease = Lease(
        request_id=RequestId(1), fence=Fence(1), attempt=attempt, max_attempts=of, kind="detail", lane="*",
        url="http://shop.localhost:8765/", budget_key="shop.localhost", method="GET", body=None, headers={}, hints={},
        entity=None, depth=0, referrer=None, leased_until=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    assert ending._attempt_of_budget(lease, 3) == counted
