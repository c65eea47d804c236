"""The everyday walk: launch a backfill, watch it finish, and see what it brought."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from collector_assets.demo import DemoSite
from collector_assets.graph import checks
from collector_tests.fixtures.dagster_dev import Dev
from collector_tests.ui.walk import ASSET, GROUP, JOB, Walk, as_read

STAGES = ("frontier", "raw_pages", "records", "latest")
GREEN = "var(--color-accent-green)"


@pytest.fixture(scope="module")
def keys(dagster_dev: Dev) -> list[str]:
    """The three newest windows: the UI plots only the newest partitions."""
    return dagster_dev.partitions("shop", "frontier")[-3:]


@pytest.fixture(scope="module")
def chosen(keys: list[str]) -> str:
    """The three windows as one writes them into a dialog."""
    return f"[{keys[0]}...{keys[-1]}]"


@pytest.fixture(scope="module")
def filled(dagster_dev: Dev, keys: list[str]) -> None:
    """The three windows are there, also when one of the tests below runs alone."""
    if not all(dagster_dev.materialized_at(("shop", "latest"), keys)):
        dagster_dev.backfill_ended(dagster_dev.backfill("collect_shop", keys))


@pytest.mark.timeout(600)
def test_a_backfill_from_the_jobs_dialog_fills_three_windows_of_all_four_assets(
    walk: Walk, dagster_dev: Dev, site: DemoSite, keys: list[str], chosen: str
) -> None:
    before = set(dagster_dev.backfills())
    walk.open(JOB.format("shop"))
    assert walk.launch("Materialize all…", chosen, 3) == "Launch backfill"

    (backfill,) = dagster_dev.until(lambda: set(dagster_dev.backfills()) - before, 30)
    walk.open(f"/runs/b/{backfill}")
    walk.page.get_by_text(backfill).first.wait_for()
    assert dagster_dev.backfill_ended(backfill, within_s=400) == "COMPLETED_SUCCESS"
    expect(walk.page.get_by_text("100% completed")).to_be_visible()
    assert len(site.arrivals(host="shop.localhost")) == 3 * 63

    for stage in STAGES:
        page = walk.open(ASSET.format("shop", stage, "partitions"))
        walk.choose_partitions(chosen)
        for said in ("3 Partitions Selected", "Failed (0)", "Materialized (3)", "Materializing (0)", "Missing (0)"):
            expect(page.get_by_text(said, exact=True)).to_be_visible()
        colors = page.locator('[class*="PartitionStatusBar_colorSpan"]').evaluate_all(
            "spans => spans.map(span => span.style.background)"
        )
        assert set(colors) == {GREEN}


@pytest.mark.timeout(300)
def test_each_check_passed_in_each_window(walk: Walk, chosen: str, filled: None) -> None:
    for stage in STAGES:
        for name in checks.HOLDS[stage]:
            if (stage, name) == ("raw_pages", "collected_in_window"):
                continue  # yesterday's pages were collected today, and the check says so
            page = walk.open(f"{ASSET.format('shop', stage, 'checks')}&checkDetail={name}")
            expect(page.get_by_text(as_read(checks.HOLDS[stage][name]))).to_be_visible()
            page.get_by_role("tab", name="Partitions").last.click()
            walk.choose_partitions(chosen)
            expect(page.get_by_text("Passed (3)", exact=True)).to_be_visible()


def test_lineage_runs_from_the_frontier_to_latest(walk: Walk, dagster_dev: Dev, filled: None) -> None:
    page = walk.open(GROUP.format("shop"))
    for stage in STAGES:
        page.get_by_text(stage, exact=True).first.wait_for()
    # From left to right, as they depend on each other.
    boxes = [page.get_by_text(stage, exact=True).first.bounding_box() for stage in STAGES]
    places = [box["x"] for box in boxes if box]
    assert len(places) == 4
    assert places == sorted(places)
    expect(page.get_by_text("Passed").first).to_be_visible()
    assert [dagster_dev.upstream("shop", stage) for stage in STAGES] == [
        [], [["shop", "frontier"]], [["shop", "raw_pages"]], [["shop", "records"]],
    ]  # fmt: skip


@pytest.mark.timeout(300)
def test_a_materialization_shows_preview_counts_and_plots(walk: Walk, keys: list[str], filled: None) -> None:
    page = walk.open(f"{ASSET.format('shop', 'records', 'partitions')}&partition={keys[1]}")
    expect(page.get_by_text("dagster/partition_row_count")).to_be_visible()
    for column in ("upc", "title", "price", "in_stock"):
        expect(page.get_by_role("columnheader", name=column, exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name="A Crooked Island", exact=True)).to_be_visible()

    page = walk.open(ASSET.format("shop", "records", "overview"))
    expect(page.get_by_text("What a customer pays, tax included; GBP")).to_be_visible()
    page.get_by_role("button", name="Plots").or_(page.get_by_text("Plots", exact=True)).first.click()
    expect(page.locator("canvas").first).to_be_visible()
    for number in ("records", "rejects", "pages_read"):
        expect(page.get_by_text(number, exact=True).first).to_be_visible()

    page = walk.open(f"{ASSET.format('shop', 'raw_pages', 'partitions')}&partition={keys[1]}")
    for number in ("planned", "done", "failed", "skipped", "outstanding", "retries", "requests_sent", "bytes_received"):
        expect(page.get_by_text(number, exact=True).first).to_be_visible()
    expect(page.get_by_text(re.compile(rf"archive/shop/{keys[1]}"))).to_be_visible()
