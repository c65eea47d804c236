"""The button "Terminate" of a run's page, pressed in the middle of a window."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from collector_assets.demo import DemoSite
from collector_tests.end_to_end.test_terminate import STAGES, held
from collector_tests.fixtures.dagster_dev import Dev
from collector_tests.ui.walk import Walk

KEY = "2026-02-24"
HOST = "shop.localhost"
PAGES = 63
BACK_WITHIN_S = 5.0


def answered(site: DemoSite) -> list[str]:
    """The pages that the site gave away whole, or said to be as they were in a window before."""
    return [arrival.path for arrival in site.arrivals(host=HOST) if arrival.status in (200, 304)]


@pytest.mark.timeout(400)
def test_terminate_gives_everything_back_and_the_next_run_repeats_no_page(
    walk: Walk, dagster_dev: Dev, site: DemoSite
) -> None:
    # Mutation: Worker.let_go without give_back_all(): the leases stay until they run out
    site.misbehave("delay", prefix="/catalogue/", arg="1.5", host=HOST)
    run = dagster_dev.launch(STAGES, KEY)
    page = walk.open(f"/runs/{run}")
    dagster_dev.until(lambda: len(answered(site)) >= 8, 120)
    assert held(dagster_dev)[0] > 0

    page.get_by_role("button", name="Terminate").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Terminate").click()
    pressed = time.monotonic()
    dagster_dev.until(lambda: held(dagster_dev) == (0, 0, 0), 60)
    assert time.monotonic() - pressed <= BACK_WITHIN_S
    assert dagster_dev.ended(run, within_s=60)["status"] == "CANCELED"
    page.goto(f"{walk.url}/runs/{run}")
    expect(page.get_by_text("Canceled", exact=True).first).to_be_visible()
    assert len(answered(site)) < PAGES

    site.behave()
    again = dagster_dev.launch(STAGES, KEY)
    assert dagster_dev.ended(again)["status"] == "SUCCESS"
    pages = answered(site)
    assert len(pages) == PAGES
    assert len(set(pages)) == PAGES, "no page twice"
