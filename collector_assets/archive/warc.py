"""WARC 1.1 (ISO 28500:2017): an exchange as two records, each one gzip member, and a response record read back. Pure.

The rule for HTTP headers: the block is kept as received, except that what would be untrue of the stored body is
renamed. The client has undone the transfer coding, so `Transfer-Encoding` becomes `X-Archive-Orig-Transfer-Encoding`;
a `Content-Length` that is not the length of the stored body becomes `X-Archive-Orig-Content-Length`; a right
`Content-Length` is always there. `Content-Encoding` stays: the body is still content-encoded. A revisit keeps the head
as it was sent (without a transfer coding there is nothing untrue in it: it has no body).

What a browser made of a page follows its response: the DOM as a `resource` with the target `urn:rendered:<url>`, a
picture as `urn:view:<url>`, and responses to the page's own requests as `response` records. Of those the browser has
undone the content coding, so `Content-Encoding` is renamed too, and a `Collector-Note` says so.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, overload

from isal import isal_zlib

from collector_assets import spool
from collector_assets.archive.exchange import Exchange, Revisit
from collector_assets.errors import BrokenRecord
from collector_assets.page import PREFIXES, Location, Part, PartPlace, StoredResponse
from collector_assets.spool import Body, Spool
from collector_assets.window import utc

LEVEL: Final = 2
"""Of ISA-L's deflate: a 10 KB page takes a quarter of the time of zlib's level 3, at the same size."""
GZIP: Final = 16 + isal_zlib.MAX_WBITS
"""Window bits for gzip framing."""
GZIP_MAGIC: Final = b"\x1f\x8b"
REPACKED: Final = "; if the file was compressed anew as one stream, compress it again per record"

_RECORDS: Final = uuid.UUID("5d4a1b52-6b0c-4a39-9c5e-2f0a1a6f3c11")
"""Namespace of the ids of response records, which follow from their places: a revisit names a record by them."""
RENDERED: Final = "urn:rendered:"
"""Before the URL in the target of a page as somebody rendered it."""
_PROFILE: Final = "http://netpreserve.org/warc/1.1/revisit/"
MAX_HEAD: Final = 4 * 2**20
"""Bytes in which both heads of a record are."""
BITE: Final = 2**16
"""Stored bytes that are decompressed at once."""

_END: Final = b"\r\n\r\n"
_ORIGINAL: Final = b"X-Archive-Orig-"
_UNDONE: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
CAPTURED: Final = "Collector-Note: from a browser (DevTools): content coding undone, head as it tells it\r\n"
_BREAK: Final = re.compile(rb"[\r\n]")
_NOT_IN_URI: Final = re.compile(r"[^\x21-\x7e]")
_TARGET: Final = re.compile(r"[^:/?#]+://[^/?#]*([^#]*)")


# --- Writing -------------------------------------------------------------------------------------------------------


def warcinfo_record(*, filename: str, software: str, part_of: str, now: datetime) -> tuple[bytes, str]:
    """The first record of a file, which says what wrote it and by which rules; and its id."""
    record_id = uuid.uuid4().urn
    lines = [
        f"software: {software}",
        "format: WARC File Format 1.1",
        "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        f"isPartOf: {part_of}",
        "description: transfer codings undone, their headers renamed X-Archive-Orig-*; content codings kept",
    ]
    block = "".join(f"{line}\r\n" for line in lines).encode()
    fields = f"WARC-Filename: {filename}\r\nContent-Type: application/warc-fields\r\n"
    return _member("warcinfo", record_id, _moment(now), fields, block), record_id


def record_id(file: str, offset: int) -> str:
    """The id of the response record at a place of the archive: nothing else is ever written there."""
    return uuid.uuid5(_RECORDS, f"{file}@{offset}").urn


def batch_records(
    batch: Sequence[Exchange], *, file: str, begin: int, warcinfo_id: str
) -> tuple[list[Body], list[Location]]:
    """The records of a batch as they follow each other in a file from an offset on, and the places of the responses."""
    pieces, locations, offset = list[Body](), list[Location](), begin
    for exchange in batch:
        of_page = record_id(file, offset)
        response, request, digest = exchange_records(exchange, warcinfo_id=warcinfo_id, response_id=of_page)
        place = Location(file=file, offset=offset, length=len(response), payload_digest=digest, url=exchange.url)
        pieces += (response, request)
        offset += len(response) + len(request)
        if exchange.parts:
            parts: list[PartPlace] = []
            for part in exchange.parts:
                record, found = _part_record(part, exchange, file, offset, warcinfo_id=warcinfo_id, of_page=of_page)
                pieces.append(record)
                parts.append(PartPlace(role=part.role, url=part.url, location=found))
                offset += found.length
            place = replace(place, parts=tuple(parts))
        locations.append(place)
    return pieces, locations


def _part_record(
    part: Part, exchange: Exchange, file: str, offset: int, *, warcinfo_id: str, of_page: str
) -> tuple[bytes, Location]:
    """What a browser made of a page, as a record that names the page's response; and its place."""
    target, digest = PREFIXES.get(part.role, "") + part.url, hashlib.sha256(part.body).digest()
    fields = (
        f"WARC-Target-URI: {target_uri(target)}\r\nWARC-Warcinfo-ID: <{warcinfo_id}>\r\n"
        f"WARC-Concurrent-To: <{of_page}>\r\nWARC-Payload-Digest: {_labelled(digest)}\r\n"
        f"Collector-Fetched-At: {_moment(exchange.fetched_at)}\r\n"
    )
    date, name = _moment(exchange.fetched_at), record_id(file, offset)
    if part.role == "captured":
        fields += f"{CAPTURED}Content-Type: application/http;msgtype=response\r\n"
        record = _member("response", name, date, fields, _captured_head(part), part.body)
    else:
        content_type = next((value for key, value in part.headers if key.lower() == "content-type"), "")
        fields += f"Collector-Status: {part.status}\r\nContent-Type: {content_type}\r\n"
        record = _member("resource", name, date, fields, b"", part.body)
    place = Location(file=file, offset=offset, length=len(record), payload_digest=digest, url=target)
    return record, place


