"""Pages that hold two sorts of things: a company's filings and its people, each with a schema and a view of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa
from pandera.engines.pandas_engine import Date

from collector_assets import html, normalize
from collector_assets.contract import Budget, Daily, Expect, Kind, Link, Page, Record, Source, attempt, seconds


class Filing(pa.DataFrameModel):
    """A document that a company handed in: `latest_several_record_types_filing`."""

    number: str = pa.Field(str_matches=r"^C\d{4}-\d+$", description="What the register calls it")
    filed_on: Date = pa.Field(description="The day it came in")
    subject: str = pa.Field(description="What it is about")


class Person(pa.DataFrameModel):
    """Somebody who acts for a company: `latest_several_record_types_person`."""

    id: str = pa.Field(str_matches=r"^C\d{4}-P\d+$", description="What the register calls them")
    name: str = pa.Field(description="Their name")
    role: str = pa.Field(isin=["director", "secretary"], description="What they are")


def discover(page: Page) -> Iterator[Link]:
    """A page for each company."""
    for company in html.all(page, "li.company a.profile", at_least=1):
        yield Link(html.attribute(company, "href"), kind="company")


def extract(page: Page) -> Iterator[Record]:
    """Everything on a page, each row under the name of its type; one that cannot be read costs itself alone."""
    for row in html.records(html.one(page, "table#filings")):
        yield Record("filing", attempt(filing_of, row))
    for person in html.all(page, "li.person"):
        name, role = html.text(html.one(person, "b")), html.text(html.one(person, "i"))
        yield Record("person", {"id": html.attribute(person, "data-id"), "name": name, "role": role})


def filing_of(row: dict[str, str]) -> dict[str, object]:
    """One row of the table."""
    return {"number": row["Number"], "filed_on": normalize.date(row["Filed"]), "subject": row["Subject"]}


SOURCE = Source(
    name="several_record_types",
    start_urls=("http://register.localhost:8765/register/index.html",),
    kinds={"index": Kind(discover=discover), "company": Kind(extract=extract)},
    records={"filing": Filing, "person": Person},
    entity={"filing": "number", "person": "id"},
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
    expect=Expect(min_records=100),  # of all types together
)
