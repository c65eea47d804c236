"""Kind PAG of the field cases, and the traps of kind URL: listings without an end, and what was not seen."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta

import pandera.pandas as pa
import pytest

from collector_assets.contract import Kind, Link, Page, Source, replace
from collector_assets.graph import checks
from collector_assets.rejected_links import RejectedLinks
from collector_assets.window import Window
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands

SITE = "http://shop.localhost:8765"


def every_link(page: Page) -> Iterator[Link]:
    """Items by their class, and every other link as a listing."""
    for a in page.tree.css("a[href]"):
        yield Link(a.attributes["href"] or "", kind="detail" if a.attributes.get("class") == "item" else "listing")


def rows(page: Page) -> Iterator[dict[str, object]]:
    """The rows of a listing that holds its records itself; the demo's misbehaviours have none."""
    for cell in page.tree.css("tr td"):
        yield {"upc": cell.text()}


def crawling(*paths: str, **fields: object) -> Source:
    starts = tuple(Link(SITE + path, kind="listing") for path in paths)
    return replace(QUICK, start_urls=starts, discover=every_link, **fields)


def shows(hands: Hands, prefix: str, markup: str) -> None:
    """The site gives this page for every path that begins so."""
    said = {"type": "text/html; charset=utf-8", "body": base64.b64encode(markup.encode()).decode()}
    hands.site.misbehave("say", prefix=prefix, arg=json.dumps(said))


def sent(hands: Hands) -> list[str]:
    """What arrived at the site, in order."""
    return [each.path for each in hands.arrivals() if each.path != "/robots.txt"]


def suspected(hands: Hands, source: Source) -> list[RejectedLinks]:
    return [link for link in hands.status(source).rejected_links if link.reason == "trap_suspected"]


@pytest.mark.parametrize("with_rows", [False, True])
def test_pag_01_endless_calendar(hands: Hands, *, with_rows: bool) -> None:
    """Stops after some empty months, with the pattern; the rest of the site is collected."""
    source = crawling("/misbehave/calendar?m=2026-11", "/catalogue/page-1.html", max_barren=5)
    if with_rows:
        source = replace(
            source, discover=None, extract=None,
            kinds={"listing": Kind(discover=every_link, extract=rows, may_be_empty=True), "detail": Kind(extract=rows)},
        )  # fmt: skip
    hands.discover(source)
    months = [path for path in sent(hands) if path.startswith("/misbehave/calendar")]
    assert len(months) == 1 + 4 + 4, "in both directions until five in a row were empty"
    (trap,) = [each for each in suspected(hands, source) if "calendar" in each.detail]
    assert trap.detail == "shop.localhost:8765/misbehave/calendar?m"
    assert trap.count >= 2
    assert trap.referrer
    assert "/misbehave/calendar?m=" in trap.example
    assert len([path for path in sent(hands) if path.startswith("/catalogue/page-")]) == 3
    status = hands.status(source)
    assert (status.counts.by_kind("listing").to_fetch, status.counts.failed) == (0, 0)
    check = next(each for each in checks.of_collecting(source, status) if each.check_name == "traps_not_suspected")
    assert (check.passed, check.severity) == (False, checks.WARN)
    assert check.description
    assert "misbehave/calendar?m; pass them over in discover, or raise max_barren" in check.description


def test_pag_01_wide_calendar_stops_by_its_pattern(hands: Hands) -> None:
    """Where each month leads to 24 others no way to one is long; ten times the limit in a row ends it all the same."""
    source = crawling("/misbehave/calendar/12?m=2026-11", max_barren=8)
    hands.discover(source)
    assert 80 <= len(sent(hands)) < 1 + 7 * 24, "fewer than lie within seven steps"
    assert suspected(hands, source)


def test_pag_02_relative_link_without_scheme_nests_into_itself(hands: Hands) -> None:
    shows(hands, "/de/privacy/", '<a href="www.other.example/policy">policy</a>')
    source = crawling("/de/privacy/")
    hands.discover(source)
    assert sent(hands)[:2] == ["/de/privacy/", "/de/privacy/www.other.example/policy"]
    assert len(sent(hands)) < 5
    (trap,) = suspected(hands, source)
    assert trap.example.endswith("www.other.example/policy")


