"""The content of one gzip member, whole or in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isal import isal_zlib

from collector_assets import spool
from collector_assets.archive.warc.words import GZIP, GZIP_MAGIC, REPACKED
from collector_assets.errors import BrokenRecord

BITE: Final = 2**16
"""Stored bytes that are decompressed at once."""


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
