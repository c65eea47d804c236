"""A window whose pages a rendering service fetches: as polite as any other, within its cap, archived as what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from collector_assets import audit, collect, trial
from collector_assets.archive.check import check
from collector_assets.contract import Budget, Kind, Link, RenderingService, Source, replace, seconds
from collector_assets.errors import OriginHalted, RenderingStopped
from collector_assets.fetch import Fetcher, choice
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_assets.fetch.rendering import RenderingFetcher
from collector_assets.purse import WindowPurse
from collector_assets.sources.shop import discover, extract
from collector_assets.status import window_row
from collector_assets.window import Window
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, USER_AGENT, Hands, ends
from collector_tests.fetch.rendering import preset
from collector_tests.fixtures.services import Said, ServiceSite

SHOP = "http://shop.localhost:8765"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """Hands that have a rendering service."""

    hands: Hands
    services: ServiceSite

    def source(self, name: str = "firecrawl", **changes: Any) -> Source:
        kinds = {"listing": Kind(discover=discover), "detail": Kind(extract=extract, fetcher="rendering")}
        rendered = {"discover": None, "extract": None, "kinds": kinds, "rendering": self.service(name)}
        return replace(QUICK, **{**rendered, **changes})

    def service(self, name: str = "firecrawl", **changes: Any) -> RenderingService:
        return replace(preset(name, self.hands.site.address), **{"cap": 1_000, **changes})

    def fetcher(self, source: Source, window: Window = TODAY) -> Callable[[], Fetcher]:
        makers: choice.Makers = {"http": self.hands.fetcher, "rendering": lambda: self._rendering(source, window)}
        return lambda: choice.of(source, makers)

    def _rendering(self, source: Source, window: Window) -> Fetcher:
        assert source.rendering is not None
        by = HttpFetcher(user_agent=USER_AGENT, egress=DemoSiteOnly(self.services.address), connections=8)
        purse = WindowPurse(
            source.rendering, source=source.name, window_start=window.start, database=self.hands.database
        )
        return RenderingFetcher(source.rendering, by=by, target=DemoSiteOnly(self.hands.site.address), purse=purse)

    def collect(self, source: Source, window: Window = TODAY) -> collect.Collected:
        hands = self.hands
        return collect.run(
            source=source, window=window_row(hands.database, source.name, window.key), kinds=None,
            database=hands.database, archive=hands.archive, fetcher=self.fetcher(source, window),
        )  # fmt: skip

    def spent(self) -> list[Any]:
        return self.hands.rows("SELECT service, calls, spent::int FROM spending")


@pytest.fixture
def renderer(hands: Hands, services: ServiceSite) -> Renderer:
    return Renderer(hands=hands, services=services)


def details(*paths: str) -> tuple[Link, ...]:
    return tuple(Link(f"{SHOP}{path}") for path in paths)


ITEMS = details(*(f"/catalogue/page-1.html?{number}" for number in range(6)))
KINDS = {"detail": Kind(extract=extract, fetcher="rendering", may_be_empty=True)}
SERIAL = {"kinds": KINDS, "start_urls": ITEMS, "budget": Budget(gap=seconds(0), slots=1)}


def test_a_window_is_collected_through_a_service(renderer: Renderer) -> None:
    """Listings by HTTP, books by the service: sixty calls, sixty records, and robots.txt by nobody but us."""
    hands, source = renderer.hands, renderer.source()
    hands.open(source)
    renderer.collect(source)
    report = hands.read(source)

    assert ends(hands.status(source)) == {"planned": 63, "done": 63, "failed": 0, "skipped": 0, "outstanding": 0}
    assert report.verdict.passed
    assert (len(renderer.services.calls), renderer.spent()) == (60, [("firecrawl", 60, 60)])
    by_us = [arrival.path for arrival in hands.arrivals(robots=True) if arrival.user_agent == USER_AGENT]
    assert by_us.count("/robots.txt") == 1
    assert not any(call.url.endswith("/robots.txt") for call in renderer.services.calls)


@pytest.mark.parametrize("name", ["alterlab", "firecrawl", "scrapingbee", "brightdata"])
def test_every_preset_brings_pages_that_can_be_read(renderer: Renderer, name: str) -> None:
    hands, source = renderer.hands, renderer.source(name, max_requests=8)
    hands.open(source)
    renderer.collect(source)
    hands.read(source)

    assert hands.column("SELECT count(*) FROM observations WHERE source = %s", source.name)[0] > 0
    assert hands.column("SELECT count(*) FROM requests WHERE state = 'failed'") == [0]


class TestNoWayRoundARefusal:
    def test_what_robots_txt_forbids_is_not_asked_of_a_service(self, renderer: Renderer) -> None:
        renderer.hands.site.switch(host="shop.localhost", robots="User-agent: *\nDisallow: /catalogue/")
        source = renderer.source(**SERIAL)
        renderer.hands.open(source)
        renderer.collect(source)

        assert renderer.services.calls == []
        assert renderer.hands.column("SELECT DISTINCT outcome FROM requests") == ["robots_disallowed"]
        assert renderer.spent() == []

    @pytest.mark.parametrize("name", ["alterlab", "firecrawl", "scrapingbee", "brightdata"])
    def test_refusals_that_a_service_reports_halt_the_site(self, renderer: Renderer, name: str) -> None:
        """Rule 9: and they halt it for our own HTTP as well."""
        renderer.hands.site.misbehave("status", prefix="/catalogue/", arg="403")
        source = renderer.source(name, **SERIAL)
        renderer.hands.open(source)
        with pytest.raises(OriginHalted) as caught:
            renderer.collect(source)

        assert caught.value.origins == (SHOP,)
        assert len(renderer.services.calls) == 3

        plain = replace(source, name="plain", rendering=None, kinds={"detail": Kind(extract=extract)})
        renderer.hands.open(plain)
        with pytest.raises(OriginHalted):
            renderer.hands.collect(plain)

    def test_a_block_that_a_service_names_is_the_sites(self, renderer: Renderer) -> None:
        """Rule 9."""
        renderer.services.next = [Said.json({"error": "BLOCKED_BY_ANTIBOT"}, status=403)] * 3
        source = renderer.source("alterlab", **SERIAL)
        renderer.hands.open(source)
        with pytest.raises(OriginHalted, match="BLOCKED_BY_ANTIBOT"):
            renderer.collect(source)

    def test_a_challenge_under_status_200_is_a_refusal(self, renderer: Renderer) -> None:
        html = "<html><head><title>Just a moment...</title></head><script>window._cf_chl_opt={}</script></html>"
        about = {"statusCode": 200, "contentType": "text/html"}
        renderer.services.next = [Said.json({"success": True, "data": {"rawHtml": html, "metadata": about}})] * 3
        source = renderer.source(**SERIAL)
        renderer.hands.open(source)
        with pytest.raises(OriginHalted, match="blocked"):
            renderer.collect(source)

    def test_the_budget_of_the_site_is_kept(self, renderer: Renderer) -> None:
        """Rule 7: by the site's own log, one after the other, the gap between them."""
        source = renderer.source(**{**SERIAL, "budget": Budget(gap=seconds(0.2), slots=1)})
        renderer.hands.open(source)
        renderer.collect(source)
        log = sorted(renderer.hands.arrivals(robots=True), key=lambda arrival: arrival.arrived)

        assert len(log) == 7
        assert min(later.arrived - sooner.ended for sooner, later in pairwise(log)) >= 0.19

    def test_a_site_that_is_busy_is_left_alone_as_long_as_it_asks(self, renderer: Renderer) -> None:
        """Rule 9."""
        renderer.services.next = [
            Said(status=429, headers={"Spb-Retry-After": "600", "Spb-resolved-url": ITEMS[0].url})
        ]
        source = renderer.source("scrapingbee", **SERIAL, patience=seconds(1))
        renderer.hands.open(source)
        done = renderer.collect(source)

        assert done.ending is collect.Ending.WAITING
        assert len(renderer.services.calls) == 1
        (left,) = renderer.hands.column("SELECT extract(epoch FROM closed_until - now())::int FROM budget_keys")
        assert 500 < left <= 600


