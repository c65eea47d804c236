"""Fourteen shops of one shape: one template, and a source for each, with a window, a budget and assets of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa
from pandera.engines.pandas_engine import Decimal

from collector_assets import html, normalize
from collector_assets.contract import Budget, Daily, Expect, Link, Page, Source, replace, seconds

TOWNS = (
    "ayr", "bath", "cork", "dover", "exeter", "frome", "galway", "hove", "ilkley", "jarrow", "kendal", "lewes",
    "malvern", "norwich",
)  # fmt: skip
START = "http://{}-books.localhost:8765/catalogue/category/books/poetry_23/index.html"


class Book(pa.DataFrameModel):
    """One book."""

    upc: str = pa.Field(str_matches=r"^[0-9a-z]{16}$", description="Product code")
    title: str = pa.Field(description="Title")
    price: Decimal = pa.Field(ge=0, dtype_kwargs={"precision": 10, "scale": 2}, description="GBP, tax included")


def discover(page: Page) -> Iterator[Link]:
    """The books of the one listing."""
    for title in html.all(page, "article.product_pod h3 a", at_least=1):
        yield Link(html.attribute(title, "href"))


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The one book of a page."""
    facts = html.fields(html.one(page, "article.product_page table"))
    price = normalize.price(facts["Price (incl. tax)"])
    yield {"upc": facts["UPC"], "title": html.text(html.one(page, "h1")), "price": price}


TEMPLATE = Source(
    name="template",  # of no site: what is not in SOURCES is not loaded
    start_urls=(START.format("any"),),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05)),
    expect=Expect(min_records=1),
)

SOURCES = tuple(replace(TEMPLATE, name=f"books_{town}", start_urls=(START.format(town),)) for town in TOWNS)
