"""Only what is new: known items are skipped, not fetched; a listing of known ones ends its chain."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from collector_assets.contract import Expect, Kind, Link, Page, Source, days, hours, replace
from collector_assets.errors import ContractError
from collector_assets.remember import is_known
from collector_assets.request import NewRequest
from collector_assets.sources.templates.book_shop import discover, extract
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands, day, ends

SHOP = "http://shop.localhost:8765"
LATER = day(TOMORROW.end)


def remembering(refetch: Any = "once", **listing: Any) -> Source:
    """The shop, whose books are remembered."""
    kinds = {"listing": Kind(discover=discover, **listing), "detail": Kind(extract=extract, refetch=refetch)}
    return replace(
        QUICK, discover=None, extract=None, kinds=kinds, coverage="incremental", expect=Expect(min_records=0)
    )


NEW = remembering()


def test_what_was_fetched_once_is_skipped_in_later_windows_and_stays_in_latest(hands: Hands) -> None:
    assert ends(hands.whole(NEW)) == {"planned": 63, "done": 63, "failed": 0, "skipped": 0, "outstanding": 0}
    hands.publish(NEW)
    status = hands.whole(NEW, TOMORROW)
    assert ends(status) == {"planned": 63, "done": 3, "failed": 0, "skipped": 60, "outstanding": 0}
    assert status.is_complete
    assert len(hands.arrivals()) >= 66
    assert hands.column("SELECT DISTINCT outcome FROM requests WHERE state = 'skipped'") == ["known"]
    assert hands.publish(NEW, TOMORROW).total == 60


def test_what_is_new_in_a_later_window_is_fetched(hands: Hands) -> None:
    hands.site.switch(books=40)
    hands.whole(NEW)
    hands.site.switch(books=60)
    status = hands.whole(NEW, TOMORROW)
    assert (status.counts.skipped, status.counts.by_kind("detail").done) == (40, 20)


def test_what_failed_is_not_known(hands: Hands) -> None:
    hands.site.misbehave("status", prefix="/catalogue/", arg="404", every=2)
    first = hands.whole(replace(NEW, start_urls=tuple(Link(url) for url in _books(hands))))
    hands.site.behave()
    assert first.counts.failed > 0
    second = hands.whole(replace(NEW, start_urls=tuple(Link(url) for url in _books(hands))), TOMORROW)
    assert (second.counts.skipped, second.counts.done) == (first.counts.done, first.counts.failed)


def _books(hands: Hands) -> list[str]:
    if not hands.rows("SELECT FROM requests WHERE kind = 'detail' AND source = 'shop'"):
        other = replace(QUICK, name="other")
        hands.discover(other)
    return hands.column("SELECT DISTINCT url FROM requests WHERE kind = 'detail' ORDER BY url LIMIT 10")


def test_a_raised_edition_forgets_what_is_known(hands: Hands) -> None:
    hands.whole(NEW)
    assert hands.whole(replace(NEW, edition=2), TOMORROW).counts.skipped == 0


# --- Every so often --------------------------------------------------------------------------------------------------

MONTHLY = remembering(days(30))
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fetched", "window_end", "changed", "expected"),
    [
        (None, MIDNIGHT, None, False),
        (NOON, MIDNIGHT + days(29), None, True),
        (NOON, MIDNIGHT + days(30), None, False),
        (NOON, MIDNIGHT + days(1), NOON + hours(1), False),
        (NOON, MIDNIGHT + days(1), NOON - hours(1), True),
        (NOON, MIDNIGHT + days(30), NOON - hours(1), False),
    ],
    ids=[
        "never fetched",
        "not due",
        "due on its day",
        "said to have changed",
        "said to be as it was",
        "due, whatever is said",
    ],
)
def test_a_known_item_is_fetched_again_when_it_is_due_or_said_to_have_changed(
    fetched: datetime | None, window_end: datetime, changed: datetime | None, *, expected: bool
) -> None:
    request = NewRequest(
        unique_key=b"1", kind="detail", lane="*", url=f"{SHOP}/1", budget_key="shop.localhost", changed_at=changed
    )
    assert is_known(MONTHLY, request, fetched, window_end) is expected
    once = is_known(NEW, request, fetched, window_end)
    assert once is (fetched is not None), "once is once, whatever the site says"


@pytest.mark.parametrize(
    ("lastmod", "fetched_again"),
    [("2026-01-01", False), ("{today}", True), ("", False), ("rubbish", False)],
    ids=["older", "this day, in whatever zone", "none", "unusable"],
)
def test_a_sitemap_s_lastmod_brings_a_fetch_forward(hands: Hands, lastmod: str, *, fetched_again: bool) -> None:
    """MAP-12: it never keeps a page from being fetched; a day without a zone may be any time of it."""
    [url, *_] = _books(hands)
    today = datetime.now(UTC).date()
    entry = f"<url><loc>{url}</loc><lastmod>{lastmod.format(today=today)}</lastmod></url>"
    body = base64.b64encode(f"<urlset>{entry}</urlset>".encode()).decode()
    hands.site.misbehave("say", prefix="/map.xml", arg=json.dumps({"body": body}))
    kinds = {"detail": Kind(extract=extract, refetch=timedelta(days=50_000))}
    mapped = replace(MONTHLY, start_urls=(), sitemaps=(f"{SHOP}/map.xml",), kinds=kinds)
    assert hands.whole(mapped).counts.done == 2
    assert hands.whole(mapped, TOMORROW).counts.by_kind("detail").done == fetched_again


# --- Listings of known items ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "listings"), [(1, 1), (20, 1), (21, 2), (40, 2), (41, 3), (500, 3)])
def test_known_items_in_a_row_end_the_chain(hands: Hands, limit: int, listings: int) -> None:
    """Twenty on each listing; the row goes on from one to the next."""
    hands.whole(NEW)
    ending = remembering(stop_after_known=limit)
    status = hands.whole(ending, TOMORROW)
    assert status.counts.by_kind("listing").done == listings
    reasons = [(link.reason, link.count) for link in status.rejected_links]
    assert reasons == ([("known_chain_ended", 1)] if listings < 3 else [])


def test_something_new_among_known_items_goes_on(hands: Hands) -> None:
    hands.whole(remembering(), TODAY)
    hands.do("DELETE FROM known WHERE unique_key IN (SELECT unique_key FROM requests WHERE kind = 'detail' "
             "ORDER BY request_id OFFSET 19 LIMIT 1)")  # fmt: skip
    status = hands.whole(remembering(stop_after_known=20), TOMORROW)
    assert status.counts.by_kind("detail").done == 1
    assert status.counts.by_kind("listing").done == 2, "the row began anew after the last book of the first listing"


def test_what_was_fetched_in_the_same_window_is_no_reason_to_stop(hands: Hands) -> None:
    """A listing that shifts while it is read shows books of the last one again."""
    ending = remembering(stop_after_known=1)
    hands.discover(ending)
    hands.collect(ending)
    hands.do(
        "UPDATE requests SET state = 'candidate', outcome = NULL, finished_at = NULL, attempts = 0 "
        "WHERE kind = 'listing'"
    )
    hands.discover(ending)
    assert hands.status(ending).counts.by_kind("listing").done == 3


def nothing(_: Page) -> Iterator[Link]:
    """Leads nowhere."""
    yield from ()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"coverage": "full"}, 'say coverage="incremental"'),
        (
            {"kinds": {"detail": Kind(extract=extract, stop_after_known=3)}},
            "stop_after_known is for a kind with discover",
        ),
        ({"kinds": {"detail": Kind(extract=extract, discover=nothing, refetch="once")}}, "fetched in each window"),
        ({"kinds": {"detail": Kind(extract=extract, refetch=days(0))}}, "not a length of time"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ContractError, match=problem):
        replace(NEW, **changes)


def test_windows_after_the_next_know_it_too(hands: Hands) -> None:
    hands.whole(NEW)
    hands.whole(NEW, LATER)
    assert hands.whole(NEW, TOMORROW).counts.skipped == 60
