"""The usual way with Playwright: one page, one address after the other, a locator per field, a `route()` handler."""

from __future__ import annotations

import argparse
import sys
import time

from playwright.sync_api import Page, Route, sync_playwright

from collector_assets import normalize
from collector_assets.fetch import chromium
from collector_tests.bench.browser_pages import UNWANTED, urls_of
from collector_tests.bench.records import digest
from collector_tests.bench.spent import Spent, report

PATIENCE_MS = 30_000


def main() -> None:
    """Visit every address and report."""
    wish = argparse.ArgumentParser()
    wish.add_argument("--site", required=True)
    wish.add_argument("--form", required=True)
    wish.add_argument("--pages", type=int, required=True)
    given = wish.parse_args()
    started = time.perf_counter()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(chromium.find()),
            args=["--no-sandbox", f"--host-resolver-rules=MAP *.localhost {given.site}"],
        )
        page = browser.new_page()
        page.route("**/*", _wanted)
        rows = [_row(page, url) for url in urls_of(given.form, given.pages)]
        browser.close()
    spent = Spent(seconds=time.perf_counter() - started, cpu_s=0.0, postgres_cpu_s=0.0)
    records, fingerprint = digest(rows)
    report(spent, records=records, digest=fingerprint)
    sys.stdout.flush()


def _wanted(route: Route) -> None:
    if route.request.resource_type in UNWANTED:
        route.abort()
    else:
        route.continue_()


def _row(page: Page, url: str) -> dict[str, object]:
    page.goto(url, wait_until="domcontentloaded", timeout=PATIENCE_MS)
    page.wait_for_selector("article.product_page table", timeout=PATIENCE_MS)
    facts = page.locator("article.product_page table tr")
    found = {
        facts.nth(n).locator("th").inner_text(): facts.nth(n).locator("td").inner_text() for n in range(facts.count())
    }
    price = page.locator(".product_main .price_color").first.inner_text()
    about = page.locator("#product_description + p, #product_description ~ p").first
    return {
        "upc": found["UPC"],
        "title": page.locator("article.product_page h1").inner_text(),
        "price": normalize.price(price),
        "currency": normalize.currency(price),
        "rating": normalize.rating(page.locator(".product_main .star-rating").first.get_attribute("class") or ""),
        "in_stock": found["Availability"].startswith("In stock"),
        "available": normalize.integer(found["Availability"].partition("(")[2].partition(" ")[0]),
        "category": page.locator(".breadcrumb li:nth-child(3) a").inner_text(),
        "description": about.inner_text() if about.count() else None,
        "url": page.url,
    }


if __name__ == "__main__":
    main()