def _captured_head(part: Part) -> bytes:
    """The head as DevTools tells it; what is untrue of the decoded body is renamed."""
    headers = [
        ((_ORIGINAL if name.lower() in _UNDONE else b"") + _bytes(name), _bytes(value)) for name, value in part.headers
    ]
    headers.append((b"Content-Length", b"%d" % len(part.body)))
    return _http_head(_bytes(f"HTTP/1.1 {part.status} "), headers)


def exchange_records(exchange: Exchange, *, warcinfo_id: str, response_id: str) -> tuple[Body, bytes, bytes]:
    """The response record, or the revisit record in its place; the request record; and the SHA-256 of the body.

    Of what somebody made from the site's answer: the resource record, and the metadata record that says who.
    """
    if exchange.rendered_by:
        return _rendered_records(exchange, warcinfo_id=warcinfo_id, resource_id=response_id)
    date, uri, revisit = _moment(exchange.requested_at), target_uri(exchange.url), exchange.revisit
    digest = revisit.held.payload_digest if revisit else spool.sha256(exchange.body)
    common = f"WARC-Target-URI: {uri}\r\nWARC-Warcinfo-ID: <{warcinfo_id}>\r\n"
    of_response = (
        f"{common}WARC-Payload-Digest: {_labelled(digest)}\r\nCollector-Fetched-At: {_moment(exchange.fetched_at)}\r\n"
        + _protocol(exchange.http_version)
        + (_revisit_fields(revisit) if revisit else "")
        + (f"WARC-IP-Address: {exchange.ip}\r\n" if exchange.ip else "")
        + (f"WARC-Truncated: {exchange.truncated}\r\n" if exchange.truncated else "")
        + (f"Collector-Outcome: {exchange.outcome}\r\n" if exchange.outcome else "")
        + "Content-Type: application/http;msgtype=response\r\n"
    )
    of_request = f"{common}WARC-Concurrent-To: <{response_id}>\r\nContent-Type: application/http;msgtype=request\r\n"
    if revisit:
        response = _member("revisit", response_id, date, of_response, _revisit_head(exchange))
    else:
        response = _member("response", response_id, date, of_response, _response_head(exchange), exchange.body)
    request = _member("request", uuid.uuid4().urn, date, of_request, _request_block(exchange, uri))
    return response, request, digest


