"""A run that is started beside others waits, or runs, as the limits per source and per domain say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from collector_assets.demo import DemoSite
from collector_assets.demo.arrivals import violations
from collector_assets.graph.resume import SENSOR
from collector_tests.fixtures.dagster_dev import Dev
from collector_tests.ui.sources.twins import GAP_S
from collector_tests.ui.walk import ASSET, Walk

DOMAIN, HOSTS = "twin.localhost", ("a.twin.localhost", "b.twin.localhost")
ALONE, FIRST, SECOND = "2026-03-01", "2026-03-02", "2026-03-03"
LATER = "2026-03-05"
BOOKS = 5


@pytest.fixture
def slow(site: DemoSite) -> DemoSite:
    """The twins' shop: five books each, and the elder's pages in no hurry until told to behave."""
    for host in HOSTS:
        site.switch(host=host, books=BOOKS)
    site.misbehave("delay", arg="20", prefix="/catalogue/", host=HOSTS[0])
    return site


def open_windows(dev: Dev, key: str) -> None:
    """Pass 1 of a window of both, so that there are pages to fetch."""
    run = dev.launch([["elder", "frontier"], ["younger", "frontier"]], key)
    assert dev.ended(run)["status"] == "SUCCESS"


@pytest.fixture(autouse=True)
def nothing_is_resumed(dagster_dev: Dev) -> Iterator[None]:
    """On a slow machine the sensor would go on with a window opened here, and its run take the source's place."""
    dagster_dev.stop_sensor(SENSOR)
    yield
    dagster_dev.start_sensor(SENSOR)


@pytest.fixture
def limit_restored(dagster_dev: Dev) -> Iterator[None]:
    yield
    dagster_dev.ask('mutation { setConcurrencyLimit(concurrencyKey: "twin.localhost", limit: 4) }')


def newest(dev: Dev, source: str, key: str) -> str:
    """The newest run of one window of a source."""
    tags = [{"key": "collector/source", "value": source}, {"key": "dagster/partition", "value": key}]
    return dev.runs(tags=tags)[0]["runId"]


@pytest.mark.timeout(600)
def test_one_partition_waits_for_its_source_and_runs_beside_another(
    walk: Walk, dagster_dev: Dev, slow: DemoSite
) -> None:
    """One run per source at a time; two sources of a domain side by side, within one budget."""
    open_windows(dagster_dev, ALONE)
    backfill = dagster_dev.backfill("collect_elder", [FIRST, SECOND])

    def of_backfill() -> dict[str, str]:
        found = dagster_dev.runs(tags=[{"key": "dagster/backfill", "value": backfill}])
        return {run["tags"]["dagster/partition"]: run["status"] for run in found}

    dagster_dev.until(lambda: of_backfill().get(FIRST) == "STARTED", 120)

    walk.open(ASSET.format("elder", "raw_pages", "overview"))
    assert walk.launch("Materialize…", ALONE, 1) == "Launch 1 run"
    waiting = newest(dagster_dev, "elder", ALONE)
    walk.open(ASSET.format("younger", "raw_pages", "overview"))
    walk.launch("Materialize…", ALONE, 1)
    beside = newest(dagster_dev, "younger", ALONE)

    dagster_dev.until(lambda: dagster_dev.run(beside)["status"] == "STARTED", 240)
    assert of_backfill()[FIRST] == "STARTED", "both sources of the domain at work"
    assert dagster_dev.run(waiting)["status"] == "QUEUED", "the source has its run"
    page = walk.open("/runs?q[0]=status%3AQUEUED")
    expect(page.get_by_text(waiting[:8])).to_be_visible()

    slow.behave()
    for run in (waiting, beside):
        assert dagster_dev.ended(run)["status"] == "SUCCESS"
    assert dagster_dev.backfill_ended(backfill) == "COMPLETED_SUCCESS"

    runs = dagster_dev.runs(tags=[{"key": "collector/domain", "value": DOMAIN}])
    expected = {waiting: ("elder", DOMAIN), beside: ("younger", DOMAIN)}
    tags = {run["runId"]: (run["tags"]["collector/source"], run["tags"]["collector/domain"]) for run in runs}
    assert expected.items() <= tags.items()
    assert len([run for run in runs if run["tags"].get("dagster/backfill") == backfill]) == 2
    # Whoever clicks goes before what is caught up on.
    started = {
        run["tags"]["dagster/partition"]: run["startTime"] for run in runs if run["tags"].get("dagster/backfill")
    }
    assert dagster_dev.run(waiting)["startTime"] < started[SECOND]
    page = walk.open(f"/runs?q[0]=tag%3Acollector%2Fdomain%3D{DOMAIN}")
    for run in (waiting, beside):
        expect(page.get_by_text(run[:8])).to_be_visible()

    # What counts is what arrived: one at a time over both hosts, and the gap after each answer.
    seen = [each for host in HOSTS for each in slow.arrivals(host=host)]
    assert len(seen) == 4 * (1 + BOOKS)
    assert violations(seen, slots=1, gap=GAP_S) == []


@pytest.mark.timeout(600)
def test_with_a_domain_limit_of_one_another_source_of_the_domain_waits(
    walk: Walk, dagster_dev: Dev, slow: DemoSite, limit_restored: None
) -> None:
    page = walk.open(f"/deployment/concurrency/{DOMAIN}")
    page.get_by_role("button", name="Edit limit").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("1")
    dialog.get_by_role("button", name="Update limit").click()
    expect(dialog).to_have_count(0)

    open_windows(dagster_dev, LATER)
    holding = dagster_dev.launch([["elder", "raw_pages"]], LATER)
    dagster_dev.until(lambda: dagster_dev.run(holding)["status"] == "STARTED", 120)
    walk.open(ASSET.format("younger", "raw_pages", "overview"))
    walk.launch("Materialize…", LATER, 1)
    waiting = newest(dagster_dev, "younger", LATER)

    # Long enough for several looks of the queue, which takes one every two seconds.
    page = walk.open(f"/deployment/concurrency/{DOMAIN}")
    expect(page.get_by_text(waiting[:8])).to_be_visible()
    page.wait_for_timeout(7_000)
    assert dagster_dev.run(holding)["status"] == "STARTED"
    assert dagster_dev.run(waiting)["status"] == "QUEUED"

    slow.behave()
    for run in (holding, waiting):
        assert dagster_dev.ended(run)["status"] == "SUCCESS"
    first, second = dagster_dev.run(holding), dagster_dev.run(waiting)
    assert second["startTime"] >= first["endTime"]
