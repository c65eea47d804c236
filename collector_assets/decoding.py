"""Undo content codings, in bounded memory: what was stored as received becomes what the site meant (rule 11).

A label that lies is forgiven only where the bytes themselves show what they are; bytes that are cut or damaged are an
error, and what is compressed never passes as text.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Final

import brotli
import zstandard

from collector_assets import charset
from collector_assets.errors import CollectorError
from collector_assets.facts import fact
from collector_assets.outcome import Outcome
from collector_assets.spool import Body, Sink, whole

MISLABELLED: Final = "content_encoding_mislabelled"
"""Flag: the bytes are not in the coding that the header names; they were read as what they are."""
TRAILING: Final = "trailing_bytes"
"""Flag: bytes that belong to nothing follow the compressed body; they were left out, as browsers do."""

PIECE: Final = 1 << 20
"""Most bytes that are decompressed at once: what a bomb may cost beyond the limit."""
BITE: Final = 1 << 16
"""Compressed bytes given to a decompressor at once."""
ZSTD_WINDOW: Final = 8 << 20
"""The largest window of the content coding (RFC 9659 §3); a larger one costs as much memory, so it is refused."""
MAX_CODINGS: Final = 4


class DecodingError(CollectorError):
    """The bytes cannot be decoded; `outcome` says how: undecodable, truncated or too_large."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(f"{outcome.value}: {reason}")
        self.outcome, self.reason = outcome, reason


@fact
class Decoded:
    """A body without content coding."""

    body: Body
    flags: frozenset[str] = frozenset()


def decode(body: Body, content_encoding: str, *, limit: int) -> Decoded:
    """The body without its codings; `limit` bounds the bytes after each of them. Raises `DecodingError`.

    What comes out large is in a file; what goes in is in memory, unless there is nothing to undo.
    """
    words = content_encoding.split(",") if content_encoding else ()
    codings = [word for word in map(_coding, words) if word != "identity"]
    if len(codings) > MAX_CODINGS:
        raise DecodingError(Outcome.UNDECODABLE, f"{len(codings)} content codings")
    flags: frozenset[str] = frozenset()
    for coding in reversed(codings):  # named in the order in which they were applied (RFC 9110 §8.4)
        if not body:
            break
        decoded = _undo(coding, whole(body), limit)
        body, flags = decoded.body, flags | decoded.flags
    if len(body) > limit:
        raise DecodingError(Outcome.TOO_LARGE, f"{len(body)} bytes, more than {limit}")
    return Decoded(body=body, flags=flags)


# --- Which coding it is --------------------------------------------------------------------------------------------

_IDENTITY: Final = frozenset({"", "identity", "none", "null", "plain", "text", "binary", "raw", "7bit", "8bit"})
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_FILE_MAGIC: Final = (  # UTF-16 (it is full of NULs), PDF, PNG, JPEG, GIF, ZIP, OLE
    b"\xff\xfe", b"\xfe\xff", b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04", b"\xd0\xcf\x11\xe0",
)  # fmt: skip
_NEVER_IN_TEXT: Final = bytes((*range(9), 11, *range(14, 27), *range(28, 32)))  # WHATWG "binary data bytes"
_LEADS_TEXT: Final = (b"<", b"{", b"[", b'"', b"\xef\xbb\xbf")


def _coding(word: str) -> str:
    """One word of the header: our name of the coding, "identity", or the word itself when nobody knows it."""
    name = word.partition(";")[0].strip().strip("\"'").lower()
    if name in _IDENTITY or charset.encoding_of(name):  # some servers write the charset here
        return "identity"
    return name.removeprefix("x-")


def _undo(coding: str, body: bytes, limit: int) -> Decoded:
    if coding not in _DECODERS:
        raise DecodingError(Outcome.UNDECODABLE, f"unknown content coding {coding[:40]!r}")
    shown = _shown_by(body)
    if coding == "br" or shown in (None, coding):  # brotli has no mark of its own: it is tried first
        try:
            return _DECODERS[coding](body, limit)
        except DecodingError as error:
            if error.outcome is Outcome.TOO_LARGE or shown == coding or not (shown or _is_plain(body)):
                raise
    decoded = _DECODERS[shown](body, limit) if shown else Decoded(body=body)
    return Decoded(body=decoded.body, flags=decoded.flags | {MISLABELLED})


def _shown_by(body: bytes) -> str | None:
    """The coding that the first bytes show."""
    if body.startswith(_GZIP_MAGIC):
        return "gzip"
    if body.startswith(_ZSTD_MAGIC) or _is_skippable_frame(body):
        return "zstd"
    if len(body) > 1 and body[0] & 0x8F == 0x08 and int.from_bytes(body[:2]) % 31 == 0:  # RFC 1950 §2.2
        return "deflate"
    return None


def _is_plain(body: bytes) -> bool:
    """Whether these are bytes that no compressor made: a well-known kind of file, or text.

    Text has no control characters and two of three: it starts as text does, is valid UTF-8, is not short. Of very few
    bytes nobody can tell: raw deflate passes for text now and then.
    """
    if body.startswith(_FILE_MAGIC):
        return True
    head = body[:1024]
    if len(head) < 8 or head.translate(None, _NEVER_IN_TEXT) != head:
        return False
    return head.lstrip(b" \t\r\n").startswith(_LEADS_TEXT) + _is_utf8(body) + (len(head) > 32) >= 2


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


# --- Decompressors -------------------------------------------------------------------------------------------------


