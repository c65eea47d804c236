"""Exchanges as the records of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from collector_assets import spool
from collector_assets.archive.exchange import Exchange, Revisit
from collector_assets.archive.warc.heads import request_block, response_head, revisit_head
from collector_assets.archive.warc.member import as_member
from collector_assets.archive.warc.rendered import part_record, rendered_records
from collector_assets.archive.warc.words import id_beside, labelled, new_id, record_id, target_uri, timestamp
from collector_assets.page import Location, PartPlace
from collector_assets.spool import Body

_PROFILE: Final = "http://netpreserve.org/warc/1.1/revisit/"


def warcinfo_record(*, filename: str, software: str, part_of: str, now: datetime) -> tuple[bytes, str]:
    """The first record of a file, which says what wrote it and by which rules; and its id."""
    record_id = new_id()
    lines = [
        f"software: {software}",
        "format: WARC File Format 1.1",
        "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        f"isPartOf: {part_of}",
        "description: transfer codings undone, their headers renamed X-Archive-Orig-*; content codings kept",
    ]
    block = "".join(f"{line}\r\n" for line in lines).encode()
    fields = f"WARC-Filename: {filename}\r\nContent-Type: application/warc-fields\r\n"
    return as_member("warcinfo", record_id, timestamp(now), fields, block), record_id


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
                record, found = part_record(part, exchange, file, offset, warcinfo_id=warcinfo_id, of_page=of_page)
                pieces.append(record)
                parts.append(PartPlace(role=part.role, url=part.url, location=found))
                offset += found.length
            place = replace(place, parts=tuple(parts))
        locations.append(place)
    return pieces, locations


def exchange_records(exchange: Exchange, *, warcinfo_id: str, response_id: str) -> tuple[Body, bytes, bytes]:
    """The response record, or the revisit record in its place; the request record; and the SHA-256 of the body.

    Of what somebody made from the site's answer: the resource record, and the metadata record that says who.
    """
    if exchange.rendered_by:
        return rendered_records(exchange, warcinfo_id=warcinfo_id, resource_id=response_id)
    date, uri, revisit = timestamp(exchange.requested_at), target_uri(exchange.url), exchange.revisit
    digest = revisit.held.payload_digest if revisit else spool.sha256(exchange.body)
    common = f"WARC-Target-URI: {uri}\r\nWARC-Warcinfo-ID: <{warcinfo_id}>\r\n"
    of_response = (
        f"{common}WARC-Payload-Digest: {labelled(digest)}\r\nCollector-Fetched-At: {timestamp(exchange.fetched_at)}\r\n"
        + _protocol(exchange.http_version)
        + (_revisit_fields(revisit) if revisit else "")
        + (f"WARC-IP-Address: {exchange.ip}\r\n" if exchange.ip else "")
        + (f"WARC-Truncated: {exchange.truncated}\r\n" if exchange.truncated else "")
        + (f"Collector-Outcome: {exchange.outcome}\r\n" if exchange.outcome else "")
        + "Content-Type: application/http;msgtype=response\r\n"
    )
    of_request = f"{common}WARC-Concurrent-To: <{response_id}>\r\nContent-Type: application/http;msgtype=request\r\n"
    if revisit:
        response = as_member("revisit", response_id, date, of_response, revisit_head(exchange))
    else:
        response = as_member("response", response_id, date, of_response, response_head(exchange), exchange.body)
    request = as_member("request", id_beside(response_id), date, of_request, request_block(exchange, uri))
    return response, request, digest


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
        f"WARC-Refers-To-Date: {timestamp(revisit.held_date)}\r\n"
    )
