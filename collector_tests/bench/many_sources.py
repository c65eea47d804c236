"""`make bench-sources`: many sources in one code location; writes docs/many-sources.md.

Definitions, a click, the pages of the UI and the daemon, each against what must hold. Exit code 1 where it does not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich.console import Console

from collector_assets import embedded, stack
from collector_assets.database import migrate
from collector_assets.demo import DemoSite
from collector_tests.bench.spent import ROOT
from collector_tests.fixtures.dagster_dev import FINISHED, Dev
from collector_tests.fixtures.receivers import Hook
from collector_tests.ui import walk as walks
from collector_tests.ui.walk import Walk

SOURCES = 200
YEARS = 3
STAGES = ("frontier", "raw_pages", "records", "latest")
RUNS = 5
LOOKS = 3
KEYS_AT_ONCE = 100
MINUTES = 4
"""That the daemon's ticks are watched."""

TEMPLATE = Path(__file__).with_name("many_sources.md")
SOURCE = '''"""Shop number {n}."""

from __future__ import annotations

from collector_assets.contract import Budget, {schedule}, Expect, Source, hours, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract

SOURCE = Source(
    name="{name}",
    description="Shop number {n} of the demo site.",
    start_urls=("http://{host}.localhost:8765/catalogue/page-1.html",),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window={window},
    schedule="{switch}",
    budget=Budget(gap=seconds(0.01), slots=4),
    expect=Expect(min_records=60),
    freshness=hours(26),
    owners=("team:data",),
)
'''

