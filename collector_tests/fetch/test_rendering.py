"""Rendering services: what is sent to them, what their answers mean, what may be spent, and what never leaks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from collector_assets.addresses import AddressPolicy
from collector_assets.contract import InHeader, InJson, RenderingService, Secret
from collector_assets.demo import DemoSite
from collector_assets.errors import RenderingStopped
from collector_assets.fetch import FetchRequest, NoResponse, NotSent, Response
from collector_assets.fetch.egress import DemoSiteOnly, Guard
from collector_assets.fetch.http import HttpFetcher
from collector_assets.fetch.rendering import MARGIN_S, UNKNOWN_LANDING, RenderingFetcher
from collector_assets.outcome import Outcome
from collector_assets.spool import whole
from collector_tests.fetch.conftest import End, always, asked
from collector_tests.fetch.rendering import PRESETS, USER_AGENT, Counted, preset, rendering_fetcher
from collector_tests.fixtures.services import SECRET, SECRET_NAME, Said, ServiceSite

SLOW = {"total_s": 40.0}


def rendered(
    services: ServiceSite,
    site: DemoSite,
    name: str,
    *requests: FetchRequest,
    purse: Counted | None = None,
    **changes: Any,
) -> list[End]:
    """How the requests end at one service."""

    async def scenario() -> list[End]:
        service = replace(preset(name, site.address), **changes)
        fetcher = rendering_fetcher(service, services.address, target=DemoSiteOnly(site.address), purse=purse)
        try:
            return [await fetcher.fetch(request, always) for request in requests]
        finally:
            await fetcher.close()

    return asyncio.run(scenario())


class TestWhatIsSent:
    def test_alterlab(self, services: ServiceSite, site: DemoSite) -> None:
        rendered(services, site, "alterlab", asked("/a?b=%C3%A4%20c", **SLOW))
        (call,) = services.calls

        assert (call.method, call.url) == ("POST", "http://shop.localhost:8765/a?b=%C3%A4%20c")
        assert call.headers["X-API-Key"] == SECRET
        assert call.body["timeout"] == 40 - MARGIN_S
        assert call.body["advanced"]["use_proxy"] is False
        assert int(call.body["cost_controls"]["max_tier"]) < 5

    def test_firecrawl(self, services: ServiceSite, site: DemoSite) -> None:
        rendered(services, site, "firecrawl", asked("/", **SLOW))
        (call,) = services.calls

        assert (call.method, call.headers["Authorization"]) == ("POST", f"Bearer {SECRET}")
        assert call.body["proxy"] == "basic"
        assert (call.body["maxAge"], call.body["timeout"], call.body["formats"]) == (0, 35_000, ["rawHtml"])

    def test_scrapingbee(self, services: ServiceSite, site: DemoSite) -> None:
        rendered(services, site, "scrapingbee", asked("/a?b=c&d=1", **SLOW))
        (call,) = services.calls

        assert (call.method, call.body) == ("GET", None)
        assert call.query["url"] == "http://shop.localhost:8765/a?b=c&d=1"
        assert call.query["api_key"] == SECRET
        assert (call.query["stealth_proxy"], call.query["premium_proxy"]) == ("false", "false")
        assert call.query["timeout"] == "35000"

    def test_brightdata(self, services: ServiceSite, site: DemoSite) -> None:
        rendered(services, site, "brightdata", asked("/"))
        (call,) = services.calls

        assert call.headers["Authorization"] == f"Bearer {SECRET}"
        assert call.body == {
            "zone": "unlocker1", "url": "http://shop.localhost:8765/", "format": "raw", "method": "GET",
        }  # fmt: skip

    @pytest.mark.parametrize("name", PRESETS)
    def test_we_say_who_we_are_to_the_service_and_nothing_about_a_disguise(
        self, services: ServiceSite, site: DemoSite, name: str
    ) -> None:
        rendered(services, site, name, asked("/"))
        (call,) = services.calls

        assert call.headers["User-Agent"] == USER_AGENT
        assert "ountry" not in str((call.query, call.headers, call.body))

    def test_the_address_may_stand_in_the_endpoint(self, services: ServiceSite, site: DemoSite) -> None:
        endpoint = f"http://render.localhost/brightdata/{{url}}?site={site.address}&url={{url}}"
        (end,) = rendered(services, site, "brightdata", asked("/?a=1&b=2"), endpoint=endpoint, method="GET", body=None)

        assert isinstance(end, Response)
        assert services.calls[0].url == "http://shop.localhost:8765/?a=1&b=2"


class TestTroublesOfAService:
    @pytest.mark.parametrize(
        ("name", "said", "outcome"),
        [
            ("alterlab", Said.json({"error": "INTERNAL"}, status=500), Outcome.RENDERING_FAILED),
            ("alterlab", Said.json({"error": "RATE_LIMITED"}, status=429), Outcome.RENDERING_FAILED),
            ("alterlab", Said.json({"job_id": "j1", "status": "pending"}, status=202), Outcome.RENDERING_FAILED),
            ("alterlab", Said.json({"error": "BLOCKED_BY_ANTIBOT", "message": "no"}, status=403), Outcome.REFUSED),
            ("alterlab", Said.json({"error": "CHALLENGE_DETECTED"}, status=403), Outcome.REFUSED),
            ("alterlab", Said.json({"detail": [{"loc": ["url"]}]}, status=422), Outcome.RENDERING_REFUSED),
            ("firecrawl", Said.json({"success": False, "error": "Rate limit"}, status=429), Outcome.RENDERING_FAILED),
            ("firecrawl", Said.json({"code": "SCRAPE_TIMEOUT", "error": "x"}, status=408), Outcome.RENDERING_FAILED),
            (
                "firecrawl",
                Said.json({"success": False, "code": "SCRAPE_DNS_RESOLUTION_ERROR", "error": "DNS"}),
                Outcome.RENDERING_FAILED,
            ),
            (
                "firecrawl",
                Said.json({"success": False, "code": "UNSUPPORTED_SITE", "error": "no"}, status=403),
                Outcome.RENDERING_REFUSED,
            ),
            ("scrapingbee", Said.json({"error": "concurrency"}, status=429), Outcome.RENDERING_FAILED),
            ("scrapingbee", Said.json({"error": "render error"}, status=500), Outcome.RENDERING_FAILED),
            ("brightdata", Said(headers={"x-brd-error-code": "proxy_timeout"}), Outcome.RENDERING_FAILED),
            ("brightdata", Said(headers={"x-brd-error-code": "reject_block"}), Outcome.REFUSED),
            ("brightdata", Said(headers={"x-brd-error-code": "new_geetest_captcha"}), Outcome.REFUSED),
            ("brightdata", Said(headers={"x-brd-err-code": "policy_20000"}), Outcome.RENDERING_REFUSED),
        ],
    )  # fmt: skip
    def test_have_an_outcome_each(
        self, services: ServiceSite, site: DemoSite, name: str, said: Said, outcome: Outcome
    ) -> None:
        services.next = [said]
        failed, fine = rendered(services, site, name, asked("/"), asked("/"))

        assert isinstance(failed, NoResponse)
        assert (failed.outcome, failed.sent) == (outcome, True)
        assert failed.reason.startswith(f"{name}: ")
        assert isinstance(fine, Response)

    @pytest.mark.parametrize(
        ("name", "said", "words"),
        [
            ("alterlab", Said.json({"error": "INSUFFICIENT_BALANCE"}, status=402), "402 INSUFFICIENT_BALANCE"),
            ("alterlab", Said.json({"detail": "Invalid API key"}, status=401), "401 Invalid API key"),
            ("firecrawl", Said.json({"success": False, "error": "Payment required"}, status=402), "402 Payment"),
            ("scrapingbee", Said.json({"message": "No more credit available"}, status=401), "No more credit available"),
            ("scrapingbee", Said.json({"error": "monthly limit"}, status=402), "monthly limit"),
            ("scrapingbee", Said(status=404, body=b"no such path"), "404 no such path"),
            ("brightdata", Said(status=401, body=b"Invalid token"), "401 Invalid token"),
            ("brightdata", Said(status=400, body=b'zone "x" not found'), "zone"),
            ("brightdata", Said(headers={"x-brd-err-code": "client_10020"}), "client_10020"),
        ],
    )  # fmt: skip
    def test_that_concern_every_page_stop_the_run_with_a_clear_message(
        self, services: ServiceSite, site: DemoSite, name: str, said: Said, words: str
    ) -> None:
        services.next, purse = [said], Counted()
        (end,) = rendered(services, site, name, asked("/"), purse=purse)

        assert isinstance(end, NotSent)
        assert isinstance(end.stop, RenderingStopped)
        assert words in str(end.stop)
        assert str(end.stop).startswith(f"{name}: ")
        assert purse.taken == 0

    def test_a_service_asks_for_time(self, services: ServiceSite, site: DemoSite) -> None:
        services.next = [Said.json({"error": "RATE_LIMITED"}, status=429, Retry_After="30")]
        (end,) = rendered(services, site, "alterlab", asked("/"))

        assert isinstance(end, NoResponse)
        assert end.wait_s == 30

    @pytest.mark.parametrize(
        "said",
        [
            Said(headers={"Content-Type": "text/html"}, body=b"<h1>Bad gateway of ours</h1>"),
            Said.json([]),
            Said.json({"success": True, "data": {"rawHtml": "<p>page</p>", "metadata": {}}}),
            Said.json({"success": True, "data": {"rawHtml": "<p>page</p>", "metadata": {"statusCode": "soon"}}}),
            Said.json({"success": True, "data": {"rawHtml": "<p>page</p>", "metadata": {"statusCode": True}}}),
            Said.json({"success": True, "data": {"rawHtml": None, "metadata": {"statusCode": 200}}}),
            Said.json({"success": True, "data": {"rawHtml": ["x"], "metadata": {"statusCode": 200}}}),
            Said.json({"success": True, "data": {"rawHtml": "x", "metadata": {"statusCode": 200, "url": "data:,x"}}}),
            Said(body=b"[" * 200_000),
        ],
    )
    def test_what_is_not_clearly_the_sites_answer_is_no_page(
        self, services: ServiceSite, site: DemoSite, said: Said
    ) -> None:
        """BRW-13."""
        services.next = [said]
        (end,) = rendered(services, site, "firecrawl", asked("/"))

        assert isinstance(end, NoResponse)
        assert end.outcome is Outcome.RENDERING_FAILED

    def test_a_service_that_is_not_there_is_no_fault_of_the_site(self, site: DemoSite) -> None:
        async def scenario() -> End:
            fetcher = rendering_fetcher(
                replace(preset("firecrawl", site.address), headers={}), "127.0.0.1:9", target=DemoSiteOnly(site.address)
            )
            try:
                return await fetcher.fetch(asked("/"), always)
            finally:
                await fetcher.close()

        end = asyncio.run(scenario())

        assert isinstance(end, NoResponse)
        assert (end.outcome, end.sent) == (Outcome.RENDERING_FAILED, False)
        assert end.reason.startswith("firecrawl: connect_error")


class TestThePage:
    def test_a_pdf_is_never_its_wrapper(self, services: ServiceSite, site: DemoSite) -> None:
        """BRW-04: inside of JSON it cannot be the bytes; by a service that gives bytes it is."""
        about = {"statusCode": 200, "contentType": "application/pdf", "url": "http://shop.localhost:8765/"}
        services.next = [
            Said.json({"success": True, "data": {"rawHtml": "<html>viewer</html>", "metadata": about}}),
            Said(headers={"Content-Type": "application/pdf", "x-brd-status-code": "200"}, body=b"%PDF-1.4 x"),
        ]
        (wrapped,) = rendered(services, site, "firecrawl", asked("/"))
        (given,) = rendered(services, site, "brightdata", asked("/"))

        assert isinstance(wrapped, NoResponse)
        assert wrapped.outcome is Outcome.UNEXPECTED_TYPE
        assert 'fetcher="http"' in wrapped.reason
        assert isinstance(given, Response)
        assert whole(given.body).startswith(b"%PDF")
        assert dict(given.headers)[b"Content-Type"] == b"application/pdf"

    def test_text_inside_of_json_is_utf_8_and_says_so(self, services: ServiceSite, site: DemoSite) -> None:
        html = '<meta charset="windows-1252"><p>Käse €\ud800</p>'
        about = {"statusCode": 200, "contentType": "text/html; charset=windows-1252"}
        services.next = [Said.json({"success": True, "data": {"rawHtml": html, "metadata": about}})]
        (end,) = rendered(services, site, "firecrawl", asked("/"))

        assert isinstance(end, Response)
        assert dict(end.headers)[b"Content-Type"] == b"text/html; charset=utf-8"
        assert "Käse €?" in whole(end.body).decode()

    def test_what_the_site_says_beside_the_page_goes_along(self, services: ServiceSite, site: DemoSite) -> None:
        """Rule 9: when a site that is busy asks us to come back, through whomever."""
        headers = {"Retry-After": "7", "Set-Cookie": "a=1", "Content-Encoding": "gzip", "X-Two": "1\r\n2"}
        services.next = [
            Said.json({"status_code": 503, "content": {"html": "busy"}, "headers": headers}),
            Said(status=429, headers={"Spb-Retry-After": "7", "Spb-resolved-url": "http://shop.localhost:8765/"}),
        ]
        (in_json,) = rendered(services, site, "alterlab", asked("/"))
        (in_headers,) = rendered(services, site, "scrapingbee", asked("/"))

        assert isinstance(in_json, Response)
        assert isinstance(in_headers, Response)
        assert dict(in_json.headers) == {
            b"Content-Type": b"text/html; charset=utf-8", b"Retry-After": b"7", b"X-Two": b"1 2",
        }  # fmt: skip
        assert dict(in_headers.headers)[b"retry-after"] == b"7"
        assert (in_json.outcome, in_headers.outcome) == (Outcome.UNAVAILABLE, Outcome.THROTTLED)

    def test_where_it_is_from_is_told_or_flagged(self, services: ServiceSite, site: DemoSite) -> None:
        """BRW-10."""
        path = "/misbehave/redirect/301/%2Fcatalogue%2Fpage-1.html"
        (told,) = rendered(services, site, "firecrawl", asked(path))
        (unknown,) = rendered(services, site, "brightdata", asked(path))

        assert isinstance(told, Response)
        assert isinstance(unknown, Response)
        assert (told.final_url != told.url, told.flags) == (True, ())
        assert (unknown.final_url, unknown.flags) == (unknown.url, (UNKNOWN_LANDING,))

    def test_another_spelling_of_the_address_is_the_address(self, services: ServiceSite, site: DemoSite) -> None:
        about = {"statusCode": 200, "url": "HTTP://shop.localhost:8765"}
        services.next = [Said.json({"success": True, "data": {"rawHtml": "x", "metadata": about}})]
        (end,) = rendered(services, site, "firecrawl", asked("/"))

        assert isinstance(end, Response)
        assert end.final_url == end.url

    def test_who_rendered_it_is_said(self, services: ServiceSite, site: DemoSite) -> None:
        (end,) = rendered(services, site, "firecrawl", asked("/"))

        assert isinstance(end, Response)
        assert end.rendered_by == "firecrawl (render.localhost)"


class TestSpending:
    def test_each_call_is_taken_from_the_purse_before_it_is_sent(self, services: ServiceSite, site: DemoSite) -> None:
        purse = Counted(2)
        ends = rendered(services, site, "firecrawl", *[asked("/")] * 4, purse=purse)

        assert [type(end) for end in ends] == [Response, Response, NotSent, NotSent]
        assert (purse.taken, len(services.calls)) == (2, 2)
        assert isinstance(ends[2], NotSent)
        assert "would pass the cap of this window (100)" in str(ends[2].stop)

    def test_what_was_not_sent_is_given_back(self, services: ServiceSite, site: DemoSite) -> None:
        async def scenario(purse: Counted) -> list[End]:
            there = rendering_fetcher(
                preset("firecrawl", site.address), services.address, target=DemoSiteOnly(site.address), purse=purse
            )
            away = rendering_fetcher(
                preset("firecrawl", site.address), "127.0.0.1:9", target=DemoSiteOnly(site.address), purse=purse
            )
            try:
                return [await there.fetch(asked("/"), lambda: False), await away.fetch(asked("/"), always)]
            finally:
                await there.close()
                await away.close()

        purse = Counted()
        ends = asyncio.run(scenario(purse))

        assert [type(end) for end in ends] == [NotSent, NoResponse]
        assert purse.taken == 0

    def test_a_call_that_failed_counts(self, services: ServiceSite, site: DemoSite) -> None:
        services.next, purse = [Said.json({"error": "x"}, status=500)], Counted()
        rendered(services, site, "firecrawl", asked("/"), purse=purse)

        assert purse.taken == 1


class TestSecrets:
    @pytest.mark.parametrize("name", PRESETS)
    def test_are_in_nothing_that_is_kept(self, services: ServiceSite, site: DemoSite, name: str) -> None:
        quoted = "s3cr3t%2Fkey%2B1"
        services.next = [
            None,
            Said.json({"error": f"bad key {SECRET} {quoted}", "detail": SECRET}, status=500),
            Said(status=500, body=f"no {SECRET}".encode(), headers={"x-brd-error": SECRET}),
        ]  # fmt: skip
        ends = rendered(services, site, name, *[asked("/")] * 3)
        said = repr([replace(end, body=b"") if isinstance(end, Response) else end for end in ends])

        assert SECRET not in said
        assert quoted not in said
        assert "{secret" in said

    def test_one_that_is_not_set_stops_the_run_by_its_name(
        self, services: ServiceSite, site: DemoSite, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(SECRET_NAME)
        for name in PRESETS:
            (end,) = rendered(services, site, name, asked("/"))
            assert isinstance(end, NotSent)
            assert str(end.stop) == f"{name}: {SECRET_NAME} is not set in the environment"
        assert services.calls == []

    def test_may_stand_in_the_body(self, services: ServiceSite, site: DemoSite) -> None:
        body = {"url": "{url}", "auth": {"token": Secret(SECRET_NAME)}}
        rendered(services, site, "firecrawl", asked("/"), body=body)

        assert services.calls[0].body["auth"]["token"] == SECRET


class TestEgress:
    def test_the_service_passes_the_guard_too(self, services: ServiceSite, site: DemoSite) -> None:
        """Rule 13."""
        service = RenderingService(
            name="inside", endpoint=f"https://127.0.0.1:{services.address.partition(':')[2]}/firecrawl",
            body={"url": "{url}"}, html=InJson("data.rawHtml"), status=InHeader("x"), price=0,
        )  # fmt: skip
        (end,) = self._fetched(service, site)

        assert isinstance(end, NotSent)
        assert "destination_refused: 127.0.0.1 is loopback" in str(end.stop)
        assert services.calls == []

    def test_what_the_service_may_reach_inside_is_its_own(self, services: ServiceSite, site: DemoSite) -> None:
        """Rule 13: pages inside stay out of reach, whoever would fetch them."""
        service = RenderingService(
            name="inside", endpoint=f"http://{services.address}/firecrawl?site={site.address}", body={"url": "{url}"},
            html=InJson("data.rawHtml"), status=InJson("data.metadata.statusCode"), price=0,
            allow_addresses=("127.0.0.1/32",),
        )  # fmt: skip
        fine, inside = self._fetched(service, site, asked("/"), asked(url="http://127.0.0.1:8080/admin"))

        assert isinstance(fine, Response)
        assert isinstance(inside, NoResponse)
        assert inside.outcome is Outcome.DESTINATION_REFUSED
        assert len(services.calls) == 1

    @staticmethod
    def _fetched(service: RenderingService, site: DemoSite, *requests: FetchRequest) -> list[End]:
        async def scenario() -> list[End]:
            guard = Guard(AddressPolicy(service.allow_addresses))
            by = HttpFetcher(user_agent=USER_AGENT, egress=guard, connections=2)
            fetcher = RenderingFetcher(service, by=by, target=DemoSiteOnly(site.address), purse=None)
            try:
                return [await fetcher.fetch(request, always) for request in requests or (asked("/"),)]
            finally:
                await fetcher.close()

        return asyncio.run(scenario())
