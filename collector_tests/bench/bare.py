"""aiohttp + lexbor in a loop, nothing durable: how fast the site and the fields can be had at all."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import aiohttp
import uvloop
from selectolax.lexbor import LexborHTMLParser, LexborNode

from collector_tests.bench.records import digest, listing_paths
from collector_tests.bench.spent import Stopwatch, report

STARS = {"One": 1, "Two": 2, "Three": 3, "Four": 4, "Five": 5}


def book(html: bytes, url: str) -> dict[str, Any]:
    """The fields of a book's page."""
    tree = LexborHTMLParser(html)
    price = _text(tree, ".product_main .price_color")
    facts = {_text(row, "th"): _text(row, "td") for row in tree.css("article.product_page table tr")}
    stock = re.search(r"\((\d+) available\)", facts["Availability"])
    stars = tree.css(".product_main .star-rating")[0].attributes["class"] or ""
    about = tree.css_first("#product_description + p")
    return {
        "upc": facts["UPC"],
        "title": _text(tree, "h1"),
        "price": price.lstrip("£"),
        "currency": "GBP" if price.startswith("£") else None,
        "rating": STARS[stars.split()[-1]],
        "in_stock": stock is not None,
        "available": int(stock[1]) if stock else 0,
        "category": _text(tree, ".breadcrumb li:nth-child(3) a"),
        "description": " ".join(about.text().split()) if about else None,
        "url": url,
    }


def _text(of: LexborHTMLParser | LexborNode, css: str) -> str:
    return of.css(css)[0].text(strip=True)


def links(html: bytes, url: str) -> Iterator[str]:
    """The books of a listing page."""
    for node in LexborHTMLParser(html).css("article.product_pod h3 a"):
        yield urljoin(url, node.attributes["href"])


async def crawl(starts: list[str], in_flight: int) -> list[dict[str, Any]]:
    """Listing pages, then books, `in_flight` at once."""
    found: list[dict[str, Any]] = []
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def body(url: str) -> bytes:
            async with session.get(url) as answer:
                assert answer.status == 200
                return await answer.read()

        async def work(waiting: Iterator[str]) -> None:
            for url in waiting:
                found.append(book(await body(url), url))  # noqa: PERF401  as each one comes

        listings = await asyncio.gather(*(body(url) for url in starts))
        found_on = zip(listings, starts, strict=True)
        waiting = iter(dict.fromkeys(link for html, url in found_on for link in links(html, url)))
        await asyncio.gather(*(work(waiting) for _ in range(in_flight)))
    return found


def main() -> None:
    """Crawl once and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--site", required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--per-page", type=int, required=True)
    parser.add_argument("--in-flight", type=int, required=True)
    wish = parser.parse_args()
    starts = [f"http://{wish.site}{path}" for path in listing_paths(wish.pages, wish.per_page)]
    watch = Stopwatch()
    found = uvloop.run(crawl(starts, wish.in_flight))
    spent = watch.stop()
    records, fingerprint = digest(found)
    report(spent, records=records, digest=fingerprint)


if __name__ == "__main__":
    main()
