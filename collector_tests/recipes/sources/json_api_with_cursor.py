"""A JSON API that is read page by page: each page has the cursor of the next one, until the cursor expires."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from urllib.parse import quote

import pandera.pandas as pa
from pandera.engines.pandas_engine import Date

from collector_assets.contract import Budget, Daily, Expect, Kind, Link, Page, RestartChain, Source, seconds

FIRST = "http://register.localhost:8765/api/filings?limit=10"


class Filing(pa.DataFrameModel):
    """A document that a company handed in."""

    number: str = pa.Field(str_matches=r"^C\d{4}-\d+$", description="What the register calls it")
    company: str = pa.Field(description="Whose it is")
    filed_on: Date = pa.Field(description="The day it came in")
    subject: str = pa.Field(description="What it is about")


def next_page(page: Page) -> Iterator[Link]:
    """The next page, if there is one."""
    answer = page.json()
    if answer.get("error") == "cursor_expired":  # of an API that says so with status 200; for a status see on_status
        raise RestartChain("the API says cursor_expired")
    if answer["next"]:
        yield Link(f"{FIRST}&cursor={quote(answer['next'])}", kind="filings")


def rows(page: Page) -> Iterator[dict[str, object]]:
    """The filings of a page."""
    for filing in page.json()["filings"]:
        yield filing | {"filed_on": date.fromisoformat(filing["filed_on"])}


SOURCE = Source(
    name="json_api_with_cursor",
    start_urls=(FIRST,),
    headers={"Accept": "application/json"},  # a key goes here too: {"Authorization": Secret("API_KEY", "Bearer ")}
    kinds={
        "filings": Kind(
            discover=next_page,
            extract=rows,
            on_status={410: "restart"},  # the chain starts over at FIRST; what the window has is not collected twice
            max_restarts=3,
        )
    },
    schema=Filing,
    entity="number",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05)),
    expect=Expect(min_records=50),
)