def test_pag_02_two_links_that_nest_into_each_other(hands: Hands) -> None:
    """No run of equal segments in a/b/b/a/…: the page that is its own parent stops it."""
    shows(hands, "/n/", '<a href="a/">a</a><a href="b/">b</a>')
    source = crawling("/n/")
    hands.discover(source)
    assert len(sent(hands)) == 3
    assert [(each.detail, each.count) for each in suspected(hands, source)] == [
        ("the same page, deeper and deeper: shop.localhost:8765/n/a/", 2),
        ("the same page, deeper and deeper: shop.localhost:8765/n/b/", 2),
    ]


def test_pag_04_next_on_the_last_page(hands: Hands) -> None:
    """To itself, and back and forth: each page is fetched once."""
    shows(hands, "/p/7", '<a class=pg href="/p/8">next</a>')
    shows(hands, "/p/8", '<a class=pg href="/p/7">previous</a><a href="/p/8">next</a>')
    source = crawling("/p/7")
    hands.discover(source)
    assert sorted(sent(hands)) == ["/p/7", "/p/8"]
    assert suspected(hands, source) == []


def test_pag_listing_that_repeats_its_last_page_ends(hands: Hands) -> None:
    hands.discover(source := crawling("/misbehave/stuck_listing?page=1", max_barren=4))
    assert len(sent(hands)) == 3 + 4
    assert hands.status(source).counts.by_kind("detail").planned == 9
    assert [each.detail for each in suspected(hands, source)] == ["shop.localhost:8765/misbehave/stuck_listing?page"]


def test_pag_a_guard_that_is_off_lets_everything_pass(hands: Hands) -> None:
    source = crawling("/misbehave/stuck_listing?page=1", max_barren=None, max_requests=40)
    hands.discover(source)
    assert len(sent(hands)) == 31, "31 listings and 9 items"
    assert suspected(hands, source) == []


@pytest.mark.parametrize("way", ["", "/html"])
def test_url_06_links_that_grow(hands: Hands, way: str) -> None:
    """Each next link repeats its query, escaped once more; entities are decoded exactly once."""
    source = crawling(f"/misbehave/echoed_query{way}")
    hands.discover(source)
    assert sent(hands)[1] == f"/misbehave/echoed_query{way}?&amp;p=2"
    assert len(sent(hands)) < 20
    assert len(suspected(hands, source)) == 1


def test_url_17_a_site_that_links_dot_slash_from_every_page(hands: Hands) -> None:
    shows(hands, "/web/", '<a href="./">here</a><a href="././x">x</a>')
    hands.discover(crawling("/web/a"))
    assert sorted(sent(hands)) == ["/web/", "/web/a", "/web/x"]


def test_url_20_template_rubbish_is_subject_to_the_guard(hands: Hands) -> None:
    shows(hands, "/t/", '<a href="{{ url }}/">x</a>')
    source = crawling("/t/")
    hands.discover(source)
    assert len(sent(hands)) < 5
    assert suspected(hands, source)


def test_traps_leave_ordinary_sites_alone(hands: Hands) -> None:
    """Sixty books in three listings, each category listed besides: nothing is suspected, with the smallest limit."""
    source = crawling("/catalogue/page-1.html", "/index.html", max_barren=2)
    hands.discover(replace(source, discover=QUICK.discover))
    assert suspected(hands, source) == []
    assert hands.status(source).counts.by_kind("detail").planned == 60


def test_traps_leave_a_tree_of_empty_branches_alone(hands: Hands) -> None:
    """Forty branches without an item in a row are no trap as long as the way to each is short."""
    branches = "".join(f'<a href="/branch/{n}-">{n}</a>' for n in range(40))
    shows(hands, "/root", branches)
    for n in range(40):
        shows(hands, f"/branch/{n}-", f'<a href="/leaf/{n}-">{n}</a>')
        shows(hands, f"/leaf/{n}-", f'<a class=item href="/item/{n}">{n}</a>')
    source = crawling("/root", max_barren=5)
    hands.discover(source)
    assert suspected(hands, source) == []
    assert hands.status(source).counts.by_kind("detail").planned == 40


# --- Not seen is not gone --------------------------------------------------------------------------------------------