def _rendered_records(exchange: Exchange, *, warcinfo_id: str, resource_id: str) -> tuple[Body, bytes, bytes]:
    """A page as somebody rendered it, and what is known of the site's answer.

    It is no protocol response of the site: a resource (WARC 1.1 §6.4) with metadata beside it (§6.6). Its target says
    that it is not the entity body of the page's own URL.
    """
    date, digest = _moment(exchange.requested_at), spool.sha256(exchange.body)
    common = f"WARC-Target-URI: {RENDERED}{target_uri(exchange.url)}\r\nWARC-Warcinfo-ID: <{warcinfo_id}>\r\n"
    types = [value for name, value in exchange.headers if name.lower() == b"content-type"]
    of_resource = (
        f"{common}WARC-Payload-Digest: {_labelled(digest)}\r\nCollector-Fetched-At: {_moment(exchange.fetched_at)}\r\n"
        f"Collector-Status: {exchange.status}\r\nCollector-Rendered-By: {_one_line(exchange.rendered_by)}\r\n"
        + (f"WARC-Truncated: {exchange.truncated}\r\n" if exchange.truncated else "")
        + (f"Collector-Outcome: {exchange.outcome}\r\n" if exchange.outcome else "")
        + (f"Content-Type: {_one_line(types[0].decode('latin-1'))}\r\n" if types else "")
    )
    known = [f"renderedBy: {_one_line(exchange.rendered_by)}", f"status: {exchange.status}"]
    lines = (b"header: " + name + b": " + value for name, value in exchange.headers)
    known += [_one_line(line.decode("latin-1")) for line in lines]
    fields = f"{common}WARC-Refers-To: <{resource_id}>\r\nContent-Type: application/warc-fields\r\n"
    block = "".join(f"{line}\r\n" for line in known).encode("latin-1", "replace")
    resource = _member("resource", resource_id, date, of_resource, b"", exchange.body)
    return resource, _member("metadata", uuid.uuid4().urn, date, fields, block), digest


def _one_line(text: str) -> str:
    """Text as a header value."""
    return "".join(each if each.isprintable() and ord(each) < 0x100 else "?" for each in text)


def target_uri(url: str) -> str:
    """The URL as a header value: whatever could end the line, or is no ASCII, percent-encoded (WARC-04)."""
    return _NOT_IN_URI.sub(lambda found: "".join(f"%{byte:02X}" for byte in _bytes(found[0])), url)


@overload
def _member(kind: str, record_id: str, date: str, fields: str, block: bytes, body: bytes = b"") -> bytes: ...
@overload
def _member(kind: str, record_id: str, date: str, fields: str, block: bytes, body: Body) -> Body: ...
def _member(kind: str, record_id: str, date: str, fields: str, block: bytes, body: Body = b"") -> Body:
    """A record as one gzip member; the block is `block`, then `body`. Of a body in a file the member is in one too."""
    digest = hashlib.sha256(block)
    for piece in _pieces(body) if body else ():
        digest.update(piece)
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {date}\r\n{fields}"
        f"WARC-Block-Digest: {_labelled(digest.digest())}\r\nContent-Length: {len(block) + len(body)}\r\n\r\n"
    ).encode("latin-1")
    if not isinstance(body, Spool):
        return isal_zlib.compress(b"".join((head, block, body, _END)), LEVEL, wbits=GZIP)
    member, engine = Spool(), isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, GZIP)
    for piece in itertools.chain((head + block,), _pieces(body), (_END,)):
        member.write(engine.compress(piece))
    member.write(engine.flush())
    return member


