"""Two sources on two hosts of one domain: they share one request budget. Their starts name the window."""

from __future__ import annotations

from collector_assets.contract import Budget, Daily, Source, replace, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract

GAP_S = 0.5

ELDER = Source(
    name="elder",
    description="Ten books of a shop in no hurry.",
    start_urls=("http://a.twin.localhost:8765/catalogue/page-1.html?on={window.key}",),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(GAP_S), slots=1),
)
YOUNGER = replace(
    ELDER,
    name="younger",
    description="Ten more books of the same shop, from its other host.",
    start_urls=("http://b.twin.localhost:8765/catalogue/page-1.html?on={window.key}",),
)

SOURCES = (ELDER, YOUNGER)
