"""What a source may say, through the whole path: several record types, combine, hints, secrets, headers."""

from __future__ import annotations

import gzip
import logging
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pandera.pandas as pa
import pytest

from collector_assets import html, normalize
from collector_assets.contract import Kind, Link, Page, Record, Secret, Source, replace
from collector_assets.sources import lab
from collector_tests.collect.conftest import QUICK, Hands, ends


class Offer(pa.DataFrameModel):
    """A book's price, and where the catalogue lists it."""

    upc: str
    price: str
    position: int = pa.Field(ge=1)


class Category(pa.DataFrameModel):
    """A category, as the books of it say; joined over all of them."""

    name: str
    books: int = pa.Field(ge=1)


def places(page: Page) -> Iterator[Link]:
    """Books with their place in the listing as a hint."""
    if following := html.maybe(page, "ul.pager li.next a"):
        yield Link(html.absolute(page, html.attribute(following, "href")), kind="listing")
    for position, card in enumerate(html.all(page, "article.product_pod", at_least=1), start=1):
        yield Link(html.attribute(html.one(card, "h3 a"), "href"), hints={"position": position})


def offers(page: Page) -> Iterator[Record]:
    """One offer and one mention of its category."""
    facts = html.fields(html.one(page, "table"))
    price = normalize.price(html.text(html.one(page, ".product_main .price_color")))
    yield Record("offer", {"upc": facts["UPC"], "price": str(price), "position": page.hints["position"]})
    yield Record("category", {"name": html.text(html.one(page, ".breadcrumb li:nth-child(3) a")), "books": 1})


def joined(entity: str, rows: list[Record]) -> Mapping[str, Any]:
    """Categories count their books; an offer is what it is."""
    if rows[0].type == "category":
        return {"name": entity, "books": sum(row.values["books"] for row in rows)}
    return rows[0].values


RICH = replace(
    QUICK,
    discover=None,
    extract=None,
    schema=None,
    kinds={"listing": Kind(discover=places), "detail": Kind(extract=offers)},
    records={"offer": Offer, "category": Category},
    entity={"offer": "upc", "category": "name"},
    combine=joined,
)


def test_several_record_types_are_combined_over_pages_into_latest(hands: Hands) -> None:
    """Sixty books, their categories counted over all pages, hints from the listing: all the way to `latest`."""
    hands.whole(RICH)
    report = hands.publish(RICH)
    categories = dict(hands.rows("SELECT entity, (data ->> 'books')::int FROM latest WHERE record_type = 'category'"))
    assert sum(categories.values()) == 60
    assert report.total == 60 + len(categories)
    positions = hands.column("SELECT (data ->> 'position')::int FROM latest WHERE record_type = 'offer' ORDER BY 1")
    assert positions == sorted(3 * [*range(1, 21)])


# --- Secrets ---------------------------------------------------------------------------------------------------------

VALUE = "s3cr3t-0f-a-shop"


@pytest.fixture
def authorized(monkeypatch: pytest.MonkeyPatch) -> Source:
    """A source with a token in a header of its own, of a kind, and of a link."""
    monkeypatch.setenv("SHOP_TOKEN", VALUE)
    token = Secret("SHOP_TOKEN", "Bearer ")
    start = Link("http://shop.localhost:8765/catalogue/page-1.html", kind="listing", headers={"X-Link": token})
    return replace(QUICK, start_urls=(start,), headers={"Authorization": token}, max_requests=5)


def test_secret_is_sent_and_written_down_nowhere(
    hands: Hands, authorized: Source, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in a row of any table, not in the archive, not in a log; its name is."""
    caplog.set_level(logging.DEBUG)
    hands.site.misbehave("status", prefix="/catalogue/", arg="503", every=3)
    hands.discover(authorized)
    hands.collect(replace(authorized, retry_wait=authorized.retry_wait / 100))
    hands.read(authorized)
    assert VALUE not in caplog.text
    assert VALUE not in _everything_in_the_database(hands)
    archived = b"".join(_uncompressed(path.read_bytes()) for path in hands.folder.rglob("*.warc.gz"))
    assert VALUE.encode() not in archived
    assert b"Authorization:" in archived
    assert b"SHOP_TOKEN" in archived


def test_secret_that_is_not_there_is_an_outcome_and_nothing_is_sent(
    hands: Hands, authorized: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the variable."""
    monkeypatch.delenv("SHOP_TOKEN")
    assert hands.discover(authorized).collected.outcomes == {"secret_missing": 1}
    (reason,) = hands.column("SELECT reason FROM requests")
    assert "SHOP_TOKEN" in reason
    assert hands.arrivals() == []


def _everything_in_the_database(hands: Hands) -> str:
    tables = hands.column("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert "requests" in tables
    return "\n".join(str(hands.rows(f"SELECT t::text FROM {table} AS t")) for table in tables)  # noqa: S608


def _uncompressed(data: bytes) -> bytes:
    """Every member of the file."""
    return gzip.decompress(data)


# --- The lab ---------------------------------------------------------------------------------------------------------


def test_lab_ends_as_published(hands: Hands) -> None:
    """Rule 19, and the published result: five requests of six candidates, eight HTTP requests, two records."""
    quick = replace(lab.SOURCE, retry_wait=lab.SOURCE.retry_wait / 10)
    hands.whole(quick)
    outcomes = hands.rows("SELECT entity, state, attempts FROM requests ORDER BY request_id")
    assert outcomes == [
        ("good", "done", 1),
        ("retry", "done", 2),
        ("bad", "failed", 1),
        ("stale", "failed", 1),
        ("exhaust", "failed", 3),
    ]
    assert len(hands.arrivals("lab.localhost")) == 8
    assert ends(hands.status(quick)) == {"planned": 5, "done": 2, "failed": 3, "skipped": 0, "outstanding": 0}
    times = hands.rows("SELECT o.collected_at = p.fetched_at, o.source_revised_at < o.collected_at + interval '1 s'"
                       " FROM observations AS o JOIN pages AS p USING (window_start, page_id)")  # fmt: skip
    assert times == [(True, True), (True, True)]


def test_price_survives_the_way_as_a_number(hands: Hands) -> None:
    """A Decimal is never a float on its way into `latest`."""
    hands.whole(replace(QUICK, max_requests=4))
    prices = hands.column("SELECT data ->> 'price' FROM observations")
    assert prices
    assert all(re.fullmatch(r"\d+\.\d\d", price) and Decimal(price) > 0 for price in prices)
