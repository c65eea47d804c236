"""Cases ROB of the collection of awkward inputs: robots.txt."""

from __future__ import annotations

import pytest

from collector_assets import robots
from collector_assets.collect import Ending
from collector_assets.contract import Link, replace, seconds
from collector_tests.collect.conftest import QUICK, Hands

US = "acmebot"
SITE = "https://h.example"


def allowed(text: str | bytes, path: str) -> bool:
    body = text if isinstance(text, bytes) else text.encode()
    return robots.parse(body, US).allows(SITE + path).allowed


def test_rob_01_bom_in_front_of_the_first_line() -> None:
    assert not allowed(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n", "/x")
    assert allowed(b"\n\xef\xbb\xbfUser-agent: *\nDisallow: /\n", "/x"), "only at offset 0"


@pytest.mark.parametrize("status", [404, 410, 200, 500, 503, 0, 429, 401, 403])
def test_rob_02_what_the_status_means(hands: Hands, status: int) -> None:
    """[policy] 429 as 5xx; 401 and 403 forbid, and the source may say otherwise. 0 is a timeout, 200 an empty file."""
    page = replace(
        QUICK, start_urls=(Link("http://shop.localhost:8765/echo", kind="detail"),), patience=seconds(0),
        read_timeout=seconds(0.3),
    )  # fmt: skip
    name, argument = {0: ("hang", ""), 200: ("empty_200", "")}.get(status, ("status", str(status)))
    hands.site.misbehave(name, prefix="/robots.txt", arg=argument, times=1)
    hands.open(page)
    got = hands.collect(page)
    if status in (404, 410, 200):
        assert got.outcomes == {"ok": 1}
        return
    assert hands.arrivals() == [], "nothing is sent but the question"
    if status in (401, 403):
        assert got.outcomes == {"robots_disallowed": 1}
        told = hands.column("SELECT reason FROM requests")[0]
        assert str(status) in told
        return
    assert got.ending is Ending.WAITING
    hands.do("UPDATE robots_files SET next_try_at = now()")
    hands.do("UPDATE budget_keys SET closed_until = NULL")  # by the 429
    hands.do("UPDATE requests SET not_before = NULL")
    assert hands.collect(page).outcomes == {"ok": 1}, "and it is not kept for the run"


def test_rob_04_grouping_rules() -> None:
    assert not allowed(f"User-agent: {US}\n\nDisallow: /p", "/p")
    assert not allowed(f"User-agent: x\nUser-agent: {US}\nDisallow: /p", "/p")
    twice = f"User-agent: {US}\nDisallow: /a\n\nUser-agent: x\nDisallow: /c\n\nUser-agent: {US}\nDisallow: /b"
    assert [allowed(twice, path) for path in ("/a", "/b", "/c")] == [False, False, True]
    delayed = robots.parse(b"User-agent: *\nDisallow:\nUser-agent: slow\nCrawl-delay: 10", US)
    assert delayed.crawl_delay_s is None


def test_rob_06_unknown_token_closes_the_previous_group() -> None:
    text = "User-agent: *\nDisallow: /internal\n\nUser-agent: 5eme\nDisallow: /"
    assert allowed(text, "/foo")
    assert not allowed(text, "/internal/x")


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("Disallow: /p\nAllow: /p/ok", "/p/ok/1", True),
        ("Disallow: /p\nAllow: /p/ok", "/p/no", False),
        ("Disallow: /x\nAllow: /x", "/x", True),
        ("Disallow:", "/anything", True),
    ],
)
def test_rob_08_longest_match_and_ties(rules: str, path: str, *, expected: bool) -> None:
    assert allowed(f"User-agent: *\n{rules}", path) is expected


def test_rob_10_redirected_robots_txt(hands: Hands) -> None:
    """Of the origin that was asked; five hops, beyond which it counts as absent; never to where nothing may go."""
    shop, other, loop, inside = (f"http://{name}.localhost:8765" for name in ("shop", "other", "loop", "inside"))
    hands.site.switch(host="other.localhost", robots="User-agent: *\nDisallow: /echo\n")
    hands.site.misbehave("redirect", prefix="/robots.txt", arg=f"301/{other}/robots.txt", host="shop.localhost")
    hands.site.misbehave("redirect_loop", prefix="/robots.txt", host="loop.localhost")
    metadata = "301/http://169.254.169.254/robots.txt"
    hands.site.misbehave("redirect", prefix="/robots.txt", arg=metadata, host="inside.localhost")
    links = tuple(Link(f"{origin}/echo", kind="detail") for origin in (shop, loop, inside))
    hosts = tuple(f"{name}.localhost" for name in ("shop", "loop", "inside"))
    source = replace(QUICK, start_urls=links, scope=hosts, patience=seconds(0))
    hands.open(source)
    assert hands.collect(source).outcomes == {"ok": 1, "robots_disallowed": 1}
    ends = dict(hands.rows("SELECT url, outcome FROM requests"))
    assert ends == {f"{shop}/echo": "robots_disallowed", f"{loop}/echo": "ok", f"{inside}/echo": "robots_unreachable"}
    files = dict(hands.rows("SELECT origin, coalesce(notes[1], problem) FROM robots_files"))
    assert set(files) == {shop, loop, inside}
    assert "more than 5 redirects" in files[loop]
    assert "169.254.169.254" in files[inside]
    assert len([each for each in hands.arrivals("loop.localhost", robots=True) if each.path == "/robots.txt"]) == 6


def test_rob_11_scope_is_scheme_host_and_port(hands: Hands) -> None:
    """Four origins, four files, four decisions; the one over TLS is not there, so nobody knows what it allows."""
    hands.site.switch(host="closed.shop.localhost", robots="User-agent: *\nDisallow: /\n")
    hands.site.switch(host="bare.shop.localhost", robots="")
    origins = ("http://shop.localhost:8765", "https://shop.localhost:8765", "http://shop.localhost:8081",
               "http://closed.shop.localhost:8765", "http://bare.shop.localhost:8765")  # fmt: skip
    links = tuple(Link(f"{origin}/echo", kind="detail") for origin in origins)
    waits = {"patience": seconds(0), "connect_timeout": seconds(1)}
    source = replace(QUICK, start_urls=links, scope=("shop.localhost",), **waits)
    hands.open(source)
    assert hands.collect(source).outcomes == {"ok": 3, "robots_disallowed": 1}
    files = dict(hands.rows("SELECT origin, answer FROM robots_files"))
    assert files == dict(zip(origins, ("rules", None, "rules", "rules", "absent"), strict=True))


def test_rob_13_sitemap_lines() -> None:
    text = (
        "User-agent: *\nSitemap: /sitemap.xml\nDisallow: /p\nSITEMAP : https://h.example/s2.xml\n\n"
        "sitemap:https://h.example/s3.xml # c\nSitemap: https://h.example/robots.txt\nSitemap: file:///x\n"
    )
    file = robots.parse(text.encode(), US)
    assert file.sitemaps(f"{SITE}/robots.txt") == tuple(f"{SITE}/{name}.xml" for name in ("sitemap", "s2", "s3"))
    assert not file.allows(f"{SITE}/p").allowed, "a Sitemap line ends no group"
