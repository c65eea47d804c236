"""Postgres dies in the middle of a window (rule 12): the run recovers or fails cleanly, the next one completes it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector_assets import embedded
from collector_assets.archive import LocalArchive
from collector_assets.database import Database, migrate
from collector_assets.demo import DemoSite
from collector_assets.errors import CollectorError
from collector_assets.pages import for_reading
from collector_assets.status import WindowStatus, window_status

WINDOW = "2026-11-28"
SOURCE = """
from collector_assets.contract import Budget, replace, seconds
from collector_assets.sources.shop import SHOP
SOURCE = replace(SHOP, name="slow", start_urls=("http://slow.localhost:8765/catalogue/page-1.html",),
                 budget=Budget(gap=seconds(0.1)), lease=seconds(3), max_attempts=10,
                 total_timeout=seconds(3), read_timeout=seconds(3), connect_timeout=seconds(3))
"""


@pytest.fixture
def state() -> Iterator[Path]:
    """An installation of its own; not under pytest's folder, whose mode other sessions reset."""
    folder = Path(tempfile.mkdtemp(prefix="collector-restart-"))
    (folder / "sources").mkdir()
    (folder / "sources" / "slow.py").write_text(SOURCE)
    yield folder
    embedded.stop(folder)
    shutil.rmtree(folder)


def collect(state: Path, site: DemoSite) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLLECTOR_")}
    environment = {
        **kept,
        "COLLECTOR_STATE": str(state),
        "COLLECTOR_SOURCES": str(state / "sources"),
        "COLLECTOR_DEMO_SITE": site.address,
        "DAGSTER_HOME": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-m", "collector_assets.cli", "collect", "slow", WINDOW, "--json"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def status(database: Database) -> WindowStatus | None:
    try:
        return window_status(database, "slow", WINDOW)
    except CollectorError:
        return None


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["kill -9", "fast stop"])
def test_a_database_restart_costs_no_page(state: Path, site: DemoSite, how: str) -> None:
    server = embedded.start(state)
    migrate(server.dsn)
    first = collect(state, site)
    with Database(server.dsn) as database:
        _wait_for_the_middle(database, first)
    if how == "kill -9":
        os.kill(server.pid, signal.SIGKILL)
    else:
        embedded.stop(state)
    time.sleep(1)
    embedded.start(state)
    said, _ = first.communicate(timeout=150)
    server = embedded.start(state)  # its last user took it down
    with Database(server.dsn) as database:
        after_first = status(database)
        assert after_first is not None
        done_by_first = after_first.counts.planned - after_first.counts.to_fetch
        assert done_by_first >= 10, said
        if first.returncode != 0:
            second = collect(state, site)
            said, _ = second.communicate(timeout=150)
            assert second.returncode == 0, said
        _complete(database, LocalArchive(state / "archive"))
    asked = [arrival.path for arrival in site.arrivals(host="slow.localhost")]
    assert len(asked) - len(set(asked)) <= 5, "at most the batch that was under way is fetched again"


def _wait_for_the_middle(database: Database, run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and run.poll() is None:
        now = status(database)
        if now and now.counts.planned == 63 and now.counts.to_fetch <= 45:
            return
        time.sleep(0.05)
    pytest.fail(f"the run never came to its middle: {run.poll()}")


def _complete(database: Database, archive: LocalArchive) -> None:
    found = status(database)
    assert found is not None
    assert (found.counts.planned, found.counts.done, found.counts.failed) == (63, 63, 0)
    with database.transaction() as connection:
        stored = for_reading(connection, source="slow", window_start=found.row.window.start, kinds=["detail"])
    assert len(stored) == 60
    for page in stored:
        assert archive.read(page.location).status == 200
