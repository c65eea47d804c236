"""Rule 5 as the site sees it: lanes share by weight, listings and books side by side."""

from __future__ import annotations

from collections import Counter

from collector_assets.contract import Budget, Link, Source, replace, seconds
from collector_assets.sources.shop import SHOP_INTERLEAVED
from collector_tests.collect.conftest import QUICK, Hands, ends

ONE_BY_ONE = Budget(gap=seconds(0), slots=1)
PACED = Budget(gap=seconds(0.04), slots=1)
"""Slow enough for the books of a listing to be in the frontier before the next requests are claimed."""


def test_lanes_share_the_requests_by_their_weights(hands: Hands) -> None:
    """Rule 5: travel 3, mystery 2, any other 1: six requests in a row are 3, 2 and 1 of them."""
    urls = {lane: f"http://shop.localhost:8765/misbehave/chunked?{lane}=" for lane in ("travel", "mystery", "poetry")}
    laned = replace(
        QUICK,
        start_urls=tuple(Link(f"{url}{number}", lane=lane) for lane, url in urls.items() for number in range(12)),
        budget=ONE_BY_ONE,
        in_flight=1,
    )
    hands.open(laned)
    hands.collect(laned)
    order = [arrival.path.partition("?")[2].partition("=")[0] for arrival in hands.arrivals()]
    assert len(order) == 36
    for at in range(0, 24, 6):
        assert Counter(order[at : at + 6]) == {"travel": 3, "mystery": 2, "poetry": 1}, order


def test_interleaved_listings_and_books_alternate(hands: Hands) -> None:
    """Rule 5: pass 1 sends nothing; in pass 2 listings and books take turns as long as there are both."""
    shop = replace(SHOP_INTERLEAVED, budget=PACED, in_flight=1)
    assert hands.discover(shop).collected.sent == 0
    kinds = _collected_kinds(hands, shop)
    assert Counter(kinds) == {"listing": 8, "book": 60}
    mixed = _both_waiting(kinds)
    assert mixed["listing"] >= 4
    assert abs(mixed["book"] - mixed["listing"]) <= 2, kinds


def test_interleave_weights_show_in_the_log(hands: Hands) -> None:
    """Rule 5: (1, 3) sends three books for each listing, as long as there are both."""
    shop = replace(SHOP_INTERLEAVED, budget=PACED, in_flight=1, interleave_weights=(1, 3))
    hands.discover(shop)
    kinds = _collected_kinds(hands, shop)
    mixed = _both_waiting(kinds)
    assert mixed["listing"] >= 4
    assert abs(mixed["book"] - 3 * mixed["listing"]) <= 3, kinds


def _collected_kinds(hands: Hands, shop: Source) -> list[str]:
    hands.collect(shop)
    assert ends(hands.status(shop))["failed"] == 0
    return ["listing" if "/category/" in arrival.path else "book" for arrival in hands.arrivals()]


def _both_waiting(kinds: list[str]) -> Counter[str]:
    """What was sent while listings and books were both there to send: from the first book to the last listing."""
    return Counter(kinds[kinds.index("book") : len(kinds) - kinds[::-1].index("listing")])
