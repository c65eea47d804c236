"""Each folder <source>/<case>/ is one stored page and what must come of it (`collector_assets.cases`).

`collector check <source> --cases` runs them too and shows what differs; `--accept` writes down what comes of each page.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from collector_assets import cases, registry
from collector_assets.cases import outcomes, page

HERE = Path(__file__).parent
CASES = [case.relative_to(HERE) for folder in sorted(HERE.iterdir()) for case in cases.find(folder)]
SOURCES = registry.load(entry_points=False)
REAL_PAGES = Path("/work/shared/pages")
"""Of books.toscrape.com, where they are at hand; they are not ours to publish."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_page_yields_what_its_case_says(case: Path) -> None:
    # Mutation: in lab.extract take datetime.now(UTC) for page.fetched_at; whoever looks at a clock fails here.
    assert cases.differences(SOURCES.get(case.parts[0]), HERE / case) == {}


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