class TestTheCap:
    def test_stops_the_run_before_it_is_passed(self, renderer: Renderer) -> None:
        source = renderer.source(**{**SERIAL, "rendering": renderer.service(cap=4)})
        renderer.hands.open(source)
        with pytest.raises(RenderingStopped, match="would pass the cap of this window"):
            renderer.collect(source)

        assert (len(renderer.services.calls), renderer.spent()) == (4, [("firecrawl", 4, 4)])
        status = ends(renderer.hands.status(source))
        assert (status["done"] + renderer.hands.column("SELECT count(*) FROM requests WHERE state = 'fetched'")[0]) == 4
        assert renderer.hands.column("SELECT max(attempts) FROM requests WHERE state NOT IN ('done', 'fetched')") == [0]

    def test_holds_for_the_next_worker_until_it_is_raised(self, renderer: Renderer) -> None:
        source = renderer.source(**{**SERIAL, "rendering": renderer.service(cap=4)})
        renderer.hands.open(source)
        for _ in range(2):
            with pytest.raises(RenderingStopped):
                renderer.collect(source)
        assert len(renderer.services.calls) == 4

        renderer.collect(replace(source, rendering=renderer.service(cap=6)))

        assert len(renderer.services.calls) == 6
        assert renderer.hands.column("SELECT count(*) FROM requests WHERE state = 'queued'") == [0]

    def test_of_one_window_is_not_that_of_the_next(self, renderer: Renderer) -> None:
        source = renderer.source(**{**SERIAL, "rendering": renderer.service(cap=6)})
        for window in (TODAY, TOMORROW):
            renderer.hands.open(source, window)
            renderer.collect(source, window)

        assert len(renderer.services.calls) == 12

    def test_a_quota_that_is_used_up_stops_the_run_and_costs_no_attempt(self, renderer: Renderer) -> None:
        renderer.services.next = [None, Said.json({"success": False, "error": "Payment required"}, status=402)]
        source = renderer.source(**SERIAL)
        renderer.hands.open(source)
        with pytest.raises(RenderingStopped, match="402 Payment required"):
            renderer.collect(source)

        assert len(renderer.services.calls) == 2
        assert renderer.spent() == [("firecrawl", 1, 1)]
        assert renderer.hands.column("SELECT count(*) FROM requests WHERE attempts > 0") == [1]

    def test_check_spends_from_the_same_purse(self, renderer: Renderer) -> None:
        source = renderer.source(**{**SERIAL, "rendering": renderer.service(cap=1)})
        hands = renderer.hands
        checked: dict[str, Any] = {"url": ITEMS[0].url, "kind": "detail", "database": hands.database}
        [page] = trial.of_site(source, TODAY, **checked, fetcher=renderer.fetcher(source))
        assert page.kind == "detail"
        with pytest.raises(RenderingStopped):
            trial.of_site(source, TODAY, **checked, fetcher=renderer.fetcher(source))

        assert renderer.spent() == [("firecrawl", 1, 1)]


