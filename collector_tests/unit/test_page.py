"""What an extractor is given."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets.cases import page
from collector_assets.page import header_map

NUL = b'<p>a\0b</p><link href="file:///C:\0x.xml" rel=a><p>after</p>'


def test_text_is_decoded_by_the_header() -> None:
    assert page("Привет".encode("cp1251"), headers={"content-type": "text/html; charset=windows-1251"}).text == "Привет"


def test_page_without_headers_is_read_by_its_bytes() -> None:
    assert page("£5", headers={}).text == "£5"


def test_html_01_nul_bytes_end_nothing() -> None:
    # Mutation: return the text with its NULs.
    given_page = page(NUL)
    assert given_page.body == NUL
    assert "\0" not in given_page.text
    assert [p.text() for p in given_page.tree.css("p")] == ["ab", "after"]
    assert [link.attributes for link in given_page.tree.css("link")] == [{"href": "file:///C:x.xml", "rel": "a"}]
    assert given_page.selector.css("p::text").getall() == ["ab", "after"]
    assert given_page.selector.css("link::attr(href)").getall() == ["file:///C:x.xml"]


def test_html_03_text_behind_a_huge_node_is_found() -> None:
    huge = page(b"<p>" + b"x" * 11_000_000 + b"</p><p>TAIL</p>")
    assert huge.tree.css("p")[-1].text() == "TAIL"
    assert huge.selector.css("p::text").getall()[-1] == "TAIL"


def test_enc_05_doubtful_text_is_flagged_beside_the_flags_of_the_bytes() -> None:
    doubtful = page(b"<meta charset=windows-1252>caf\xe9", flags=["trailing_bytes"])
    assert doubtful.flags == {"trailing_bytes", "encoding_suspect"}
    assert page("café").flags == frozenset()


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"price": "5 \xc2\xa3"}', "application/json"),
        (b'\xef\xbb\xbf{"price": "5 \xc2\xa3"}', "application/json"),
        ('{"price": "5 £"}'.encode("utf-16"), "application/json"),
        (b'{"price": "5 \xa3"}', "application/json; charset=iso-8859-1"),
    ],
)
def test_json_is_read_in_its_encoding(body: bytes, content_type: str) -> None:
    assert page(body, headers={"content-type": content_type}).json() == {"price": "5 £"}


@pytest.mark.parametrize("body", [b"", b"<p>", b'{"a": 1', b"\xff"])
def test_what_is_no_json_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        page(body).json()


def test_stream_gives_the_decoded_bytes() -> None:
    with page(b"a;b\n1;2\n").open() as stream:
        assert list(stream) == [b"a;b\n", b"1;2\n"]


def test_trees_are_made_once_and_only_when_asked_for() -> None:
    whole = page("<p>a")
    assert whole.tree is whole.tree
    assert whole.selector is whole.selector
    assert whole.selector.root.base_url is None or whole.selector.root.base_url == whole.final_url


def test_importing_pages_imports_no_parser() -> None:
    probe = (
        "import sys, collector_assets.page; print([m for m in ('parsel', 'lxml', 'selectolax') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"


def test_repeated_headers_are_joined_under_one_name() -> None:
    assert header_map([("Vary", "a"), ("VARY", "b"), ("X", "1")]) == {"vary": "a, b", "x": "1"}


@given(st.binary(max_size=500))
def test_any_bytes_can_be_parsed(body: bytes) -> None:
    whole = page(body, headers={})
    assert "\0" not in whole.text
    assert whole.tree is not None
    assert whole.selector is not None
