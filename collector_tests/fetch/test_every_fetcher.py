"""The conformance suite: what holds of every fetcher, however it comes by a page (design.md rules 7 to 9, 13).

What only HTTP can show (bytes on the wire, connections) is in `test_conformance.py`. A new fetcher joins by its way to
be made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

import pytest
import uvloop

from collector_assets.demo import DemoSite
from collector_assets.fetch import Fetcher, NoResponse, NotSent, Response
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.rendering import UNKNOWN_LANDING
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.request import Secret
from collector_assets.spool import whole
from collector_tests.fetch.conftest import Client, asked, http_fetcher, page_fetcher, speaking
from collector_tests.fetch.rendering import preset, rendering_fetcher
from collector_tests.fixtures.browser import NEEDS_CHROMIUM
from collector_tests.fixtures.services import ServiceSite
from collector_tests.fixtures.site import parts, raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of fetcher."""

    client: Client
    follows: bool = False
    """It follows redirects by itself, and says where it ended, or that it does not know."""


def _rendering(name: str, services: ServiceSite) -> Callable[[str], Fetcher]:
    return lambda address: rendering_fetcher(preset(name, address), services.address, target=DemoSiteOnly(address))


BROWSER = pytest.param("browser", marks=NEEDS_CHROMIUM)


@pytest.fixture(params=["http", "http-uvloop", BROWSER, "alterlab", "firecrawl", "scrapingbee", "brightdata"])
def kind(request: pytest.FixtureRequest) -> Iterator[Kind]:
    """Each kind of fetcher."""
    match request.param:
        case "http":
            yield Kind(client=Client(make=http_fetcher, run=asyncio.run))
        case "http-uvloop":
            yield Kind(client=Client(make=http_fetcher, run=uvloop.run))
        case "browser":
            yield Kind(client=Client(make=page_fetcher, run=uvloop.run))
        case name:
            services: ServiceSite = request.getfixturevalue("services")
            yield Kind(client=Client(make=_rendering(name, services), run=uvloop.run), follows=True)


def test_a_page_is_given_with_its_status_type_and_times(kind: Kind, site: DemoSite) -> None:
    _, _, body = parts(raw(site, "/")[0])
    began, began_at = monotonic(), datetime.now(UTC)

    answer = kind.client.answer(site.address, asked("/"))

    assert (answer.outcome, answer.reason, answer.truncated, answer.status) == (Outcome.OK, "", None, 200)
    assert whole(answer.body) == body
    assert answer.url == answer.final_url == "http://shop.localhost:8765/"
    assert dict(answer.headers)[b"Content-Type"].startswith(b"text/html")
    assert began_at <= answer.requested_at <= answer.fetched_at <= datetime.now(UTC)
    assert began <= answer.ended_at <= monotonic()


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, Outcome.CLIENT_ERROR), (401, Outcome.REFUSED), (403, Outcome.REFUSED), (404, Outcome.GONE),
        (407, Outcome.REFUSED), (429, Outcome.THROTTLED), (451, Outcome.REFUSED), (500, Outcome.SERVER_ERROR),
        (503, Outcome.UNAVAILABLE),
    ],
)  # fmt: skip
def test_what_the_site_says_is_what_it_says(kind: Kind, site: DemoSite, status: int, outcome: Outcome) -> None:
    """Rule 9: a refusal that a service reports is a refusal of the site."""
    answer = kind.client.answer(site.address, asked(f"/misbehave/status/{status}"))

    assert (answer.status, answer.outcome) == (status, outcome)
    assert answer.reason.startswith(str(status))
    assert len(site.arrivals()) == 1


@pytest.mark.parametrize("path", ["redirect/301/item", "redirect_chain/3"])
def test_no_redirect_is_passed_over_in_silence(kind: Kind, site: DemoSite, path: str) -> None:
    """BRW-01, BRW-10: it is an answer of its own, or the page says where it is from, or that nobody knows."""
    answer = kind.client.answer(site.address, asked(f"/misbehave/{path}"))

    if kind.follows:
        assert answer.final_url != answer.url or UNKNOWN_LANDING in answer.flags
    else:
        assert answer.outcome is Outcome.REDIRECT
        assert len(site.arrivals()) == 1


@pytest.mark.parametrize("misbehaviour", ["drop", "reset", "garbage"])
def test_no_answer_is_tried_again_and_spares_the_next_page(kind: Kind, site: DemoSite, misbehaviour: str) -> None:
    failed, fine = kind.client.fetch(site.address, asked(f"/misbehave/{misbehaviour}"), asked("/"))

    assert isinstance(failed, NoResponse)
    assert policy(failed.outcome) is Policy.RETRY
    assert failed.sent
    assert failed.reason
    assert isinstance(fine, Response)
    assert fine.outcome is Outcome.OK


def test_the_total_deadline_ends_it(kind: Kind, site: DemoSite) -> None:
    began = monotonic()
    failed = kind.client.failure(site.address, asked("/misbehave/delay/5", read_s=0.5, total_s=0.5))

    assert policy(failed.outcome) is Policy.RETRY
    assert 0.4 <= failed.ended_at - began < 4


def test_a_page_beyond_the_cap_is_no_page(kind: Kind, site: DemoSite) -> None:
    (end,) = kind.client.fetch(site.address, asked("/misbehave/oversized/500000", max_bytes=10_000))

    assert isinstance(end, Response)
    assert end.outcome is Outcome.TOO_LARGE
    assert len(end.body) <= 10_000


def test_an_empty_page_is_no_page(kind: Kind) -> None:
    with speaking(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n") as server:
        assert kind.client.answer(server.address, asked()).outcome is Outcome.EMPTY_BODY


def test_without_permission_nothing_is_sent(kind: Kind, site: DemoSite) -> None:
    """Rule 8."""
    (end,) = kind.client.fetch(site.address, asked("/"), may_send=lambda: False)

    assert isinstance(end, NotSent)
    assert end.stop is None
    assert site.arrivals() == []


def test_the_permission_is_asked_before_the_site_hears_of_it(kind: Kind, site: DemoSite) -> None:
    """Rule 8."""
    asked_at: list[int] = []

    def may_send() -> bool:
        asked_at.append(len(site.arrivals()))
        return True

    kind.client.fetch(site.address, asked("/"), may_send=may_send)

    assert asked_at == [0]
    assert len(site.arrivals()) == 1


def test_the_guard_is_asked_for_the_page(kind: Kind, site: DemoSite) -> None:
    """Rule 13."""
    failed = kind.client.failure(site.address, asked(url="http://169.254.169.254/latest/meta-data/"))

    assert (failed.outcome, failed.sent) == (Outcome.DESTINATION_REFUSED, False)
    assert site.arrivals() == []


@pytest.mark.parametrize(
    "changes",
    [{"method": "POST", "body": b"q=1"}, {"headers": {"X-Token": Secret("RENDERING_KEY")}}],
    ids=["body", "header"],
)
def test_what_belongs_to_a_request_is_sent_or_refused_and_never_dropped(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
) -> None:
    monkeypatch.setenv("RENDERING_KEY", "t0k3n")
    with speaking(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
        (end,) = kind.client.fetch(server.address, asked("/search", **changes))
        heads = b"".join(server.heads)

    if isinstance(end, Response):
        assert b"q=1" in heads or b"t0k3n" in heads
    else:
        assert isinstance(end, NoResponse)
        assert (end.outcome, end.sent, heads) == (Outcome.RENDERING_REFUSED, False, b"")
