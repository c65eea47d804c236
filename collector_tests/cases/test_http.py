"""Kind HTTP of the field cases, through the whole path: what is sent, what is kept, and what becomes of the request."""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import brotli
import pandera.pandas as pa
import pytest
import zstandard

from collector_assets import pages
from collector_assets.contract import Kind, Link, Page, Source, replace, seconds
from collector_tests.collect.conftest import FAST, QUICK, TODAY, TOMORROW, Hands

SITE = "http://shop.localhost:8765"
HTML = b"<!doctype html><title>Fine</title><p>hello!</p>"


class Seen(pa.DataFrameModel):
    """What a page was."""

    url: str
    text: str


def extract(page: Page) -> Iterator[dict[str, Any]]:
    yield {"url": page.url, "text": page.text[:200]}


ONE = Source(
    name="one", start_urls=(f"{SITE}/",), scope=("shop.localhost", "other.localhost"),
    kinds={"page": Kind(extract=extract)}, schema=Seen, entity="url", extractor_version="1", window=QUICK.window,
    budget=FAST, patience=seconds(5), retry_wait=seconds(0.02), max_attempts=2,
)  # fmt: skip


def at(path: str, **changes: Any) -> Source:
    """A source of one page."""
    return replace(ONE, start_urls=(Link(SITE + path, kind="page"),), **changes)


def saying(body: bytes, *, kind: str = "text/html", headers: str = "", status: int = 200) -> str:
    """The path of a page that is answered with exactly this."""
    said = {"status": status, "type": kind, "headers": headers, "body": base64.b64encode(body).decode()}
    return f"/misbehave/say/{quote(json.dumps(said), safe='')}"


def coded(coding: str, body: bytes, **more: Any) -> Source:
    return at(saying(body, headers=f"Content-Encoding: {coding}\r\n"), **more)


def end(hands: Hands, source: Source) -> tuple[str, str]:
    """State and outcome of the one request, after it was fetched and read."""
    hands.open(source)
    hands.collect(source)
    hands.read(source)
    ((state, phase, outcome),) = hands.rows("SELECT state, failed_phase, outcome FROM requests")
    return (f"{state}({phase})" if phase else state), outcome


def good_page(hands: Hands, source: Source = ONE) -> Page:
    with hands.database.transaction() as connection:
        found = pages.newest(connection, source.name, ["page"])
    assert found is not None
    return pages.page_of(found[0], hands.archive.read(found[0].location), found[1], source)


# --- Content codings --------------------------------------------------------------------------------------------------


def test_http_01_says_gzip_sends_plain(hands: Hands) -> None:
    source = coded("gzip", b"<p>hello!</p>")
    assert end(hands, source) == ("done", "ok")
    page = good_page(hands)
    assert page.body == b"<p>hello!</p>"
    assert "content_encoding_mislabelled" in page.flags


@pytest.mark.parametrize("missing", [1, 9, 30])
def test_http_01_cut_gzip_is_tried_again_and_never_taken_for_plain(hands: Hands, missing: int) -> None:
    """Rule 11: decoding tells a cut body from a whole one, early enough to ask again."""
    assert end(hands, coded("gzip", gzip.compress(HTML * 20)[:-missing])) == ("failed(fetch)", "truncated")
    assert hands.rows("SELECT outcome, truncated FROM pages") == 2 * [("truncated", "unspecified")]


def test_http_04_zstd_frames(hands: Hands) -> None:
    compressor = zstandard.ZstdCompressor().compressobj()
    two = compressor.compress(HTML) + compressor.flush() + zstandard.compress(b"<p>more</p>")
    assert end(hands, coded("zstd", two)) == ("done", "ok")
    assert good_page(hands).body == HTML + b"<p>more</p>"


def test_http_04_zstd_cut_in_its_last_frame(hands: Hands) -> None:
    two = zstandard.compress(HTML) + zstandard.compress(HTML * 9)
    assert end(hands, coded("zstd", two[:-5])) == ("failed(fetch)", "truncated")


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("x-gzip", gzip.compress(HTML, mtime=0)),
        ("gzip, gzip", gzip.compress(gzip.compress(HTML, mtime=0), mtime=0)),
        ("UTF-8", HTML),
        ("none", HTML),
        ("br", gzip.compress(HTML, mtime=0)),
        ("br", brotli.compress(HTML)),
    ],
)
def test_http_05_unusual_content_encodings(hands: Hands, coding: str, body: bytes) -> None:
    assert end(hands, coded(coding, body)) == ("done", "ok")
    assert good_page(hands).body == HTML


