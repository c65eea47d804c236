"""Ours in a browser, the whole path: opened, collected, archived, read, published."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collector_assets import collect, discover, process, publish
from collector_assets.archive import LocalArchive
from collector_assets.contract import Browser, Budget, Daily, Expect, Kind, Link, Source, View, seconds
from collector_assets.database import Database
from collector_assets.fetch import Fetcher
from collector_assets.sources.templates.book_shop import Book, extract
from collector_assets.window import Window
from collector_tests.bench.browser_pages import UNWANTED, urls_of
from collector_tests.bench.records import digest
from collector_tests.bench.spent import Spent, report
from collector_tests.fixtures.browser import fetcher_of

TABS = 3


def source_of(form: str, pages: int) -> Source:
    """Every book is a start; no gap."""
    return Source(
        name="bench_browser",
        start_urls=tuple(Link(url, kind="detail") for url in urls_of(form, pages)),
        kinds={"detail": Kind(extract=extract, fetcher="browser", view=View(wait="article.product_page table"))},
        schema=Book, entity="upc", extractor_version="1", window=Daily(start="2026-01-01"),
        budget=Budget(gap=seconds(0), slots=TABS), in_flight=TABS, capacity=100_000, expect=Expect(min_records=pages),
        browser=Browser(
            pages=TABS, subrequests="cap 50", block=("image", "media", "font", "stylesheet"), retire_after_pages=1_000
        ),
    )  # fmt: skip


def main() -> None:
    """Collect one window and report."""
    wish = argparse.ArgumentParser()
    for name in ("--site", "--form", "--dsn"):
        wish.add_argument(name, required=True)
    wish.add_argument("--archive", type=Path, required=True)
    wish.add_argument("--pages", type=int, required=True)
    given = wish.parse_args()
    source = source_of(given.form, given.pages)
    assert set(source.browser.block) == UNWANTED
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    window = Window(key=f"{today:%Y-%m-%d}", start=today, end=today + timedelta(days=1))

    def fetcher() -> Fetcher:
        return fetcher_of(source, given.site)

    started = time.perf_counter()
    with Database(given.dsn) as database:
        places = {"source": source, "database": database, "archive": LocalArchive(given.archive)}
        row = discover.run(**places, window=window, fetcher=fetcher).opened.row
        collect.run(**places, window=row, kinds=None, fetcher=fetcher)
        read = process.run(**places, window=row)
        publish.run(source=source, window=row, database=database)
        spent = Spent(seconds=time.perf_counter() - started, cpu_s=0.0, postgres_cpu_s=0.0)
        with database.transaction() as connection:
            rows = connection.execute("SELECT data FROM latest WHERE source = %s", [source.name]).fetchall()
    records, fingerprint = digest(row[0] for row in rows)  # pyright: ignore[reportArgumentType]
    assert read.verdict.passed, read.verdict
    report(spent, records=records, digest=fingerprint)


if __name__ == "__main__":
    main()
