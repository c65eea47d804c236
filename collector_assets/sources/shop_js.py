"""The demo shop's twin that a script builds: the same sixty books, seen only by a browser.

Listing and book wait for what the script makes of the JSON that it asks for; that JSON is kept beside the DOM.
"""

from __future__ import annotations

from collector_assets.contract import Browser, Budget, Daily, Expect, Kind, Source, View, hours, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract

SOURCE = Source(
    name="shop_js",
    description="The demo shop as a script builds it: sixty books on three listing pages, in a browser.",
    start_urls=("http://shop-js.localhost:8765/app/page-1.html",),
    kinds={
        "listing": Kind(discover=discover, fetcher="browser", view=View(wait="article.product_pod")),
        "detail": Kind(
            extract=extract,
            fetcher="browser",
            view=View(wait="article.product_page table", capture=("*/app/api/*",)),
        ),
    },
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
    browser=Browser(pages=2, block=("image", "media", "font", "stylesheet")),
    capacity=500,
    max_requests=5_000,
    lanes={"travel": 3, "mystery": 2, "*": 1},
    expect=Expect(min_records=60, max_records=5_000, max_error_rate=0.05, max_reject_rate=0.02),
    freshness=hours(26),
)
