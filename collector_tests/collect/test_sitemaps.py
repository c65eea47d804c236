"""Sitemaps as a source's discovery: indexes, cycles, kinds, what breaks in mid-file, and a worker that is killed."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from collector_assets import trial
from collector_assets.contract import Kind, Source, replace
from collector_assets.demo import DemoSite
from collector_assets.errors import ContractError
from collector_assets.sources.templates.book_shop import extract
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands, ends

SHOP = "http://shop.localhost:8765"
LISTED = replace(QUICK, start_urls=(), discover=None, sitemaps=(f"{SHOP}/sitemap-books.xml",))
"""The shop by its sitemap of books: no listing is fetched."""


def say(site: DemoSite, path: str, body: str | bytes, **answer: Any) -> None:
    """What the site answers at a path."""
    content = base64.b64encode(body.encode() if isinstance(body, str) else body).decode()
    site.misbehave("say", prefix=path, arg=json.dumps({"body": content, "type": "text/xml", **answer}))


def index(*paths: str) -> str:
    entries = "".join(f"<sitemap><loc>{SHOP}{path}</loc></sitemap>" for path in paths)
    return f"<sitemapindex>{entries}</sitemapindex>"


def fetched(hands: Hands) -> list[str]:
    return [arrival.path for arrival in hands.arrivals() if not arrival.path.startswith("/catalogue/")]


def test_a_shop_is_collected_from_its_sitemap(hands: Hands) -> None:
    status = hands.whole(LISTED)
    assert ends(status) == {"planned": 61, "done": 61, "failed": 0, "skipped": 0, "outstanding": 0}
    assert status.counts.by_kind("sitemap").done == 1
    assert hands.rows("SELECT count(*) FROM observations") == [(60,)]


def test_a_robots_txt_leads_to_the_sitemaps_that_it_names(hands: Hands) -> None:
    hands.site.switch(
        robots=f"Sitemap: {SHOP}/sitemap-books.xml\nSitemap: /robots.txt\nSITEMAP : /sitemap-listings.xml # c\n"
    )
    by_robots = replace(LISTED, sitemaps=True, scope=("shop.localhost",), start_urls=(f"{SHOP}/sitemap.xml",))
    assert by_robots.sitemap_starts == (f"{SHOP}/robots.txt",)
    hands.discover(replace(LISTED, sitemaps=(f"{SHOP}/robots.txt",)))
    assert [path for path in fetched(hands) if path != "/robots.txt"] == ["/sitemap-books.xml", "/sitemap-listings.xml"]


def test_a_robots_txt_is_fetched_once_for_its_rules_and_for_its_sitemaps(hands: Hands) -> None:
    """The request for it ends with what the file that is known names; there is no page of it."""
    hands.site.switch(robots=f"User-agent: *\nDisallow: /private\nSitemap: {SHOP}/sitemap-books.xml\n")
    by_robots = replace(LISTED, sitemaps=(f"{SHOP}/robots.txt",))
    status = hands.whole(by_robots)
    assert [arrival.path for arrival in hands.arrivals(robots=True)].count("/robots.txt") == 1
    assert ends(status) == {"planned": 62, "done": 62, "failed": 0, "skipped": 0, "outstanding": 0}
    assert status.pages.pages == 61
    hands.whole(by_robots, TOMORROW)
    assert [arrival.path for arrival in hands.arrivals(robots=True)].count("/robots.txt") == 1


@pytest.mark.parametrize("text", ["", "User-agent: *\nDisallow:\n"])
def test_without_a_robots_txt_that_names_one_the_sitemap_is_in_its_usual_place(hands: Hands, text: str) -> None:
    hands.site.switch(robots=text)
    hands.discover(replace(LISTED, sitemaps=(f"{SHOP}/robots.txt",)))
    assert fetched(hands)[-3:] == ["/sitemap.xml", "/sitemap-listings.xml", "/sitemap-books.xml"]
    counts = hands.status(LISTED).counts
    assert (counts.failed, counts.by_kind("detail").planned) == (0, 63), "sixty books, and three listings"


def test_interleaved_a_sitemap_is_followed_in_pass_2(hands: Hands) -> None:
    mixed = replace(LISTED, interleave=True)
    hands.open(mixed)
    hands.collect(mixed)
    assert hands.status(mixed).counts.by_kind("detail").fetched == 60


def test_check_goes_from_the_robots_txt_to_the_first_record(hands: Hands) -> None:
    """`collector check` of a source that has nothing but sitemaps."""
    by_robots = replace(LISTED, sitemaps=(f"{SHOP}/robots.txt",))
    done = trial.of_site(by_robots, TODAY, url=None, kind=None, database=hands.database, fetcher=hands.fetcher)
    assert [each.url.removeprefix(SHOP) for each in done][:3] == [
        "/robots.txt",
        "/sitemap.xml",
        "/sitemap-listings.xml",
    ]
    assert all(each.passed for each in done[:3])


def test_kinds_go_by_the_pattern_that_fits_first_and_what_fits_none_stays_out(hands: Hands) -> None:
    kinds = {"book": Kind(extract=extract), "page": Kind(extract=extract, may_be_empty=True)}
    sorted_out = replace(
        LISTED, extract=None, kinds=kinds, sitemaps=(f"{SHOP}/sitemap.xml",),
        sitemap_kinds={"*/catalogue/page-1.html": "page", "*/catalogue/*_[0-9]*/index.html": "book"},
    )  # fmt: skip
    hands.discover(sorted_out)
    status = hands.status(sorted_out)
    assert (status.counts.by_kind("book").planned, status.counts.by_kind("page").planned) == (60, 1)
    assert [(link.reason, link.count) for link in status.rejected_links] == [("no_sitemap_kind", 2)]


def test_some_sitemaps_of_an_index_may_be_chosen(hands: Hands) -> None:
    chosen = replace(LISTED, sitemaps=(f"{SHOP}/sitemap.xml",), sitemap_kinds={"*/sitemap-books*": "sitemap"})
    hands.discover(chosen)
    assert [path for path in fetched(hands) if path != "/robots.txt"] == ["/sitemap.xml", "/sitemap-books.xml"]
    assert hands.status(chosen).counts.by_kind("detail").planned == 60


def test_what_is_no_sitemap_fails_in_reading_and_says_why(hands: Hands) -> None:
    say(hands.site, "/sitemap-books.xml", "<!DOCTYPE html><html><h1>Welcome</h1></html>")
    hands.discover(LISTED)
    [row] = hands.rows("SELECT state, failed_phase, outcome, reason FROM requests")
    assert row == ("failed", "read", "discovery_failed", "not a sitemap: it is an HTML page")


def test_a_cut_sitemap_keeps_its_good_entries_and_is_told(hands: Hands) -> None:
    whole = "".join(f"<url><loc>{SHOP}/catalogue/{n}</loc></url>" for n in range(5))
    say(hands.site, "/sitemap-books.xml", f"<urlset>{whole}<url><loc>{SHOP}/cat")
    hands.discover(LISTED)
    status = hands.status(LISTED)
    assert status.counts.by_kind("detail").planned == 5
    assert [(link.reason, link.example) for link in status.rejected_links] == [
        ("sitemap_cut", f"{SHOP}/sitemap-books.xml")
    ]
    assert hands.column("SELECT flags FROM pages") == [["sitemap_cut"]]


def test_a_sitemap_s_addresses_obey_the_scope(hands: Hands) -> None:
    locs = ("https://elsewhere.example/1", "mailto:a@example.org", f"{SHOP}/catalogue/1")
    say(
        hands.site,
        "/sitemap-books.xml",
        "<urlset>" + "".join(f"<url><loc>{loc}</loc></url>" for loc in locs) + "</urlset>",
    )
    hands.discover(LISTED)
    reasons = {link.reason for link in hands.status(LISTED).rejected_links}
    assert len(reasons) == 2
    assert "out_of_scope" in reasons
    assert hands.status(LISTED).counts.by_kind("detail").planned == 1


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"sitemaps": (), "start_urls": ()}, "would have nothing to do"),
        ({"sitemap_kinds": {"*": "nothing"}}, "'nothing' is not a kind"),
        ({"sitemaps": ("sitemap.xml",)}, "not an absolute"),
        ({"sitemaps": False, "start_urls": (SHOP,), "sitemap_kinds": {"*": "detail"}}, "there are no sitemaps"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(ContractError, match=problem):
        replace(LISTED, **wrong)


def test_hosts_without_start_urls_are_asked_for_their_robots_txt_by_https() -> None:
    anywhere: Source = replace(LISTED, sitemaps=True, scope=("shop.example",))
    assert anywhere.sitemap_starts == ("https://shop.example/robots.txt",)
    assert not anywhere.is_demo
