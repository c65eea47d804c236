"""Where a redirect leads, and what may travel along."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from collector_assets.outcome import Outcome
from collector_assets.redirects import Chain, Ended, chain_of, follow, loaded, standing
from collector_assets.request import NewRequest, Secret, stored_headers

NOW = datetime(2026, 1, 29, 12, tzinfo=UTC)
BASE = "https://shop.example/a/b?q=1"


def asked(url: str = BASE, method: str = "GET", **more: Any) -> NewRequest:
    return NewRequest(
        unique_key=b"k", kind="detail", lane="*", url=url, budget_key="shop.example", method=method, **more
    )


def hop(chain: Chain, location: str, status: int = 302, *cookies: str, most: int = 10) -> Chain | Ended:
    headers = [(b"Location", location.encode()), *((b"Set-Cookie", cookie.encode()) for cookie in cookies)]
    return follow(chain, status=status, headers=headers, now=NOW, most=most)


def led(chain: Chain, location: str, status: int = 302, *cookies: str) -> Chain:
    moved = hop(chain, location, status, *cookies)
    assert isinstance(moved, Chain), moved
    return moved


# --- Where to ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/next", "https://shop.example/next"),
        ("next", "https://shop.example/a/next"),
        ("?q=2", "https://shop.example/a/b?q=2"),
        ("//www.shop.example/x", "https://www.shop.example/x"),
        ("../../../x", "https://shop.example/x"),
        (" /next \t", "https://shop.example/next"),
        ("/next#part", "https://shop.example/next"),
        ("/a b", "https://shop.example/a%20b"),
        ("/caf\xe9", "https://shop.example/caf%C3%A9"),
        ("\\\\www.shop.example\\x", "https://www.shop.example/x"),
        ("https:\\\\user:pw@shop.example/x", "https://shop.example/x"),
        ("HTTP://SHOP.example:80/", "http://shop.example/"),
        ("https://b\xfccher.example/", "https://xn--bcher-kva.example/"),
    ],
)
def test_location_is_read_as_a_browser_reads_it(location: str, url: str) -> None:
    assert led(chain_of(asked()), location).url == url


def test_location_in_another_charset_keeps_its_bytes() -> None:
    moved = follow(chain_of(asked()), status=302, headers=[(b"location", b"/caf\xe9")], now=NOW, most=10)
    assert isinstance(moved, Chain)
    assert moved.url == "https://shop.example/caf%E9"


@pytest.mark.parametrize(
    "location",
    ["", "  ", "javascript:alert(1)", "data:text/html,x", "mailto:a@shop.example", "file:///etc/passwd", "ftp://x/",
     "http://", "https://exa mple/", "http://[::1", "http://1.2.3.4.5/", "https://shop.example:99999/",
     "/" + "x" * 9_000],
)  # fmt: skip
def test_location_that_cannot_be_used_is_an_outcome(location: str) -> None:
    ended = hop(chain_of(asked()), location)
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.REDIRECT_INVALID
    assert ended.reason


@pytest.mark.parametrize("headers", [[], [(b"Location", b"/a"), (b"Location", b"/b")]])
def test_none_or_two_different_locations_are_no_redirect(headers: list[tuple[bytes, bytes]]) -> None:
    ended = follow(chain_of(asked()), status=302, headers=headers, now=NOW, most=10)
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.REDIRECT_INVALID


# --- What with --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "method", "next_method", "keeps_body"),
    [
        (301, "GET", "GET", True),
        (301, "POST", "GET", False),
        (302, "POST", "GET", False),
        (302, "PUT", "PUT", True),
        (303, "POST", "GET", False),
        (303, "PUT", "GET", False),
        (303, "HEAD", "HEAD", False),
        (307, "POST", "POST", True),
        (308, "POST", "POST", True),
    ],
)
def test_method_and_body(status: int, method: str, next_method: str, keeps_body: bool) -> None:  # noqa: FBT001
    chain = led(chain_of(asked(method=method, body=b"q=1")), "/next", status)
    assert (chain.method, chain.keeps_body) == (next_method, keeps_body)


def test_headers_about_the_body_go_with_the_body() -> None:
    headers = {"Content-Type": "application/json", "X-Shop": "1"}
    request = asked(method="POST", body=b"{}", headers=headers)
    for status, kept in ((303, {"X-Shop"}), (307, {"X-Shop", "Content-Type"})):
        chain = led(chain_of(request), "/next", status)
        assert set(chain.headers(headers)) == kept


@pytest.mark.parametrize(
    ("location", "stays"),
    [
        ("/b", True),
        ("https://shop.example:443/b", True),
        ("https://shop.example:8443/b", False),
        ("http://shop.example/b", False),
        ("https://www.shop.example/b", False),
        ("https://other.example/b", False),
    ],
)
def test_http_16_configured_headers_stay_on_their_origin(location: str, stays: bool) -> None:  # noqa: FBT001
    """Also secrets in headers that may travel otherwise."""
    configured = stored_headers({
        "Authorization": Secret("TOKEN", "Bearer "), "Cookie": "a=1", "X-Key": "k", "Accept-Language": "de",
        "Accept": Secret("ODD"),
    })  # fmt: skip
    kept = led(chain_of(asked()), location).headers(configured)
    assert set(kept) == (set(configured) if stays else {"Accept-Language"})


def test_http_16_what_was_left_behind_does_not_come_back() -> None:
    away = led(led(chain_of(asked()), "https://other.example/"), BASE + "&back")
    assert away.headers({"Authorization": "x"}) == {}


def test_cookies_go_by_cookie_rules() -> None:
    chain = led(
        chain_of(asked()), "https://www.shop.example/", 302, "own=1; Path=/", "all=2; Path=/; Domain=shop.example"
    )
    assert chain.cookie_header == "all=2"
    assert led(chain, "https://other.example/").cookie_header == ""
    assert led(chain, "https://shop.example/").cookie_header == "own=1; all=2"


# --- How often --------------------------------------------------------------------------------------------------------


def test_http_14_the_same_url_with_a_new_cookie_is_no_loop() -> None:
    chain = led(chain_of(asked()), BASE, 302, "seen=1; Path=/")
    assert chain.cookie_header == "seen=1"
    ended = hop(chain, BASE, 302, "seen=1; Path=/")
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.REDIRECT_LOOP


def test_there_and_back_is_a_loop() -> None:
    ended = hop(led(chain_of(asked()), "/b"), BASE)
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.REDIRECT_LOOP


def test_a_post_that_leads_to_a_get_of_its_own_url_is_no_loop() -> None:
    assert led(chain_of(asked(method="POST")), BASE, 303).method == "GET"


def test_the_number_of_redirects_is_limited() -> None:
    """A cookie that is always another makes no state twice."""
    chain: Chain | Ended = chain_of(asked())
    for number in range(10):
        assert isinstance(chain, Chain)
        chain = hop(chain, BASE, 302, f"n={number}; Path=/")
    assert isinstance(chain, Chain)
    ended = hop(chain, BASE, 302, "n=10; Path=/")
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.TOO_MANY_REDIRECTS


def test_no_redirect_is_followed_where_none_may_be() -> None:
    assert isinstance(hop(chain_of(asked()), "/b", most=0), Ended)


# --- Between two hops -------------------------------------------------------------------------------------------------


def test_a_chain_survives_its_way_through_the_database() -> None:
    chain = led(chain_of(asked(method="POST")), "https://www.shop.example/", 302, "a=\xe9; Path=/; Domain=shop.example")
    assert loaded(json.loads(json.dumps(chain.stored())) | {"home": "shop.example"}) == chain


def test_what_is_sent_next() -> None:
    request = asked(method="POST", body=b"q=1", headers={"X-Key": "k"})
    assert standing(request).body == b"q=1"
    chain = led(chain_of(request), "/next", 303, "a=1; Path=/")
    moved = standing(asked(method="POST", body=b"q=1", headers={"X-Key": "k"}, chain=chain.stored()))
    assert (moved.url, moved.method, moved.body) == ("https://shop.example/next", "GET", None)
    assert (dict(moved.headers), moved.cookies) == ({"X-Key": "k"}, "a=1")
