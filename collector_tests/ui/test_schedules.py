"""A schedule turned on by a click, and what it does when the clock passes midnight."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from collector_assets.demo import DemoSite
from collector_assets.graph.automation import LOOKBACK
from collector_tests.fixtures.dagster_dev import LOCATION, Dev
from collector_tests.ui.walk import SCHEDULE, Walk

HOST = "almanac.localhost"


def midnight(days: int = 0) -> datetime:
    """The one that began today, or another."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)


def key(of: datetime) -> str:
    return f"{of:%Y-%m-%d}"


def requests_at(dev: Dev, schedule: str, at: datetime) -> list[str]:
    """The windows that the schedule asks for when its clock says `at`."""
    found: dict[str, Any] = dev.ask(
        "mutation($of: ScheduleSelector!, $at: Float) { scheduleDryRun(selectorData: $of, timestamp: $at) {"
        " ... on DryRunInstigationTick { evaluationResult { skipReason error { message }"
        " runRequests { tags { key value } } } } ... on PythonError { message } } }",
        of={**LOCATION, "scheduleName": schedule},
        at=at.timestamp(),
    )["scheduleDryRun"]["evaluationResult"]
    assert found["error"] is None, found
    tags = [{tag["key"]: tag["value"] for tag in request["tags"]} for request in found["runRequests"] or ()]
    return [each["dagster/partition"] for each in tags]


def of_almanac(dev: Dev) -> list[str]:
    """Every run of the source."""
    return [run["runId"] for run in dev.runs(tags=[{"key": "collector/source", "value": "almanac"}])]


def switch(page: Page) -> Locator:
    return page.get_by_role("row").filter(has_text="Running").locator("label")


def preview(page: Page, at: datetime) -> Locator:
    """The dialog with what the schedule would do at a midnight."""
    page.get_by_role("button", name="Preview tick result").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="arrow_drop_down").click()
    page.get_by_role("menuitem", name=f"{at:%b} {at.day}, 12:00 AM UTC").click()
    dialog.get_by_role("button", name="Continue").click()
    dialog.get_by_text("Result", exact=True).wait_for()
    return dialog


@pytest.mark.timeout(300)
def test_a_schedule_is_on_after_a_click_and_starts_one_run_for_the_window_that_begins(
    walk: Walk, dagster_dev: Dev, site: DemoSite
) -> None:
    """Rule 22: also after days without a tick only the newest window, since its pages show today."""
    site.switch(host=HOST, books=3)
    page = walk.open(SCHEDULE.format("almanac_windows"))
    expect(page.get_by_role("row").filter(has_text="Running").get_by_role("checkbox")).not_to_be_checked()
    switch(page).click()
    expect(page.get_by_role("row").filter(has_text="Running").get_by_role("checkbox")).to_be_checked()
    tomorrow = midnight(+1)
    expect(page.get_by_role("row").filter(has_text="Next tick")).to_contain_text(f"{tomorrow:%b} {tomorrow.day}, 12:00")

    # The clock past the next midnight.
    assert requests_at(dagster_dev, "almanac_windows", tomorrow) == [key(tomorrow)]
    dialog = preview(page, tomorrow)
    expect(dialog.get_by_text("1 run requests")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)

    # The clock at this morning's tick, and what it asks for is started.
    today, before = midnight(), set(of_almanac(dagster_dev))
    dialog = preview(page, today)
    dialog.get_by_role("button", name="Launch all & commit tick result").click()
    (run,) = dagster_dev.until(lambda: set(of_almanac(dagster_dev)) - before, within_s=60)
    ended = dagster_dev.ended(run)
    assert (ended["status"], ended["tags"]["dagster/partition"]) == ("SUCCESS", key(today))
    assert ended["tags"]["dagster/priority"] == "10"
    assert set(of_almanac(dagster_dev)) == {*before, run}
    assert len(site.arrivals(host=HOST)) == 1 + 3

    # The same tick once more starts nothing, and says why.
    assert requests_at(dagster_dev, "almanac_windows", today) == []
    page = walk.open(SCHEDULE.format("almanac_windows"))
    expect(preview(page, today).get_by_text(f"already opened: {key(today)}")).to_be_visible()

    page = walk.open(SCHEDULE.format("almanac_windows"))
    switch(page).click()
    expect(page.get_by_role("row").filter(has_text="Running").get_by_role("checkbox")).not_to_be_checked()


@pytest.mark.timeout(120)
def test_days_that_were_missed_are_caught_up_where_the_starts_name_the_window(walk: Walk, dagster_dev: Dev) -> None:
    """Rule 22: all of them, bounded, oldest first."""
    tomorrow = midnight(+1)
    missed = [key(tomorrow - timedelta(days=days)) for days in reversed(range(LOOKBACK))]
    assert requests_at(dagster_dev, "younger_windows", tomorrow) == missed
    page = walk.open(SCHEDULE.format("younger_windows"))
    expect(preview(page, tomorrow).get_by_text(f"{LOOKBACK} run requests")).to_be_visible()
