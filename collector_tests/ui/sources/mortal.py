"""A source whose runs get killed. Its starts name the window, so an old window may go on by itself."""

from __future__ import annotations

from collector_assets.contract import Budget, Daily, Source, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract

SOURCE = Source(
    name="mortal",
    description="A shop whose collector does not die in bed.",
    start_urls=("http://mortal.localhost:8765/catalogue/page-1.html?on={window.key}",),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
    lease=seconds(10),
    # A killed process's slots of the budget come back when its requests must have ended: 3 s + total_timeout.
    connect_timeout=seconds(5),
    read_timeout=seconds(5),
    total_timeout=seconds(5),
)
