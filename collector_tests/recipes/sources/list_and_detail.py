"""Listings lead to books: what only the listing shows travels along as a hint, the rest stands on the book's page."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa
from pandera.engines.pandas_engine import Decimal

from collector_assets import html, normalize
from collector_assets.contract import Budget, Daily, Expect, Link, Page, Source, hours, seconds


class Book(pa.DataFrameModel):
    """One book."""

    upc: str = pa.Field(str_matches=r"^[0-9a-z]{16}$", description="Product code")
    title: str = pa.Field(description="Title as its page shows it")
    price: Decimal = pa.Field(ge=0, dtype_kwargs={"precision": 10, "scale": 2}, description="GBP, tax included")
    place: int = pa.Field(ge=1, description="Where the listings show it: 1 is the first book of the first page")


def discover(page: Page) -> Iterator[Link]:
    """The books of a listing, each with its place, and the next listing, which goes on counting."""
    cards = html.all(page, "article.product_pod h3 a", at_least=1)
    before = page.hints.get("before", 0)
    for place, title in enumerate(cards, start=before + 1):
        yield Link(html.attribute(title, "href"), hints={"place": place})
    if following := html.maybe(page, "ul.pager li.next a"):
        yield Link(html.attribute(following, "href"), kind="listing", hints={"before": before + len(cards)})


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The one book of a page; a row of its table that is neither read nor ignored is an error."""
    facts = html.fields(html.one(page, "article.product_page table"))
    yield {
        "upc": facts.pop("UPC"),
        "title": html.text(html.one(page, "h1")),
        "price": normalize.price(facts.pop("Price (incl. tax)")),
        "place": page.hints["place"],
    }
    html.expect_empty(facts, ignore={"Product Type", "Price (excl. tax)", "Tax", "Availability", "Number of reviews"})


SOURCE = Source(
    name="list_and_detail",
    start_urls=("http://shop.localhost:8765/catalogue/page-1.html",),
    discover=discover,  # makes the kind "listing"
    extract=extract,  # makes the kind "detail"
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
    expect=Expect(min_records=50, max_records=5_000),
    freshness=hours(26),
)
