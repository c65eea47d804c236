"""A record as a value: its named fields, and the response in it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from collector_assets.archive.warc.words import END, RENDERED
from collector_assets.errors import BrokenRecord
from collector_assets.page import StoredResponse


def parse_record(record: bytes) -> tuple[dict[str, str], bytes]:
    """The named fields of a WARC record (names in lower case) and its block."""
    head, _, rest = record.partition(END)
    fields = parse_fields(head)
    length = int(fields["content-length"])
    block, end = rest[:length], rest[length:]
    if len(block) != length or end != END:
        raise BrokenRecord("the WARC record does not end where it says")
    return fields, block


def parse_fields(head: bytes) -> dict[str, str]:
    """The named fields of a WARC record (names in lower case); a length is among them."""
    version, _, lines = head.partition(b"\r\n")
    if not version.startswith(b"WARC/1."):
        raise BrokenRecord("not a WARC record")
    fields = {name.lower(): value for name, value in header_lines(lines)}
    length = fields.get("content-length", "")
    if not length.isascii() or not length.isdigit() or len(length) > 18:
        raise BrokenRecord("a WARC record without a length")
    return fields


def parse_response(fields: dict[str, str], block: bytes) -> StoredResponse:
    """A response, revisit or resource record as a value; the body of the first two is what follows the HTTP head."""
    kind, url = fields.get("warc-type"), fields.get("warc-target-uri")
    if kind == "resource" and url and fields.get("collector-status", "").isdigit():
        return _parsed_resource(fields, block, url)
    if kind not in {"response", "revisit"} or not url:
        raise BrokenRecord(f"a {kind or 'nameless'} record, not a response")
    head, end, body = block.partition(b"\r\n\r\n")
    start, _, lines = head.partition(b"\r\n")
    words = start.split(b" ", 2)
    if not end or not start.startswith(b"HTTP/") or len(words) < 2 or not words[1].isdigit():
        raise BrokenRecord("a response record without an HTTP response")
    return StoredResponse(
        status=int(words[1]),
        headers=tuple(header_lines(lines)),
        body=body,
        url=url,
        truncated=fields.get("warc-truncated"),
        fetched_at=_fetched_at(fields),
        is_revisit=kind == "revisit",
    )


def _parsed_resource(fields: dict[str, str], block: bytes, url: str) -> StoredResponse:
    """A page as somebody rendered it: the status as it was told, the type as the only header."""
    content_type = fields.get("content-type")
    return StoredResponse(
        status=int(fields["collector-status"]),
        headers=(("Content-Type", content_type),) if content_type else (),
        body=block,
        url=url.removeprefix(RENDERED),
        truncated=fields.get("warc-truncated"),
        fetched_at=_fetched_at(fields),
    )


def _fetched_at(fields: dict[str, str]) -> datetime:
    try:
        return datetime.fromisoformat(fields.get("collector-fetched-at") or fields.get("warc-date", ""))
    except ValueError:
        raise BrokenRecord("a record without a date") from None


def header_lines(lines: bytes) -> Iterable[tuple[str, str]]:
    """Names and values of the lines of a head; a line without a colon is passed over."""
    for line in lines.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()
