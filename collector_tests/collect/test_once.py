"""Rule 1 through the use cases: the same work once, in a window, an edition and an extractor version."""

from __future__ import annotations

from collector_assets.collect import Ending
from collector_assets.contract import replace
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands, ends


def test_complete_window_again_sends_nothing_and_counts_the_same(hands: Hands) -> None:
    """Rule 1: also a third time, whatever is materialized first."""
    first = hands.whole(QUICK)
    sent = len(hands.arrivals())
    assert ends(first) == {"planned": 63, "done": 63, "failed": 0, "skipped": 0, "outstanding": 0}
    assert sent == 63
    again = hands.discover(QUICK)
    assert (again.opened.is_new, again.opened.added, again.collected.sent) == (False, 0, 0)
    assert hands.collect(QUICK).sent == 0
    reading = hands.read(QUICK)
    assert (reading.new_observations, reading.changed, reading.gone, reading.requests_moved) == (0, 0, 0, 0)
    assert hands.status(QUICK).counts == first.counts
    assert len(hands.arrivals()) == sent


def test_new_window_is_collected_anew(hands: Hands) -> None:
    """Rule 1: what one window holds says nothing about the next."""
    hands.whole(QUICK, TODAY)
    hands.whole(QUICK, TOMORROW)
    assert len(hands.arrivals()) == 126
    assert hands.status(QUICK, TOMORROW).counts == hands.status(QUICK, TODAY).counts


def test_raised_edition_collects_the_window_again(hands: Hands) -> None:
    """Rule 1: the edition is part of the unique key."""
    hands.whole(QUICK)
    again = replace(QUICK, edition=2)
    hands.whole(again)
    assert len(hands.arrivals()) == 126
    assert hands.status(again).counts.planned == 126
    assert hands.column("SELECT DISTINCT edition FROM requests ORDER BY 1") == [1, 2]


def test_raised_extractor_version_reads_again_and_sends_nothing(hands: Hands) -> None:
    """Rules 1, 14 and 17: a better extractor costs no request, and its observations are the ones that count."""
    hands.whole(QUICK)
    better = replace(QUICK, extractor_version="2")
    assert hands.discover(better).collected.sent == 0
    assert hands.collect(better).ending is Ending.DRAINED
    reading = hands.read(better)
    assert (reading.pages, reading.records_total, reading.new_observations) == (60, 60, 60)
    assert hands.row(better).counted_version == "2"
    assert hands.publish(better).total == 60
    assert hands.column("SELECT DISTINCT extractor_version FROM latest") == ["2"]
    assert len(hands.arrivals()) == 63


def test_pages_of_two_ways_to_one_book_are_one_request(hands: Hands) -> None:
    """Rule 1: every book is linked from its category and from the whole catalogue, and fetched once."""
    both = replace(
        QUICK,
        start_urls=(*QUICK.start_urls, "http://shop.localhost:8765/catalogue/category/books/travel_2/index.html"),
    )
    status = hands.whole(both)
    paths = [arrival.path for arrival in hands.arrivals()]
    assert len(paths) == len(set(paths)) == status.counts.planned
    assert status.counts.by_kind("detail").planned == 60
