"""Each folder <source>/<case>/ is one stored page and what must come of it; to add a case is to add a folder.

page.html or body.json   the bytes as received
page.json                url, kind and whatever else is known of it
links.json               what discover yields: [url, kind, lane]
records.json             the rows that pass, as they are stored
rejects.json             [column, check] of each reason for which rows do not pass
error.json               {"raises": …, "says": …}: the error of discover or extract
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from collector_assets import registry
from collector_assets.contract import Record, Source
from collector_assets.page import Page
from collector_assets.validation import Candidate, Judged, Origin, judge
from collector_tests.fixtures.pages import FETCHED_AT, page, page_of_case

HERE = Path(__file__).parent
CASES = sorted(path.parent.relative_to(HERE) for path in HERE.glob("*/*/page.json"))
SOURCES = registry.load(entry_points=False)
REAL_PAGES = Path("/work/shared/pages")
"""Of books.toscrape.com, where they are at hand; they are not ours to publish."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_page_yields_what_its_case_says(case: Path) -> None:
    source, stored = SOURCES.get(case.parts[0]), page_of_case(HERE / case)
    expected = {path.stem: json.loads(path.read_text("utf-8")) for path in (HERE / case).glob("[!pb]*.json")}
    assert expected
    for outcome, wanted in expected.items():
        match outcome:
            case "links":
                assert links(source, stored) == wanted
            case "records":
                assert [json.loads(row.data) for row in judged(source, stored).good] == wanted
            case "rejects":
                reasons = [reason for row in judged(source, stored).rejects for reason in row.reasons]
                assert [[reason.column, reason.check] for reason in reasons] == wanted
            case "error":
                with pytest.raises(Exception, match=re.escape(wanted["says"])) as caught:
                    links(source, stored) if source.kind_map[stored.kind].discover else judged(source, stored)
                assert type(caught.value).__name__ == wanted["raises"]
            case _:
                pytest.fail(f"{case}: {outcome}.json is no outcome")


@pytest.mark.parametrize("source", [each.source for each in SOURCES.loaded], ids=lambda source: source.name)
def test_extraction_is_a_function_of_the_page(source: Source) -> None:
    """Rule 14: the same page gives the same rows, however often it is read."""
    for case in (case for case in CASES if case.parts[0] == source.name and (HERE / case / "records.json").exists()):
        once, again = (judged(source, page_of_case(HERE / case)) for _ in range(2))
        assert once == again


@pytest.mark.skipif(not REAL_PAGES.is_dir(), reason="the real pages are not on this machine")
def test_real_listing_gives_twenty_books_with_absolute_urls() -> None:
    listing = page((REAL_PAGES / "books_listing.html").read_bytes(), url="https://books.toscrape.com/", kind="listing")
    found = links(SOURCES.get("books"), listing)
    books = [url for url, kind, _ in found if kind == "detail"]
    assert len(set(books)) == 20
    assert all(re.match(r"https://books\.toscrape\.com/catalogue/[a-z0-9-]+_\d+/index\.html\Z", url) for url in books)
    assert [url for url, kind, _ in found if kind == "listing"] == ["https://books.toscrape.com/catalogue/page-2.html"]


@pytest.mark.skipif(not REAL_PAGES.is_dir(), reason="the real pages are not on this machine")
def test_real_detail_page_gives_every_field() -> None:
    url = "https://books.toscrape.com/catalogue/a-light-in-the-attic_1000/index.html"
    found = judged(SOURCES.get("books"), page((REAL_PAGES / "books_detail_1.html").read_bytes(), url=url))
    assert not found.rejects
    (row,) = (json.loads(row.data) for row in found.good)
    assert row.pop("description").startswith("It's hard to imagine a world without A Light in the Attic.")
    assert row == {
        "upc": "a897fe39b1053632",
        "title": "A Light in the Attic",
        "price": 51.77,
        "currency": "GBP",
        "rating": 3,
        "in_stock": True,
        "available": 22,
        "category": "Poetry",
        "url": url,
    }


def links(source: Source, stored: Page) -> list[list[Any]]:
    """What discover yields."""
    discover = source.kind_map[stored.kind].discover
    assert discover is not None
    return [[link.url, link.kind, link.lane] for link in discover(stored)]


def judged(source: Source, stored: Page) -> Judged:
    """What extract yields, judged by the schema; for sources with one record type."""
    extract = source.kind_map[stored.kind].extract
    assert extract is not None
    (record_type,) = source.schemas
    origin = Origin(page_id=1, request_id=1, collected_at=FETCHED_AT)
    rows = (row.values if isinstance(row, Record) else row for row in extract(stored))
    return judge(source, record_type, [Candidate(origin=origin, ordinal=n, values=row) for n, row in enumerate(rows)])
