"""The response at a place, if it is the one that the place names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from collector_assets import spool
from collector_assets.archive.warc.parsing import parse_fields, parse_record, parse_response
from collector_assets.archive.warc.unzipping import Large, unzip_member, unzipped
from collector_assets.archive.warc.words import END, labelled, names
from collector_assets.errors import BrokenRecord
from collector_assets.page import Location, StoredResponse
from collector_assets.spool import Spool

MAX_HEAD: Final = 4 * 2**20
"""Bytes in which both heads of a record are."""


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
        while head.count(END) < 2 and (piece := next(pieces, b"")):
            head += piece
            if len(head) > MAX_HEAD:
                break
        of_record, _, rest = head.partition(END)
        fields, of_response = parse_fields(of_record), b""
        if fields.get("warc-type") != "resource":
            of_response, _, rest = rest.partition(END)
            of_response += END
        response = parse_response(fields, of_response)
        size = int(fields["content-length"]) - len(of_response)
        body, end = Spool(), b""
        for piece in itertools.chain((rest,), pieces):
            missing = size - len(body)
            body.write(piece[:missing])
            end += piece[missing:]
    except BrokenRecord as error:
        raise BrokenRecord(f"{describe(location)}: {error}") from None
    if len(body) != size or end != END:
        raise BrokenRecord(f"{describe(location)}: the WARC record does not end where it says")
    return _as_named(replace(response, body=body), fields, location)


def _as_named(response: StoredResponse, fields: dict[str, str], location: Location) -> StoredResponse:
    if not names(fields["warc-target-uri"], location.url):
        raise BrokenRecord(f"{describe(location)}: holds {response.url}, not {location.url}")
    if response.is_revisit:
        is_right = fields.get("warc-payload-digest") == labelled(location.payload_digest)
    else:
        is_right = spool.sha256(response.body) == location.payload_digest
    if not is_right:
        raise BrokenRecord(f"{describe(location)}: the body is not the one that was archived (SHA-256 differs)")
    return response


def describe(location: Location) -> str:
    """The place in words."""
    return f"{location.file} at {location.offset}+{location.length}"
