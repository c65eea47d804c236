"""Sitemaps (sitemaps.org), read as a stream: what a file lists, whatever its name and type say. Pure.

Understood are `urlset`, `sitemapindex`, RSS, RDF and Atom feeds, and plain lists of addresses, each of them gzipped up
to twice. Sites write them by hand: a broken entry costs itself, a broken end costs what is behind it, and both are
said in `flags`. Entities that a file declares are refused, so there are neither external ones nor a billion laughs.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import BinaryIO, Final

from collector_assets import charset
from collector_assets.sitemap.document import LONGEST_TEXT, LONGEST_TOKEN, Document
from collector_assets.sitemap.entries import (
    BIG,
    CUT,
    DAMAGED,
    INCOMPLETE,
    JUNK,
    MANY,
    RELATIVE,
    REPAIRED,
    TOO_LARGE,
    TRAILING,
    Entry,
    Lost,
    NotASitemap,
)  # fmt: skip
from collector_assets.sitemap.lastmod import LastModified, last_modified

__all__ = [
    "BIG", "CUT", "DAMAGED", "INCOMPLETE", "JUNK", "MANY", "RELATIVE", "REPAIRED", "TOO_LARGE", "TRAILING",
    "Entry", "LastModified", "Lost", "NotASitemap", "Sitemap", "last_modified",
]  # fmt: skip

MOST_ENTRIES: Final = 50_000
MOST_BYTES: Final = 50 * 2**20
"""The two limits of https://www.sitemaps.org/protocol.html; files beyond them are read all the same, with a flag."""
MOST_READ: Final = 1_000_000
"""Entries of one file that are read, good ones and bad ones: twenty times what the protocol allows."""
MOST_LAYERS: Final = 2
PIECE: Final = 1 << 16


class Sitemap:
    """The entries of one file, once, in their order: `for entry in Sitemap(stream, now=page.fetched_at): …`.

    `limit` bounds the bytes after decompression, `now` tells a lastmod in the future. Iterating raises `NotASitemap`;
    after it `root` and `flags` are what they are.
    """

    def __init__(self, stream: BinaryIO, *, now: datetime, limit: int = MOST_BYTES, content_type: str = "") -> None:
        self.root = ""
        """Local name of the root element, in lower case; "text" for a list."""
        self.flags: Counter[str] = Counter()
        self._stream, self._now, self._limit, self._content_type = stream, now, limit, content_type

    def __iter__(self) -> Iterator[Entry | Lost]:
        count = 0
        for number, found in enumerate(self._found()):
            if number >= MOST_READ:
                self.flags[TOO_LARGE] = 1
                break
            if isinstance(found, Lost):
                yield found
                continue
            count += 1
            if "\ufffd" in found.loc:
                yield Lost(reason="sitemap_undecodable_loc", value=found.loc)
                continue
            if not _ABSOLUTE.match(found.loc):
                self.flags[RELATIVE] += 1
            yield found
        if count > MOST_ENTRIES:
            self.flags[MANY] = 1

    def _found(self) -> Iterator[Entry | Lost]:
        head, pieces = _headed(_decoded(self._unpacked(), self._content_type))
        at = _start(head)
        if at is None:
            self.root = "text"
            yield from _of_lines(_chained(head, pieces))
            return
        if head[:at].strip() and not _DECLARATION.fullmatch(head[:at].strip()):
            self.flags[JUNK] = 1
        document = Document(self.flags, self._now)
        yield from document.read(_chained(head[at:], pieces))
        self.root = document.root

    def _unpacked(self) -> Iterator[bytes]:
        pieces: Iterator[bytes] = iter(lambda: self._stream.read(PIECE), b"")
        for _ in range(MOST_LAYERS):
            first, pieces = _first_bytes(pieces, 3)
            if not first.startswith(_GZIP):
                break
            pieces = self._gunzipped(pieces)
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > self._limit:
                self.flags[TOO_LARGE] = 1
                yield piece[: self._limit - size]
                break
            yield piece
        if size > MOST_BYTES:
            self.flags[BIG] = 1

    def _gunzipped(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Gzip of one or more members (RFC 1952 §2.2); what can be had of a broken one."""
        inflater, left = _inflater(), b""
        for piece in pieces:
            left += piece
            while left and not (inflater.eof and len(left) < len(_GZIP)):  # the next member may have begun
                if inflater.eof and not left.startswith(_GZIP):
                    return self._end(left)
                inflater = _inflater() if inflater.eof else inflater
                try:
                    yield inflater.decompress(left, PIECE)
                except zlib.error:
                    self.flags[DAMAGED] = 1
                    return None
                left = inflater.unconsumed_tail or inflater.unused_data
        while not inflater.eof and (rest := inflater.decompress(b"", PIECE)):
            yield rest
        if not inflater.eof:
            self.flags[CUT] = 1
        return self._end(left)

    def _end(self, left: bytes) -> None:
        """Nothing or padding should follow the last member."""
        if left.strip(b"\0"):
            self.flags[TRAILING] = 1


def _inflater() -> zlib._Decompress:  # the type has no public name
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


# --- From bytes to text ----------------------------------------------------------------------------------------------

_GZIP: Final = b"\x1f\x8b\x08"
_ABSOLUTE: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_DECLARED: Final = re.compile(rb"""<\?xml[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z0-9._-]+)""")
_PARAMETER: Final = re.compile(r"""\bcharset\s*=\s*["']?([^\s"';,]+)""", re.IGNORECASE)
_HEAD: Final = 4_096
_DECLARATION: Final = re.compile(r"<\?xml\s[^>]*>?", re.IGNORECASE)
"""What it says of the encoding was heard; whatever else it says, of versions and the like, is no reason to stop."""
_ROOT_TAG: Final = re.compile(r"<(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|feed|rdf)\b", re.IGNORECASE)
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))


