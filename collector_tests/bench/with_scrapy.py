"""Scrapy over the same pages, to JSON Lines. Counts from `spider_opened` until the engine has stopped, file closed."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Self

import scrapy
from scrapy import signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import Response

from collector_tests.bench.records import digest, listing_paths
from collector_tests.bench.spent import Spent, Stopwatch, report

STARS = {"One": 1, "Two": 2, "Three": 3, "Four": 4, "Five": 5}
SETTINGS: dict[str, Any] = {
    "LOG_ENABLED": False,
    "AUTOTHROTTLE_ENABLED": False,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}


class BookSpider(scrapy.Spider):
    """Listing pages to books, as Scrapy's own tutorial does it."""

    name = "books"
    starts: tuple[str, ...] = ()
    watch: Stopwatch
    spent: Spent | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider._begin, signals.spider_opened)
        crawler.signals.connect(spider._end, signals.engine_stopped)
        return spider

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Every listing page; known to the duplicate filter, so that the links between them cost nothing."""
        for url in self.starts:
            yield scrapy.Request(url)

    def parse(self, response: Response, **_: Any) -> Iterator[scrapy.Request]:
        """A listing page."""
        for href in response.css("article.product_pod h3 a::attr(href)").getall():
            yield response.follow(href, self.parse_book)
        if following := response.css("ul.pager li.next a::attr(href)").get():
            yield response.follow(following)

    def parse_book(self, response: Response) -> Iterator[dict[str, Any]]:
        """A book's page."""
        product = response.css("article.product_page")
        price = product.css(".product_main .price_color::text").get("")
        facts = {row.css("th::text").get(): row.css("td::text").get() for row in product.css("table tr")}
        stock = re.search(r"\((\d+) available\)", facts["Availability"] or "")
        stars = product.css(".product_main .star-rating").attrib["class"].split()[-1]
        about = product.css("#product_description + p::text").get()
        yield {
            "upc": facts["UPC"],
            "title": product.css("h1::text").get(),
            "price": price.lstrip("£"),
            "currency": "GBP" if price.startswith("£") else None,
            "rating": STARS[stars],
            "in_stock": stock is not None,
            "available": int(stock[1]) if stock else 0,
            "category": response.css(".breadcrumb li:nth-child(3) a::text").get(),
            "description": about and " ".join(about.split()),
            "url": response.url,
        }

    def _begin(self) -> None:
        type(self).watch = Stopwatch()

    def _end(self) -> None:
        type(self).spent = self.watch.stop()


def main() -> None:
    """Crawl once and report."""
    wish = _arguments()
    settings = SETTINGS | {"FEEDS": {str(wish.out): {"format": "jsonlines", "overwrite": True}}}
    if wish.in_flight:
        settings |= {"CONCURRENT_REQUESTS": wish.in_flight, "CONCURRENT_REQUESTS_PER_DOMAIN": wish.in_flight}
    if wish.uvloop:
        settings |= {"ASYNCIO_EVENT_LOOP": "uvloop.Loop"}
    # By address: Scrapy resolves names through the system, which need not know *.localhost. Any host is the shop.
    BookSpider.starts = tuple(f"http://{wish.site}{path}" for path in listing_paths(wish.pages, wish.per_page))
    process = CrawlerProcess(settings)
    process.crawl(BookSpider)
    process.start()
    with wish.out.open() as lines:
        records, fingerprint = digest(json.loads(line) for line in lines)
    assert BookSpider.spent is not None
    report(BookSpider.spent, records=records, digest=fingerprint)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--site", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--per-page", type=int, required=True)
    parser.add_argument("--in-flight", type=int, default=0, help="0: Scrapy's defaults")
    parser.add_argument("--uvloop", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
