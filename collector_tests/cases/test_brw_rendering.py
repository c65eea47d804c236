"""The cases of browsers that concern pages by a rendering service too."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from collector_assets.contract import Budget, Kind, Link, Source, replace, seconds
from collector_assets.sources.shop import extract
from collector_tests.collect.conftest import Hands
from collector_tests.collect.test_rendering import Renderer
from collector_tests.fixtures.services import Said, ServiceSite

SHOP = "http://shop.localhost:8765"
PAGE = f"{SHOP}/catalogue/page-1.html?1"


@pytest.fixture
def renderer(hands: Hands, services: ServiceSite) -> Renderer:
    return Renderer(hands=hands, services=services)


def one_page(renderer: Renderer, url: str = PAGE, *, name: str = "firecrawl", **changes: object) -> Source:
    """A window with one page, collected."""
    kinds = {"detail": Kind(extract=extract, fetcher="rendering", may_be_empty=True)}
    source = renderer.source(
        name, kinds=kinds, start_urls=(Link(url),), budget=Budget(gap=seconds(0), slots=1), retry_wait=seconds(0.01)
    )
    source = replace(source, **changes)
    renderer.hands.open(source)
    renderer.collect(source)
    return source


def page_of(url: str, html: str = "<p>final</p>", content_type: str = "text/html") -> Said:
    about = {"statusCode": 200, "contentType": content_type, "url": url}
    return Said.json({"success": True, "data": {"rawHtml": html, "metadata": about}})


@pytest.mark.parametrize(
    "to", ["http://elsewhere.example/x", "http://shop.localhost.example/x", "http://b.example:8765/x"]
)
def test_brw_01_redirects_are_not_seen_until_they_are_over(renderer: Renderer, to: str) -> None:
    """What came from out of scope is let go; nothing of it is stored under the address that was asked for."""
    renderer.services.next = [page_of(to, "<p>of another site</p>")]
    one_page(renderer, scope=("shop.localhost",))

    kept = renderer.hands.rows("SELECT outcome, body_bytes FROM pages ORDER BY page_id")
    assert kept[0] == ("redirect", 0)
    [file] = renderer.hands.folder.rglob("*.warc.gz")
    assert b"of another site" not in _content(file)


def test_brw_01_robots_of_the_other_origin_are_asked_before_its_page_is_used(renderer: Renderer) -> None:
    renderer.hands.site.switch(host="api.shop.localhost", robots="User-agent: *\nDisallow: /")
    renderer.services.next = [page_of("http://api.shop.localhost:8765/x")]
    one_page(renderer)

    assert renderer.hands.column("SELECT outcome FROM requests") == ["robots_disallowed"]
    assert len(renderer.services.calls) == 1


def test_brw_04_pdf_viewer_instead_of_the_pdf(renderer: Renderer) -> None:
    """Never the wrapper as document: it fails, and says what to do (decision 0019)."""
    renderer.services.next = [page_of(PAGE, "<html><embed type=application/pdf></html>", "application/pdf")]
    one_page(renderer)

    [(state, outcome, reason)] = renderer.hands.rows("SELECT state, outcome, reason FROM requests")
    assert (state, outcome) == ("failed", "unexpected_type")
    assert 'fetcher="http"' in reason
    assert renderer.hands.rows("SELECT 1 FROM pages") == []


def test_brw_04_a_service_that_gives_bytes_gives_the_pdf(renderer: Renderer) -> None:
    headers = {"Content-Type": "application/pdf", "x-brd-status-code": "200"}
    renderer.services.next = [Said(headers=headers, body=b"%PDF-1.4 1 0 obj")]
    kinds = {"detail": Kind(extract=extract, fetcher="rendering", accepts=("pdf",))}
    one_page(renderer, name="brightdata", kinds=kinds)

    assert renderer.hands.column("SELECT outcome FROM pages") == ["ok"]
    [file] = renderer.hands.folder.rglob("*.warc.gz")
    assert b"%PDF-1.4 1 0 obj" in _content(file)


def test_brw_10_a_page_that_navigates_itself_away(renderer: Renderer) -> None:
    """The final page with its own address, where that one is allowed."""
    renderer.services.next = [page_of(f"{SHOP}/final")]
    one_page(renderer)

    assert renderer.hands.rows("SELECT outcome, url, final_url FROM pages") == [("ok", PAGE, f"{SHOP}/final")]


def test_brw_13_body_not_available_any_more(renderer: Renderer) -> None:
    """An answer that says 200 and has no page is tried again, and never an empty page."""
    about = {"statusCode": 200, "url": PAGE}
    renderer.services.next = [Said.json({"success": True, "data": {"rawHtml": None, "metadata": about}})]
    one_page(renderer)

    assert renderer.hands.column("SELECT outcome FROM pages") == ["ok"]
    assert renderer.hands.column("SELECT attempts FROM requests") == [2]


def _content(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes())