def _pieces(body: Body) -> Iterable[bytes]:
    return body.pieces() if isinstance(body, Spool) else (body,)


def _protocol(http_version: str) -> str:
    """WARC-Protocol (iipc/warc-specifications#42); its values are in lower case."""
    return f"WARC-Protocol: http/{http_version}\r\n" if http_version else ""


def _revisit_fields(revisit: Revisit) -> str:
    """WARC 1.1 §6.7: what the record refers to, so that any replay tool finds it by URI and date."""
    held = revisit.held
    return (
        f"WARC-Profile: {_PROFILE}{revisit.profile}\r\n"
        f"WARC-Refers-To: <{record_id(held.file, held.offset)}>\r\n"
        f"WARC-Refers-To-Target-URI: {target_uri(held.url)}\r\n"
        f"WARC-Refers-To-Date: {_moment(revisit.held_date)}\r\n"
    )


def _revisit_head(exchange: Exchange) -> bytes:
    """The head as received, the body left out: its headers speak of the body that is held."""
    return _http_head(_status_line(exchange), exchange.headers)


def _status_line(exchange: Exchange) -> bytes:
    return _bytes(f"HTTP/{exchange.http_version} {exchange.status} {exchange.reason}")


def _response_head(exchange: Exchange) -> bytes:
    length = b"%d" % len(exchange.body)
    headers, has_length = [], False
    for name, value in exchange.headers:
        lower = name.lower()
        if lower == b"content-length" and value.strip() == length and not has_length:
            has_length = True
        elif lower in (b"transfer-encoding", b"content-length"):
            name = _ORIGINAL + name  # noqa: PLW2901
        headers.append((name, value))
    if not has_length:
        headers.append((b"Content-Length", length))
    return _http_head(_status_line(exchange), headers)


def _request_block(exchange: Exchange, uri: str) -> bytes:
    found = _TARGET.match(uri)
    target = found[1] if found else uri
    target = target if target.startswith("/") else f"/{target}"
    headers = [(_bytes(name), _bytes(value)) for name, value in exchange.request_headers]
    start = _bytes(f"{exchange.method} {target} HTTP/{exchange.http_version}")
    return _http_head(start, headers) + (exchange.request_body or b"")


