"""The block of a WARC record on its way past: its digests, and whether an HTTP body is what its head says. Pure.

A payload digest may be over the chunks as they came or over what is in them: writers differ.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from typing import Final

from collector_assets.archive.warc import header_lines

ALGORITHMS: Final = frozenset(("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s"))
_END: Final = b"\r\n\r\n"
_CHUNK: Final = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
_BASES: Final = (base64.b32decode, bytes.fromhex, base64.b64decode, base64.urlsafe_b64decode)


class Payload:
    """The block of one record, piece by piece."""

    def __init__(self, fields: dict[str, str]) -> None:
        self._fields = fields
        self._block = _Digest("WARC-Block-Digest", fields.get("warc-block-digest", ""))
        self._body = _Digest("WARC-Payload-Digest", fields.get("warc-payload-digest", ""))
        self._dechunked = _Digest("WARC-Payload-Digest", fields.get("warc-payload-digest", ""))
        self._is_http = fields.get("content-type", "").replace(" ", "").lower().startswith("application/http")
        self._head: bytes | None = b"" if self._is_http else None
        self._http: dict[str, str] = {}
        self._chunks: _Chunks | None = None
        self._length = 0

    def take(self, data: bytes) -> None:
        """The next bytes of the block."""
        self._block.take(data)
        if self._head is not None:
            self._head += data
            before, end, data = self._head.partition(_END)
            if not end:
                return
            self._head = None
            self._http = {name.lower(): value for name, value in header_lines(before)}
            if "chunked" in self._http.get("transfer-encoding", "").lower():
                self._chunks = _Chunks()
        self._body.take(data)
        self._length += len(data)
        if self._chunks:
            for part in self._chunks.contents(data):
                self._dechunked.take(part)

    def problems(self) -> Iterator[str]:
        """What does not fit, once the block is over."""
        if wrong := self._block.problem():
            yield wrong
        if self._is_http and self._head:
            yield "application/http without the end of an HTTP head"
        if self._fields.get("warc-type") == "revisit":
            return
        wrong = self._body.problem()
        if wrong and self._chunks and not self._dechunked.problem():
            wrong = ""
        if wrong:
            yield wrong
        yield from self._body_problems()

    def _body_problems(self) -> Iterator[str]:
        if self._fields.get("warc-truncated") or not self._is_http:
            return
        declared = self._http.get("content-length", "")
        if self._chunks:
            if not self._chunks.is_whole:
                yield "the head says Transfer-Encoding: chunked, and the body is not"
        elif declared.isascii() and declared.isdigit() and self._length and int(declared) != self._length:
            yield f"the head says Content-Length: {declared}, and the body has {self._length} bytes"


class _Digest:
    """A labelled digest as a record says it, and what it is."""

    def __init__(self, name: str, said: str) -> None:
        self._name, self._said = name, said
        algorithm = said.partition(":")[0].lower().replace("-", "")
        self._hash = hashlib.new(algorithm, usedforsecurity=False) if algorithm in ALGORITHMS else None

    def take(self, data: bytes) -> None:
        if self._hash:
            self._hash.update(data)

    def problem(self) -> str:
        """Empty when it is right, or when none was said."""
        if not self._said:
            return ""
        if self._hash is None:
            return f"{self._name} names no algorithm that is known here: {self._said[:60]!r}"
        if self._hash.digest() not in _readings(self._said):
            return f"{self._name} is not that of the bytes: {self._said[:80]}"
        return ""


def _readings(said: str) -> Iterator[bytes]:
    """The bytes that a labelled digest may mean: base 32 as the standard's examples, base 16 and 64 as others write."""
    value = said.partition(":")[2]
    for decode in _BASES:
        text = value.upper() if decode is base64.b32decode else value
        try:
            yield decode(text)
        except (ValueError, binascii.Error):
            continue


def digest_of(said: str) -> bytes | None:
    """The bytes of a SHA-256 digest, as our records say it."""
    return next(_readings(said), None) if said.startswith("sha256:") else None


class _Chunks:
    """The chunked coding (RFC 9112 §7.1), bytes as they come."""

    def __init__(self) -> None:
        self._buffer, self._left, self._is_last, self._is_broken = b"", 0, False, False

    @property
    def is_whole(self) -> bool:
        """Whether the last chunk has come, and all was well until then."""
        return self._is_last and not self._is_broken

    def contents(self, data: bytes) -> Iterator[bytes]:
        """What is in the chunks."""
        self._buffer += data
        while self._buffer and not self._is_broken and not self._is_last:
            if not self._left:
                if not self._begin():
                    return
                continue
            part, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
            yield part[: max(0, self._left - 2)]  # without the line break that ends a chunk
            self._left -= len(part)

    def _begin(self) -> bool:
        """The size of the next chunk, its line break with it; False while it is not there whole."""
        found = _CHUNK.match(self._buffer)
        if not found:
            self._is_broken = len(self._buffer) > 1_000 or b"\n" in self._buffer
            return False
        self._buffer = self._buffer[found.end() :]
        size = int(found[1], 16)
        self._is_last, self._left = size == 0, size + 2
        return True