@pytest.mark.parametrize(
    "path",
    ["/misbehave/empty_200", saying(b"", headers="Content-Encoding: gzip\r\n"),
     saying(gzip.compress(b"", mtime=0), headers="Content-Encoding: gzip\r\n")],
    ids=["plain", "gzip", "well-compressed"],
)  # fmt: skip
def test_http_06_empty_200_is_tried_again_and_changes_nothing(hands: Hands, path: str) -> None:
    assert end(hands, at(path)) == ("failed(fetch)", "empty_body")
    assert len(hands.arrivals()) == 2
    assert hands.column("SELECT count(*) FROM observations") == [0]


def test_http_07_bomb_fails_alone(hands: Hands) -> None:
    source = replace(
        ONE,
        max_decoded_bytes=1_000_000,
        start_urls=tuple(Link(SITE + path, kind="page") for path in ("/misbehave/gzip_bomb/50000000", "/")),
    )
    hands.open(source)
    hands.collect(source)
    hands.read(source)
    assert sorted(hands.rows("SELECT state, outcome FROM requests")) == [("done", "ok"), ("failed", "too_large")]


# --- Bodies that end too soon, late or never --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["short_body", "cut_chunked"])
def test_http_08_and_10_body_that_is_not_whole_is_truncated_and_retried(hands: Hands, path: str) -> None:
    assert end(hands, at(f"/misbehave/{path}")) == ("failed(fetch)", "truncated")
    assert hands.rows("SELECT outcome, truncated FROM pages") == 2 * [("truncated", "disconnect")]
    assert hands.column("SELECT reason FROM requests")[0]


def test_http_27_slow_drip_ends_at_the_total_deadline(hands: Hands) -> None:
    source = at(
        "/misbehave/drip/0.3",
        read_timeout=seconds(1),
        connect_timeout=seconds(1),
        total_timeout=seconds(1),
        max_attempts=1,
    )
    began = time.monotonic()
    assert end(hands, source) == ("failed(fetch)", "timeout")
    assert time.monotonic() - began < 5
    assert hands.column("SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL") == [0]
    assert hands.site.state()["connections"] == 1, "the one that asks"


@pytest.mark.parametrize(("path", "kept"), [("endless", 100_000), ("oversized/5000000000", 0)])
def test_http_28_endless_or_huge_body(hands: Hands, path: str, kept: int) -> None:
    assert end(hands, at(f"/misbehave/{path}", max_bytes=100_000)) == ("failed(fetch)", "too_large")
    assert hands.rows("SELECT outcome, truncated, body_bytes FROM pages") == [("too_large", "length", kept)]


# --- What it is -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "body", "accepts", "outcome"),
    [
        ("text/html", b"%PDF-1.4\nx", (), "unexpected_type"),
        ("text/html", b"%PDF-1.4\nx", ("pdf",), "ok"),
        ("text/html", b"<?xml version='1.0'?><urlset/>", ("html",), "unexpected_type"),
        ("text/html", b"<?xml version='1.0'?><urlset/>", ("xml",), "ok"),
        ("text/html", b'{"a":1}', ("json",), "ok"),
        ("text/html", b'{"a":1}', ("html",), "unexpected_type"),
        ("application/octet-stream", b"<!doctype html>", ("html",), "ok"),
        ("image/png", b"<html><form>Log in</form>", (), "unexpected_type"),
        ("image/png", b"<html><form>Log in</form>", ("image",), "unexpected_type"),
    ],
)
def test_http_29_content_type_lies(hands: Hands, said: str, body: bytes, accepts: Any, outcome: str) -> None:
    source = at(saying(body, kind=said), kinds={"page": Kind(extract=extract, accepts=accepts)})
    assert end(hands, source)[1] == outcome
    if outcome == "ok" and said == "text/html":
        assert "content_type_mislabelled" in good_page(hands, source).flags


