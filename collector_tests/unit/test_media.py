"""What a body is, by its header and by its first bytes."""

from __future__ import annotations

import gzip

import pytest

from collector_assets import media

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("body", "family"),
    [
        (b"<!doctype html><p>x", "html"),
        (b"\n\t <!DOCTYPE  HTML PUBLIC>", "html"),
        (b"\xef\xbb\xbf<html>", "html"),
        ("\ufeff<html>".encode("utf-16-le"), "html"),
        (b"<!-- x --><html>", "html"),
        (b"<p class=x>", "html"),
        (b"<paragraph>", None),
        (b'<?xml version="1.0"?><urlset>', "xml"),
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<!DOCTYPE html><html>', "html"),
        (b'{"a": 1}', "json"),
        (b" [\n  {", "json"),
        (b"[]", "json"),
        (b"{}", "json"),
        (b"[1,2]", "json"),
        (b"{color: red}", None),
        (b"[section]\nkey=1", None),
        (b"a;b;c\n1;2;3", None),
        (b"%PDF-1.7\n", "pdf"),
        (b"\r\n%PDF-1.4", "pdf"),
        (PNG, "image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image"),
        (b"RIFF\0\0\0\0WAVE", "binary"),
        (b"\0\0\0\x20ftypavif", "image"),
        (b"\0\0\0\x20ftypisom", "binary"),
        (b"PK\x03\x04\x14\0", "zip"),
        (gzip.compress(b"x", mtime=0), "gzip"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "binary"),
        (b"", None),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_the_bytes_show(body: bytes, family: str | None) -> None:
    assert media.shown(body) == family


@pytest.mark.parametrize(
    ("content_type", "family"),
    [
        ("text/html; charset=utf-8", "html"),
        ("TEXT/HTML", "html"),
        ("text/html,text/html", "html"),
        ("application/xhtml+xml", "html"),
        ("application/rss+xml", "xml"),
        ("application/ld+json", "json"),
        ("text/csv", "text"),
        ("image/svg+xml", "image"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "zip"),
        ("video/mp4", "binary"),
        ("application/octet-stream", None),
        ("application/x-whatever", None),
        ("", None),
        ("html", None),
    ],
)
def test_what_a_header_says(content_type: str, family: str | None) -> None:
    assert media.said(content_type) == family


@pytest.mark.parametrize(
    ("content_type", "body", "is_refused", "is_mislabelled"),
    [
        ("text/html", b"%PDF-1.4\n", True, True),
        ("text/html", b'<?xml version="1.0"?><urlset>', False, True),
        ("text/html", b'{"a":1}', False, True),
        ("application/octet-stream", b"<!doctype html>", False, False),
        ("image/png", b"<html><form>login", True, True),
        ("image/png", PNG, False, False),
        ("application/pdf", b"<html>gone", True, True),
        ("application/json", PNG, True, True),
        ("text/plain", b"PK\x03\x04", False, True),
        ("application/xml", gzip.compress(b"<urlset>", mtime=0), False, True),
        ("", b"%PDF-", False, False),
    ],
)
def test_without_a_word_of_the_kind_only_what_nobody_can_have_meant_is_refused(
    content_type: str,
    body: bytes,
    is_refused: bool,  # noqa: FBT001
    is_mislabelled: bool,  # noqa: FBT001
) -> None:
    assert bool(media.objection(content_type, body, ())) is is_refused
    assert media.mismatch(content_type, body) is is_mislabelled


@pytest.mark.parametrize(
    ("content_type", "body", "accepts", "fits"),
    [
        ("text/html", b'{"a":1}', ("json",), True),
        ("text/html", b'{"a":1}', ("html",), False),
        ("application/json", b"<html>", ("json",), False),
        ("text/csv", b"a;b\n1;2", ("text",), True),
        ("text/csv", b"<!DOCTYPE html>", ("text",), False),
        ("application/octet-stream", b"a;b\n1;2", ("text",), True),
        ("application/octet-stream", b"\0\1\2", ("text",), False),
        ("application/octet-stream", b"\0\1\2", ("binary",), True),
        ("text/html", b"%PDF-1.4", ("pdf",), True),
        ("text/html", b"%PDF-1.4", ("pdf", "html"), True),
        ("application/vnd.ms-excel", b"PK\x03\x04", ("zip",), True),
    ],
)
def test_what_a_kind_accepts_is_judged_by_the_bytes_first(
    content_type: str,
    body: bytes,
    accepts: tuple[str, ...],
    fits: bool,  # noqa: FBT001
) -> None:
    assert (not media.objection(content_type, body, accepts)) is fits
