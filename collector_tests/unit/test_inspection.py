"""What the bytes of a good answer show."""

from __future__ import annotations

import gzip
import zlib
from datetime import UTC, datetime
from typing import Any

import brotli
import pytest
import zstandard

from collector_assets.contract import Kind
from collector_assets.fetch import Response
from collector_assets.inspection import inspected
from collector_assets.outcome import Outcome

HTML = b"<!doctype html><p>hello!</p>" * 40
NOW = datetime(2026, 1, 29, tzinfo=UTC)
CUT = {
    "gzip": gzip.compress(HTML, mtime=0)[:-10],
    "deflate": zlib.compress(HTML)[:-6],
    "br": brotli.compress(HTML)[:-3],
    "zstd": zstandard.compress(HTML)[:-3],
    "gzip, gzip": gzip.compress(gzip.compress(HTML, mtime=0)[:-10], mtime=0),
}


def answer(
    body: bytes, *, coding: str = "", content_type: str = "text/html", outcome: Outcome = Outcome.OK
) -> Response:
    headers = [(b"Content-Type", content_type.encode()), *([(b"content-ENCODING", coding.encode())] if coding else [])]
    return Response(
        outcome=outcome, reason="", url="http://a/", final_url="http://a/", http_version="1.1", status=200,
        status_text="OK", headers=tuple(headers), body=body, truncated=None, request_headers=(), requested_at=NOW,
        fetched_at=NOW, ended_at=0.0, ip=None,
    )  # fmt: skip


def judged(given: Response, limit: int = 1_000_000, **kind: Any) -> Response:
    return inspected(given, Kind(**kind), limit=limit).answer


@pytest.mark.parametrize("coding", CUT)
def test_compressed_body_that_is_cut_although_its_length_agrees_is_truncated(coding: str) -> None:
    """The mark goes into the archive: nobody takes the bytes for a whole page."""
    found = judged(answer(CUT[coding], coding=coding))
    assert (found.outcome, found.truncated) == (Outcome.TRUNCATED, "unspecified")
    assert "cut" in found.reason


def test_whole_body_stays_as_it_is() -> None:
    for given in (answer(HTML), answer(gzip.compress(HTML, mtime=0), coding="gzip"), answer(HTML, coding="gzip")):
        assert judged(given) == given


@pytest.mark.parametrize("body", [gzip.compress(HTML, mtime=0)[:300] + b"?" * 50, b"\x1f\x8b\x08rubbish and more"])
def test_what_no_decoder_can_read_is_left_to_reading(body: bytes) -> None:
    """A better decoder, or a greater limit, may read the stored bytes again, with no request."""
    assert judged(answer(body, coding="gzip")).outcome in (Outcome.OK, Outcome.TRUNCATED)
    assert judged(answer(HTML, coding="compress")).outcome is Outcome.OK
    assert judged(answer(gzip.compress(HTML, mtime=0), coding="gzip"), limit=10).outcome is Outcome.OK


def test_nothing_well_compressed_is_still_nothing() -> None:
    """HTTP-06."""
    assert judged(answer(gzip.compress(b"", mtime=0), coding="gzip")).outcome is Outcome.EMPTY_BODY


def test_type_is_that_of_the_decoded_bytes() -> None:
    pdf = gzip.compress(b"%PDF-1.4\n" + HTML, mtime=0)
    assert judged(answer(pdf, coding="gzip")).outcome is Outcome.UNEXPECTED_TYPE
    assert judged(answer(pdf, coding="gzip"), accepts=("pdf",)).flags == ("content_type_mislabelled",)


@pytest.mark.parametrize(
    ("page", "may"),
    [
        (b"<META HTTP-EQUIV=refresh>", True),
        (b" " * 3_000 + b"<meta http-equiv=refresh>", False),
        (b"<meta http-equiv=content-type>", False),
        (HTML, False),
    ],
)
def test_page_that_may_lead_elsewhere_is_known_by_its_head(page: bytes, may: bool) -> None:  # noqa: FBT001
    for given in (answer(page), answer(gzip.compress(page, mtime=0), coding="gzip")):
        assert inspected(given, Kind(), limit=1_000_000).may_refresh is may


def test_only_good_answers_are_judged() -> None:
    for given in (answer(b"%PDF-1.4", outcome=Outcome.GONE), answer(b"")):
        assert judged(given) is given