def _http_head(start: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The lines of a head; a line break inside of one is percent-encoded, so that it ends nothing."""
    lines = [start, *(name + b": " + value for name, value in headers)]
    head = b"\r\n".join(lines)
    if head.count(b"\r") >= len(lines) or head.count(b"\n") >= len(lines):
        head = b"\r\n".join(_BREAK.sub(lambda found: b"%%%02X" % found[0][0], line) for line in lines)
    return head + b"\r\n\r\n"


def _bytes(text: str) -> bytes:
    """Text from the wire as the bytes it came from; what never was bytes is replaced, not an error."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _labelled(digest: bytes) -> str:
    return "sha256:" + base64.b32encode(digest).decode("ascii")


def _moment(moment: datetime) -> str:
    return utc(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")


# --- Reading -------------------------------------------------------------------------------------------------------


def read_response(member: bytes, location: Location) -> StoredResponse:
    """The response in this gzip member, if it is the one that the place names; else `BrokenRecord`.

    A body that is large goes to a file on its way, and is never in memory as a whole.
    """
    try:
        fields, block = parse_record(unzip_member(member))
        response = parse_response(fields, block)
    except Large:
        return read_large(iter((member,)), location)
    except BrokenRecord as error:
        raise BrokenRecord(f"{describe(location)}: {error}") from None
    return _as_named(response, fields, location)


def read_large(stored: Iterator[bytes], location: Location) -> StoredResponse:
    """Like `read_response`, of a member that comes in pieces."""
    pieces = unzipped(stored)
    try:
        head = b""
        while head.count(_END) < 2 and (piece := next(pieces, b"")):
            head += piece
            if len(head) > MAX_HEAD:
                break
        of_record, _, rest = head.partition(_END)
        fields, of_response = parse_fields(of_record), b""
        if fields.get("warc-type") != "resource":
            of_response, _, rest = rest.partition(_END)
            of_response += _END
        response = parse_response(fields, of_response)
        size = int(fields["content-length"]) - len(of_response)
        body, end = Spool(), b""
        for piece in itertools.chain((rest,), pieces):
            missing = size - len(body)
            body.write(piece[:missing])
            end += piece[missing:]
    except BrokenRecord as error:
        raise BrokenRecord(f"{describe(location)}: {error}") from None
    if len(body) != size or end != _END:
        raise BrokenRecord(f"{describe(location)}: the WARC record does not end where it says")
    return _as_named(replace(response, body=body), fields, location)


def _as_named(response: StoredResponse, fields: dict[str, str], location: Location) -> StoredResponse:
    if not names(fields["warc-target-uri"], location.url):
        raise BrokenRecord(f"{describe(location)}: holds {response.url}, not {location.url}")
    if response.is_revisit:
        is_right = fields.get("warc-payload-digest") == _labelled(location.payload_digest)
    else:
        is_right = spool.sha256(response.body) == location.payload_digest
    if not is_right:
        raise BrokenRecord(f"{describe(location)}: the body is not the one that was archived (SHA-256 differs)")
    return response


def names(target: str, url: str) -> bool:
    """Whether a record's target is this page, as it was answered or as somebody rendered it; or this part of one."""
    return target_uri(url) in (target, target.removeprefix(RENDERED))


def describe(location: Location) -> str:
    """The place in words."""
    return f"{location.file} at {location.offset}+{location.length}"


class Large(BrokenRecord):
    """A member is larger than memory should hold: `read_large` reads it."""


def unzip_member(member: bytes) -> bytes:
    """The content of exactly one complete gzip member; `Large` when that is too much for memory."""
    if not member.startswith(GZIP_MAGIC):
        raise BrokenRecord(f"no gzip member starts here{REPACKED}")
    inflater = isal_zlib.decompressobj(GZIP)
    try:
        record = inflater.decompress(member, 2 * spool.SPOOLED_FROM)
    except isal_zlib.error as error:  # pyright: ignore[reportGeneralTypeIssues]  a class; the stub says an instance
        raise BrokenRecord(f"the gzip member is damaged ({error}){REPACKED}") from None
    if not inflater.eof and len(record) >= 2 * spool.SPOOLED_FROM:
        raise Large(f"more than {len(record):,} bytes")
    if not inflater.eof:
        raise BrokenRecord(f"the gzip member is cut{REPACKED}")
    if inflater.unused_data:
        raise BrokenRecord(f"{len(inflater.unused_data)} bytes follow the gzip member")
    return record


def unzipped(stored: Iterator[bytes]) -> Iterator[bytes]:
    """The content of exactly one complete gzip member that comes in pieces, in pieces."""
    inflater = isal_zlib.decompressobj(GZIP)
    for part in stored:
        for at in range(0, len(part), BITE):
            if inflater.eof:
                raise BrokenRecord("more bytes follow the gzip member")
            data = part[at : at + BITE]
            while data and not inflater.eof:
                try:
                    piece = inflater.decompress(data, spool.PIECE)
                except isal_zlib.error as error:  # pyright: ignore[reportGeneralTypeIssues]  as above
                    raise BrokenRecord(f"the gzip member is damaged ({error}){REPACKED}") from None
                data = inflater.unconsumed_tail
                if piece:
                    yield piece
            if inflater.unused_data:
                raise BrokenRecord(f"{len(inflater.unused_data)} bytes follow the gzip member")
    if not inflater.eof:
        raise BrokenRecord(f"the gzip member is cut{REPACKED}")


def parse_record(record: bytes) -> tuple[dict[str, str], bytes]:
    """The named fields of a WARC record (names in lower case) and its block."""
    head, _, rest = record.partition(_END)
    fields = parse_fields(head)
    length = int(fields["content-length"])
    block, end = rest[:length], rest[length:]
    if len(block) != length or end != _END:
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
