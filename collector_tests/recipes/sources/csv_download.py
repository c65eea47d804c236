"""A price list as a CSV file: read row by row as a stream, with a comma in its decimals and an encoding of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa
from pandera.engines.pandas_engine import Decimal

from collector_assets import files, html, normalize
from collector_assets.contract import Budget, Daily, Kind, Link, Page, Source, Unreadable, attempt, minutes, seconds


class Price(pa.DataFrameModel):
    """One line of the list."""

    upc: str = pa.Field(str_matches=r"^[0-9a-z]{16}$", description="Product code")
    title: str = pa.Field(description="Title")
    price: Decimal = pa.Field(ge=0, dtype_kwargs={"precision": 10, "scale": 2}, description="GBP, tax included")
    in_stock: int = pa.Field(ge=0, description="Copies in stock")


def download(page: Page) -> Iterator[Link]:
    """The file, wherever the page has it today."""
    yield Link(html.attribute(html.one(page, "a.download"), "href"), kind="file")


def rows(page: Page) -> Iterator[dict[str, object] | Unreadable]:
    """The lines of the file; one that cannot be read is a reject, and the others pass."""
    for line in files.csv_rows(page, delimiter=";"):
        yield attempt(price_of, line)


def price_of(line: files.Row) -> dict[str, object]:
    """One line as a record: everything in a CSV is text until the source says how it is written."""
    return {
        "upc": line["UPC"],
        "title": line["Title"],
        "price": normalize.price(line["Price"], decimal=","),
        "in_stock": normalize.integer(line["In stock"]),
    }


SOURCE = Source(
    name="csv_download",
    start_urls=("http://shop.localhost:8765/downloads/index.html",),
    kinds={
        "page": Kind(discover=download),
        "file": Kind(extract=rows, accepts=("text",)),  # a login page in its place is unexpected_type, not zero rows
    },
    max_bytes=600 * 2**20,  # beyond 8 MiB a body is in a file, never in memory
    max_decoded_bytes=600 * 2**20,
    total_timeout=minutes(30),
    schema=Price,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05)),
)
