"""kill -9 of what a run works in: it is noticed, its places come back in bounded time, and the next run goes on.

The bound, as configured in `dagster.yaml`: run monitoring looks every 15 seconds and a code server has 10 to answer;
the slots of a pool come back at most 30 seconds later, and the queue looks every 2.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from collector_assets import database
from collector_assets.demo import DemoSite
from collector_assets.graph.resume import RESUME_TAG
from collector_tests.fixtures.dagster_dev import Dev
from collector_tests.ui.walk import Walk

HOST = POOL = "mortal.localhost"
BOOKS = 20
PAGES = BOOKS + 1
STAGES = [["mortal", stage] for stage in ("frontier", "raw_pages", "records", "latest")]
NOTICED_WITHIN_S = 45.0
"""15 until monitoring looks, 10 for the answer, and as much again for two busy cores."""
BACK_WITHIN_S = 75.0
"""Since the kill: 30 at most for the slots, 2 for the queue, and the start of the waiting run's process."""
RESUMED_WITHIN_S = 240.0
"""The sensor looks every minute, once the lease has run out."""

DAYS = (f"2026-03-{day:02}" for day in range(1, 32))
"""A second try has windows of its own: those of the first hold its pages."""

STORED = """SELECT count(*) FROM pages JOIN windows USING (source, window_start)
            WHERE source = 'mortal' AND window_key = %(key)s AND pages.outcome IN ('ok', 'not_modified')"""
DONE = """SELECT count(*) FROM requests JOIN windows USING (source, window_start)
          WHERE source = 'mortal' AND window_key = %(key)s AND state = 'done'"""


@pytest.fixture
def pool_of_one(dagster_dev: Dev) -> Iterator[None]:
    """Whoever waits for the pool waits for the killed run's slot."""
    limit = 'mutation { setConcurrencyLimit(concurrencyKey: "mortal.localhost", limit: %d) }'
    dagster_dev.ask(limit % 1)
    yield
    dagster_dev.ask(limit % 4)


@pytest.fixture
def slow(site: DemoSite) -> DemoSite:
    """Twenty books, the pages of which take their time."""
    site.switch(host=HOST, books=BOOKS)
    site.misbehave("delay", prefix="/catalogue/", arg="1.5", host=HOST)
    return site


def answered(site: DemoSite) -> list[str]:
    """The pages that the site gave away whole, or said to be as they were in an earlier window."""
    return [arrival.path for arrival in site.arrivals(host=HOST) if arrival.status in (200, 304)]


def counted(dev: Dev, statement: Any, key: str) -> int:
    """One number about a window."""
    with database.connect(dev.dsn) as connection:
        row: Any = connection.execute(statement, {"key": key}).fetchone()
    return int(row[0])


def messages(dev: Dev, run: str) -> list[str]:
    """What a run's log says."""
    found = dev.ask(
        "query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {"
        " ... on MessageEvent { message } } } } }",
        id=run,
    )["logsForRun"]["events"]
    return [event.get("message", "") for event in found]


def process_of(dev: Dev, run: str) -> int:
    """The process that Dagster started for a run."""
    said = dev.until(lambda: re.search(r"Started process for run \(pid: (\d+)\)", "\n".join(messages(dev, run))), 60)
    return int(said[1])


def parent_of(pid: int) -> int:
    """The parent's process id."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def in_mid_window(dev: Dev, site: DemoSite, key: str) -> None:
    """Some pages are stored, no answer is on its way into the database, others are asked for."""

    def is_quiet() -> bool:
        stored = counted(dev, STORED, key)
        return stored >= 5 and stored == len(answered(site))

    dev.until(is_quiet, 120)


def finished_once(dev: Dev, site: DemoSite, *keys: str) -> None:
    """Each window is done, without a page that was asked for a second time after its answer."""
    for key in keys:
        dev.until(lambda key=key: counted(dev, DONE, key) == PAGES, RESUMED_WITHIN_S)
    pages = Counter(answered(site))
    assert sum(pages.values()) == PAGES * len(keys)
    assert max(pages.values()) == len(keys), pages


def shows_the_failure(walk: Walk, run: str, why: str) -> None:
    """A person finds on the run's page that it ended, and why."""
    page = walk.open(f"/runs/{run}")
    expect(page.get_by_text("Failure", exact=True).first).to_be_visible()
    expect(page.get_by_text(re.compile(why)).first).to_be_visible()