class _Bucket:
    """Collects what was decompressed, and overflows at the limit."""

    def __init__(self, limit: int) -> None:
        self._sink, self._limit = Sink(), limit

    def add(self, piece: bytes) -> None:
        self._sink.add(piece)
        if self._sink.size > self._limit:
            raise DecodingError(Outcome.TOO_LARGE, f"decompresses to more than {self._limit} bytes")

    def decoded(self, *, trailing: bool) -> Decoded:
        return Decoded(body=self._sink.body(), flags=frozenset({TRAILING}) if trailing else frozenset())


def _gunzip(body: bytes, limit: int) -> Decoded:
    """Gzip, of one or more members (RFC 1952 §2.2)."""
    bucket, at = _Bucket(limit), 0
    while at == 0 or body.startswith(_GZIP_MAGIC, at):
        at = _inflate(body, at, 16 + zlib.MAX_WBITS, bucket)
    return bucket.decoded(trailing=at < len(body))


def _undeflate(body: bytes, limit: int) -> Decoded:
    """Deflate: zlib format as RFC 9110 §8.4.1.2 says, or the raw format that some servers send."""
    if _shown_by(body) == "deflate":
        try:
            return _unzlib(body, limit, zlib.MAX_WBITS)
        except DecodingError as error:
            if error.outcome is not Outcome.UNDECODABLE:
                raise
    return _unzlib(body, limit, -zlib.MAX_WBITS)


def _unzlib(body: bytes, limit: int, wbits: int) -> Decoded:
    bucket = _Bucket(limit)
    return bucket.decoded(trailing=_inflate(body, 0, wbits, bucket) < len(body))


def _inflate(body: bytes, at: int, wbits: int, bucket: _Bucket) -> int:
    """Decompress the one stream that starts at `at`; where it ends."""
    inflater, view = zlib.decompressobj(wbits), memoryview(body)
    while not inflater.eof:
        bite = view[at : at + BITE]
        try:
            piece = inflater.decompress(bite, PIECE)
        except zlib.error as error:
            raise DecodingError(Outcome.UNDECODABLE, str(error)) from None
        if not piece and not bite and not inflater.eof:
            raise DecodingError(Outcome.TRUNCATED, "the compressed body is cut")
        at += len(bite) - len(inflater.unconsumed_tail) - len(inflater.unused_data)
        bucket.add(piece)
    return at


def _unbrotli(body: bytes, limit: int) -> Decoded:
    """Brotli (RFC 7932)."""
    engine, view, bucket, at = brotli.Decompressor(), memoryview(body), _Bucket(limit), 0
    while not engine.is_finished():
        bite = view[at : at + BITE] if engine.can_accept_more_data() else view[:0]
        at += len(bite)
        try:
            piece = engine.process(bite, output_buffer_limit=PIECE)
        except brotli.error as error:
            raise DecodingError(Outcome.UNDECODABLE, str(error)) from None
        if not piece and not bite and not engine.is_finished():
            raise DecodingError(Outcome.TRUNCATED, "the compressed body is cut")
        bucket.add(piece)
    return bucket.decoded(trailing=at < len(body))


def _unzstd(body: bytes, limit: int) -> Decoded:
    """Zstandard, of one or more frames, with or without their sizes (RFC 8878, RFC 9659)."""
    engine = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    bucket, at = _Bucket(limit), 0
    while at == 0 or body.startswith(_ZSTD_MAGIC, at) or _is_skippable_frame(body[at : at + 4]):
        end = _frame_end(body, at)
        if body.startswith(_ZSTD_MAGIC, at):
            reader = engine.stream_reader(io.BytesIO(body[at:end]))
            try:
                while piece := reader.read(PIECE):
                    bucket.add(piece)
            except zstandard.ZstdError as error:
                raise DecodingError(Outcome.UNDECODABLE, str(error)) from None
        at = end
    return bucket.decoded(trailing=at < len(body))


def _frame_end(body: bytes, at: int) -> int:
    """Where the Zstandard frame at `at` ends, by its block headers (RFC 8878 §3.1); the library hides a cut one."""
    try:
        if _is_skippable_frame(body[at : at + 4]):
            return _within(body, at + 8 + int.from_bytes(body[at + 4 : at + 8], "little"))
        head = body[at : at + 18]
        has_checksum = zstandard.get_frame_parameters(head).has_checksum
        at += zstandard.frame_header_size(head)
    except zstandard.ZstdError as error:
        cut = len(body) - at < 18 and body.startswith(_ZSTD_MAGIC, at)  # the longest frame header
        raise DecodingError(Outcome.TRUNCATED if cut else Outcome.UNDECODABLE, str(error)) from None
    is_last = False
    while not is_last:
        block = int.from_bytes(body[at : _within(body, at + 3)], "little")
        is_last, is_repeated, size = bool(block & 1), block >> 1 & 3 == 1, block >> 3
        at = _within(body, at + 3 + (1 if is_repeated else size))
    return _within(body, at + 4 * has_checksum)


def _within(body: bytes, end: int) -> int:
    if end > len(body):
        raise DecodingError(Outcome.TRUNCATED, "the compressed body is cut")
    return end


def _is_skippable_frame(body: bytes) -> bool:
    return body[1:4] == b"\x2a\x4d\x18" and body[0] & 0xF0 == 0x50  # RFC 8878 §3.1.2


_DECODERS: Final[dict[str, Callable[[bytes, int], Decoded]]] = {
    "gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
