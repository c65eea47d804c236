"""Cursors that expire: the chain starts over, nothing that is known is collected twice, and there is an end to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from collector_assets import html
from collector_assets.contract import Kind, Link, Page, RestartChain, Source, replace
from collector_assets.deposit import answered_of
from collector_assets.errors import ContractError
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome
from collector_assets.put_back import Wish
from collector_assets.registry import load_one
from collector_assets.replay import run as replay
from collector_assets.selection import Selection
from collector_assets.sources.templates.book_shop import extract
from collector_tests.collect.conftest import FAST, QUICK, TODAY, Hands
from collector_tests.collect.test_deposit import answer_to, claim, store
from collector_tests.recipes import FOLDER


def discover(page: Page) -> Iterator[Link]:
    """The next listing first, then the books."""
    if following := html.maybe(page, "ul.pager li.next a"):
        yield Link(html.attribute(following, "href"), kind="listing")
    for title in html.all(page, "article.product_pod h3 a", at_least=1):
        yield Link(html.attribute(title, "href"))


LISTING = Kind(discover=discover, on_status={410: "restart"}, max_restarts=2)
SHOP = replace(
    QUICK, discover=None, extract=None, lanes={"*": 1}, in_flight=1, max_barren=2,
    kinds={"listing": LISTING, "detail": Kind(extract=extract)},
)  # fmt: skip


def counted(_: str, rows: list[dict[str, object]]) -> dict[str, object]:
    """How many rows there were of an entity."""
    return rows[0] | {"subject": str(len(rows))}


def ended(hands: Hands, source: Source) -> dict[str, int]:
    """Listings by their outcome."""
    rows = hands.status(source).counts.by_kind("listing").outcome_table()
    return {row["outcome"] or row["state"]: row["requests"] for row in rows}


def listings(hands: Hands) -> list[str]:
    return [arrival.path[-6:-5] for arrival in hands.arrivals() if "/page-" in arrival.path]


def test_a_chain_starts_over_and_what_is_known_is_not_collected_twice(hands: Hands) -> None:
    """Rule 1: the third listing is gone once, the first is fetched again, and every book once."""
    hands.site.misbehave("status", prefix="/catalogue/page-3", arg="410", times=1)
    status = hands.whole(SHOP)
    assert listings(hands) == ["1", "2", "3", "1", "2", "3"]
    assert ended(hands, SHOP) == {"ok": 5, "chain_restarted": 1}
    assert (status.counts.by_kind("detail").done, status.is_complete) == (60, True)
    assert hands.publish(SHOP).total == 60
    books = [arrival.path for arrival in hands.arrivals() if arrival.path.endswith("/index.html")]
    assert len(books) == len(set(books)) == 60
    assert hands.column("SELECT DISTINCT outcome FROM pages WHERE status = 410") == ["chain_restarted"]
    assert hands.status(SHOP).rejected_links == [], "what the chain shows again is no trap"


def test_a_chain_starts_over_so_often_and_then_fails_and_a_replay_is_once_more(hands: Hands) -> None:
    """Rule 1: new work on purpose, a bounded number of times."""
    hands.site.misbehave("status", prefix="/catalogue/page-3", arg="410", times=4)
    status = hands.whole(SHOP)
    assert listings(hands) == ["1", "2", "3"] * 3
    assert ended(hands, SHOP) == {"ok": 6, "chain_restarted": 2, "cursor_expired": 1}
    assert (status.is_complete, status.counts.by_kind("detail").done) == (False, 40)
    (reason,) = hands.column("SELECT reason FROM requests WHERE outcome = 'cursor_expired'")
    assert "started over 2 times (max_restarts)" in reason
    wish = Wish(
        source=SHOP, window=TODAY.key, selection=Selection(outcomes=("cursor_expired",)), everything=False,
        reason="the site has mended its cursors", by="ana", dry_run=False,
    )  # fmt: skip
    assert replay(wish, hands.database).requests == 1
    status = hands.whole(SHOP)
    assert listings(hands)[9:] == ["3", "1", "2", "3"]
    assert (ended(hands, SHOP), status.is_complete) == ({"ok": 9, "chain_restarted": 3}, True)
    assert status.counts.by_kind("detail").done == 60


def test_a_start_that_is_gone_has_nothing_to_start_over_from(hands: Hands) -> None:
    hands.site.misbehave("status", prefix="/catalogue/page-1", arg="410")
    hands.discover(SHOP)
    assert ended(hands, SHOP) == {"cursor_expired": 1}
    assert listings(hands) == ["1"]


def test_the_first_of_a_chain_starts_over_from_the_page_that_led_to_it(hands: Hands) -> None:
    """A search whose token the site has forgotten: its form is fetched again, and what had ended is asked again."""
    recipe = load_one(f"{FOLDER / 'search_form.py'}::search_form")
    results = replace(recipe.kinds["results"], on_status={400: "restart"})
    source = replace(recipe, budget=FAST, in_flight=1, kinds=dict(recipe.kinds) | {"results": results})
    hands.site.misbehave("status", prefix="/register/search", arg="400", every=2, times=1)
    status = hands.whole(source)
    sent = [(arrival.method, arrival.status) for arrival in hands.arrivals("register.localhost")]
    assert [method for method, _ in sent].count("GET") == 2
    assert [status for _, status in sent].count(400) == 1
    assert (status.counts.done, status.counts.skipped, status.counts.failed) == (2 + 7, 0, 0)
    assert hands.publish(source).total == 24


@pytest.mark.parametrize("combines", [False, True])
def test_records_of_listings_that_are_read_again_are_no_duplicates(hands: Hands, *, combines: bool) -> None:
    """Also where rows wait for `combine`, which would see them twice."""
    recipe = load_one(f"{FOLDER / 'json_api_with_cursor.py'}::json_api_with_cursor")
    source = replace(recipe, budget=FAST, combine=counted if combines else None)
    hands.site.misbehave("expire_cursors", prefix="/api/", every=8, times=1)
    counts = hands.whole(source).counts
    assert (counts.done, counts.skipped, counts.failed) == (7 + 8, 1, 0)
    assert hands.publish(source).total == 72
    assert hands.column("SELECT count(*) FROM rejects") == [0]
    if combines:
        assert hands.column("SELECT DISTINCT data->>'subject' FROM latest") == ["1"]
    (findings,) = hands.column("SELECT findings FROM verdicts")
    assert [each["check"] for each in findings if not each["passed"]] == []


def test_a_late_result_starts_nothing_over(hands: Hands) -> None:
    """Rule 4: what is refused has no consequences."""
    hands.open(SHOP)
    hands.do("UPDATE requests SET found_on = request_id")  # as if a page had led to it
    (lease,) = claim(hands, 1, kind="listing", lease=timedelta(milliseconds=1))
    late = answer_to(lease)
    assert isinstance(late.answer, Response)
    gone = replace(late.answer, status=410, outcome=Outcome.GONE)
    stored = store(hands, [answered_of(SHOP, lease, gone)], SHOP)
    assert (stored.refused, stored.found) == (1, 0)
    assert hands.status(SHOP).counts.planned == 1


def test_a_page_that_says_so_itself_is_none_to_be_read(hands: Hands) -> None:
    def once(page: Page) -> Iterator[Link]:
        if page.url.endswith("page-2.html") and not told.exists():
            told.touch()
            raise RestartChain("session over")
        yield from discover(page)

    told = hands.folder.parent / "told"
    source = replace(SHOP, kinds=dict(SHOP.kinds) | {"listing": Kind(discover=once)})
    hands.discover(source)
    assert listings(hands) == ["1", "2", "1", "2", "3"]
    assert hands.rows("SELECT outcome, reason FROM requests WHERE state = 'skipped'") == [
        ("chain_restarted", "session over")
    ]
    assert hands.column("SELECT outcome FROM pages ORDER BY page_id") == ["ok", "chain_restarted", "ok", "ok", "ok"]


def test_restart_is_for_kinds_that_lead_on() -> None:
    with pytest.raises(ContractError, match="a chain of listings"):
        replace(SHOP, kinds=dict(SHOP.kinds) | {"detail": Kind(extract=extract, on_status={410: "restart"})})
