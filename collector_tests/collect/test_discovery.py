"""Rule 15 and the bounds of pass 1: what pages lead to, and what happens when a page cannot be followed."""

from __future__ import annotations

from collections.abc import Iterator

from collector_assets.collect import Ending
from collector_assets.contract import Kind, Link, Page, replace
from collector_assets.sources.templates.book_shop import discover, extract
from collector_tests.collect.conftest import FAST, QUICK, Hands, ends


def broken(page: Page) -> Iterator[Link]:
    """A discover() that does not understand the second listing."""
    if page.url.endswith("page-2.html"):
        raise LookupError("no such element: ul.books")
    yield from discover(page)


def test_page_that_cannot_be_followed_is_mended_from_its_bytes(hands: Hands) -> None:
    """Rule 15: a mended discover() reads the stored listing, follows it, and sends nothing again."""
    first = hands.discover(replace(QUICK, discover=broken))
    assert first.collected.outcomes == {"ok": 1, "discovery_failed": 1}
    rows = hands.rows("SELECT state, failed_phase, outcome, reason FROM requests WHERE url LIKE '%%page-2.html'")
    assert rows[0][:3] == ("failed", "read", "discovery_failed")
    assert rows[0][3].startswith("LookupError: no such element: ul.books (test_discovery.py:")
    sent = len(hands.arrivals())
    mended = hands.discover(QUICK)
    assert (mended.mended, mended.collected.sent) == (1, 1), "the third listing is all there was left to send"
    assert len(hands.arrivals()) == sent + 1
    counts = hands.status(QUICK).counts
    assert (counts.by_kind("listing").done, counts.by_kind("detail").planned) == (3, 60)


def test_page_that_still_cannot_be_followed_stays_failed_and_is_not_sent_again(hands: Hands) -> None:
    """Rule 15: only failed(fetch) is ever replayed by sending."""
    bad = replace(QUICK, discover=broken)
    hands.discover(bad)
    sent = len(hands.arrivals())
    again = hands.discover(bad)
    assert (again.mended, again.collected.sent) == (0, 0)
    assert len(hands.arrivals()) == sent
    assert hands.status(bad).counts.by_kind("listing").failed_read == 1


def test_page_of_a_kind_that_discovers_and_extracts_ends_by_both(hands: Hands) -> None:
    """Rule 15: done when its links are in; failed(read) after all when none of its records passed."""
    both = replace(
        QUICK,
        discover=None,
        extract=None,
        kinds={"listing": Kind(discover=discover), "detail": Kind(discover=follows_nothing, extract=extract)},
    )
    hands.discover(both)
    counts = hands.status(both).counts
    assert (counts.by_kind("listing").done, counts.by_kind("detail").done) == (3, 60)
    assert hands.read(both).records_total == 60
    assert ends(hands.status(both)) == {"planned": 63, "done": 63, "failed": 0, "skipped": 0, "outstanding": 0}
    empty = replace(both, kinds={**both.kinds, "detail": Kind(discover=follows_nothing, extract=reads_nothing)})
    hands.read(replace(empty, extractor_version="2"))
    assert hands.status(both).counts.by_kind("detail").failed_read == 60


def follows_nothing(page: Page) -> Iterator[Link]:
    """A detail page that could lead further and does not."""
    assert page.kind == "detail"
    return iter(())


def reads_nothing(page: Page) -> Iterator[dict[str, object]]:
    """A better extractor that is none."""
    assert page.kind == "detail"
    return iter(())


# --- Bounds ----------------------------------------------------------------------------------------------------------


def test_max_requests_stops_discovery_and_the_window_says_so(hands: Hands) -> None:
    """A bound keeps the rest out; what is in is collected, and the window is not complete."""
    bounded = replace(QUICK, max_requests=30)
    assert hands.discover(bounded).collected.ending is Ending.DRAINED
    hands.collect(bounded)
    hands.read(bounded)
    status = hands.status(bounded)
    assert (status.counts.planned, status.counts.done) == (30, 30)
    assert (status.row.bound_reached, status.is_complete) == ("max_requests", False)


def test_max_depth_stops_discovery_and_the_window_says_so(hands: Hands) -> None:
    """One link from the start: the first listing's books and the second listing, which is not followed."""
    bounded = replace(QUICK, max_depth=1)
    hands.discover(bounded)
    status = hands.status(bounded)
    assert status.counts.by_kind("listing").planned == 2
    assert status.counts.by_kind("detail").planned == 20
    assert status.row.bound_reached == "max_depth"
    assert status.is_complete is False


def test_links_that_stay_out_are_counted_by_reason_with_an_example(hands: Hands) -> None:
    """Nothing disappears: out of scope, no URL, an unknown kind."""
    starts = (Link("http://shop.localhost:8765/catalogue/page-3.html", kind="listing"),)
    odd = replace(QUICK, start_urls=starts, discover=wild, budget=FAST)
    hands.discover(odd)
    found = {(row.reason, row.detail): (row.count, row.example) for row in hands.status(odd).rejected_links}
    assert {reason: links for reason, (links, _) in found.items()} == {
        ("out_of_scope", ""): 2,
        ("unknown_kind", "author"): 1,
        ("not_a_web_address", "mailto"): 1,
    }
    assert found["out_of_scope", ""][1] == "https://elsewhere.example/1"


def wild(page: Page) -> Iterator[Link]:
    """Links of all sorts."""
    yield Link("https://elsewhere.example/1")
    yield Link("https://elsewhere.example/2")
    yield Link("/authors/1", kind="author")
    yield Link("mailto:shop@example.org")
