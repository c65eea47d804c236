"""What a 304 stands for, and what a conditional request says."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from collector_assets import revisits
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome
from collector_assets.page import Location, StoredResponse, revisited
from collector_assets.request import Earlier, Fence, Lease, RequestId

THEN = datetime(2026, 3, 1, tzinfo=UTC)
NOW = THEN + timedelta(days=1)
BODY = b"<p>hello</p>"


def held(*headers: tuple[str, str]) -> StoredResponse:
    return StoredResponse(
        status=200, headers=headers, body=BODY, url="http://h.example/", truncated=None, fetched_at=THEN
    )


def confirmation(*headers: tuple[str, str], status: int = 304) -> StoredResponse:
    return replace(held(*headers), status=status, body=b"", fetched_at=NOW, is_revisit=True)


def lease(**changes: Any) -> Lease:
    earlier = Earlier(
        window_start=THEN, page_id=1,
        location=Location(file="a", offset=1, length=1, payload_digest=hashlib.sha256(BODY).digest(), url="x"),
        warc_date=THEN, content_type="text/html", content_encoding="", etag='"1"', last_modified=None,
    )  # fmt: skip
    return Lease(
        request_id=RequestId(1), fence=Fence(1), attempt=1, max_attempts=3, kind="detail", lane="*", url="http://h.example/",
        budget_key="h.example", method="GET", body=None, headers={}, hints={}, entity=None, depth=0, referrer=None,
        leased_until=NOW, earlier=replace(earlier, **changes),
    )  # fmt: skip


def answer(body: bytes = BODY, status: int = 200, outcome: Outcome = Outcome.OK, **changes: Any) -> Response:
    whole = Response(
        outcome=outcome, reason="", url="http://h.example/", final_url="http://h.example/", http_version="1.1",
        status=status, status_text="", headers=((b"Content-Type", b"text/html"),), body=body, truncated=None,
        request_headers=(), requested_at=NOW, fetched_at=NOW, ended_at=0.0, ip=None,
    )  # fmt: skip
    return replace(whole, **changes)


def test_a_304_updates_what_was_said_and_not_what_the_body_is() -> None:
    """RFC 9111 §3.2."""
    old = held(("Content-Type", "text/html"), ("Content-Length", "12"), ("ETag", '"1"'), ("X-A", "1"), ("X-A", "2"))
    new = confirmation(("etag", '"2"'), ("X-a", "3"), ("Content-Type", "text/plain"), ("Content-Length", "500"))
    whole = revisited(new, old)
    assert (whole.status, whole.body, whole.fetched_at, whole.is_revisit) == (200, BODY, NOW, False)
    assert whole.headers == (("Content-Type", "text/html"), ("Content-Length", "12"), ("etag", '"2"'), ("X-a", "3"))


def test_the_same_bytes_again_stand_under_what_came_with_them() -> None:
    whole = revisited(confirmation(("X-Total", "61"), status=200), held(("X-Total", "60"), ("X-Old", "1")))
    assert (whole.headers, whole.body, whole.is_revisit) == ((("X-Total", "61"),), BODY, False)


@pytest.mark.parametrize(
    ("validators", "said"),
    [
        ({}, {"If-None-Match": '"1"'}),
        ({"etag": 'W/"1"'}, {"If-None-Match": 'W/"1"'}),
        ({"etag": None}, {}),
        ({"etag": ""}, {}),
        ({"etag": '"\r\nX-Injected: 1"'}, {}),
        ({"etag": '"é"'}, {}),
        ({"etag": '"' + "a" * 2_000 + '"'}, {}),
        ({"last_modified": "then"}, {"If-None-Match": '"1"', "If-Modified-Since": "then"}),
    ],
)
def test_what_a_conditional_request_says(validators: dict[str, str | None], said: dict[str, str]) -> None:
    assert revisits.conditions(lease(**validators)) == said


def test_without_an_earlier_page_nothing_is_said() -> None:
    assert revisits.conditions(replace(lease(), earlier=None)) == {}


@pytest.mark.parametrize(
    ("given", "profile"),
    [
        (answer(), "identical-payload-digest"),
        (answer(b"", 304, Outcome.UNEXPECTED_STATUS), "server-not-modified"),
        (answer(b"other"), None),
        (answer(truncated="length"), None),
        (answer(headers=((b"Content-Type", b"text/html; charset=utf-8"),)), None),
        (answer(headers=((b"Content-Type", b"text/html"), (b"Content-Encoding", b"gzip"))), None),
        (answer(status=404, outcome=Outcome.GONE), None),
        (answer(outcome=Outcome.SOFT_GONE), None),
    ],
)
def test_what_is_a_revisit(given: Response, profile: str | None) -> None:
    found = revisits.revisit_of(lease(), given)
    assert (found and found.profile) == profile


@pytest.mark.parametrize("headers", [{"if-none-match": "*"}, {"Range": "bytes=0-9"}])
def test_a_304_to_a_question_that_was_not_ours_is_no_page(headers: dict[str, str]) -> None:
    plain = replace(lease(), earlier=None, headers=headers)
    assert revisits.outcome_of(plain, answer(b"", 304, Outcome.UNEXPECTED_STATUS)) is Outcome.UNEXPECTED_STATUS