out = Console(highlight=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One thing that was measured, and the most that it may be."""

    name: str
    value: float
    most: float | None = None
    unit: str = "s"
    detail: str = ""

    @property
    def holds(self) -> bool:
        return self.most is None or self.value <= self.most


def main() -> int:
    """Measure, print, write."""
    wish = _arguments()
    place = ROOT / ".collector"
    place.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="many-", dir=place))
    try:
        figures = list(_measured(wish, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if wish.out:
        wish.out.write_text(_page(figures, wish.sources), "utf-8")
        out.print(f"written: {wish.out}")
    return 0 if all(figure.holds for figure in figures) else 1


def _measured(wish: argparse.Namespace, folder: Path) -> Iterator[Figure]:
    daily = _files(folder / "daily", wish.sources, f'Daily(start="{_first_day()}")', "Daily", "off")
    for figure in _building(daily):
        yield _told(figure)
    with _postgres(folder) as server, DemoSite(port=0, keeps_log=False) as site:
        with _dagster(folder / "ui", daily, server, site) as (dev, loaded_s):
            yield _told(Figure(name="`collector dev` until the sources are there", value=loaded_s))
            for figure in chain(_clicks(dev), _pages(dev, wish), _sensors(dev)):
                yield _told(figure)
        minutely = _files(
            folder / "minutely", wish.sources, 'Cron("* * * * *", start="2099-01-01-00:00")', "Cron", "on"
        )
        with _dagster(folder / "ticks", minutely, server, site) as (dev, _):
            for figure in _ticks(dev, wish.sources):
                yield _told(figure)


def _told(figure: Figure) -> Figure:
    most = "" if figure.most is None else f"  at most {figure.most:g}: {'holds' if figure.holds else 'DOES NOT HOLD'}"
    out.print(f"  {figure.name:<60} {figure.value:6.2f} {figure.unit}{most}  {figure.detail}")
    return figure


# --- The ground ------------------------------------------------------------------------------------------------------


def _first_day() -> date:
    return (datetime.now(UTC) - timedelta(days=365 * YEARS)).date()


def _files(folder: Path, number: int, window: str, schedule: str, switch: str) -> Path:
    folder.mkdir(parents=True)
    for n in range(number):
        code = SOURCE.format(n=n, name=_name(n), host=f"shop{n:03}", window=window, schedule=schedule, switch=switch)
        (folder / f"{_name(n)}.py").write_text(code, "utf-8")
    return folder


def _name(n: int) -> str:
    return f"shop_{n:03}"


@contextmanager
def _postgres(folder: Path) -> Iterator[embedded.EmbeddedPostgres]:
    state = folder / "postgres"
    state.mkdir()
    try:
        with embedded.running(state) as server:
            migrate(server.dsn)
            yield server
    finally:
        embedded.stop(state)


@contextmanager
def _dagster(
    home: Path, sources: Path, server: embedded.EmbeddedPostgres, site: DemoSite
) -> Iterator[tuple[Dev, float]]:
    """A whole Dagster with these sources, and how long it took to come up."""
    home.mkdir()
    for file in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(ROOT / file, home)
    environment = {
        "COLLECTOR_DSN": server.dsn, "COLLECTOR_DAGSTER_URL": server.dagster_dsn, "COLLECTOR_STATE": str(home),
        "COLLECTOR_DEMO_SITE": site.address, "COLLECTOR_DEMO_SOURCES": "false", "COLLECTOR_SOURCES": str(sources),
        "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1", "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    began, log = time.monotonic(), home / "dagster-dev.log"
    dagster = stack.DagsterDev(home=home, port=stack.free_port(14_000), environment=environment, log=log)
    dev = Dev(url=dagster.url, dsn=server.dsn, environment=environment, log=log, alerts=Hook())
    try:
        dagster.wait_until_up()
        dev.until(lambda: len(dev.ask("{ assetNodes { id } }")["assetNodes"]) >= 4 or None, 120)
        yield dev, time.monotonic() - began
    finally:
        dagster.stop()


# --- Definitions -----------------------------------------------------------------------------------------------------

SERVER, WORKER, FILES = (
    "definitions, every job resolved: CPU",
    "a run that finds nothing to do: CPU",
    "source files: CPU",
)

BUILD = """
import json, resource, time
import dagster, collector_assets.definitions as ours
from collector_assets import registry
from collector_assets.settings import load_settings
from collector_assets.sources.templates import book_shop
settings = load_settings()
imports = time.process_time()
registry.load(settings.source_folders, demo=False)
files = time.process_time() - imports
began = time.process_time()
repository = ours.build(settings).defs.get_repository_def()
repository.load_all_definitions()
print(json.dumps({"imports": imports, "files": files, "server": time.process_time() - began,
    "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000}))
"""


def _building(sources: Path) -> Iterator[Figure]:
    """CPU seconds, in fresh processes."""
    environment = {**os.environ, "COLLECTOR_SOURCES": str(sources), "COLLECTOR_DEMO_SOURCES": "false"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for _ in range(RUNS + 1):  # the first one writes byte code
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", BUILD], env=environment, cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
        found.append(json.loads(done.stdout))
    middle = {name: median(each[name] for each in found[1:]) for name in found[0]}
    yield Figure(name=SERVER, value=middle["server"], most=3.0, detail="a code server, at its start")
    yield Figure(name=FILES, value=middle["files"], detail="in it; and all that they cost a run")
    yield Figure(name="imports before that: CPU", value=middle["imports"], detail="whatever the number")
    yield Figure(name="memory of a code server", value=middle["mb"], unit="MB")


# --- A click ---------------------------------------------------------------------------------------------------------


def _clicks(dev: Dev) -> Iterator[Figure]:
    """A window is collected; then the same click again, and there is nothing to do in it."""
    name, key = _name(1), f"{datetime.now(UTC):%Y-%m-%d}"
    assets = [[name, stage] for stage in STAGES]
    _ended(dev, assets, key)
    runs = [_ended(dev, assets, key) for _ in range(RUNS)]
    seconds, starts = [run.seconds for run in runs], [run.started_s for run in runs]
    detail = f"{RUNS} times, {min(seconds):.1f} to {max(seconds):.1f}; its process worked after {median(starts):.1f} s"
    yield Figure(name="a click until the run of four assets has ended", value=median(seconds), most=10.0, detail=detail)
    yield Figure(name=WORKER, value=median(run.cpu_s for run in runs), detail="its process")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One run."""

    started_s: float
    """From the click."""
    seconds: float
    cpu_s: float


def _ended(dev: Dev, assets: Sequence[Sequence[str]], key: str) -> Ended:
    click = time.time()
    launched = dev.launch(assets, key)
    process, cpu_s = None, 0.0
    while (run := dev.run(launched))["status"] not in FINISHED:
        process = process or _worker(dev, launched)
        with suppress(psutil.Error):
            cpu_s = sum(process.cpu_times()[:2]) if process else 0.0
        time.sleep(0.25)
    assert run["status"] == "SUCCESS", run
    return Ended(started_s=run["startTime"] - click, seconds=run["endTime"] - click, cpu_s=cpu_s)


EVENTS = """query($id: ID!) { runOrError(runId: $id) { ... on Run { eventConnection(limit: 50) { events {
  ... on MessageEvent { message } } } } } }"""


def _worker(dev: Dev, run: str) -> psutil.Process | None:
    """The process of a run, once Dagster has told its pid."""
    for event in dev.ask(EVENTS, id=run)["runOrError"]["eventConnection"]["events"]:
        if match := re.search(r"Started process for run \(pid: (\d+)\)", event.get("message") or ""):
            with suppress(psutil.Error):
                return psutil.Process(int(match[1]))
    return None


# --- The pages -------------------------------------------------------------------------------------------------------


def _pages(dev: Dev, wish: argparse.Namespace) -> Iterator[Figure]:
    """How long a page takes until what somebody came for is there; its assets hold three years of windows."""
    name = _name(wish.sources // 2)
    filled = _fill(dev, name)
    looks = (
        ("the catalog of assets", "/assets", "Requests to make in one window of"),
        ("an asset's page", f"/assets/{name}/latest?view=overview", f"of every entity of {name}"),
        ("its partitions", f"/assets/{name}/latest?view=partitions", f"Materialized ({filled})"),
        ("a source's lineage", f"/locations/collector/asset-groups/{name}/lineage", "partitions"),
        ("its job", f"/locations/collector/jobs/collect_{name}", "View 4 assets"),
    )
    with walks.browser() as chromium, walks.walk(chromium, dev.url) as walk:
        for title, path, words in looks:
            seen = [_look(walk, path, words) for _ in range(LOOKS + 1)]  # the first one fills caches
            seconds, webserver_s, browser_s = (median(values) for values in zip(*seen[1:], strict=True))
            detail = f"CPU: webserver {webserver_s:.1f} s, browser {browser_s:.1f} s; the first look {seen[0][0]:.1f} s"
            yield Figure(name=title, value=seconds, most=3.0, detail=detail)


def _look(walk: Walk, path: str, words: str) -> tuple[float, float, float]:
    """Seconds until the words can be read, and CPU seconds of the webserver and of the browser."""
    walk.page.goto("about:blank")
    webserver, browser = _cpu_s("dagster_webserver"), _cpu_s("chromium")
    began = time.monotonic()
    walk.open(path).get_by_text(words).first.wait_for()
    seconds = time.monotonic() - began
    return seconds, _cpu_s("dagster_webserver") - webserver, _cpu_s("chromium") - browser


def _cpu_s(name: str) -> float:
    """CPU seconds of the processes that we started and whose command line has the name in it."""
    used = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any(name in word for word in process.cmdline()):
                used += sum(process.cpu_times()[:2])
    return used


def _fill(dev: Dev, name: str) -> int:
    """Every window of the last three years of one source is materialized, as far as Dagster is concerned."""
    keys = [f"{_first_day() + timedelta(days=n):%Y-%m-%d}" for n in range(365 * YEARS)]
    for stage in STAGES:
        for at in range(0, len(keys), KEYS_AT_ONCE):
            wish = {
                "eventType": "ASSET_MATERIALIZATION", "assetKey": {"path": [name, stage]},
                "partitionKeys": keys[at : at + KEYS_AT_ONCE], "description": "",
            }  # fmt: skip
            done = dev.ask(
                "mutation($wish: ReportRunlessAssetEventsParams!) { reportRunlessAssetEvents(eventParams: $wish) {"
                " __typename ... on PythonError { message } } }",
                wish=wish,
            )["reportRunlessAssetEvents"]
            assert done["__typename"] == "ReportRunlessAssetEventsSuccess", done
    return len(keys)


# --- The daemon ------------------------------------------------------------------------------------------------------

SCHEDULES = """{ repositoriesOrError { ... on RepositoryConnection { nodes { schedules { name
  scheduleState { ticks(limit: 20) { timestamp endTimestamp status } } } } } } }"""
SENSORS = """{ repositoriesOrError { ... on RepositoryConnection { nodes { sensors { name minIntervalSeconds
  sensorState { ticks(limit: 20) { timestamp endTimestamp status } } } } } } }"""
UNHEALTHY = "{ instance { daemonHealth { allDaemonStatuses { daemonType required healthy } } } }"


def _ticks(dev: Dev, sources: int) -> Iterator[Figure]:
    """Every schedule ticks every minute: how long after its minute a tick has been decided, and whether all were."""
    first = (int(time.time()) // 60 + 2) * 60  # the minute after next: by then all are on
    minutes = [first + 60 * n for n in range(MINUTES)]
    time.sleep(minutes[-1] + 60 - time.time())
    decided: dict[int, list[float]] = {minute: [] for minute in minutes}
    for schedule in _nodes(dev, SCHEDULES)["schedules"]:
        for tick in schedule["scheduleState"]["ticks"]:
            if tick["endTimestamp"] and int(tick["timestamp"]) in decided:
                assert tick["status"] == "SKIPPED", tick
                decided[int(tick["timestamp"])].append(tick["endTimestamp"] - tick["timestamp"])
    missing = sum(sources - len(lags) for lags in decided.values())
    worst = max(max(lags, default=float("inf")) for lags in decided.values())
    yield Figure(name=f"{sources} schedules due in one minute: all decided after", value=worst, most=60.0)
    yield Figure(name="ticks that were not decided within their minute", value=missing, most=0, unit="")
    statuses = dev.ask(UNHEALTHY)["instance"]["daemonHealth"]["allDaemonStatuses"]
    ill = [status["daemonType"] for status in statuses if status["required"] and not status["healthy"]]
    yield Figure(name="daemons that are not healthy", value=len(ill), most=0, unit="", detail=", ".join(ill))


def _sensors(dev: Dev) -> Iterator[Figure]:
    for sensor in _nodes(dev, SENSORS)["sensors"]:
        ticks = [tick for tick in sensor["sensorState"]["ticks"] if tick["endTimestamp"]]
        if not ticks:
            continue  # one that is off
        took = median(tick["endTimestamp"] - tick["timestamp"] for tick in ticks)
        every = float(sensor["minIntervalSeconds"])
        detail = f"every {every:g} s; {len(ticks)} ticks"
        yield Figure(name=f"a tick of the sensor `{sensor['name']}`", value=took, most=every, detail=detail)


def _nodes(dev: Dev, query: str) -> dict[str, Any]:
    (node,) = dev.ask(query)["repositoriesOrError"]["nodes"]
    return node


# --- The page --------------------------------------------------------------------------------------------------------


def _page(figures: Sequence[Figure], sources: int) -> str:
    by_name = {figure.name: figure.value for figure in figures}
    return TEMPLATE.read_text("utf-8").format(
        sources=sources, years=YEARS, windows=sources * len(STAGES) * 365 * YEARS,
        cores=len(os.sched_getaffinity(0)), machine=platform.machine(), python=platform.python_version(),
        dagster=version("dagster"), date=f"{datetime.now(UTC):%Y-%m-%d}", load=f"{os.getloadavg()[1]:.1f}",
        table=_table(figures), verdict="holds" if all(figure.holds for figure in figures) else "**does not hold**",
        import_ms=1000 * by_name[FILES], per_source_ms=1000 * by_name[SERVER] / sources,
        run_cpu_s=by_name[WORKER], per_hour=3600 * len(os.sched_getaffinity(0)) / by_name[WORKER], minutes=MINUTES,
    )  # fmt: skip


def _table(figures: Sequence[Figure]) -> str:
    rows = [
        " | ".join((f"| {each.name}", _shown(each.value, each.unit), _shown(each.most, each.unit), f"{each.detail} |"))
        for each in figures
    ]
    return "\n".join(["| | measured | at most | |", "|---|--:|--:|---|", *rows])


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:.1f} {unit}" if unit == "s" else f"{value:.0f} {unit}".strip()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m collector_tests.bench.many_sources", description=__doc__)
    parser.add_argument("--sources", type=int, default=SOURCES, help="how many (%(default)s)")
    parser.add_argument("--out", type=Path, help="the page to write; docs/many-sources.md for a full run, else none")
    wish = parser.parse_args()
    if wish.out is None and wish.sources == SOURCES:
        wish.out = ROOT / "docs" / "many-sources.md"
    return wish


if __name__ == "__main__":
    sys.exit(main())
