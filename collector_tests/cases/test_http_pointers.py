"""HTTP-17 of the field cases: where a page itself points, by a refresh or by its canonical address."""

from __future__ import annotations

import pytest

from collector_assets import html
from collector_assets.cases import page


def refresh(content: str) -> str | None:
    return html.refresh_target(page(f"<head><meta http-equiv=refresh content='{content}'></head>"))


@pytest.mark.parametrize(
    ("markup", "target"),
    [
        ("<meta content='0; url=\n /next' http-equiv=refresh>", "https://shop.example/next"),
        ("<noscript><meta content='0; url=\n /next' http-equiv=refresh></noscript>", None),
        ("<head><noscript><meta content='0; url=/next' http-equiv=refresh></noscript></head>", None),
        ("<!-- <meta content='0; url=/next' http-equiv=refresh> -->", None),
        ("<meta http-equiv=refresh content=5>", None),
        ("""<meta http-equiv=refresh content="0;url='/q'">""", "https://shop.example/q"),
    ],
)
def test_http_17_meta_refresh_variants(markup: str, target: str | None) -> None:
    assert html.refresh_target(page(markup)) == target


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("0,/q", "/q"),
        ("0 /q", "/q"),
        (".5;url=/q", "/q"),
        ("3.9; URL = /q", "/q"),
        ('0;"/q"', "/q"),
        ('0;url="/q" and more', "/q"),
        ("0;url=/q?a=1&amp;b=2#c", "/q?a=1&b=2"),
    ],
)
def test_http_17_values_are_read_as_browsers_do(content: str, path: str) -> None:
    """HTML standard, "shared declarative refresh steps"."""
    assert refresh(content) == f"https://shop.example{path}"


@pytest.mark.parametrize(
    "content",
    [
        "0/q",
        ";url=/q",
        "url=/q",
        "",
        "0; url=",
        "0;url=#top",
        "60;url=/q",
        "0;url=javascript:x",
        "0;url=/l/",
        "-1;url=/q",
    ],
)
def test_http_17_what_is_no_way_to_another_page(content: str) -> None:
    """Not a value, the page itself, no web address, or so late that the page is there to be read."""
    assert refresh(content) is None


def test_http_17_the_header_counts_and_base_href_too() -> None:
    assert html.refresh_target(page("", headers={"refresh": "0; url=/h"})) == "https://shop.example/h"
    assert html.refresh_target(page("<base href='/z/'><meta http-equiv=Refresh content='0;url=q'>")) == (
        "https://shop.example/z/q"
    )
    assert html.refresh_target(page("<template><meta http-equiv=refresh content='0;url=/q'></template>")) is None
    two = "<meta http-equiv=refresh content='0;url=javascript:x'><meta http-equiv=refresh content='0;url=/q'>"
    assert html.refresh_target(page(two)) == "https://shop.example/q"


@pytest.mark.parametrize(
    ("markup", "address"),
    [
        ("<link rel=canonical href='/p#top'>", "https://shop.example/p"),
        ("<link rel='alternate Canonical' href='//other.example/p'>", "https://other.example/p"),
        ("<link rel=canonical href='/p'><link rel=canonical href='/p'>", "https://shop.example/p"),
        ("<link rel=canonical href='/p'><link rel=canonical href='/q'>", None),
        ("<body><p>x<link rel=canonical href='/p'>", None),
        ("<link rel=canonical href='javascript:x'>", None),
        ("<link rel=next href='/p'>", None),
    ],
)
def test_canonical_is_one_address_of_the_head_or_none(markup: str, address: str | None) -> None:
    assert html.canonical(page(markup)) == address


def test_canonical_may_stand_in_a_header() -> None:
    """RFC 8288: several links, quoted commas."""
    said = {"link": '<https://a.example/x,y>; title="a,b"; rel="canonical", </z>; rel=next'}
    assert html.canonical(page("", headers=said)) == "https://a.example/x,y"
