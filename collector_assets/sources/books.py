"""books.toscrape.com: a shop that its makers put up to be collected; the whole catalogue, every day."""

from __future__ import annotations

from collector_assets.contract import Budget, Daily, Expect, Source, hours, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract

SOURCE = Source(
    name="books",
    description="The catalogue of books.toscrape.com: price, rating and stock of every book.",
    start_urls=("https://books.toscrape.com/catalogue/page-1.html",),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01", timezone="Europe/London"),
    budget=Budget(gap=seconds(2), slots=1),
    capacity=500,
    max_requests=5_000,
    expect=Expect(min_records=900, max_records=5_000, max_error_rate=0.05, max_reject_rate=0.02),
    freshness=hours(26),
    licence_note="A sandbox for scraping: prices and ratings are made up (said on every page of the site).",
)
