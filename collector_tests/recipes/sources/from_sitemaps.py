"""Books that the site's sitemaps list: again after a month, or when the sitemap says that a page has changed."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa

from collector_assets import html
from collector_assets.contract import Budget, Daily, Expect, Kind, Page, Source, days, seconds


class Book(pa.DataFrameModel):
    """One book."""

    upc: str = pa.Field(description="Product code")
    title: str = pa.Field(description="Title as its page shows it")


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The one book of a page."""
    product = html.one(page, "article.product_page")
    yield {
        "upc": html.fields(html.one(product, "table"))["UPC"],
        "title": html.text(html.one(product, "h1")),
    }


SOURCE = Source(
    name="from_sitemaps",
    sitemaps=("http://shop.localhost:8765/robots.txt",),  # with scope=("shop.example",): sitemaps=True
    sitemap_kinds={"*/catalogue/*_[0-9]*/index.html": "book"},  # other pages stay out, counted
    kinds={"book": Kind(extract=extract, refetch=days(30))},
    coverage="incremental",
    expect=Expect(min_records=0),
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
)
