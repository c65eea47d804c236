"""The figures of a benchmark: medians, ratios, and the page that says them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median

from collector_tests.bench.spent import Run

LEAST_FASTER = 3.0
"""Pages a second, times Scrapy's: what must hold. The aim is ten."""
MOST_MEMORY = 1.3
"""Peak memory at ten times the pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Runs that stood side by side."""

    ours: Run
    scrapy: Run
    bare: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that was measured."""

    pages: int
    page_bytes: int
    per_page: int
    in_flight: int
    trials: dict[int, Run]
    """Scrapy by its in-flight count; 0 is its default."""
    scrapy_in_flight: int
    pairs: Sequence[Pair]
    small: Run | None
    large: Run | None
    dagster: Run

    def ratio(self, of: Callable[[Run], float]) -> float:
        """Ours to Scrapy's: the median over the pairs."""
        return median(of(pair.ours) / of(pair.scrapy) for pair in self.pairs)

    def ours(self, of: Callable[[Run], float]) -> float:
        """Our median."""
        return median(of(pair.ours) for pair in self.pairs)

    def scrapy(self, of: Callable[[Run], float]) -> float:
        """Scrapy's median."""
        return median(of(pair.scrapy) for pair in self.pairs)

    def bare(self, of: Callable[[Run], float]) -> float:
        """The bare client's median."""
        return median(of(pair.bare) for pair in self.pairs)

    @property
    def faster(self) -> float:
        """How many times Scrapy's pages a second."""
        return self.ratio(_pages_per_s)

    @property
    def growth(self) -> float | None:
        """Peak memory at the larger number of pages, to that at the smaller, Postgres included."""
        return _peak(self.large) / _peak(self.small) if self.small and self.large else None

    @property
    def is_acceptable(self) -> bool:
        """Whether what must hold does."""
        return self.faster >= LEAST_FASTER and (self.growth is None or self.growth <= MOST_MEMORY)


def _pages_per_s(run: Run) -> float:
    return run.pages_per_s


def _peak(run: Run) -> float:
    return run.peak_mb + run.postgres_peak_mb


def _whole_pages_per_s(run: Run) -> float:
    return run.facts["records"] / run.whole_s


Row = tuple[str, Callable[[Run], float], str]
ROWS: tuple[Row, ...] = (
    ("pages/s", _pages_per_s, ",.0f"),
    ("pages/s, whole process (interpreter and imports included)", _whole_pages_per_s, ",.0f"),
    ("CPU ms a page", lambda run: run.cpu_ms, ".2f"),
    ("CPU ms a page, with Postgres", lambda run: run.all_cpu_ms, ".2f"),
    ("peak memory MB", lambda run: run.peak_mb, ".0f"),
    ("peak memory MB, with Postgres", _peak, ".0f"),
)


def summary(results: Results) -> str:
    """A few lines for the terminal."""
    lines = [f"{name:<60} ours {results.ours(of):>8{form}}   Scrapy {results.scrapy(of):>8{form}}   "
             f"ratio {results.ratio(of):6.2f}   bare {results.bare(of):>8{form}}" for name, of, form in ROWS]  # fmt: skip
    if results.growth is not None:
        lines.append(f"memory at ten times the pages: × {results.growth:.2f}")
    lines.append(f"an empty Dagster run: {_dagster_median(results, 'run_seconds'):.2f} s")
    return "\n".join(lines)


def page(results: Results) -> str:
    """docs/benchmarks.md."""
    return "\n".join([*_head(results), *_table(results), *_pairs(results), *_phases(results), *_memory(results),
                      *_dagster(results), *_method(results)]) + "\n"  # fmt: skip


def _head(results: Results) -> list[str]:
    verdict = "holds" if results.is_acceptable else "**does not hold**"
    return [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit.",
        "",
        f"The whole path, frontier to `latest`, durable, over {results.pages:,} product pages of about "
        f"{results.page_bytes // 1000} KB from a local site without a gap: **{results.faster:.1f} × Scrapy's pages a second**.",
        f"What must hold (at least {LEAST_FASTER:g} ×, and peak memory at ten times the pages at most {MOST_MEMORY:g} ×) "
        f"{verdict}; the aim is 10 ×.",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
        f"Scrapy {version('scrapy')}, aiohttp {version('aiohttp')}, Postgres 18 (embedded), load at the end "
        f"{os.getloadavg()[1]:.1f}.",
        "",
    ]


def _table(results: Results) -> list[str]:
    rows = [
        f"| {name} | {results.ours(of):{form}} | {results.scrapy(of):{form}} | {results.ratio(of):.2f} | {results.bare(of):{form}} |"
        for name, of, form in ROWS
    ]
    return [
        f"Medians of {len(results.pairs)} interleaved pairs; the ratio is the median of the pairs' ratios.",
        "",
        "| | ours | Scrapy | ours ÷ Scrapy | bare client |",
        "|---|--:|--:|--:|--:|",
        *rows,
        "",
    ]


