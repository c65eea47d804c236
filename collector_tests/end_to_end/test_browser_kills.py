"""kill -9 of a browser, and of the worker that its proxy is part of, in mid-page: nothing lost, nothing left."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from collector_assets import registry
from collector_assets.database import Database
from collector_assets.demo import DemoSite
from collector_tests.fixtures.browser import NEEDS_CHROMIUM
from collector_tests.fixtures.workers import Crew, kill

pytestmark = NEEDS_CHROMIUM

SOURCE = """
from collector_assets.contract import Budget, replace, seconds
from collector_assets.sources.shop_js import SOURCE

SOURCE = replace(
    SOURCE, name="killed_js", start_urls=("http://killed-js.localhost:8765/app/page-1.html",),
    budget=Budget(gap=seconds(0.02), slots=2), max_attempts=10, lease=seconds(3), total_timeout=seconds(15),
    read_timeout=seconds(5), connect_timeout=seconds(5),
)
"""


@pytest.fixture
def crew(database: Database, site: DemoSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    # The workers' profiles are there, and nobody else's. Short, because Chromium puts a socket's name below it.
    temporary = tempfile.mkdtemp(prefix="kills-", dir="/tmp")
    monkeypatch.setenv("TMPDIR", temporary)
    file = tmp_path / "sources" / "killed_js.py"
    file.parent.mkdir()
    file.write_text(SOURCE)
    made = Crew(database=database, site=site, folder=tmp_path, source=registry.load_one(f"{file}::killed_js"))
    yield made
    made.kill_all()
    shutil.rmtree(temporary, ignore_errors=True)


def test_killed_browser_and_worker_lose_nothing(crew: Crew) -> None:
    crew.site.switch(host="killed-js.localhost", books=20)
    crew.open()
    first = crew.work()
    crew.wait_until(lambda: _pages(crew) >= 4)
    for browser in _browsers(first.pid):
        browser.kill()
    killed_at = _pages(crew)
    crew.wait_until(lambda: _pages(crew) >= killed_at + 4)
    assert first.poll() is None, "a new browser goes on"

    kill(first)
    crew.wait_until(lambda: not _with_profile(), seconds=10)

    last = crew.work()
    said, complaints = last.communicate(timeout=100)
    assert last.returncode == 0, complaints
    assert json.loads(said)["ending"] == "drained"
    assert crew.read().records == {"record": 20}
    counts = crew.status().counts
    assert (counts.planned, counts.done, counts.failed, counts.outstanding) == (21, 21, 0, 0)
    assert crew.scalar("SELECT count(*) FROM pages WHERE outcome = 'ok'") == 21, "one good page per request"
    assert crew.scalar("SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL") == 0
    assert not _with_profile()
    assert not list(Path(os.environ["TMPDIR"]).glob("collector-browsers-*/*")), "the next start swept what was left"


def test_an_interrupted_worker_gives_back_what_it_holds_and_leaves_no_browser(crew: Crew) -> None:
    crew.site.switch(host="killed-js.localhost", books=20)
    crew.open()
    worker = crew.work()
    crew.wait_until(lambda: _pages(crew) >= 3)
    worker.terminate()
    worker.communicate(timeout=30)

    assert not _with_profile()
    assert not list(Path(os.environ["TMPDIR"]).glob("collector-browsers-*/*"))
    assert crew.scalar("SELECT count(*) FROM requests WHERE state = 'leased'") == 0
    assert crew.scalar("SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL") == 0


def _pages(crew: Crew) -> int:
    return crew.scalar("SELECT count(*) FROM pages WHERE outcome = 'ok'")


def _browsers(worker: int) -> list[psutil.Process]:
    """The browsers that a worker started, once there are any."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        children = {each.pid for each in psutil.Process(worker).children()}
        if found := [each for each in _with_profile() if each.pid in children]:
            return found
        time.sleep(0.05)
    pytest.fail("no browser")


def _with_profile() -> list[psutil.Process]:
    """Living processes that name a profile of this test."""
    profiles, found = f"{os.environ['TMPDIR']}/collector-browsers-", []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            named = any(profiles in word for word in each.cmdline())
            if named and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found
