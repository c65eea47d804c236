"""Extraction in several processes: the same rows, bounded, and nobody left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from collector_assets import collect, extraction_pool, process, registry
from collector_assets.contract import Budget, Source, replace, seconds
from collector_assets.errors import Unavailable
from collector_assets.extraction import ROWS_AT_ONCE
from collector_assets.process import ReadingReport
from collector_assets.windows import WindowRow
from collector_tests.fixtures.stored import Stored

SOURCE_FILE = """
import os, time
import pandera.pandas as pa
from collector_assets.contract import Daily, Expect, Source

class Item(pa.DataFrameModel):
    sku: str
    value: int = pa.Field(ge=0)

def extract(page):
    for row in page.json():
        if "say" in row:
            with open(row.pop("say"), "a") as file:
                print(os.getpid(), file=file)
        if (once := row.pop("die", None)) and os.getpid() != MAIN and not os.path.exists(once):
            if once != "always":
                open(once, "w").close()
            os.kill(os.getpid(), 9)
        time.sleep(row.pop("sleep", 0))
        yield row

MAIN = int(os.environ.get("MAIN_PID", 0))
SOURCE = Source(
    name="pooled", start_urls=("http://shop.localhost:8765/",), extract=extract, schema=Item, entity="sku",
    extractor_version="1", window=Daily(start="2026-01-01"), expect=Expect(min_records=1, max_reject_rate=1.0),
)
"""


class Pooled:
    """A source in a file of its own, as helpers need it."""

    def __init__(self, stored: Stored, folder: Path) -> None:
        file = folder / "pooled.py"
        file.write_text(SOURCE_FILE)
        self.stored, self.locator = stored, f"{file}::pooled"
        self.source: Source = registry.load_one(self.locator)
        self.row: WindowRow = stored.window(self.source)

    def add(self, *bodies: Any) -> None:
        self.stored.add(self.source, self.row, bodies)

    def run(self, processes: int = 2, **more: Any) -> ReadingReport:
        return self.stored.process(self.source, self.row, locator=self.locator, processes=processes, **more)


@pytest.fixture
def pooled(stored: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pooled]:
    monkeypatch.setenv("MAIN_PID", str(os.getpid()))
    folder = tmp_path / "sources"
    folder.mkdir()
    yield Pooled(stored, folder)
    assert not helpers()


def helpers() -> list[psutil.Process]:
    """Processes that extract, of anybody's."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if extraction_pool.HELPER in child.cmdline():
                found.append(child)
    return found


def eventually(what: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.05)


def written(stored: Stored) -> list[Any]:
    return [
        stored.rows(
            "SELECT entity, data, request_id, page_id, data_digest, collected_at FROM observations ORDER BY entity"
        ),
        stored.rows("SELECT page_id, ordinal, reasons, data FROM rejects ORDER BY page_id, ordinal"),
        stored.rows("SELECT page_id, outcome, reason, records, rejects FROM readings ORDER BY page_id"),
    ]


def test_helpers_end_in_the_rows_that_one_process_ends_in(pooled: Pooled, tmp_path: Path) -> None:
    """Rule 14; and they do take part."""
    said = tmp_path / "pids"
    pages = [
        [{"sku": f"s{n}", "value": n, "say": str(said), "sleep": 0.02}, {"sku": f"r{n}", "value": -n}]
        for n in range(1, 120)
    ]
    pooled.add(*pages, [{"sku": "s1", "value": 5}], {"no": "list"}, [])
    report = pooled.run(chunk=10)
    assert report.records == {"record": 119}
    assert len(set(said.read_text().split())) == 2
    with_helpers = written(pooled.stored)
    again = pooled.run(1, chunk=50)
    assert written(pooled.stored) == with_helpers
    assert (again.new_observations, again.changed, again.gone) == (0, 0, 0)


def test_a_helper_that_dies_costs_a_second_try(pooled: Pooled, tmp_path: Path) -> None:
    """What it had handed on of the batch is taken back first: every row is there once.

    Mutation: do nothing for `Discarded` in `process._stage`.
    """
    once, many = str(tmp_path / "died"), ROWS_AT_ONCE + 1
    for number in range(8):
        rows = [{"sku": f"s{number}-{n}", "value": n} for n in range(many)]
        pooled.add(rows, [{"sku": f"d{number}", "value": 1, "sleep": 0.3, "die": once}])
    report = pooled.run(chunk=2)
    assert Path(once).exists()
    assert (report.records, report.rejects) == ({"record": 8 * (many + 1)}, 0)
    assert report.verdict.passed


def test_a_page_that_kills_every_helper_is_an_error_that_names_it(pooled: Pooled) -> None:
    """And nothing of the window is written."""
    pooled.add(*([{"sku": f"s{n}", "value": n, "sleep": 0.2, "die": "always"}] for n in range(60)))
    with pytest.raises(Unavailable, match="died twice .*-9.* on the pages"):
        pooled.run(chunk=2)
    assert written(pooled.stored) == [[], [], []]


