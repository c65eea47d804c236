"""The figures of a benchmark: medians, ratios, and the page that says them (`page.md`)."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

from rich.table import Table

from collector_tests.bench.spent import Run

LEAST_FASTER = 3.0
"""Pages a second, times Scrapy's: what must hold. The aim is ten."""
MOST_MEMORY = 1.3
"""Peak memory at ten times the pages."""
PAGE = Path(__file__).with_name("page.md")


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

    def of_ours(self, measure: Callable[[Run], float]) -> float:
        """Our median."""
        return median(measure(pair.ours) for pair in self.pairs)

    def of_scrapy(self, measure: Callable[[Run], float]) -> float:
        """Scrapy's median."""
        return median(measure(pair.scrapy) for pair in self.pairs)

    def of_bare(self, measure: Callable[[Run], float]) -> float:
        """The bare client's median."""
        return median(measure(pair.bare) for pair in self.pairs)

    def ratio(self, measure: Callable[[Run], float]) -> float:
        """Ours to Scrapy's: the median over the pairs."""
        return median(measure(pair.ours) / measure(pair.scrapy) for pair in self.pairs)

    @property
    def faster(self) -> float:
        """How many times Scrapy's pages a second."""
        return self.ratio(_pages_per_s)

    @property
    def growth(self) -> float | None:
        """Peak memory at the larger number of pages to that at the smaller; without Postgres and its fixed cache."""
        return self.large.peak_mb / self.small.peak_mb if self.small and self.large else None

    @property
    def is_acceptable(self) -> bool:
        """Whether what must hold does."""
        return self.faster >= LEAST_FASTER and (self.growth is None or self.growth <= MOST_MEMORY)


def _pages_per_s(run: Run) -> float:
    return run.pages_per_s


def _peak(run: Run) -> float:
    return run.peak_mb + run.postgres_peak_mb


MEASURES: tuple[tuple[str, Callable[[Run], float], str], ...] = (
    ("pages/s", _pages_per_s, ",.0f"),
    ("pages/s of the whole process, imports included", lambda run: run.facts["records"] / run.whole_s, ",.0f"),
    ("CPU ms a page", lambda run: run.cpu_ms, ".2f"),
    ("CPU ms a page, with Postgres", lambda run: run.all_cpu_ms, ".2f"),
    ("peak memory, MB", lambda run: run.peak_mb, ".0f"),
    ("peak memory, MB, with Postgres", _peak, ".0f"),
)
HEADINGS = ("", "ours", "Scrapy", "ours ÷ Scrapy", "bare client")


def summary(results: Results) -> Table:
    """The figures for the terminal."""
    table = Table(*HEADINGS, title=f"{results.pages:,} pages, {len(results.pairs)} pairs")
    for row in _rows(results):
        table.add_row(*row)
    return table


def page(results: Results) -> str:
    """docs/benchmarks.md."""
    facts = results.dagster.facts
    return PAGE.read_text("utf-8").format(
        pages=f"{results.pages:,}",
        page_kb=results.page_bytes // 1000,
        faster=f"{results.faster:.1f}",
        least_faster=f"{LEAST_FASTER:g}",
        most_memory=f"{MOST_MEMORY:g}",
        verdict="holds" if results.is_acceptable else "**does not hold**",
        bare_faster=f"{results.of_bare(_pages_per_s) / results.of_scrapy(_pages_per_s):.1f}",
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        cores=len(os.sched_getaffinity(0)),
        machine=platform.machine(),
        python=platform.python_version(),
        scrapy=version("scrapy"),
        aiohttp=version("aiohttp"),
        load=f"{os.getloadavg()[1]:.1f}",
        pairs=len(results.pairs),
        table=_markdown(HEADINGS, _rows(results)),
        pairs_table=_markdown(("pair: pages/s", *HEADINGS[1:]), _pairs(results)),
        phases_table=_markdown(("phase", "s", "CPU s", "CPU s of Postgres"), _phases(results)),
        memory_table=_markdown(("pages", "peak MB", "with Postgres", "pages/s"), _memory(results)),
        growth="(not measured)" if results.growth is None else f"{results.growth:.2f}",
        run_s=f"{_dagster(results, 'run_seconds'):.2f}",
        run_cpu_s=f"{_dagster(results, 'run_cpu_s'):.2f}",
        run_postgres_s=f"{_dagster(results, 'run_postgres_cpu_s'):.2f}",
        first_run_s=f"{facts['run_seconds'][0]:.2f}",
        import_s=f"{results.dagster.whole_s - facts['seconds']:.1f}",
        build_s=f"{facts['build_s']:.1f}",
        listings=-(-results.pages // results.per_page),
        per_page=results.per_page,
        in_flight=results.in_flight,
        scrapy_in_flight=_in_flight(results.scrapy_in_flight),
        trials=", ".join(
            f"{_in_flight(count)}: {run.pages_per_s:,.0f} pages/s" for count, run in results.trials.items()
        ),
    )


def _in_flight(count: int) -> str:
    return str(count) if count else "its default, 16 and 8 per domain"


def _rows(results: Results) -> list[tuple[str, ...]]:
    found = []
    for name, measure, form in MEASURES:
        sides = [f"{of(measure):{form}}" for of in (results.of_ours, results.of_scrapy, results.of_bare)]
        found.append((name, *sides[:2], f"{results.ratio(measure):.2f}", sides[2]))
    return found


def _pairs(results: Results) -> list[tuple[str, ...]]:
    found = []
    for number, pair in enumerate(results.pairs, start=1):
        speeds = [run.pages_per_s for run in (pair.ours, pair.scrapy, pair.bare)]
        ours, scrapy, bare = (f"{speed:,.0f}" for speed in speeds)
        found.append((str(number), ours, scrapy, f"{speeds[0] / speeds[1]:.2f}", bare))
    return found


def _phases(results: Results) -> list[tuple[str, ...]]:
    phases = [pair.ours.facts["phases"] for pair in results.pairs]
    parts = ("seconds", "cpu_s", "postgres_cpu_s")
    return [(name, *(f"{median(each[name][part] for each in phases):.2f}" for part in parts)) for name in phases[0]]


def _memory(results: Results) -> list[tuple[str, ...]]:
    runs = [run for run in (results.small, results.large) if run]
    return [
        (f"{run.facts['records']:,}", f"{run.peak_mb:.0f}", f"{_peak(run):.0f}", f"{run.pages_per_s:,.0f}")
        for run in runs
    ]


def _dagster(results: Results, name: str) -> float:
    """The median of the runs but the first, which fills Dagster's caches."""
    found = results.dagster.facts[name]
    return median(found[1:] or found)


def _markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---", *("--:" for _ in headings[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))
