"""Cookies inside a chain of redirects: RFC 6265 §5."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector_assets import cookies
from collector_assets.cookies import header, joined, updated

NOW = datetime(2026, 1, 29, 12, tzinfo=UTC)
PAGE = "https://shop.example/a/b/page?x=1"


def sent(url: str, *lines: str, set_at: str = PAGE) -> str:
    """What goes to `url` after an answer of `set_at` with these Set-Cookie lines."""
    return header(updated((), lines, set_at, NOW), url)


@pytest.mark.parametrize(
    ("line", "url", "value"),
    [
        ("a=1", "https://shop.example/a/b/other", "a=1"),
        ("a=1", "https://shop.example/a/b", "a=1"),
        ("a=1", "https://shop.example/a/bc", ""),
        ("a=1", "https://shop.example/", ""),
        ("a=1; Path=/", "https://shop.example/", "a=1"),
        ("a=1; Path=/x", "https://shop.example/x/y", "a=1"),
        ("a=1; Path=relative", "https://shop.example/a/b/", "a=1"),
        ("a=1; Path=/", "https://www.shop.example/", ""),
        ("a=1; Path=/; Domain=shop.example", "https://www.shop.example/", "a=1"),
        ("a=1; Path=/; Domain=.Shop.Example", "https://www.shop.example/", "a=1"),
        ("a=1; Path=/; Domain=other.example", "https://other.example/", ""),
        ("a=1; Path=/; Domain=example", "https://other.example/", ""),
        ("a=1; Path=/; Domain=hop.example", "https://shop.example/", ""),
        ("a=1; Path=/", "https://shop.example:8443/", "a=1"),
        ("a=1; Path=/", "http://shop.example/", "a=1"),
        ("a=1; Path=/; Secure", "http://shop.example/", ""),
        ("a=1; Path=/; secure; HttpOnly; SameSite=Lax", "https://shop.example/", "a=1"),
        ("__Host-a=1; Path=/; Secure", "https://shop.example/", "__Host-a=1"),
        ("__Host-a=1; Path=/; Secure; Domain=shop.example", "https://shop.example/", ""),
        ("__Secure-a=1; Path=/", "https://shop.example/", ""),
        (' a = "x y" ; Path=/', "https://shop.example/", 'a="x y"'),
        ("lonely; Path=/", "https://shop.example/", "lonely"),
        ("=; Path=/", "https://shop.example/", ""),
        ("a=x\r\nInjected: 1; Path=/", "https://shop.example/", ""),
        ("a=" + "x" * 5_000 + "; Path=/", "https://shop.example/", ""),
        ("a=1; Path=/; Max-Age=3600", "https://shop.example/", "a=1"),
        ("a=1; Path=/; Max-Age=soon", "https://shop.example/", "a=1"),
        ("a=1; Path=/; Expires=whenever", "https://shop.example/", "a=1"),
    ],
)
def test_where_a_cookie_goes(line: str, url: str, value: str) -> None:
    assert sent(url, line) == value


def test_a_secure_cookie_is_not_taken_from_plain_http() -> None:
    assert sent("https://shop.example/", "a=1; Path=/; Secure", set_at="http://shop.example/") == ""


def test_addresses_and_single_labels_have_cookies_of_their_own_host() -> None:
    assert sent("http://127.0.0.1/", "a=1; Domain=127.0.0.1; Path=/", set_at="http://127.0.0.1/") == "a=1"
    assert sent("http://1.127.0.0.1/", "a=1; Domain=0.0.1; Path=/", set_at="http://127.0.0.1/") == ""
    assert sent("http://localhost/", "a=1; Path=/", set_at="http://localhost/") == "a=1"


@pytest.mark.parametrize(
    "deletion",
    ["Max-Age=0", "Max-Age=-1", "Expires=Thu, 01 Jan 1970 00:00:00 GMT", "expires=Thu, 01-Jan-1970 00:00:00 GMT"],
)
def test_a_cookie_can_be_taken_back(deletion: str) -> None:
    assert sent("https://shop.example/", "a=1; Path=/", "b=2; Path=/", f"a=; Path=/; {deletion}") == "b=2"


def test_max_age_goes_before_expires() -> None:
    assert sent("https://shop.example/", "a=1; Path=/; Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT") == "a=1"


def test_a_newer_value_takes_the_place_of_the_older_and_longer_paths_come_first() -> None:
    lines = ("a=1; Path=/", "b=2; Path=/a", "a=3; Path=/")
    assert sent(PAGE, *lines) == "b=2; a=3"


def test_there_is_a_limit() -> None:
    flood = [f"c{number}=x; Path=/" for number in range(1_000)]
    assert sent(PAGE, *flood).count("=") == 50


def test_cookies_of_the_chain_replace_configured_ones_of_the_same_name() -> None:
    assert joined("", "a=1") == "a=1"
    assert joined("lang=de; session=old", "session=new") == "lang=de; session=new"


def cookie(name: str, value: str) -> cookies.Cookie:
    return cookies.Cookie(name=name, value=value, domain="a.example", is_host_only=True, path="/", is_secure=False)


def test_what_two_have_changed_since_they_were_alike_is_one_jar() -> None:
    """Ours: `a` changed, `b` deleted, `d` new. Theirs: `c` changed, `e` new."""
    base = [cookie("a", "1"), cookie("b", "1"), cookie("c", "1")]
    ours = [cookie("a", "2"), cookie("c", "1"), cookie("d", "1")]
    theirs = [cookie("a", "1"), cookie("b", "1"), cookie("c", "2"), cookie("e", "1")]
    found = {each.name: each.value for each in cookies.merged(base, ours, theirs)}
    assert found == {"a": "2", "c": "2", "d": "1", "e": "1"}


def test_where_both_changed_a_cookie_ours_counts_and_nothing_changed_is_theirs() -> None:
    base, ours, theirs = [cookie("a", "1")], [cookie("a", "2")], [cookie("a", "3")]
    assert cookies.merged(base, ours, theirs) == tuple(ours)
    assert cookies.merged(base, base, theirs) == tuple(theirs)
