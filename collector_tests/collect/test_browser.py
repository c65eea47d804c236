"""Windows of sources whose pages need a browser."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from collector_assets import audit, extraction, pages
from collector_assets.contract import Page, Source, replace, seconds
from collector_assets.database import Database
from collector_assets.demo import DemoSite
from collector_assets.demo.arrivals import min_gap
from collector_assets.fetch import Fetcher
from collector_assets.sources.shop_js import SOURCE
from collector_tests.collect.conftest import TODAY, Hands, ends
from collector_tests.fixtures.browser import NEEDS_CHROMIUM, fetcher_of

pytestmark = NEEDS_CHROMIUM
HOST = "shop-js.localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserHands(Hands):
    """Hands of a source with a browser."""

    source: Source

    def fetcher(self) -> Fetcher:
        return fetcher_of(self.source, self.site.address)


@pytest.fixture
def hands(database: Database, site: DemoSite, tmp_path: Path) -> BrowserHands:
    return BrowserHands(database=database, site=site, folder=tmp_path / "archive", source=SOURCE)


def read_back(hands: Hands, kind: str) -> Page:
    """A stored page of a kind, on its way through JSON as to another process."""
    with hands.database.transaction() as connection:
        stored = pages.for_reading(connection, source=SOURCE.name, window_start=TODAY.start, kinds=[kind], limit=1)
    (stored,) = extraction.pages_from_json(extraction.pages_to_json(stored))
    response = pages.response_of(stored, hands.archive.read)
    return pages.page_of(stored, response, TODAY, SOURCE, read=hands.archive.read)


def test_the_shop_that_a_script_builds_is_collected_whole(hands: BrowserHands):
    """Three listings, sixty books: 60/60/60; what was read is what the browser saw, and it is archived."""
    hands.know_robots(SOURCE, f"http://{HOST}:8765")
    first, second = hands.discover(SOURCE), hands.collect(SOURCE)
    read = hands.read(SOURCE)
    hands.publish(SOURCE)

    assert ends(hands.status(SOURCE)) == {"planned": 63, "done": 63, "failed": 0, "skipped": 0, "outstanding": 0}
    assert (read.records, read.rejects) == ({"record": 60}, 0)
    assert hands.column("SELECT count(*) FROM latest") == [60]

    # Each page has loaded two things besides, the script and its data: counted, and in the site's own log.
    arrivals = hands.arrivals(HOST)
    assert first.collected.sent + second.sent == len(arrivals) == 3 * 63
    assert second.loads["own"] == 2 * 60
    assert second.loads["foreign"] == 60, "the tracker's script"
    assert second.loads["unwanted"] >= 60, "pictures, styles, fonts and beacons"
    assert not hands.arrivals("tracker.localhost")

    page = read_back(hands, "detail")
    assert "Loading" in page.body.decode()
    assert "product_page" in page.rendered == page.text
    (data,) = page.captured("*/app/api/*")
    assert data.json()["facts"]["UPC"] in page.text
    assert page.captured("*.css") == []

    checked = audit.run(hands.archive, database=hands.database)
    assert (checked.problems, checked.unreferenced, checked.types["resource"]) == ([], 0, 63)


def test_with_one_slot_everything_keeps_the_gap(hands: BrowserHands):
    """Rule 7: documents and what they load are one row of requests, the gap between any two of them."""
    # Mutation: `gap_s=permission.gap_s` in `Desk._fetch` left out.
    slow = replace(SOURCE, budget=replace(SOURCE.budget, slots=1, gap=seconds(0.3)), max_requests=2)
    hands.site.switch(host=HOST, books=1)
    hands.discover(slow)
    hands.collect(slow)

    arrivals = hands.arrivals(HOST, robots=True)
    assert len(arrivals) >= 6
    assert (min_gap(arrivals) or 0) >= 0.3


def test_a_page_that_leads_on_by_itself_is_followed_by_the_frontier(hands: BrowserHands):
    """BRW-10: what is stored is where the page went, as a hop of its own; never the stub."""
    stub = base64.b64encode(b"<p>stub</p><script>location.replace('/app/page-3.html')</script>").decode()
    hands.site.misbehave("say", prefix="/app/page-1", arg=json.dumps({"body": stub}))
    hands.discover(SOURCE)

    rows = hands.rows("SELECT url, final_url, outcome FROM pages ORDER BY page_id")
    one, three = (f"http://{HOST}:8765/app/page-{n}.html" for n in (1, 3))
    assert rows == [(one, one, "redirect"), (one, three, "ok")]
