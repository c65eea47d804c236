"""Books that somebody's database asks about: its rows are what each window starts with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandera.pandas as pa

from collector_assets import html
from collector_assets.contract import Budget, Daily, FromQuery, Link, Page, Secret, Source, Window, seconds


class Answer(pa.DataFrameModel):
    """What the shop says about a book, and who asked."""

    upc: str = pa.Field(description="Product code")
    title: str = pa.Field(description="Title as its page shows it")
    asked_by: str = pa.Field(description="Who wants to know, says the database")


def start(window: Window, inputs: Mapping[str, Any]) -> Iterator[Link]:
    """A page for each row; what else the row says travels along as a hint."""
    for row in inputs["watchlist"]:
        url = f"http://shop.localhost:8765/catalogue/{row['slug']}/index.html"
        yield Link(url, hints={"asked_by": row["asked_by"]})


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The one book of a page."""
    product = html.one(page, "article.product_page")
    yield {
        "upc": html.fields(html.one(product, "table"))["UPC"],
        "title": html.text(html.one(product, "h1")),
        "asked_by": page.hints["asked_by"],
    }


SOURCE = Source(
    name="list_from_a_database",
    scope=("shop.localhost",),
    start=start,
    inputs={
        "watchlist": FromQuery(
            "SELECT slug, asked_by FROM watchlist WHERE since < %(window_end)s",
            dsn=Secret("WAREHOUSE_DSN"),
            asset="dbt/watchlist",  # an edge into `list_from_a_database/frontier`
        )
    },
    extract=extract,
    schema=Answer,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
)
