"""What the bytes of a good answer show that neither its status nor its length does, found before it is archived. Pure.

A transfer that was cut where the compressed form is not whole, although the length agrees, is tried again: found only
at reading, it would be too late for that. Whatever else cannot be decoded stays good here and fails in reading, because
a better decoder or a greater limit can read the stored bytes again, with no request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from collector_assets import decoding, media
from collector_assets.contract import Kind
from collector_assets.decoding import DecodingError
from collector_assets.facts import fact
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome

HEAD_OF_A_PAGE: Final = 2_048
"""Bytes in which a meta refresh is looked for; a page that only leads on is small."""
_LOOKED_AT: Final = frozenset({b"content-encoding", b"content-type", b"refresh"})
MISTYPED: Final = "content_type_mislabelled"
"""Flag: header and first bytes name different types; the bytes were believed."""


@fact
class Inspected:
    """An answer and what was seen of it."""

    answer: Response
    may_refresh: bool = False
    """It is a page that may lead elsewhere by itself; cheap to know, and seldom so."""


def inspected(answer: Response, kind: Kind, *, limit: int) -> Inspected:
    """The answer, judged by its body too where everything else is good; `limit`: decoded bytes."""
    if answer.outcome is not Outcome.OK or not answer.body:
        return Inspected(answer=answer)
    headers = _headers(answer)
    coding = headers.get(b"content-encoding", "")
    try:
        body = decoding.decode(answer.body, coding, limit=limit).body if coding else answer.body
    except DecodingError as error:
        return Inspected(answer=_cut(answer, error) if error.outcome is Outcome.TRUNCATED else answer)
    if not body:
        reason = f"status {answer.status} and nothing but {coding}"
        return Inspected(answer=replace(answer, outcome=Outcome.EMPTY_BODY, reason=reason))
    head = body[:HEAD_OF_A_PAGE]
    may_refresh = b"refresh" in headers or _may_refresh(head)
    return Inspected(answer=_typed(answer, headers.get(b"content-type", ""), head, kind), may_refresh=may_refresh)


def _cut(answer: Response, error: DecodingError) -> Response:
    reason = f"{error.reason}; {len(answer.body):,} bytes came, as declared"
    return replace(answer, outcome=Outcome.TRUNCATED, reason=reason, truncated="unspecified")


def _typed(answer: Response, content_type: str, head: bytes, kind: Kind) -> Response:
    is_mistyped = media.mismatch(content_type, head)
    if not (is_mistyped or kind.accepts):
        return answer
    if objection := media.objection(content_type, head, kind.accepts):
        return replace(answer, outcome=Outcome.UNEXPECTED_TYPE, reason=objection)
    return replace(answer, flags=(*answer.flags, MISTYPED)) if is_mistyped else answer


def _may_refresh(head: bytes) -> bool:
    lower = head.lower()
    return b"http-equiv" in lower and b"refresh" in lower


def _headers(answer: Response) -> dict[bytes, str]:
    """The headers that are looked at, by name; the values of repeated ones joined."""
    found: dict[bytes, str] = {}
    for key, value in answer.headers:
        name = key.lower()
        if name in _LOOKED_AT and value:
            text = value.decode("latin-1")
            found[name] = f"{found[name]}, {text}" if name in found else text
    return found
