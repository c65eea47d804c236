"""A register that is reached by its search form alone: sent by POST, with the fields that the page hides in it."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa

from collector_assets import html
from collector_assets.contract import Budget, Daily, Kind, Link, Page, Source, seconds


class Company(pa.DataFrameModel):
    """One company that a search found."""

    number: str = pa.Field(str_matches=r"^C\d{4}$", description="What the register calls it")
    name: str = pa.Field(description="Its name")
    town: str = pa.Field(description="The town that it was found under")


def searches(page: Page) -> Iterator[Link]:
    """One search for each town that the form offers; hidden fields and the button go along as the page has them."""
    for option in html.all(page, "form#search select[name=town] option", at_least=1):
        town = html.text(option)
        yield html.form(page, "form#search", {"town": town}, kind="results", hints={"town": town})


def more(page: Page) -> Iterator[Link]:
    """The rest of what was found is behind another form."""
    if html.maybe(page, "form#more"):
        yield html.form(page, "form#more", kind="results", hints=page.hints)


def rows(page: Page) -> Iterator[dict[str, object]]:
    """The companies on a page of results."""
    for entry in html.all(page, "li.company"):
        yield {
            "number": html.attribute(entry, "data-number"),
            "name": html.text(html.one(entry, "a.profile")),
            "town": page.hints["town"],
        }


SOURCE = Source(
    name="search_form",
    start_urls=("http://register.localhost:8765/register/search.html",),
    kinds={
        "form": Kind(discover=searches),
        # Without conditions: a POST is never conditional. A search that finds nothing is no error.
        "results": Kind(discover=more, extract=rows, may_be_empty=True),
    },
    schema=Company,
    entity="number",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
)
