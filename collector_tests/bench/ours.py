"""The whole path: discover, collect, process, publish. Counts from the first claim until `latest` is there."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from collector_assets import collect, discover, process, publish, registry
from collector_assets.archive import LocalArchive
from collector_assets.contract import replace
from collector_assets.database import Database
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_assets.status import window_status
from collector_assets.window import Window
from collector_tests.bench.records import digest, listing_paths
from collector_tests.bench.spent import Stopwatch, report

SOURCES = Path(__file__).with_name("sources")
T = TypeVar("T")


def main() -> None:
    """Collect one window and report."""
    wish = _arguments()
    loaded = registry.load([SOURCES], bundled=False, entry_points=False).sources["bench"]
    starts = tuple(f"http://shop.localhost:8765{path}" for path in listing_paths(wish.pages, wish.per_page))
    source = replace(loaded.source, start_urls=starts)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    window = Window(key=f"{today:%Y-%m-%d}", start=today, end=today + timedelta(days=1))
    archive = LocalArchive(wish.archive)
    phases: dict[str, dict[str, float]] = {}

    def timed(name: str, step: Callable[[], T]) -> T:
        lap = Stopwatch(wish.postgres)
        result = step()
        phases[name] = asdict(lap.stop())
        return result

    def fetcher() -> HttpFetcher:
        return HttpFetcher(user_agent="bench/1", egress=DemoSiteOnly(wish.site), connections=source.in_flight)

    with Database(wish.dsn) as database:
        timed("open", lambda: discover.open_window(source, window, database))  # before there is anything to claim
        watch = Stopwatch(wish.postgres)
        places = {"source": source, "database": database, "archive": archive}
        found = timed("discover", lambda: discover.run(**places, window=window, fetcher=fetcher))
        row = found.opened.row
        ahead = process.Ahead(source=source, window=row, archive=archive, locator=loaded.locator)
        timed(
            "collect",
            lambda: collect.run(**places, window=row, kinds=None, fetcher=fetcher, progress=ahead.consider),
        )
        read = timed("process", lambda: process.run(**places, window=row, locator=loaded.locator, helpers=ahead.take()))
        published = timed("publish", lambda: publish.run(source=source, window=row, database=database))
        spent = watch.stop()
        counts = window_status(database, source.name, window.key).counts
        with database.transaction() as connection:
            rows = connection.execute("SELECT data FROM latest WHERE source = %s", [source.name]).fetchall()
    records, fingerprint = digest(row[0] for row in rows)  # pyright: ignore[reportArgumentType]
    assert counts.done == counts.planned == wish.pages + len(starts), counts.outcome_table()
    assert read.verdict.passed, read.verdict
    assert published.total == records, published
    report(spent, records=records, digest=fingerprint, phases=phases)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--site", required=True)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--postgres", type=int, required=True, help="pid of the server")
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--per-page", type=int, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