def test_helpers_are_asked_for_by_time_not_by_count(pooled: Pooled, tmp_path: Path) -> None:
    """A window that is read in a moment starts nobody; nor does a source that no other process could find."""
    said = tmp_path / "pids"
    pooled.add(*([{"sku": f"s{n}", "value": n, "say": str(said)}] for n in range(600)))
    pooled.run(None)  # pyright: ignore[reportArgumentType]
    pooled.stored.process(pooled.source, pooled.row, processes=2)
    assert set(said.read_text().split()) == {str(os.getpid())}


def test_a_broken_source_file_in_a_helper_is_an_error(pooled: Pooled) -> None:
    pooled.add(*([{"sku": f"s{n}", "value": n, "sleep": 0.1}] for n in range(60)))
    Path(pooled.locator.partition("::")[0]).write_text("1 / 0")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        pooled.run(chunk=2)


PARENT = """
import json, sys
from pathlib import Path
from collector_assets import registry, windows
from collector_assets.archive import LocalArchive
from collector_assets.database import Database
from collector_assets import process
told = json.loads(sys.argv[1])
source = registry.load_one(told["locator"])
with Database(told["dsn"]) as database:
    with database.transaction() as connection:
        row = windows.find(connection, source.name, told["key"])
    process.run(source=source, window=row, database=database, archive=LocalArchive(Path(told["archive"])),
                locator=told["locator"], processes=3, chunk=1)
"""


def test_helpers_go_when_their_parent_is_killed(pooled: Pooled, dsn: str, tmp_path: Path) -> None:
    """A kill -9 of the step in the middle: no process of ours is left five seconds later, and the next run completes.

    Mutation: return at once from `extraction_helper._go_when_parent_goes` (a busy helper does not look at its pipe).
    """
    said = tmp_path / "pids"
    pooled.add(*([{"sku": f"s{n}", "value": n, "say": str(said), "sleep": 8 if n < 6 else 0}] for n in range(12)))
    told = {"locator": pooled.locator, "dsn": dsn, "key": pooled.row.window.key, "archive": str(tmp_path / "archive")}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, json.dumps(told)])
    try:
        eventually(lambda: said.exists() and len(set(said.read_text().split())) == 3)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
    pids = {int(pid) for pid in said.read_text().split()}
    eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids), seconds=5)
    assert pooled.stored.rows("SELECT count(*) FROM observations") == [(0,)]
    pooled.stored.do("DELETE FROM pages WHERE request_id IN (SELECT request_id FROM requests ORDER BY 1 LIMIT 6)")
    assert pooled.run(1).records == {"record": 6}


def test_the_reading_stops_its_helpers_when_it_is_interrupted(pooled: Pooled) -> None:
    pooled.add(*([{"sku": f"s{n}", "value": n, "sleep": 0.2}] for n in range(40)))

    def interrupt(done: int, _total: int) -> None:
        if done > 8 and helpers():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pooled.run(chunk=2, progress=interrupt)
    eventually(lambda: not helpers(), seconds=5)
    assert not [thread for thread in threading.enumerate() if thread.name == "extraction-helper"]


def progress(*, to_fetch: int, answered: int = 0, per_second: float = 0.0) -> collect.Progress:
    return collect.Progress(to_fetch=to_fetch, answered=answered, per_second=per_second)


def ahead_of(pooled: Pooled, source: Source) -> process.Ahead:
    return process.Ahead(source=source, window=pooled.row, archive=pooled.stored.archive, locator=pooled.locator)


def test_helpers_start_while_the_last_pages_come(pooled: Pooled) -> None:
    """Not for a small window, not long before its end; once started they read from the first batch, and are gone."""
    # Mutation: `consider` without its first return, or without the comparison with STARTS_AHEAD_S
    slow = replace(pooled.source, budget=Budget(gap=seconds(1)))
    for source, seen in (
        (pooled.source, progress(to_fetch=499)),
        (slow, progress(to_fetch=600)),
        (pooled.source, progress(to_fetch=600, answered=10, per_second=1.0)),
    ):
        early = ahead_of(pooled, source)
        early.consider(seen)
        assert early.take() is None
    ahead = ahead_of(pooled, replace(pooled.source, budget=Budget(gap=seconds(0))))
    ahead.consider(progress(to_fetch=5, answered=995, per_second=100.0))
    taken = ahead.take()
    assert len(helpers()) == process.cores() - 1
    pooled.add(*[[{"sku": f"{n}", "value": n, "sleep": 0.2}] for n in range(8)])
    report = pooled.run(helpers=taken, chunk=1)
    assert report.records_total == 8
    assert not helpers()


def test_helpers_that_nobody_took_are_ended(pooled: Pooled) -> None:
    ahead = ahead_of(pooled, pooled.source)
    ahead.consider(progress(to_fetch=0, answered=1_000, per_second=100.0))
    assert helpers()
    ahead.close()
    assert not helpers()
