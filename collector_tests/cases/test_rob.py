"""Cases ROB of the collection of awkward inputs: robots.txt."""

from __future__ import annotations

import pytest

from collector_assets import robots

US = "acmebot"
SITE = "https://h.example"


def allowed(text: str | bytes, path: str) -> bool:
    body = text if isinstance(text, bytes) else text.encode()
    return robots.parse(body, US).allows(SITE + path).allowed


def test_rob_01_bom_in_front_of_the_first_line() -> None:
    assert not allowed(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n", "/x")
    assert allowed(b"\n\xef\xbb\xbfUser-agent: *\nDisallow: /\n", "/x"), "only at offset 0"


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


def test_rob_13_sitemap_lines() -> None:
    text = (
        "User-agent: *\nSitemap: /sitemap.xml\nDisallow: /p\nSITEMAP : https://h.example/s2.xml\n\n"
        "sitemap:https://h.example/s3.xml # c\nSitemap: https://h.example/robots.txt\nSitemap: file:///x\n"
    )
    file = robots.parse(text.encode(), US)
    assert file.sitemaps(f"{SITE}/robots.txt") == tuple(f"{SITE}/{name}.xml" for name in ("sitemap", "s2", "s3"))
    assert not file.allows(f"{SITE}/p").allowed, "a Sitemap line ends no group"
