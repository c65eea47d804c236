"""The demo site's shop: three listing pages in pass 1, sixty books in pass 2, a lane per category.

`shop_interleaved` is the second variant of the published result: it starts from the listing of each category and
fetches listings and books side by side.
"""

from __future__ import annotations

from collector_assets.contract import Budget, Daily, Expect, Link, Source, hours, replace, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract

SHOP = Source(
    name="shop",
    description="The demo shop: sixty books on three listing pages.",
    start_urls=("http://shop.localhost:8765/catalogue/page-1.html",),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
    capacity=500,
    max_requests=5_000,
    lanes={"travel": 3, "mystery": 2, "*": 1},
    expect=Expect(min_records=60, max_records=5_000, max_error_rate=0.05, max_reject_rate=0.02),
    freshness=hours(26),
)

CATEGORIES = (
    "travel_2", "mystery_3", "historical-fiction_4", "classics_6", "fiction_10", "science-fiction_16", "poetry_23",
)  # fmt: skip
LISTING = "http://shop.localhost:8765/catalogue/category/books/{}/index.html"
SHOP_INTERLEAVED = replace(
    SHOP,
    name="shop_interleaved",
    description="The demo shop by category: listings and books side by side, weighted by category.",
    start_urls=tuple(Link(LISTING.format(name), kind="listing", lane=name.split("_")[0]) for name in CATEGORIES),
    interleave=True,
)

SOURCES = (SHOP, SHOP_INTERLEAVED)
