"""Redirects through the whole path: followed hop by hop, each hop a request like any other, in one attempt."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Iterator
from typing import Any

import pandera.pandas as pa
import pytest

from collector_assets import frontier, pages
from collector_assets.collect import Ending
from collector_assets.contract import Budget, Kind, Link, Page, Source, replace, seconds
from collector_assets.demo.arrivals import violations
from collector_assets.deposit import Answered
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome
from collector_tests.collect.conftest import FAST, QUICK, TODAY, TOMORROW, Hands, day
from collector_tests.collect.test_deposit import answer_to, store

SHOP = "http://shop.localhost:8765"
OTHER = "http://other.localhost:8765"


class Seen(pa.DataFrameModel):
    """Where a page was."""

    url: str
    final_url: str
    title: str


def extract(page: Page) -> Iterator[dict[str, Any]]:
    yield {"url": page.url, "final_url": page.final_url, "title": page.text[:60]}


MOVED = Source(
    name="moved", start_urls=(f"{SHOP}/",), scope=("shop.localhost", "other.localhost"),
    kinds={"page": Kind(extract=extract)}, schema=Seen, entity="url", extractor_version="1", window=QUICK.window,
    budget=FAST, patience=seconds(5), retry_wait=seconds(0.05),
)  # fmt: skip


def starting(path: str, **link: Any) -> Source:
    """The source, with one start."""
    return replace(MOVED, start_urls=(Link(SHOP + path, kind="page", **link),))


def requests(hands: Hands) -> list[Any]:
    return hands.rows(
        "SELECT state, failed_phase, outcome, attempts, budget_key, chain FROM requests ORDER BY request_id"
    )


def read_page(hands: Hands, source: Source) -> Page:
    """The one good page as an extractor sees it."""
    with hands.database.transaction() as connection:
        found = pages.newest(connection, source.name, ["page"])
    assert found is not None
    return pages.page_of(found[0], hands.archive.read(found[0].location), found[1], source)


# --- Followed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_followed_and_both_answers_are_archived(hands: Hands, status: int) -> None:
    source = starting(f"/misbehave/redirect/{status}/misbehave/delay/0")
    hands.open(source)
    collected = hands.collect(source)
    assert (collected.outcomes, collected.sent) == ({"redirect": 1, "ok": 1}, 2)
    assert requests(hands) == [("fetched", None, "ok", 1, "shop.localhost", None)]
    first, last = f"{SHOP}/misbehave/redirect/{status}/misbehave/delay/0", f"{SHOP}/misbehave/delay/0"
    found = hands.rows("SELECT url, final_url, status, outcome, attempt FROM pages ORDER BY page_id")
    assert found == [(first, first, status, "redirect", 1), (first, last, 200, "ok", 1)]
    page = read_page(hands, source)
    assert (page.url, page.final_url) == (first, last)


def test_chain_goes_on_in_one_attempt(hands: Hands) -> None:
    """Rule 3: ten redirects, the most that are followed by default, and max_attempts is three."""
    source = starting("/misbehave/redirect_chain/10")
    hands.open(source)
    assert hands.collect(source).outcomes == {"redirect": 10, "ok": 1}
    assert requests(hands)[0][:4] == ("fetched", None, "ok", 1)


def test_discovering_page_is_followed_and_its_links_stand_on_where_it_is(hands: Hands) -> None:
    found: list[str] = []

    def discover(page: Page) -> Iterator[Link]:
        found.append(page.base_url)
        yield Link("../other", kind="page")

    source = replace(
        MOVED,
        kinds={"listing": Kind(discover=discover), "page": Kind(extract=extract)},
        start_urls=(Link(f"{SHOP}/misbehave/redirect/302/misbehave/delay/0", kind="listing"),),
    )
    hands.discover(source)
    assert found == [f"{SHOP}/misbehave/delay/0"]
    assert hands.column("SELECT url FROM requests WHERE kind = 'page'") == [f"{SHOP}/misbehave/other"]


def test_hop_to_another_domain_waits_for_that_domain_s_budget(hands: Hands) -> None:
    """Rule 7: a redirect is a request too, charged to where it goes; the gap holds on both domains."""
    # Mutation: keep `budget_key` as it was in move_requests.
    gap = 0.1
    links = tuple(
        Link(f"{SHOP}/misbehave/redirect/302/{OTHER}/misbehave/delay/0%3Fn={n}", kind="page") for n in range(4)
    )
    source = replace(MOVED, start_urls=links, budget=Budget(gap=seconds(gap), slots=1))
    hands.open(source)
    assert hands.collect(source).outcomes == {"redirect": 4, "ok": 4}
    for host in ("shop.localhost", "other.localhost"):
        arrivals = hands.arrivals(host)
        assert len(arrivals) == 4
        assert violations(arrivals, gap=gap, slots=1) == []
    keys = hands.rows("SELECT budget_key, sum(served) FROM budget_demands GROUP BY 1 ORDER BY 1")
    assert keys == [("other.localhost", 4 + 1), ("shop.localhost", 4 + 1)], "four pages and the robots.txt of each"
    assert {row[4] for row in requests(hands)} == {"shop.localhost"}, "at the end it is counted at home again"


def test_method_and_body_by_status(hands: Hands) -> None:
    for number, (status, said) in enumerate(((303, ("GET", "")), (307, ("POST", "q=1")))):
        source = starting(f"/misbehave/redirect/{status}/misbehave/echo", method="POST", body=b"q=1")
        window = day(TODAY.start.replace(day=number + 1))
        hands.open(source, window)
        hands.collect(source, window)
        echo = read_page(hands, source).json()
        assert (echo["method"], echo["body"]) == said


def test_what_was_configured_stays_on_its_origin(hands: Hands) -> None:
    """HTTP-16, at the site that is led to: another port, then another host."""
    headers = {"Authorization": "Bearer x", "Cookie": "mine=1", "Accept-Language": "de"}
    for number, (target, kept) in enumerate(
        (
            ("/misbehave/echo", True),
            ("http://shop.localhost:9999/misbehave/echo", False),
            (f"{OTHER}/misbehave/echo", False),
        )
    ):
        source = starting(f"/misbehave/redirect/302/{target.lstrip('/')}", headers=headers)
        window = day(TODAY.start.replace(day=number + 1))
        hands.open(source, window)
        hands.collect(source, window)
        received = read_page(hands, source).json()["headers"]
        assert ("authorization" in received, "cookie" in received) == (kept, kept), target
        assert received["accept-language"] == "de"


# --- Cookies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "redirects"), [("cookie_wall", 1), ("cookie_trip", 2)])
def test_page_behind_a_cookie_is_stored_once(hands: Hands, path: str, redirects: int) -> None:
    """HTTP-14."""
    source = starting(f"/misbehave/{path}")
    hands.open(source)
    assert hands.collect(source).outcomes == {"redirect": redirects, "ok": 1}
    assert hands.rows("SELECT url, final_url FROM pages WHERE outcome = 'ok'") == 1 * [
        (f"{SHOP}/misbehave/{path}", f"{SHOP}/misbehave/{path}")
    ]


def test_cookies_are_not_archived_with_requests_and_end_with_the_chain(hands: Hands) -> None:
    source = starting("/misbehave/cookie_trip")
    hands.open(source)
    hands.collect(source)
    kept = b"".join(gzip.decompress(file.read_bytes()) for file in hands.folder.rglob("*.warc.gz"))
    assert b"Cookie: {cookies}" in kept
    assert b"Cookie: ticket=7" not in kept.replace(b"Set-Cookie: ticket=7", b"")
    assert hands.column("SELECT chain FROM requests") == [None]


# --- Ended ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "outcome", "sent"),
    [
        ("/misbehave/redirect_loop", "redirect_loop", 1),
        ("/misbehave/redirect_chain/11", "too_many_redirects", 11),
        ("/misbehave/cookie_wall/new", "too_many_redirects", 11),
        ("/misbehave/location/302/javascript:alert(1)", "redirect_invalid", 1),
        ("/misbehave/location/302/", "redirect_invalid", 1),
        ("/misbehave/status/302", "redirect_invalid", 1),
    ],
)
def test_redirect_that_leads_nowhere_fails_at_once(hands: Hands, path: str, outcome: str, sent: int) -> None:
    source = starting(path)
    hands.open(source)
    assert hands.collect(source).sent == sent
    assert requests(hands) == [("failed", "fetch", outcome, 1, "shop.localhost", None)]
    assert hands.column("SELECT count(*) FROM pages WHERE outcome = 'redirect'") == [sent]


def test_redirect_out_of_the_scope_is_not_followed(hands: Hands) -> None:
    source = replace(starting(f"/misbehave/redirect/302/{OTHER}/"), scope=("shop.localhost",))
    hands.open(source)
    hands.collect(source)
    assert requests(hands)[0][:4] == ("skipped", None, "out_of_scope", 1)
    assert hands.column("SELECT reason FROM requests") == [f"302 to {OTHER}/, outside the scope"]
    assert hands.arrivals("other.localhost") == []


def test_failure_after_a_redirect_says_where(hands: Hands) -> None:
    source = starting(f"/misbehave/redirect/302/{OTHER}/misbehave/status/404")
    hands.open(source)
    hands.collect(source)
    assert requests(hands) == [("failed", "fetch", "gone", 1, "shop.localhost", None)]
    assert hands.column("SELECT reason FROM requests") == [
        f"404 Not Found (redirected, at {OTHER}/misbehave/status/404)"
    ]


# --- Interrupted ------------------------------------------------------------------------------------------------------


def test_retry_goes_on_where_the_chain_stands(hands: Hands) -> None:
    source = starting(f"/misbehave/redirect/302/{OTHER}/misbehave/flaky/1")
    hands.open(source)
    assert hands.collect(source).outcomes == {"redirect": 1, "unavailable": 1, "ok": 1}
    assert requests(hands)[0][:4] == ("fetched", None, "ok", 2)
    assert len(hands.arrivals()) == 1


def test_chain_is_continued_by_another_worker(hands: Hands) -> None:
    """A worker whose turn is over after the first hop, as after a crash: what is left is in the database."""
    source = starting(f"/misbehave/redirect/302/{OTHER}/misbehave/flaky/1")
    hands.open(source)
    stopped = hands.collect(replace(source, retry_wait=seconds(30), patience=seconds(0)))
    assert stopped.ending is Ending.WAITING
    ((state, _, outcome, attempts, key, chain),) = requests(hands)
    assert (state, outcome, attempts, key) == ("queued", "unavailable", 1, "other.localhost")
    assert (chain["url"], chain["home"]) == (f"{OTHER}/misbehave/flaky/1", "shop.localhost")
    hands.do("UPDATE requests SET not_before = NULL")
    assert hands.collect(source).outcomes == {"ok": 1}
    assert len(hands.arrivals()) == 1


def test_after_its_last_attempt_a_request_is_at_home_again(hands: Hands) -> None:
    """So that a replay begins with the URL that was found."""
    source = replace(starting(f"/misbehave/redirect/302/{OTHER}/misbehave/drop"), max_attempts=2)
    hands.open(source)
    assert hands.collect(source).outcomes == {"redirect": 1, "connection_lost": 2}
    assert requests(hands) == [("failed", "fetch", "connection_lost", 2, "shop.localhost", None)]


# --- Unchanged since another window -----------------------------------------------------------------------------------


def test_condition_is_sent_to_where_the_page_was_and_to_no_other_hop(hands: Hands) -> None:
    source = starting(f"/misbehave/redirect/302/{OTHER}/")
    for window in (TODAY, TOMORROW):
        hands.open(source, window)
        hands.collect(source, window)
    found = hands.rows("SELECT outcome, status, revisit_of IS NOT NULL FROM pages ORDER BY page_id")
    assert found == [
        ("redirect", 302, False),
        ("ok", 200, False),
        ("redirect", 302, False),
        ("not_modified", 304, True),
    ]


def test_way_from_https_to_http_is_noted(hands: Hands) -> None:
    """Written as an answer of a site with TLS, which the demo site has not."""
    source = replace(MOVED, start_urls=(Link("https://shop.localhost/a", kind="page"),))
    hands.open(source)
    with hands.database.transaction() as connection:
        (lease,) = frontier.claim(
            connection, source="moved", window_start=TODAY.start, budget_key="shop.localhost", worker="w", count=1,
            lease=seconds(60), kinds=None, lane_weights={"*": 1}, discovering=(), interleave=None,
        )  # fmt: skip
    answer = answer_to(lease).answer
    assert isinstance(answer, Response)
    headers = ((b"Location", b"http://shop.localhost:8765/"),)
    moved = dataclasses.replace(answer, outcome=Outcome.REDIRECT, status=302, headers=headers)
    store(hands, [Answered(lease=lease, answer=moved)], source)
    assert hands.column("SELECT flags FROM pages") == [["redirects_to_plain_http"]]
    assert hands.collect(source).outcomes == {"ok": 1}
