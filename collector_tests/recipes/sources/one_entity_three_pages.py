"""A company whose facts stand on three pages: each page yields a part, `combine` joins them before they are judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandera.pandas as pa
from pandera.engines.pandas_engine import Decimal

from collector_assets import html, normalize
from collector_assets.contract import Budget, Daily, Expect, Kind, Link, Page, Source, seconds

COLUMNS = {
    "Number": ("number", str), "Name": ("name", str), "Town": ("town", str),
    "Employees": ("employees", normalize.integer), "Turnover": ("turnover", normalize.price),
}  # fmt: skip


class Company(pa.DataFrameModel):
    """One company, whole: where a page is missing its columns are, and the row is a reject that says which."""

    number: str = pa.Field(str_matches=r"^C\d{4}$", description="What the register calls it")
    name: str = pa.Field(description="From its profile")
    town: str = pa.Field(description="From its contact page")
    employees: int = pa.Field(ge=0, description="From its figures")
    turnover: Decimal = pa.Field(ge=0, dtype_kwargs={"precision": 14, "scale": 2}, description="GBP a year; likewise")


def discover(page: Page) -> Iterator[Link]:
    """Three pages for each company."""
    for way in html.all(page, "li.company a", at_least=3):
        yield Link(html.attribute(way, "href"), kind="part")


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The part that a page tells, under our names; every part names the entity."""
    facts = html.fields(html.one(page, "table.facts"))
    yield {column: read(facts.pop(name)) for name, (column, read) in COLUMNS.items() if name in facts}
    html.expect_empty(facts, ignore={"Address"})


def combine(number: str, parts: list[Mapping[str, Any]]) -> dict[str, object]:
    """The parts of one company within a window, in the order of their requests, as one row."""
    return {name: value for part in parts for name, value in part.items()}


SOURCE = Source(
    name="one_entity_three_pages",
    start_urls=("http://register.localhost:8765/register/index.html",),
    kinds={"index": Kind(discover=discover), "part": Kind(extract=extract)},
    combine=combine,
    schema=Company,
    entity="number",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
    expect=Expect(min_records=20),
)