class TestTroubles:
    def test_of_the_service_are_tried_again_and_are_not_the_sites(self, renderer: Renderer) -> None:
        renderer.services.next = [Said.json({"code": "SCRAPE_TIMEOUT", "error": "late"}, status=408)] * 3
        source = renderer.source(**SERIAL, retry_wait=seconds(0.01))
        renderer.hands.open(source)
        renderer.collect(source)

        assert len(renderer.services.calls) == 9
        assert renderer.hands.column("SELECT count(*) FROM requests WHERE state = 'failed'") == [0]
        assert renderer.hands.rows("SELECT 1 FROM origins WHERE refusals > 0") == []

    def test_that_last_fail_the_request_with_a_name(self, renderer: Renderer) -> None:
        renderer.services.next = [Said.json({"code": "X", "error": "down"}, status=500)] * 3
        source = renderer.source(**{**SERIAL, "start_urls": ITEMS[:1]}, retry_wait=seconds(0.01))
        renderer.hands.open(source)
        renderer.collect(source)

        assert renderer.hands.rows("SELECT state, outcome, reason FROM requests") == [
            ("failed", "rendering_failed", "firecrawl: 500 X")
        ]


class TestWhereAPageIsFrom:
    """BRW-01, rule 9: a service follows redirects; what it ended at is judged like a request of our own."""

    def landed(self, url: str, html: str = "<h1>elsewhere</h1>") -> Said:
        about = {"statusCode": 200, "contentType": "text/html", "url": url}
        return Said.json({"success": True, "data": {"rawHtml": html, "metadata": about}})

    def one(self, renderer: Renderer, **changes: Any) -> Source:
        source = renderer.source(**{**SERIAL, "start_urls": ITEMS[:1], **changes})
        renderer.hands.open(source)
        renderer.collect(source)
        return source

    def test_out_of_scope_is_let_go_and_nothing_of_it_kept(self, renderer: Renderer) -> None:
        # Mutation: `judged` returns every answer as it is.
        renderer.services.next = [self.landed("http://elsewhere.example/")]
        self.one(renderer)

        assert renderer.hands.column("SELECT outcome FROM requests") == ["out_of_scope"]
        assert renderer.hands.rows("SELECT outcome, body_bytes, final_url FROM pages") == [
            ("redirect", 0, ITEMS[0].url)
        ]

    def test_another_origin_in_scope_is_a_request_of_its_own(self, renderer: Renderer) -> None:
        """Its robots.txt is asked for, and then it is rendered from there."""
        renderer.services.next = [self.landed("http://api.shop.localhost:8765/catalogue/page-2.html")]
        self.one(renderer)

        there = renderer.hands.arrivals("api.shop.localhost", robots=True)
        assert [arrival.path for arrival in there] == ["/robots.txt", "/catalogue/page-2.html"]
        assert [call.url for call in renderer.services.calls] == [
            ITEMS[0].url, "http://api.shop.localhost:8765/catalogue/page-2.html",
        ]  # fmt: skip
        assert renderer.hands.column("SELECT outcome FROM pages ORDER BY page_id") == ["redirect", "ok"]

    def test_another_page_of_the_origin_must_be_allowed(self, renderer: Renderer) -> None:
        renderer.hands.site.switch(host="shop.localhost", robots="User-agent: *\nDisallow: /private")
        renderer.services.next = [self.landed(f"{SHOP}/private/page")]
        self.one(renderer)

        assert renderer.hands.column("SELECT outcome FROM requests") == ["robots_disallowed"]
        assert renderer.hands.rows("SELECT 1 FROM pages") == []

    def test_another_page_of_the_origin_is_named(self, renderer: Renderer) -> None:
        """BRW-10."""
        renderer.services.next = [self.landed(f"{SHOP}/catalogue/final.html")]
        self.one(renderer)

        assert renderer.hands.rows("SELECT outcome, url, final_url FROM pages") == [
            ("ok", ITEMS[0].url, f"{SHOP}/catalogue/final.html")
        ]

    def test_pages_that_lead_to_each_other_come_to_an_end(self, renderer: Renderer) -> None:
        other = "http://api.shop.localhost:8765/b"
        renderer.services.next = [self.landed(other), self.landed(ITEMS[0].url)] * 5
        self.one(renderer)

        assert renderer.hands.column("SELECT outcome FROM requests") == ["redirect_loop"]
        assert len(renderer.services.calls) == 2


