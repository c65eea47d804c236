"""`python -m collector_tests.bench`: run every contender, print the table, write docs/benchmarks.md.

Exit code 1 when the whole path is less than three times as fast as Scrapy, or memory grows with the number of pages.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from collector_assets import embedded
from collector_assets.database import migrate
from collector_assets.demo import DemoSite
from collector_assets.embedded import EmbeddedPostgres
from collector_tests.bench import report
from collector_tests.bench.report import Pair, Results
from collector_tests.bench.spent import ROOT, Run, run

PAGE_BYTES = 10_000
PER_PAGE = 100
IN_FLIGHT = 32
"""Ours (`sources/bench.py`), the bare client's, and one of the two that Scrapy may choose from."""
SMALL, LARGE = 1_000, 10_000
"""Pages of the two runs whose memory is compared."""
DAGSTER_RUNS = 5

out = Console(highlight=False)


class Bench:
    """The contenders over one site."""

    def __init__(self, site: DemoSite, pages: int, folder: Path) -> None:
        self._folder = folder
        self._common = ["--site", site.address, "--pages", str(pages), "--per-page", str(PER_PAGE)]

    def ours(self, *more: str) -> Run:
        """On a database and an archive that are new."""
        with _postgres(self._folder) as (state, server):
            own = ["--dsn", server.dsn, "--archive", str(state / "archive"), "--postgres", str(server.pid)]
            return _told("ours", run("ours", [*self._common, *own, *more], postgres=server.pid))

    def scrapy(self, in_flight: int) -> Run:
        """With `in_flight` requests at once; 0 is Scrapy's default."""
        own = ["--out", str(self._folder / "scrapy.jsonl"), "--in-flight", str(in_flight)]
        return _told(f"Scrapy, {in_flight or 'default'} in flight", run("with_scrapy", [*self._common, *own]))

    def bare(self) -> Run:
        """The bare client."""
        return _told("bare client", run("bare", [*self._common, "--in-flight", str(IN_FLIGHT)]))


def main() -> int:
    """Everything, one after the other: nothing else of ours runs beside a contender and the site."""
    wish = _arguments()
    logging.disable(logging.WARNING)
    place = ROOT / ".collector"
    place.mkdir(exist_ok=True)
    # Not in /tmp, which may be memory: an fsync must reach the disk that a deployment would write to.
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=place))
    try:
        results = _measure(wish, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    out.print(report.summary(results))
    if wish.out:
        wish.out.write_text(report.page(results), "utf-8")
        out.print(f"written: {wish.out}")
    return 0 if results.is_acceptable else 1


def _measure(wish: argparse.Namespace, folder: Path) -> Results:
    with site_of(wish.pages) as site:
        bench = Bench(site, wish.pages, folder)
        trials = {in_flight: bench.scrapy(in_flight) for in_flight in (0, IN_FLIGHT)}
        best = min(trials, key=lambda in_flight: trials[in_flight].seconds)
        pairs = [_pair(bench, best, number) for number in range(wish.pairs)]
    small = large = None
    if not wish.no_memory:
        small, large = (_memory(pages, folder) for pages in (SMALL, LARGE))
    return Results(
        pages=wish.pages,
        page_bytes=PAGE_BYTES,
        per_page=PER_PAGE,
        in_flight=IN_FLIGHT,
        trials=trials,
        scrapy_in_flight=best,
        pairs=pairs,
        small=small,
        large=large,
        dagster=_dagster(folder),
    )


def _pair(bench: Bench, scrapy_in_flight: int, number: int) -> Pair:
    """One run of each, taking turns at being first; the bare client after them."""
    out.print(f"[bold]pair {number + 1}[/]")
    if number % 2:
        scrapy, ours = bench.scrapy(scrapy_in_flight), bench.ours()
    else:
        ours, scrapy = bench.ours(), bench.scrapy(scrapy_in_flight)
    pair = Pair(ours=ours, scrapy=scrapy, bare=bench.bare())
    if len({each.facts["digest"] for each in (pair.ours, pair.scrapy, pair.bare)}) != 1:
        raise RuntimeError("the contenders did not come to the same records")
    return pair


def _memory(pages: int, folder: Path) -> Run:
    out.print(f"[bold]memory at {pages:,} pages[/]")
    with site_of(pages) as site:
        return Bench(site, pages, folder).ours()


def _dagster(folder: Path) -> Run:
    out.print("[bold]empty windows as Dagster runs[/]")
    with _postgres(folder) as (state, server):
        environment = {
            "COLLECTOR_DSN": server.dsn,
            "COLLECTOR_DAGSTER_URL": server.dagster_dsn,
            "COLLECTOR_STATE": str(state),
            "COLLECTOR_SOURCES": str(Path(__file__).with_name("sources")),
            "DAGSTER_HOME": str(ROOT),
            "DAGSTER_DISABLE_TELEMETRY": "1",
        }
        arguments = ["--postgres", str(server.pid), "--runs", str(DAGSTER_RUNS)]
        return run("dagster_run", arguments, environment=environment, postgres=server.pid)


@contextmanager
def site_of(pages: int) -> Iterator[DemoSite]:
    """The shop with so many books, ready to answer."""
    switches = {"books": pages, "per_page": PER_PAGE, "detail_bytes": PAGE_BYTES}
    with DemoSite(keeps_log=False, switches=switches, warm=("shop.localhost",)) as site:
        yield site


@contextmanager
def _postgres(folder: Path) -> Iterator[tuple[Path, EmbeddedPostgres]]:
    """A new server with the settings of every embedded one: fsync and synchronous_commit are on."""
    state = Path(tempfile.mkdtemp(dir=folder))
    try:
        with embedded.running(state) as server:
            migrate(server.dsn)
            yield state, server
    finally:
        embedded.stop(state)
        shutil.rmtree(state, ignore_errors=True)
        os.sync()  # what this run left to be written is not the next one's burden


def _told(name: str, done: Run) -> Run:
    out.print(
        f"  {name:<28} {done.pages_per_s:7,.0f} pages/s  {done.all_cpu_ms:6.3f} ms CPU a page  "
        f"{done.peak_mb + done.postgres_peak_mb:5.0f} MB"
    )
    return done


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m collector_tests.bench", description=__doc__)
    parser.add_argument("--pages", type=int, default=3_000, help="product pages (%(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="interleaved pairs of ours and Scrapy (%(default)s)")
    parser.add_argument("--no-memory", action="store_true", help="leave out memory at 1,000 and 10,000 pages")
    parser.add_argument("--out", type=Path, help="the page to write; docs/benchmarks.md for a full run, else none")
    wish = parser.parse_args()
    usual = (parser.get_default("pages"), parser.get_default("pairs"))
    if wish.out is None and (wish.pages, wish.pairs) == usual and not wish.no_memory:
        wish.out = ROOT / "docs" / "benchmarks.md"
    return wish


if __name__ == "__main__":
    sys.exit(main())
