"""From bytes to text: the WHATWG labels and decoders, and the order of the signals."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector_assets import charset
from collector_assets.charset import SUSPECT, decode, encoding_of

CYRILLIC = "<p>Привет</p>"
PRICE = "<p class=price_color>£51.77</p>"


# --- The order: BOM, header, meta, evidence --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bom", "codec", "name"),
    [
        (b"\xef\xbb\xbf", "utf-8", "utf-8"),
        (b"\xff\xfe", "utf-16-le", "utf-16le"),
        (b"\xfe\xff", "utf-16-be", "utf-16be"),
    ],
)
def test_enc_01_bom_wins_over_the_header_and_is_no_text(bom: bytes, codec: str, name: str) -> None:
    # Mutation: look at the header before the BOM in decode.
    found = decode(bom + CYRILLIC.encode(codec), "text/html; charset=windows-1251")
    assert (found.text, found.encoding, found.flags) == (CYRILLIC, name, frozenset())


def test_header_wins_over_meta() -> None:
    body = b"<meta charset=utf-8>" + CYRILLIC.encode("cp1251")
    assert decode(body, "text/html; charset=windows-1251").text.endswith(CYRILLIC)


def test_meta_wins_over_evidence() -> None:
    body = b"<meta charset=windows-1251>" + "é".encode()
    assert decode(body, "text/html").encoding == "windows-1251"


@pytest.mark.parametrize("meta", ["<meta charset=utf-8>", ""])
def test_enc_07_valid_utf_8_without_a_header_is_utf_8(meta: str) -> None:
    found = decode((meta + PRICE).encode(), "text/html")
    assert found.text == meta + PRICE
    assert not found.flags


def test_undeclared_bytes_that_are_not_utf_8_are_a_guess_and_say_so() -> None:
    found = decode(b"<p>caf\xe9 \x80 5</p>", "text/html")
    assert (found.text, found.encoding, found.flags) == ("<p>café € 5</p>", "windows-1252", {SUSPECT})


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_markup_without_a_mark_is_seen(codec: str) -> None:
    assert decode(CYRILLIC.encode(codec)).text == CYRILLIC


def test_enc_05_header_right_by_rule_and_wrong_in_fact_is_flagged() -> None:
    # Mutation: return no flags from _read.
    found = decode(b"<meta charset=windows-1252><p>caf\xe9 \x80 5</p>", "text/html; charset=utf-8")
    assert found.encoding == "utf-8"
    assert "\ufffd" in found.text
    assert found.flags == {SUSPECT}


# --- Labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameter",
    [
        "ISO-88509-1",
        "uft-8",
        "none",
        '"utf-8"',
        "'utf-8'",
        "utf-8,charset=utf-8",
        "utf8;charset=x",
        "",
        " ",
        '"',
        "x;charset=utf-8",
    ],
)
def test_enc_06_impossible_labels_are_passed_over(parameter: str) -> None:
    found = decode("<p>£5</p>".encode(), f"text/html; charset={parameter}")
    assert (found.text, found.encoding) == ("<p>£5</p>", "utf-8")


def test_enc_06_utf_7_is_no_web_encoding() -> None:
    assert decode(b"+ADw-b+AD4-", "text/html; charset=utf-7").text == "+ADw-b+AD4-"
    assert decode(b"<meta charset=utf-7>+ADw-b+AD4-", "text/html").text.endswith("+ADw-b+AD4-")


@pytest.mark.parametrize(
    ("label", "encoding"),
    [
        ("latin1", "windows-1252"),
        ("ISO-8859-1", "windows-1252"),
        ("us-ascii", "windows-1252"),
        (" UTF8\n", "utf-8"),
        ("gb2312", "gbk"),
        ("ks_c_5601-1987", "euc-kr"),
        ("x-sjis", "shift_jis"),
        ("iso-8859-9", "windows-1254"),
        ("tis-620", "windows-874"),
        ("unicode", "utf-16le"),
        ("hz-gb-2312", None),
        ("utf-32", None),
        ("rot13", None),
        ("zlib_codec", None),
        ("", None),
    ],
)
def test_labels_mean_what_the_standard_says(label: str, encoding: str | None) -> None:
    assert encoding_of(label) == encoding


def test_every_encoding_has_a_codec_that_decodes_every_byte() -> None:
    for encoding in charset._codecs():
        found = decode(bytes(range(256)), f"text/html; charset={encoding}")
        assert found.encoding == encoding
        assert found.text


# --- Decoders that are not Python's ----------------------------------------------------------------------------------


def test_enc_03_gb2312_means_gb18030() -> None:
    assert decode("朱镕基 丨".encode("gb18030"), "text/html; charset=gb2312").text == "朱镕基 丨"
    assert decode(b"\x80 12", "text/html; charset=gb2312").text == "€ 12"


@pytest.mark.parametrize(
    ("encoding", "body", "text"),
    [
        ("windows-1252", b"\x80\x81\x8d\x9d", "€\x81\x8d\x9d"),
        ("windows-1251", b"\x98\xcf", "\x98П"),
        ("windows-1253", b"\xd2", "\ufffd"),
        ("shift_jis", b"\x87\x40", "①"),
        ("euc-jp", b"\xad\xa1\xa4\xa2", "①あ"),
        ("euc-jp", b"\xa1\xc1\xa1\xdd", "～－"),  # noqa: RUF001
        ("iso-2022-jp", b'\x1b$B$"\x1b(B', "あ"),
        ("euc-kr", b"\x8c\x63", "똠"),
        ("big5", b"\xa4\xa4\xa4\xe5", "中文"),
        ("utf-8", b"a\xf0\x9f\x98b\xff", "a\ufffdb\ufffd"),
    ],
)  # fmt: skip
def test_decoders_are_those_of_the_web(encoding: str, body: bytes, text: str) -> None:
    assert decode(body, f"text/html; charset={encoding}").text == text


# --- Meta elements ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markup", "encoding"),
    [
        ("<!--" + " " * 5_000 + "--><meta charset=windows-1251>", "windows-1251"),
        ("<p>" + "x" * 5_000 + "</p><meta charset=windows-1251>", "windows-1251"),
        ("<!-- <meta charset=windows-1251> --><meta charset=utf-8>", "utf-8"),
        ('<meta content="text/html; charset=gbk" http-equiv=Content-Type>', "gbk"),
        ("<META HTTP-EQUIV='content-type' CONTENT='text/html;CHARSET = \"koi8-r\"'/>", "koi8-r"),
        ("<meta\ncharset\t=\n'euc-kr' >", "euc-kr"),
        ("<meta/charset=big5>", "big5"),
        ("<meta charset=nonsense><meta charset=windows-1251>", "windows-1251"),
        ("<!--><meta charset=windows-1251>", "windows-1251"),
        ("<!-- a --!><meta charset=windows-1251>", "windows-1251"),
        ("<a title='<meta charset=koi8-r>'><meta charset=windows-1251>", "windows-1251"),
        ("<a title=it's><meta charset=windows-1251><b title=it's>", "windows-1251"),
        ("<script>'<meta charset=koi8-r>'</script><meta charset=windows-1251>", "windows-1251"),
        ("<title><meta charset=koi8-r></title><meta charset=windows-1251>", "windows-1251"),
        ("<meta name=description content='charset=koi8-r'><meta charset=windows-1251>", "windows-1251"),
        ("<metadata charset=koi8-r><meta charset=windows-1251>", "windows-1251"),
        ("5 < 6 <meta charset=windows-1251>", "windows-1251"),
        ("<meta charset=utf-16>", "utf-8"),
        ('<?xml version="1.0" encoding="windows-1251"?><rss/>', "windows-1251"),
        ('<?xml version="1.0" encoding="windows-1251"?><meta charset=koi8-r>', "koi8-r"),
    ],
)
def test_enc_10_meta_is_found_where_and_how_it_is_written(markup: str, encoding: str) -> None:
    # Mutation: search only body[:1024] in _metas -> the first two; drop the comment branch -> the commented ones.
    assert decode(markup.encode("ascii"), "text/html").encoding == encoding


def test_enc_10_text_after_a_late_meta_is_right() -> None:
    body = b"<!--" + b" " * 5_000 + b"--><meta charset=windows-1251>" + CYRILLIC.encode("cp1251")
    found = decode(body, "text/html")
    assert found.text.endswith(CYRILLIC)
    assert not found.flags


@pytest.mark.parametrize("content_type", ["application/json", "text/csv", "application/javascript"])
def test_what_is_no_markup_has_no_meta(content_type: str) -> None:
    assert decode('"<meta charset=windows-1251> £"'.encode(), content_type).encoding == "utf-8"


HOSTILE = {
    "open quotes": b'<a "' * 30_000,
    "open comments": b"<!--" * 30_000,
    "open scripts": b"<script>" * 30_000,
    "open metas": b"<meta " * 30_000,
    "open values": b'<meta a="' * 30_000,
    "metas": b"<meta charset=x>" * 30_000,
    "brackets": b"<" * 200_000,
    "blanks": b"<meta a" + b" " * 200_000,
    "declaration": b"<?xml" + b" encoding =" * 30_000,
}


@pytest.mark.parametrize("markup", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("end", [b"", b"<meta charset", b"<meta charset=koi8-r>"])
def test_no_markup_takes_more_than_linear_time(markup: bytes, end: bytes) -> None:
    before = time.process_time()
    decode(markup + end, "text/html")
    assert time.process_time() - before < 2


@given(st.binary(max_size=400), st.text(max_size=40))
def test_decoding_never_fails(body: bytes, content_type: str) -> None:
    decode(body, content_type)
    decode(b"<meta charset=" + body, f"text/html; charset={content_type}")


@given(st.text(max_size=200))
def test_utf_8_comes_back_as_it_was(text: str) -> None:
    body = text.encode("utf-8", "replace")
    assert decode(body, "text/html; charset=utf-8").text == body.decode().removeprefix("\ufeff")


_PARTS = [
    "",
    "<!DOCTYPE html>",
    "<!doctype html <meta charset=utf-7>",
    "<html>",
    '<html lang="de">',
    "<html lang='<meta charset=koi8-r>'>",
    "<html x=a>",
    "<head>",
    "<head >",
    "<HEAD>",
    "<title>A & B</title>",
    "<title><meta charset=big5></title>",
    "<title>",
    "<!-- x -->",
    "<!-->",
    "<!--->",
    "--!>",
    "<!--<head><meta charset=big5>-->",
    "<!--",
    "-->",
    '<meta charset="utf-8">',
    "<meta charset=latin1>",
    '<META http-equiv="Content-Type" content="text/html; charset=sjis">',
    '<meta name="a" content="<meta charset=euc-jp>">',
    '<meta name="viewport" content="x">',
    "<meta",
    ">",
    '<script>"<meta charset=gbk>"</script>',
    "text",
    '<meta charset="nonsense">',
    "<meta a=b/>",
    "</head>",
    '"',
    "=",
    "<meta/charset=koi8-r>",
    "",
]


@given(st.lists(st.sampled_from(_PARTS), max_size=8), st.sampled_from(["", " ", "\n"]))
@settings(max_examples=1_500)
def test_a_glance_at_the_head_says_what_a_look_says(parts: list[str], between: str) -> None:
    """The quick way is taken only where the first meta element is what the whole look finds."""
    body = between.join(parts).encode()
    glanced = charset._of_plain_head(body)
    assert glanced is None or glanced == charset._first_known(charset._meta_labels(body))


def test_a_page_as_most_begin_is_told_at_a_glance() -> None:
    head = b'<!DOCTYPE html>\n<html lang="en">\n<head>\n<title>A</title>\n'
    meta = b'<meta http-equiv="content-type" content="text/html; charset=UTF-8" />'
    assert charset._of_plain_head(head + meta) == "utf-8"
    assert charset._of_plain_head(head.replace(b"<head>", b"<!--[if IE]><html><![endif]-->\n<head>") + meta) == "utf-8"
    assert charset._of_plain_head(head + b"<meta charset=utf-8>") is None, "left to the look"


@pytest.mark.parametrize("begin", [b"<html ", b"<head><meta ", b"<head><title>", b"<!--", b""])
@pytest.mark.parametrize("again", [b'a="b" ', b"a ", b" ", b"x", b'="', b"-", b"<!-- -->"])
def test_a_glance_at_a_bomb_is_short(begin: bytes, again: bytes) -> None:
    """No spelling of a head makes the pattern try again and again."""
    began = time.process_time()
    charset._of_plain_head(begin + again * 300_000)
    assert time.process_time() - began < 2.0