def _first_bytes(pieces: Iterator[bytes], number: int) -> tuple[bytes, Iterator[bytes]]:
    """At least so many bytes if there are, and everything again."""
    first = b""
    while len(first) < number and (piece := next(pieces, None)) is not None:
        first += piece
    return first, _put_back(first, pieces)


def _put_back(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _decoded(pieces: Iterator[bytes], content_type: str) -> Iterator[str]:
    """Text by BOM, XML declaration, header, else UTF-8; a byte that does not fit becomes U+FFFD."""
    first, pieces = _first_bytes(pieces, 1_024)
    decoder = codecs.getincrementaldecoder(_codec(first, content_type))("replace")
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _codec(first: bytes, content_type: str) -> str:
    for mark, codec in _BOMS:
        if first.startswith(mark):
            return codec
    if first.startswith((b"<\0", b"\0<")):
        return "utf-16-le" if first.startswith(b"<") else "utf-16-be"
    labels = [match[1] for match in _PARAMETER.finditer(content_type)]
    if declared := _DECLARED.search(first):
        labels.insert(0, declared[1].decode("ascii"))
    for label in labels:
        # UTF-16 that begins with neither a mark nor NULs is not UTF-16, whatever it says.
        if (encoding := charset.encoding_of(label)) and not encoding.startswith("utf-16"):
            return charset.codec_of(encoding)
    return "utf-8"


def _headed(pieces: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The beginning, without the blanks and marks in front of it, and the rest."""
    head = ""
    for piece in pieces:
        head = (head + piece).lstrip("\ufeff\0 \t\r\n")
        if len(head) >= _HEAD:
            break
    return head, pieces


def _start(head: str) -> int | None:
    """Where the XML begins, behind what a server printed first; nothing when there is none."""
    root = _ROOT_TAG.search(head)
    declaration = _DECLARATION.search(head, 0, root.start() if root else len(head))
    if declaration:
        return declaration.end()
    if head.startswith(("<!", "<?")):
        return 0
    return root.start() if root else 0 if head.startswith("<") else None


def _chained(head: str, rest: Iterator[str]) -> Iterator[str]:
    yield head
    yield from rest


# --- Lists of addresses ----------------------------------------------------------------------------------------------


def _of_lines(pieces: Iterable[str]) -> Iterator[Entry | Lost]:
    """One absolute address on a line; a file in which the first lines are none is no list."""
    good = bad = 0
    for line in _lines(pieces):
        text = line.strip()
        if not text:
            continue
        if re.match(r"https?:", text, re.IGNORECASE):
            good += 1
            yield Entry(loc=text[:LONGEST_TEXT])
        else:
            bad += 1
            if not good and bad >= 10:
                break
            yield Lost(reason="sitemap_line_without_address", value=text[:200])
    if not good:
        raise NotASitemap("neither XML nor a list of addresses")


def _lines(pieces: Iterable[str]) -> Iterator[str]:
    left = ""
    for piece in pieces:
        *whole, left = re.split(r"\r\n|\n|\r", left + piece)
        left = left[:LONGEST_TOKEN]
        yield from whole
    yield left
