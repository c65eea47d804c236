"""The publisher changes the layout: the old data stay, and the UI says what was not found, where, and how often."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from collector_assets import database
from collector_assets.demo import DemoSite
from collector_tests.fixtures.dagster_dev import Dev
from collector_tests.ui.walk import ASSET, JOB, Walk

GOOD, CHANGED, DEARER = "2026-04-01", "2026-04-02", "2026-04-03"
HOST = "almanac.localhost"
OF_WINDOW = """
    SELECT count(*) FROM latest JOIN windows USING (source, window_start)
    WHERE source = 'almanac' AND window_key = %(key)s
"""


def launched(dev: Dev, walk: Walk, key: str) -> tuple[str, str]:
    """A window of the almanac, from its job's dialog: the run, and how it ended."""
    walk.open(JOB.format("almanac"))
    walk.launch("Materialize all…", key, 1)
    run = dev.runs(tags=[{"key": "dagster/partition", "value": key}])[0]["runId"]
    return run, dev.ended(run)["status"]


def alerts(dev: Dev) -> list[str]:
    """What the receiver was told about the records of the almanac."""
    said = [post.value for post in dev.alerts.posts]
    return [each["body"] for each in said if (each["source"], each["cause"]) == ("almanac", "records: checks failed")]


def looks(dev: Dev) -> int:
    """How often the sensor of alerts has looked."""
    return dev.log.read_text().count("Sensor alerts skipped")


def published(dev: Dev, key: str) -> int:
    """Entities in `latest` that come from a window."""
    with database.connect(dev.dsn) as connection:
        (count,) = connection.execute(OF_WINDOW, {"key": key}).fetchone() or (-1,)
    return int(str(count))


@pytest.fixture(scope="module", autouse=True)
def good(dagster_dev: Dev, running_site: DemoSite) -> None:
    """A window from before the change is in `latest`."""
    running_site.reset()
    running_site.switch(host=HOST, books=12)
    run = dagster_dev.launch([["almanac", stage] for stage in ("frontier", "raw_pages", "records", "latest")], GOOD)
    assert dagster_dev.ended(run)["status"] == "SUCCESS"
    assert all(dagster_dev.materialized_at(("almanac", "latest"), [GOOD])), dagster_dev.messages(run)
    assert published(dagster_dev, GOOD) == 12


@pytest.mark.timeout(300)
def test_a_redesign_leaves_latest_alone_and_the_check_says_what_was_not_found(
    walk: Walk, dagster_dev: Dev, running_site: DemoSite
) -> None:
    running_site.switch(host=HOST, redesign=1)
    run, status = launched(dagster_dev, walk, CHANGED)
    assert status == "FAILURE"
    assert (published(dagster_dev, GOOD), published(dagster_dev, CHANGED)) == (12, 0)
    assert dagster_dev.materialized_at(("almanac", "latest"), [CHANGED]) == [0.0]

    # The run's page says which stage refused, and why.
    page = walk.open(f"/runs/{run}")
    expect(page.get_by_text(re.compile("pages_readable: 12 of 12 pages could not be read")).first).to_be_visible()

    page = walk.open(f"{ASSET.format('almanac', 'records', 'checks')}&checkDetail=pages_readable")
    expect(page.get_by_text("Failed", exact=True).first).to_be_visible()
    expect(page.get_by_text("12 of 12 pages could not be read (100.0%; 5.0% is allowed)").first).to_be_visible()
    # The reason, how many pages have it, and one of them.
    reason = page.get_by_role("cell", name=re.compile(r"article\.product_page"))
    expect(reason.first).to_be_visible()
    expect(page.get_by_role("cell", name=f"http://{HOST}:8765/catalogue/").first).to_be_visible()
    page.get_by_role("tab", name="Partitions").last.click()
    walk.choose_partitions(f"{GOOD}, {CHANGED}")
    expect(page.get_by_text("Failed (1)", exact=True)).to_be_visible()
    expect(page.get_by_text("Passed (1)", exact=True)).to_be_visible()

    # Also by its own button `latest` is not touched.
    page = walk.open(ASSET.format("almanac", "latest", "overview"))
    walk.launch("Materialize…", CHANGED, 1)
    again = dagster_dev.runs(tags=[{"key": "dagster/partition", "value": CHANGED}])[0]["runId"]
    assert again != run
    assert dagster_dev.ended(again)["status"] == "FAILURE"
    assert published(dagster_dev, CHANGED) == 0

    # The sensor looks every half a minute. Two runs failed, one message came.
    (said,) = dagster_dev.until(lambda: alerts(dagster_dev), 120)
    assert "12 of 12 pages could not be read" in said


@pytest.mark.timeout(300)
def test_a_broken_field_is_shown_with_its_column_reason_and_examples(
    walk: Walk, dagster_dev: Dev, running_site: DemoSite
) -> None:
    running_site.switch(host=HOST, redesign=0, currency="€")
    _, status = launched(dagster_dev, walk, DEARER)
    assert status == "FAILURE"
    assert published(dagster_dev, DEARER) == 0

    page = walk.open(f"{ASSET.format('almanac', 'records', 'checks')}&checkDetail=schema_holds")
    expect(page.get_by_text("This is a blocking asset check.")).to_be_visible()
    expect(page.get_by_text("12 of 12 records were rejected").first).to_be_visible()
    # Column, check, how many, one value; then the records themselves, with their pages.
    row = page.get_by_role("row").filter(has_text="isin").filter(has_text="EUR")
    expect(row.first).to_contain_text("currency")
    expect(page.get_by_role("cell", name="currency: isin(['GBP']) (EUR)").first).to_be_visible()
    expect(page.get_by_role("cell", name=f"http://{HOST}:8765/catalogue/").first).to_be_visible()
    # Of the same source and cause as the redesign: told once, also when the sensor has looked again.
    seen = looks(dagster_dev)
    dagster_dev.until(lambda: looks(dagster_dev) >= seen + 2, 120)
    assert len(alerts(dagster_dev)) == 1
