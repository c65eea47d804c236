"""Makes the pictures of `docs/using-the-ui.md` anew: `make screenshots`.

A whole installation in a temporary folder (Postgres, demo site, Dagster), walked through as the page tells it. Only
the demo sources are in it, so the pictures show what a newcomer sees.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from collector_assets import stack
from collector_assets.demo import DemoSite
from collector_tests.ui import walk as walks
from collector_tests.ui.walk import ASSET, GROUP, JOB, Walk

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SIZE = {"width": 1400, "height": 760}
MOST_BYTES = 150_000
UP_S = 120.0
FINISHED_S = 300.0
SETTLED_MS = 2_000
"""After what was waited for is there: counts and plots follow."""


def main() -> None:
    """Every picture, in the order of the page."""
    FOLDER.mkdir(exist_ok=True)
    with installation() as (url, site), walks.browser() as browser, walks.walk(browser, url) as walk:
        walk.page.set_viewport_size(SIZE)  # pyright: ignore[reportArgumentType]
        first_backfill(walk)
        what_it_brought(walk)
        a_failed_check(walk, site)


def first_backfill(walk: Walk) -> None:
    """From the job's dialog to three collected windows."""
    today = datetime.now(UTC)
    windows = f"[{today - timedelta(days=2):%Y-%m-%d}...{today:%Y-%m-%d}]"
    walk.open(JOB.format("shop"))
    dialog = walk.launch_dialog("Materialize all…", windows, 3)
    taken(walk.page, "launch-a-backfill")
    dialog.get_by_role("button", name="Launch backfill").click()
    dialog.wait_for(state="detached")

    backfill = newest(walk.url, "partitionBackfillsOrError", "PartitionBackfills", "id")
    page = walk.open(f"/runs/b/{backfill}")
    # The other one is a column of the table.
    expect(page.get_by_text("In progress", exact=True)).to_have_count(1, timeout=FINISHED_S * 1_000)
    taken(walk.page, "backfill-finished")


def what_it_brought(walk: Walk) -> None:
    """The four assets, a window's counts, records with their columns, numbers over windows."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    page = walk.open(GROUP.format("shop"))
    page.get_by_text("6 / 6 Passed").wait_for()
    taken(page, "lineage")

    page = walk.open(f"{ASSET.format('shop', 'raw_pages', 'partitions')}&partition={today}")
    page.get_by_text("requests_sent", exact=True).scroll_into_view_if_needed()
    taken(page, "a-window-of-raw-pages")

    page = walk.open(ASSET.format("shop", "records", "overview"))
    page.get_by_text("What a customer pays").wait_for()
    taken(page, "records-and-their-columns")

    page.get_by_text("Plots", exact=True).first.click()
    plots = page.locator("canvas").first
    plots.wait_for()
    plots.scroll_into_view_if_needed()
    taken(page, "numbers-over-windows")


def a_failed_check(walk: Walk, site: DemoSite) -> None:
    """The shop changes its pages; yesterday's window is collected again from the start."""
    before = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    site.switch(host="shop.localhost", redesign=1)
    walk.open(JOB.format("shop"))
    walk.launch("Materialize all…", before, 1)
    run = newest(walk.url, "runsOrError", "Runs", "runId")
    walk.open(f"/runs/{run}").get_by_text("RUN_FAILURE").first.wait_for(timeout=FINISHED_S * 1_000)
    page = walk.open(f"{ASSET.format('shop', 'records', 'checks')}&checkDetail=pages_readable")
    page.get_by_role("cell", name="extraction_failed").first.wait_for()
    taken(page, "a-failed-check")


def taken(page: Page, name: str) -> None:
    """The picture of a page, once it has settled; refuses one that would swell the repository."""
    page.wait_for_timeout(SETTLED_MS)
    file = FOLDER / f"{name}.png"
    page.screenshot(path=file)
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{file} has {size} bytes; {MOST_BYTES} are allowed")
    sys.stdout.write(f"{file}  {size // 1_000} kB\n")


@contextmanager
def installation() -> Iterator[tuple[str, DemoSite]]:
    """Where a new installation's UI is, and its demo site."""
    with (
        tempfile.TemporaryDirectory(prefix="collector-shots-") as folder,
        stack.running(state=Path(folder), dsn=None, dagster_url=None) as ground,
        DemoSite() as site,
    ):
        dagster = stack.DagsterDev(
            home=stack.dagster_home(), port=stack.free_port(13_900), log=ground.state / "dagster-dev.log",
            environment={**ground.environment(), "COLLECTOR_DEMO_SITE": site.address, "COLLECTOR_SOURCES": ""},
        )  # fmt: skip
        try:
            dagster.wait_until_up()
            _wait_until_loaded(dagster.url)
            yield dagster.url, site
        finally:
            dagster.stop()


def newest(url: str, query: str, kind: str, name: str) -> str:
    """The id of the newest run or backfill."""
    found = _asked(url, f"{{ {query}(limit: 1) {{ ... on {kind} {{ results {{ {name} }} }} }} }}")
    return found[query]["results"][0][name]


def _wait_until_loaded(url: str) -> None:
    deadline = time.monotonic() + UP_S
    while not _asked(url, "{ assetNodes { id } }")["assetNodes"]:
        if time.monotonic() > deadline:
            raise SystemExit(f"{url} shows no assets after {UP_S:g} s")
        time.sleep(1)


def _asked(url: str, query: str) -> dict[str, Any]:
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310  our own server
        return json.load(response)["data"]


if __name__ == "__main__":
    main()