@pytest.mark.timeout(600)
def test_a_killed_run_gives_its_places_back_and_its_window_is_finished(
    walk: Walk, dagster_dev: Dev, slow: DemoSite, pool_of_one: None
) -> None:
    # Mutation: HealthCheckedRunLauncher.supports_check_run_worker_health returns False
    key, other = next(DAYS), next(DAYS)
    run = dagster_dev.launch(STAGES, key)
    process = process_of(dagster_dev, run)
    dagster_dev.until(lambda: answered(slow), 120)
    waiting = dagster_dev.launch(STAGES, other)
    dagster_dev.until(lambda: counted(dagster_dev, STORED, key) >= 3, 60)
    assert dagster_dev.run(waiting)["status"] == "QUEUED", "one run per source, and here one per pool"

    in_mid_window(dagster_dev, slow, key)
    os.kill(process, signal.SIGKILL)
    killed_at = time.monotonic()
    assert dagster_dev.ended(run, within_s=NOTICED_WITHIN_S)["status"] == "FAILURE"
    left = BACK_WITHIN_S - (time.monotonic() - killed_at)
    dagster_dev.until(lambda: dagster_dev.run(waiting)["status"] in {"STARTED", "SUCCESS"}, left)
    # Here the code server still lives, and is the first to notice.
    shows_the_failure(walk, run, r"process for .* was terminated by signal 9 \(SIGKILL\)")

    slow.behave()
    assert dagster_dev.ended(waiting)["status"] == "SUCCESS"
    # Nobody asks for it: the sensor does.
    finished_once(dagster_dev, slow, key, other)
    resumed = dagster_dev.runs(tags=[{"key": "dagster/partition", "value": key}, {"key": RESUME_TAG, "value": "true"}])
    assert [dagster_dev.ended(each["runId"])["status"] for each in resumed] == ["SUCCESS"]


@pytest.mark.timeout(600)
def test_a_killed_code_server_gives_its_runs_places_back_and_their_window_is_finished(
    walk: Walk, dagster_dev: Dev, slow: DemoSite
) -> None:
    key = next(DAYS)
    run = dagster_dev.launch(STAGES, key)
    process = process_of(dagster_dev, run)
    server = parent_of(process)
    in_mid_window(dagster_dev, slow, key)
    # Mutation: definitions.defs() without run_worker.end_with_server(): the run succeeds after its failure.
    os.kill(server, signal.SIGKILL)
    assert dagster_dev.ended(run, within_s=NOTICED_WITHIN_S)["status"] == "FAILURE"
    dagster_dev.until(lambda: not Path(f"/proc/{process}").exists(), 30)
    shows_the_failure(walk, run, r"terminated by interrupt|interrupted|Marking run .* as failed")

    # Nothing restarts the server of `dagster dev`; a person does, by this button. The sensor goes on by itself.
    slow.behave()
    page = walk.open("/locations")
    page.get_by_role("button").filter(has_text=re.compile("^Reload$")).click()
    expect(page.get_by_text("Loaded", exact=True)).to_be_visible()
    finished_once(dagster_dev, slow, key)
    resumed = dagster_dev.runs(tags=[{"key": "dagster/partition", "value": key}, {"key": RESUME_TAG, "value": "true"}])
    assert [dagster_dev.ended(each["runId"])["status"] for each in resumed] == ["SUCCESS"]