class TestTheArchive:
    def test_holds_pages_as_resources_and_its_check_is_green(self, renderer: Renderer) -> None:
        hands, source = renderer.hands, renderer.source(max_requests=8)
        hands.open(source)
        renderer.collect(source)

        found = audit.run(hands.archive, database=hands.database)
        assert (found.problems, found.unreferenced) == ([], 0)
        [file] = hands.folder.rglob("*.warc.gz")
        with file.open("rb") as stream:
            assert check(file.name, stream).problems == []
            stream.seek(0)
            kinds = [(r.rec_type, r.rec_headers.get_header("WARC-Target-URI") or "") for r in ArchiveIterator(stream)]
        rendered = [url for kind, url in kinds if kind == "resource"]
        assert len(rendered) == len(renderer.services.calls) > 0
        assert all(url.startswith(f"urn:rendered:{SHOP}/catalogue/") for url in rendered)
        assert [kind for kind, url in kinds if "render.localhost" in url] == []

    def test_and_everything_else_holds_no_secret(self, renderer: Renderer, caplog: pytest.LogCaptureFixture) -> None:
        hands, source = renderer.hands, renderer.source("scrapingbee", max_requests=5)
        renderer.services.next = [Said.json({"error": "bad s3cr3t/key+1 and s3cr3t%2Fkey%2B1"}, status=500)]
        hands.open(source)
        renderer.collect(source)

        [file] = hands.folder.rglob("*.warc.gz")
        with file.open("rb") as stream:
            kept = b"".join(
                str(record.rec_headers.headers).encode() + record.content_stream().read()
                for record in ArchiveIterator(stream)
            )
        rows = "".join(
            str(hands.rows(query))
            for query in ("SELECT * FROM requests", "SELECT * FROM pages", "SELECT * FROM spending")
        )
        assert "s3cr3t" not in kept.decode("latin-1") + rows + caplog.text

    def test_of_an_earlier_window_is_not_compared_with(self, renderer: Renderer) -> None:
        """A service cannot ask whether the site's page changed: each window has its own bytes."""
        source = renderer.source(**{**SERIAL, "start_urls": ITEMS[:2]})
        for window in (TODAY, TOMORROW):
            renderer.hands.open(source, window)
            renderer.collect(source, window)

        assert renderer.hands.column("SELECT outcome FROM pages WHERE revisit_of IS NULL") == ["ok"] * 4
