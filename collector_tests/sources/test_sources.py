"""Each folder <source>/<case>/ is one stored page and what must come of it; to add a case is to add a folder.

page.html or body.json   the bytes as received
page.json                url, kind and whatever else is known of it
links.json               what discover yields: [url, kind, lane]
records.json             the rows that pass, as they are stored
rejects.json             [column, check] of each reason for which rows do not pass
error.json               {"raises": …, "says": …}: the error of discover or extract, and a part of what it says

`python -m collector_tests.sources.reading <source>/<case>` prints what comes of a page.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from collector_assets import registry
from collector_tests.fixtures.pages import page, page_of_case
from collector_tests.sources.reading import HERE, outcomes

CASES = sorted(path.parent.relative_to(HERE) for path in HERE.glob("*/*/page.json"))
SOURCES = registry.load(entry_points=False)
REAL_PAGES = Path("/work/shared/pages")
"""Of books.toscrape.com, where they are at hand; they are not ours to publish."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_page_yields_what_its_case_says(case: Path) -> None:
    # Mutation: in lab.extract take datetime.now(UTC) for page.fetched_at; whoever looks at a clock fails here.
    expected = {path.stem: json.loads(path.read_text("utf-8")) for path in (HERE / case).glob("[!pb]*.json")}
    found = outcomes(SOURCES.get(case.parts[0]), page_of_case(HERE / case))
    if "error" in expected:
        assert expected["error"]["says"] in found["error"]["says"]
        found["error"]["says"] = expected["error"]["says"]
    assert {name: found.get(name) for name in expected} == expected
    assert expected


@pytest.mark.skipif(not REAL_PAGES.is_dir(), reason="the real pages are not on this machine")
def test_real_listing_gives_twenty_books_with_absolute_urls() -> None:
    listing = page((REAL_PAGES / "books_listing.html").read_bytes(), url="https://books.toscrape.com/", kind="listing")
    found = outcomes(SOURCES.get("books"), listing)["links"]
    books = [url for url, kind, _ in found if kind == "detail"]
    assert len(set(books)) == 20
    assert all(re.match(r"https://books\.toscrape\.com/catalogue/[a-z0-9-]+_\d+/index\.html\Z", url) for url in books)
    assert [url for url, kind, _ in found if kind == "listing"] == ["https://books.toscrape.com/catalogue/page-2.html"]


@pytest.mark.skipif(not REAL_PAGES.is_dir(), reason="the real pages are not on this machine")
def test_real_detail_page_gives_every_field() -> None:
    url = "https://books.toscrape.com/catalogue/a-light-in-the-attic_1000/index.html"
    found = outcomes(SOURCES.get("books"), page((REAL_PAGES / "books_detail_1.html").read_bytes(), url=url))
    assert found["rejects"] == []
    (row,) = found["records"]
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