def test_http_26_head_is_not_evidence(hands: Hands) -> None:
    """Nothing here asks by HEAD, and a source that does learns nothing about the page being gone."""
    assert end(hands, at("/")) == ("done", "ok")
    assert {arrival.method for arrival in hands.arrivals()} == {"GET"}


@pytest.mark.parametrize("status", [404, 405, 500])
def test_http_26_head_says_nothing_about_the_page(hands: Hands, status: int) -> None:
    source = replace(ONE, start_urls=(Link(f"{SITE}/misbehave/status/{status}", kind="page", method="HEAD"),))
    assert end(hands, source) == ("failed(fetch)", "unexpected_status")


def test_http_36_early_hints(hands: Hands) -> None:
    assert end(hands, at("/misbehave/early_hints")) == ("done", "ok")


# --- Redirects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["cookie_wall", "cookie_trip"])
def test_http_14_cookie_wall(hands: Hands, path: str) -> None:
    assert end(hands, at(f"/misbehave/{path}")) == ("done", "ok")
    assert hands.column("SELECT final_url FROM pages WHERE outcome = 'ok'") == [f"{SITE}/misbehave/{path}"]


def test_http_16_credentials_stay_on_their_origin(hands: Hands) -> None:
    target = quote(
        "http://shop.localhost:9000/misbehave/redirect/302/http://other.localhost:8765/misbehave/echo", safe=""
    )
    source = at(f"/misbehave/redirect/302/{target}", headers={"Authorization": "Bearer x", "Cookie": "a=1"})
    assert end(hands, source) == ("done", "ok")
    received = good_page(hands).json()["headers"]
    assert "authorization" not in received
    assert "cookie" not in received


@pytest.mark.parametrize(
    ("markup", "final"),
    [
        ("<meta content='0; url=\n /' http-equiv=refresh>", "/"),
        ("<head><noscript><meta content='0; url=/' http-equiv=refresh></noscript></head>", None),
        ("<!-- <meta content='0; url=/' http-equiv=refresh> -->", None),
        ("<meta http-equiv=refresh content=5>", None),
        ("""<meta http-equiv=refresh content="0;url='/?q'">""", "/?q"),
        ("<meta http-equiv=refresh content='0;url=javascript:alert(1)'>", None),
        ("<meta http-equiv=refresh content='0;url=https://elsewhere.example/'>", None),
    ],
)
def test_http_17_meta_refresh_is_followed_as_a_redirect(hands: Hands, markup: str, final: str | None) -> None:
    path = saying(f"<html>{markup}<p>here</p>".encode())
    assert end(hands, at(path)) == ("done", "ok")
    assert good_page(hands).final_url == SITE + (final or path)
    assert hands.column("SELECT count(*) FROM pages WHERE outcome = 'redirect'") == [1 if final else 0]


def test_http_17_page_that_is_a_bomb_costs_itself_and_not_the_worker(hands: Hands) -> None:
    bomb = gzip.compress(b"<meta http-equiv=refresh content='0; url=/'>" + b"<div>" * 20_000, mtime=0)
    source = coded("gzip", bomb, kinds={"page": Kind(extract=lambda page: [{"url": page.url, "text": str(page.tree)}])})
    assert end(hands, source) == ("failed(read)", "extraction_failed")


def test_http_17_refresh_counts_against_the_limit(hands: Hands) -> None:
    path = saying(b"<meta http-equiv=refresh content='0; url=/'>")
    assert end(hands, at(path, max_redirects=0)) == ("done", "ok")
    assert good_page(hands).final_url == SITE + path, "it cannot be followed, so it is the page"


# --- Still there ------------------------------------------------------------------------------------------------------


def test_http_23_304_means_still_there(hands: Hands) -> None:
    for window in (TODAY, TOMORROW):
        hands.open(at("/"), window)
        hands.collect(at("/"), window)
    assert hands.column("SELECT outcome FROM pages ORDER BY page_id") == ["ok", "not_modified"]


def test_http_23_304_that_nobody_asked_for_is_no_page(hands: Hands) -> None:
    """No waiting for the 500 bytes that it names."""
    began = time.monotonic()
    assert end(hands, at("/misbehave/unmodified")) == ("failed(fetch)", "unexpected_status")
    assert time.monotonic() - began < 3
