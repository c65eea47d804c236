"""HTTP-22 of the field cases: pages that say "not found" with status 200, or by way of one error page."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from collector_assets.cases import page
from collector_assets.contract import Link, Page, Source, replace
from collector_assets.errors import ContractError
from collector_assets.graph import checks
from collector_assets.soft_gone import says_gone
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands, day

SITE = "http://shop.localhost:8765"
NOT_FOUND = "<h1>Product not found</h1>"
DAY_AFTER = day(TOMORROW.end)


def nothing(shown: Page) -> Iterator[dict[str, object]]:
    """The extractor of a page without a record."""
    assert shown.status == 200
    return iter(())


MARKED = replace(QUICK, soft_gone="h1:lexbor-contains('not found')", extract=nothing)


def of_items(source: Source, *paths: str) -> Source:
    return replace(source, start_urls=tuple(Link(SITE + path, kind="detail") for path in paths))


def shows(hands: Hands, prefix: str, markup: str) -> None:
    hands.site.misbehave("say", prefix=prefix, arg=json.dumps({"body": base64.b64encode(markup.encode()).decode()}))


def ends(hands: Hands) -> list[tuple[str, str, str]]:
    return hands.rows(
        "SELECT w.window_key, r.state, r.outcome FROM requests AS r JOIN windows AS w USING (source, window_start)"
        " ORDER BY w.window_start, r.request_id"
    )


def a_day_passes(hands: Hands) -> None:
    hands.do("UPDATE pages SET fetched_at = fetched_at - %s", timedelta(days=1))


def test_http_22_soft_404_and_redirect_to_error_page(hands: Hands) -> None:
    """Both are soft_gone: archived, never read, skipped; gone only when another day says the same."""
    shows(hands, "/item/9", NOT_FOUND)
    shows(hands, "/oops", NOT_FOUND)
    hands.site.misbehave("redirect", prefix="/item/10", arg="/oops")
    source = of_items(MARKED, "/item/9", "/item/10")
    hands.whole(source)
    assert ends(hands) == [(TODAY.key, "skipped", "soft_gone")] * 2
    assert hands.column("SELECT DISTINCT outcome FROM pages WHERE status = 200") == ["soft_gone"]
    assert hands.status(source).is_complete, "a missing item is no failure"
    hands.whole(source, TOMORROW)
    assert ends(hands)[2:] == [(TOMORROW.key, "skipped", "soft_gone")] * 2, "the same day again is no confirmation"
    a_day_passes(hands)
    hands.whole(source, DAY_AFTER)
    assert ends(hands)[4:] == [(DAY_AFTER.key, "skipped", "gone_confirmed")] * 2
    reasons = hands.column("SELECT reason FROM requests WHERE outcome = 'gone_confirmed'")
    assert all(reason.startswith("said so on ") for reason in reasons)


def test_http_22_an_item_that_came_back_in_between_is_not_gone(hands: Hands) -> None:
    source = of_items(MARKED, "/item/9")
    shows(hands, "/item/9", NOT_FOUND)
    hands.whole(source)
    a_day_passes(hands)
    hands.site.behave()
    shows(hands, "/item/9", "<h1>A book</h1>")
    hands.whole(source, TOMORROW)
    a_day_passes(hands)
    hands.site.behave()
    shows(hands, "/item/9", NOT_FOUND)
    hands.whole(source, DAY_AFTER)
    assert [outcome for *_, outcome in ends(hands)] == ["soft_gone", "no_records", "soft_gone"]


def test_http_22_several_items_that_share_one_page_are_a_sign(hands: Hands) -> None:
    """Without a marker the status of the window names the page."""
    shows(hands, "/oops", NOT_FOUND)
    hands.site.misbehave("redirect", prefix="/item/", arg="/oops")
    source = of_items(replace(QUICK, extract=nothing), "/item/1", "/item/2", "/item/3")
    hands.whole(source)
    assert hands.status(source).shared_pages == [(f"{SITE}/oops", 3)]
    said = {each.check_name: each for each in checks.of_collecting(source, hands.status(source))}
    assert (said["items_have_own_pages"].passed, said["items_have_own_pages"].severity) == (False, checks.WARN)
    assert f"3 requests ended at {SITE}/oops" in str(said["items_have_own_pages"].description)
    two = of_items(source, "/item/1", "/item/2")
    hands.whole(two, TOMORROW)
    assert hands.status(two, TOMORROW).shared_pages == []


@pytest.mark.parametrize(
    ("marker", "markup", "is_gone"),
    [
        ("h1.not-found", "<h1 class='big not-found'>", True),
        ("h1.not-found", "<h1>", False),
        ("h1:lexbor-contains('not found')", NOT_FOUND, True),
        ("h1:lexbor-contains('not found')", "<h1>A book</h1><p>Not found elsewhere: not found</p>", False),
        (lambda shown: "/oops" in shown.final_url, "", False),
        (lambda shown: shown.text == "", "", True),
        (lambda shown: shown.json()["gone"], "", False),  # raises: says nothing
        (None, NOT_FOUND, False),
    ],
)
def test_http_22_a_marker_is_a_selector_or_a_function(marker: object, markup: str, is_gone: bool) -> None:  # noqa: FBT001
    assert says_gone(replace(QUICK, soft_gone=marker), page(markup)) is is_gone


def test_http_22_only_pages_that_should_hold_records_are_asked() -> None:
    assert not says_gone(MARKED, page(NOT_FOUND, kind="listing"))


@pytest.mark.parametrize("marker", ["h1[", "", "h1 >"])
def test_http_22_a_selector_that_is_none_is_refused(marker: str) -> None:
    with pytest.raises(ContractError, match="soft_gone"):
        replace(QUICK, soft_gone=marker)
