"""The newest books first, each fetched once: a window reads listings until it meets what it knows."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa

from collector_assets import html
from collector_assets.contract import Budget, Daily, Expect, Kind, Link, Page, Source, seconds


class Book(pa.DataFrameModel):
    """One book."""

    upc: str = pa.Field(description="Product code")
    title: str = pa.Field(description="Title as its page shows it")


def discover(page: Page) -> Iterator[Link]:
    """The books of a listing in their order, and the next listing."""
    for title in html.all(page, "article.product_pod h3 a", at_least=1):
        yield Link(html.absolute(page, html.attribute(title, "href")), kind="book")
    if following := html.maybe(page, "ul.pager li.next a"):
        yield Link(html.absolute(page, html.attribute(following, "href")), kind="listing")


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The one book of a page."""
    product = html.one(page, "article.product_page")
    yield {
        "upc": html.fields(html.one(product, "table"))["UPC"],
        "title": html.text(html.one(product, "h1")),
    }


SOURCE = Source(
    name="only_new_items",
    start_urls=("http://shop.localhost:8765/catalogue/page-1.html",),
    kinds={
        "listing": Kind(discover=discover, stop_after_known=20),
        "book": Kind(extract=extract, refetch="once"),  # or days(30): again after a month
    },
    coverage="incremental",  # what a window does not show is still there
    expect=Expect(min_records=0),  # a day without news is a good day
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
)
