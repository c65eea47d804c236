"""Two sources on two hosts of one domain, slow enough to be watched: they share one request budget."""

from __future__ import annotations

from collector_assets.contract import Budget, Daily, Source, replace, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract

ELDER = Source(
    name="elder",
    description="Ten books of a shop in no hurry.",
    start_urls=("http://a.twin.localhost:8765/catalogue/page-1.html",),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(1), slots=1),
)
YOUNGER = replace(
    ELDER,
    name="younger",
    description="Ten more books of the same shop, from its other host.",
    start_urls=("http://b.twin.localhost:8765/catalogue/page-1.html",),
)

SOURCES = (ELDER, YOUNGER)
