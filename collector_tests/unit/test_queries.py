"""The query of a link in its page's encoding."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets import charset, queries, urls

LABELS = [
    "utf-8", "utf-16", "latin1", "l2", "cyrillic", "greek", "hebrew", "logical", "koi8-r", "cp1251", "cp1252", "cp866",
    "windows-874", "mac", "x-mac-cyrillic", "gb2312", "gb18030", "big5", "euc-jp", "iso-2022-jp", "sjis", "euc-kr",
]  # fmt: skip
NAMES = sorted({charset.encoding_of(label) or label for label in LABELS})


@given(st.text(max_size=30), st.sampled_from(NAMES))
def test_any_text_in_any_encoding_makes_a_link(text: str, encoding: str) -> None:
    href = queries.in_encoding(f"?q={text}", encoding)
    assert isinstance(urls.resolve(href, "https://shop.example/"), urls.WebAddress | urls.Rejected)
    if encoding not in ("utf-8", "utf-16le", "utf-16be") and "#" not in text:
        assert href.isascii()


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("windows-1252", "Größe €"),
        ("windows-1251", "книга"),
        ("koi8-r", "книга"),
        ("gbk", "书"),
        ("gb18030", "书\U0001f4d6"),
        ("big5", "書"),
        ("euc-jp", "本"),
        ("shift_jis", "本ソ"),
        ("iso-2022-jp", "本"),
        ("euc-kr", "책"),
    ],
)
def test_the_server_reads_what_was_meant(encoding: str, text: str) -> None:
    sent = queries.in_encoding(f"?q={text}", encoding).partition("=")[2]
    assert charset.decode(unquote_to_bytes(sent), f"text/plain; charset={encoding}").text == text


def test_path_and_fragment_stay_unicode() -> None:
    assert queries.in_encoding("/ü?ü#ü?ü", "windows-1252") == "/ü?%FC#ü?ü"
    assert queries.in_encoding("/ü#?ü", "windows-1252") == "/ü#?ü"


def test_what_the_encoding_lacks_is_a_reference() -> None:
    assert queries.in_encoding("?q=aжb", "windows-1252") == "?q=a%26%231078%3Bb"
