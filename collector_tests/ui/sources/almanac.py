"""A small shop whose pages show today and no other day: what was missed is gone."""

from __future__ import annotations

from collector_assets.contract import Budget, Daily, Source, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract

SOURCE = Source(
    name="almanac",
    description="A few books, as they are today.",
    start_urls=("http://almanac.localhost:8765/catalogue/page-1.html",),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
)
