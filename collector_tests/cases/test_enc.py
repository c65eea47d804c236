"""Cases of the kind ENC: from bytes to text, through a page as an extractor gets it."""

from __future__ import annotations

import pandera.pandas as pa
import pytest

from collector_assets import html, normalize
from collector_assets.cases import page
from collector_assets.charset import SUSPECT
from collector_assets.contract import Daily, Expect, Page, Source, replace
from collector_tests.fixtures.stored import Stored


def text_of(body: bytes, content_type: str = "text/html", **more: str) -> str:
    given = page(body, headers={"content-type": content_type}, **more)
    return given.text


@pytest.mark.parametrize(
    ("bom", "codec"), [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")]
)
def test_enc_01_bom_against_header(bom: bytes, codec: str) -> None:
    body = bom + "<p>Привет</p>".encode(codec)
    assert text_of(body, "text/html; charset=windows-1251") == "<p>Привет</p>"
    assert text_of(body, "text/html", encoding="windows-1251") == "<p>Привет</p>"


@pytest.mark.parametrize("label", ["gb2312", "GBK", "gb18030", "x-gbk", "chinese"])
def test_enc_03_gb2312_label_gb18030_content(label: str) -> None:
    assert text_of("朱镕基 丨".encode("gb18030"), f"text/html; charset={label}") == "朱镕基 丨"
    assert text_of(b"\x80 12", f"text/html; charset={label}") == "€ 12"


WRONG = b"<meta charset=windows-1252><h1>caf\xe9 \x80 5</h1>"


class Shop(pa.DataFrameModel):
    """What a page in doubt must not spoil."""

    name: str
    note: str = pa.Field(nullable=True)


def shop(given: Page) -> list[dict[str, str | None]]:
    return [{"name": html.text(html.one(given, "h1")), "note": None}]


SHOP = Source(
    name="things",
    start_urls=("http://shop.localhost:8765/",),
    extract=shop,
    schema=Shop,
    entity="name",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    expect=Expect(min_records=0, max_reject_rate=1),
)


def test_enc_05_header_right_by_rule_wrong_in_fact() -> None:
    given = page(WRONG, headers={"content-type": "text/html; charset=utf-8"})
    assert (given.encoding, given.flags) == ("utf-8", {SUSPECT})
    known = page(WRONG, headers={"content-type": "text/html; charset=utf-8"}, encoding="windows-1252")
    assert (html.text(html.one(known, "h1")), known.flags) == ("café € 5", frozenset())


def test_enc_05_a_key_is_never_stored_with_lost_characters_and_re_extraction_needs_no_request(stored: Stored) -> None:
    row = stored.window(SHOP)
    stored.add(SHOP, row, [WRONG], headers={"content-type": "text/html; charset=utf-8"})
    report = stored.process(SHOP, row)
    assert [(why["column"], why["check"]) for each in report.reject_examples for why in each.reasons] == [
        ("name", "is_decoded")
    ]
    assert stored.rows("SELECT flags, outcome FROM readings") == [([SUSPECT], "all_rejected")]
    readable = next(finding for finding in report.verdict.findings if finding.check == "pages_readable")
    assert readable.message == "1 pages were read; 1 with encoding_suspect"
    mended = replace(SHOP, encoding="windows-1252", extractor_version="2")
    again = stored.process(mended, row)
    assert (again.records, again.preview[0]["name"]) == ({"record": 1}, "café € 5")
    assert stored.rows("SELECT flags FROM readings WHERE extractor_version = '2'") == [([],)]


@pytest.mark.parametrize("declared", ["windows-1252", "iso-8859-1", "gbk", "windows-1251"])
def test_enc_05_utf_8_under_another_name_is_flagged(declared: str) -> None:
    given = page("<p>£5 naïve</p>".encode(), headers={"content-type": f"text/html; charset={declared}"})
    assert SUSPECT in given.flags
    assert page(b"<p>5 naive</p>", headers={"content-type": f"text/html; charset={declared}"}).flags == frozenset()


@pytest.mark.parametrize(
    "parameter",
    ["ISO-88509-1", "uft-8", "none", '"utf-8"', "utf-8,charset=utf-8", "utf8;charset=x", "", "unicode-1-1-utf-8", "''"],
)
def test_enc_06_impossible_charset_labels(parameter: str) -> None:
    assert text_of("<p>£5</p>".encode(), f"text/html; charset={parameter}") == "<p>£5</p>"


def test_enc_06_utf_7_stays_literal() -> None:
    assert text_of(b"+ADw-b+AD4-", "text/html; charset=utf-7") == "+ADw-b+AD4-"


@pytest.mark.parametrize("label", ["iso-2022-kr", "HZ-GB-2312", "iso-2022-cn", "replacement"])
def test_enc_06_encodings_that_the_web_gave_up_are_doubtful(label: str) -> None:
    given = page(b"<p>\x1b$)C\x0e!!\x0f</p>", headers={"content-type": f"text/html; charset={label}"})
    assert given.flags == {SUSPECT}


@pytest.mark.parametrize("meta", ["<meta charset=utf-8>", ""])
def test_enc_07_no_charset_in_the_header_utf_8_in_fact(meta: str) -> None:
    given = page((meta + "<p class=price_color>£51.77</p>").encode(), headers={"content-type": "text/html"})
    text = html.text(html.one(given, ".price_color"))
    assert (text, str(normalize.price(text)), normalize.currency(text)) == ("£51.77", "51.77", "GBP")


CYRILLIC = "Привет, мир"


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        ("<!--" + " " * 5_000 + "--><meta charset=windows-1251>", "cp1251"),
        ("<!-- <meta charset=windows-1251> --><meta charset=utf-8>", "utf-8"),
        ('<meta content="text/html; charset=koi8-r" http-equiv=Content-Type>', "koi8-r"),
        ("<meta charset=x-user-defined>", "cp1252"),
    ],
)
def test_enc_10_late_commented_or_oddly_written_meta_charset(head: str, codec: str) -> None:
    shown = CYRILLIC if codec != "cp1252" else "café"
    assert text_of(head.encode() + shown.encode(codec)).endswith(shown)


def test_enc_10_markup_quoted_in_a_feed_declares_nothing() -> None:
    feed = "<rss><description><![CDATA[<meta charset=koi8-r>]]>£5</description></rss>"
    assert text_of(feed.encode(), "application/rss+xml") == feed
    declared = '<?xml version="1.0" encoding="windows-1251"?>' + CYRILLIC
    assert text_of(declared.encode("cp1251"), "text/xml") == declared