def _pairs(results: Results) -> list[str]:
    rows = [
        f"| {number} | {pair.ours.pages_per_s:,.0f} | {pair.scrapy.pages_per_s:,.0f} | "
        f"{pair.ours.pages_per_s / pair.scrapy.pages_per_s:.2f} | {pair.bare.pages_per_s:,.0f} |"
        for number, pair in enumerate(results.pairs, start=1)
    ]
    return ["| pair | ours, pages/s | Scrapy | ours ÷ Scrapy | bare |", "|--:|--:|--:|--:|--:|", *rows, ""]


def _phases(results: Results) -> list[str]:
    names = list(results.pairs[0].ours.facts["phases"])
    seconds = {name: median(pair.ours.facts["phases"][name] for pair in results.pairs) for name in names}
    total = sum(seconds.values())
    rows = [f"| {name} | {seconds[name]:.2f} | {seconds[name] / total:.0%} |" for name in names]
    return ["## Where our time goes", "", "| phase | s | share |", "|---|--:|--:|", *rows, ""]


def _memory(results: Results) -> list[str]:
    if not (results.small and results.large):
        return []
    rows = [
        f"| {run.facts['records']:,} | {run.peak_mb:.0f} | {_peak(run):.0f} | {run.pages_per_s:,.0f} |"
        for run in (results.small, results.large)
    ]
    return [
        "## Memory does not grow with the pages",
        "",
        "| pages | peak MB | with Postgres | pages/s |",
        "|--:|--:|--:|--:|",
        *rows,
        "",
        f"Ten times the pages take {results.growth:.2f} × the memory.",
        "",
    ]


def _dagster_median(results: Results, name: str) -> float:
    """Of the runs but the first, which makes Dagster's tables and fills its caches."""
    found = results.dagster.facts[name]
    return median(found[1:] or found)


def _dagster(results: Results) -> list[str]:
    facts = results.dagster.facts
    return [
        "## What a Dagster run costs",
        "",
        "The same four use cases as a recorded run of a window in which there is nothing to do, in process, as "
        "`collector collect` runs it:",
        f"{_dagster_median(results, 'run_seconds'):.2f} s ({_dagster_median(results, 'run_cpu_s'):.2f} s CPU, Postgres "
        f"{_dagster_median(results, 'run_postgres_cpu_s'):.2f} s), whatever the number of pages; the first run of an "
        f"installation {facts['run_seconds'][0]:.2f} s. A process needs {results.dagster.whole_s - facts['seconds']:.1f} s "
        f"before that to import Dagster and {facts['build_s']:.1f} s to build the definitions.",
        "",
    ]


def _method(results: Results) -> list[str]:
    chosen = results.scrapy_in_flight or "its default (16, 8 per domain)"
    tried = ", ".join(f"{count or 'default'}: {run.pages_per_s:,.0f} pages/s" for count, run in results.trials.items())
    return [
        "## How it is measured",
        "",
        f"* The site is `collector_assets.demo` in its own process, every page rendered before; "
        f"{-(-results.pages // results.per_page)} listing pages of {results.per_page} books are the starts, each links to the "
        "next one and to its books. Every contender is a fresh process and follows listing → detail.",
        "* All contenders must come to the same ten fields of the same books: a digest over all values is compared.",
        f"* Ours: `discover`, `collect`, `process`, `publish` on a new embedded Postgres with `fsync` and "
        f"`synchronous_commit` on, a new archive, {results.in_flight} in flight, no gap. Counted from before the window is opened "
        "(so before the first claim), connections and process pool included, until `latest` is committed. Every answer is in a "
        "WARC file and a page row, every record validated.",
        f"* Scrapy: items to JSON Lines; AutoThrottle, log, cookies and telnet off, retries and all else by default; "
        f"{chosen} in flight, the better of both ({tried}). Counted from `spider_opened` until the engine has stopped.",
        f"* Bare client: aiohttp and lexbor in a loop, {results.in_flight} in flight, the same fields, nothing written. Where it is "
        "no faster than ours, the site is the limit.",
        "* CPU: user and system time of the process and its children (the pool of `process` too), by `getrusage`; that of "
        "Postgres by psutil over all its processes. Peak memory: resident size of the process tree every 50 ms; Postgres "
        "every 250 ms, memory that its processes share counted once.",
        "* One pair runs ours first, the next one Scrapy; nothing else of ours runs meanwhile.",
        "",
        "`python -m collector_tests.bench --pages 500 --pairs 1 --no-memory` is a quick look.",
    ]