def test_pag_07_nothing_is_removed_by_a_run_that_is_not_whole(hands: Hands) -> None:
    """Rule 18: a run that ends in the middle leaves every entity of the one before in `latest`, and is not complete."""
    hands.whole(QUICK)
    hands.publish(QUICK)
    narrow = replace(QUICK, max_requests=25, expect=replace(QUICK.expect, min_records=1))
    status = hands.whole(narrow, TOMORROW)
    assert (status.is_complete, status.row.bound_reached) == (False, "max_requests")
    hands.publish(narrow, TOMORROW)
    assert hands.rows("SELECT count(*), count(removed_at) FROM latest") == [(60, 0)]


def test_pag_07_an_order_that_shifts_while_it_is_read_removes_nothing(hands: Hands) -> None:
    """Items that slide from page to page are seen twice or not at all: once in the frontier, and never gone."""
    hands.whole(QUICK)
    hands.publish(QUICK)
    # The second listing is the first one again: what slid onto it between the two requests.
    first = hands.column("SELECT url FROM requests WHERE kind = 'detail' ORDER BY request_id LIMIT 20")
    cards = "".join(f'<article class=product_pod><h3><a href="{url}" title="x">x</a></h3></article>' for url in first)
    shows(hands, "/catalogue/page-2.html", cards)
    shifted = replace(QUICK, expect=replace(QUICK.expect, min_records=1))
    hands.whole(shifted, TOMORROW)
    hands.publish(shifted, TOMORROW)
    start = TOMORROW.start
    assert hands.column("SELECT count(*) FROM requests WHERE kind = 'detail' AND window_start = %s", start) == [20]
    assert hands.rows("SELECT count(*), count(removed_at) FROM latest") == [(60, 0)]
    assert TODAY.start < start


def test_pag_07_what_two_whole_runs_do_not_list_is_removed(hands: Hands) -> None:
    """Not after one, whatever it shows; and a run that dies in between neither counts nor ends the row."""
    hands.whole(QUICK)
    hands.publish(QUICK)
    last = hands.column("SELECT url FROM requests WHERE kind = 'detail' ORDER BY request_id LIMIT 20 OFFSET 40")
    cards = "".join(
        f'<article class=product_pod><h3><a href="{url}" title="x">x</a></h3></article>' for url in last[1:]
    )
    shows(hands, "/catalogue/page-3.html", cards)
    dying = replace(QUICK, max_requests=25)
    for number, source, gone in ((1, QUICK, 0), (2, dying, 0), (3, QUICK, 1)):
        hands.whole(replace(source, expect=replace(source.expect, min_records=1)), after(number))
        hands.publish(replace(source, expect=replace(source.expect, min_records=1)), after(number))
        assert hands.rows("SELECT count(*), count(removed_at) FROM latest") == [(60, gone)]


def after(number: int) -> Window:
    """A window so many days after the first."""
    apart = timedelta(days=number)
    return Window(key=f"{TODAY.start + apart:%F}", start=TODAY.start + apart, end=TODAY.end + apart)


# --- Aliases ----------------------------------------------------------------------------------------------------------


class Item(pa.DataFrameModel):
    """What a small page holds."""

    upc: str


def one_item(page: Page) -> Iterator[dict[str, object]]:
    """The only record of a page."""
    yield {"upc": page.tree.css("h1")[0].text()}


def test_url_11_a_redirect_is_an_alias_and_slashes_are_never_stripped(hands: Hands) -> None:
    """/faq leads to /faq/: two addresses, one item; /doc and /doc/ are two pages with an item each."""
    for path, heading in {"/faq/": "faq", "/doc/": "folder"}.items():
        shows(hands, path, f"<h1>{heading}</h1>")
    hands.site.misbehave("redirect", prefix="/faq", arg="/faq/")
    shows(hands, "/doc", "<h1>document</h1>")
    starts = tuple(Link(SITE + path, kind="detail") for path in ("/faq", "/faq/", "/doc", "/doc/"))
    any_number = replace(QUICK.expect, min_records=1, max_reject_rate=1.0)
    hands.whole(replace(QUICK, start_urls=starts, extract=one_item, schema=Item, expect=any_number))
    assert hands.rows("SELECT url, final_url FROM pages WHERE outcome = 'ok' ORDER BY request_id") == [
        (f"{SITE}/faq", f"{SITE}/faq/"), (f"{SITE}/faq/", f"{SITE}/faq/"),
        (f"{SITE}/doc", f"{SITE}/doc"), (f"{SITE}/doc/", f"{SITE}/doc/"),
    ]  # fmt: skip
    assert hands.column("SELECT entity FROM observations ORDER BY entity") == ["document", "faq", "folder"]
