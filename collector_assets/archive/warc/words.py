"""How things are called in a record: what it is about, when, its id and its digest."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import uuid
from datetime import datetime
from typing import Final

from isal import isal_zlib

from collector_assets.window import utc

GZIP: Final = 16 + isal_zlib.MAX_WBITS
"""Window bits for gzip framing."""
GZIP_MAGIC: Final = b"\x1f\x8b"
REPACKED: Final = "; if the file was compressed anew as one stream, compress it again per record"

_RECORDS: Final = uuid.UUID("5d4a1b52-6b0c-4a39-9c5e-2f0a1a6f3c11")
"""Namespace of the ids of response records, which follow from their places: a revisit names a record by them."""
RENDERED: Final = "urn:rendered:"
"""Before the URL in the target of a page as somebody rendered it."""
END: Final = b"\r\n\r\n"
"""Of a head, and of a record."""
_NOT_IN_URI: Final = re.compile(r"[^\x21-\x7e]")


def record_id(file: str, offset: int) -> str:
    """The id of the response record at a place of the archive: nothing else is ever written there."""
    name = f"{file}@{offset}".encode()
    return _urn(hashlib.sha1(_RECORDS.bytes + name, usedforsecurity=False).digest(), 5)


def id_beside(response_id: str) -> str:
    """The id of the request record of a response: it follows from the response's."""
    return _urn(hashlib.sha1(_RECORDS.bytes + response_id.encode(), usedforsecurity=False).digest(), 5)


def new_id() -> str:
    """The id of a record that nothing refers to: a random UUID."""
    return _urn(os.urandom(16), 4)


def _urn(octets: bytes, version: int) -> str:
    """What `uuid.UUID(bytes=octets[:16], version=version).urn` says, at a third of its cost (RFC 9562 §4)."""
    number = bytearray(octets[:16])
    number[6], number[8] = number[6] & 0x0F | version << 4, number[8] & 0x3F | 0x80
    text = number.hex()
    return f"urn:uuid:{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def target_uri(url: str) -> str:
    """The URL as a header value: whatever could end the line, or is no ASCII, percent-encoded (WARC-04)."""
    return _NOT_IN_URI.sub(lambda found: "".join(f"%{byte:02X}" for byte in wire_bytes(found[0])), url)


def names(target: str, url: str) -> bool:
    """Whether a record's target is this page, as it was answered or as somebody rendered it; or this part of one."""
    return target_uri(url) in (target, target.removeprefix(RENDERED))


def wire_bytes(text: str) -> bytes:
    """Text from the wire as the bytes it came from; what never was bytes is replaced, not an error."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def labelled(digest: bytes) -> str:
    """A SHA-256 as a header value."""
    return "sha256:" + base64.b32encode(digest).decode("ascii")


def timestamp(moment: datetime) -> str:
    """A moment as a header value: UTC, to the microsecond."""
    return utc(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")
