"""Records of what was made from a site's answer: parts of a page by a browser, a page by somebody who renders."""

from __future__ import annotations

import hashlib
from typing import Final

from collector_assets import spool
from collector_assets.archive.exchange import Exchange
from collector_assets.archive.warc.heads import captured_head
from collector_assets.archive.warc.member import as_member
from collector_assets.archive.warc.words import RENDERED, labelled, new_id, record_id, target_uri, timestamp
from collector_assets.page import PREFIXES, Location, Part
from collector_assets.spool import Body

CAPTURED: Final = "Collector-Note: from a browser (DevTools): content coding undone, head as it tells it\r\n"


def part_record(
    part: Part, exchange: Exchange, file: str, offset: int, *, warcinfo_id: str, of_page: str
) -> tuple[bytes, Location]:
    """What a browser made of a page, as a record that names the page's response; and its place."""
    target, digest = PREFIXES.get(part.role, "") + part.url, hashlib.sha256(part.body).digest()
    fields = (
        f"WARC-Target-URI: {target_uri(target)}\r\nWARC-Warcinfo-ID: <{warcinfo_id}>\r\n"
        f"WARC-Concurrent-To: <{of_page}>\r\nWARC-Payload-Digest: {labelled(digest)}\r\n"
        f"Collector-Fetched-At: {timestamp(exchange.fetched_at)}\r\n"
    )
    date, name = timestamp(exchange.fetched_at), record_id(file, offset)
    if part.role == "captured":
        fields += f"{CAPTURED}Content-Type: application/http;msgtype=response\r\n"
        record = as_member("response", name, date, fields, captured_head(part), part.body)
    else:
        content_type = next((value for key, value in part.headers if key.lower() == "content-type"), "")
        fields += f"Collector-Status: {part.status}\r\nContent-Type: {content_type}\r\n"
        record = as_member("resource", name, date, fields, b"", part.body)
    place = Location(file=file, offset=offset, length=len(record), payload_digest=digest, url=target)
    return record, place


def rendered_records(exchange: Exchange, *, warcinfo_id: str, resource_id: str) -> tuple[Body, bytes, bytes]:
    """A page as somebody rendered it, and what is known of the site's answer.

    It is no protocol response of the site: a resource (WARC 1.1 §6.4) with metadata beside it (§6.6). Its target says
    that it is not the entity body of the page's own URL.
    """
    date, digest = timestamp(exchange.requested_at), spool.sha256(exchange.body)
    common = f"WARC-Target-URI: {RENDERED}{target_uri(exchange.url)}\r\nWARC-Warcinfo-ID: <{warcinfo_id}>\r\n"
    types = [value for name, value in exchange.headers if name.lower() == b"content-type"]
    of_resource = (
        f"{common}WARC-Payload-Digest: {labelled(digest)}\r\nCollector-Fetched-At: {timestamp(exchange.fetched_at)}\r\n"
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
    resource = as_member("resource", resource_id, date, of_resource, b"", exchange.body)
    return resource, as_member("metadata", new_id(), date, fields, block), digest


def _one_line(text: str) -> str:
    """Text as a header value."""
    return "".join(each if each.isprintable() and ord(each) < 0x100 else "?" for each in text)
