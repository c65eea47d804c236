"""A strict check of WARC files, record by record, in the memory of one buffer. Pure: a stream in, findings out.

The usual checkers read past a cut end, past bytes between records, and past a body that is not what its head says. This
one names each (ISO 28500:2017; RFC 1952 for the members). What it accepts of other writers: WARC 1.0, no compression,
a payload digest over the chunks or over what is in them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Final

from isal import isal_zlib

from collector_assets.archive.payload import Payload, digest_of
from collector_assets.archive.warc import GZIP, GZIP_MAGIC, REPACKED, header_lines

PIECE: Final = 2**16
MOST_INFLATED: Final = 2**20
"""Bytes that one piece of compressed data may become at once."""
MOST_HEAD: Final = 2**20
MOST_PROBLEMS: Final = 50
"""Of one file; a file that is nothing but wrong need not be told record by record."""

_END: Final = b"\r\n\r\n"
_MANDATORY: Final = ("warc-type", "warc-record-id", "warc-date", "content-length")
_WITH_URI: Final = frozenset(("response", "request", "resource", "revisit", "conversion", "continuation"))
_LENGTH: Final = re.compile(r"[0-9]{1,18}\Z")
_ID: Final = re.compile(r"<[a-z][a-z0-9+.-]*:[^\s<>]+>\Z", re.IGNORECASE)
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:[\x21-\x3b\x3d\x3f-\x7e]+\Z", re.IGNORECASE)
_HEADER: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\Z|[ \t][^\r\n\0]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong, and with the record that begins where."""

    file: str
    offset: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record whose frame is sound."""

    offset: int
    length: int
    """As stored: of its gzip member."""
    type: str
    url: str
    record_id: str
    payload_digest: bytes | None
    """As the record says it."""


@dataclass(slots=True, kw_only=True)
class Checked:
    """One file."""

    file: str
    size: int = 0
    records: list[Record] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    stopped_at: int | None = None
    """Where the file cannot be read any further, if it cannot."""

    @property
    def types(self) -> Counter[str]:
        """Records by type."""
        return Counter(record.type for record in self.records)


class _Broken(Exception):
    """What follows cannot be told apart from here on."""


def check(file: str, stream: BinaryIO) -> Checked:
    """Every record of a file, and everything that is wrong with it. Compression is seen from the bytes."""
    found = Checked(file=file)
    source = _Source(stream)
    look = _of_members if source.peek(2) == GZIP_MAGIC else _of_plain
    for offset, message in look(source, found):
        found.problems.append(Problem(file=file, offset=offset, message=message))
        if len(found.problems) == MOST_PROBLEMS:
            break
    found.size = source.position
    return found


# --- Bytes -----------------------------------------------------------------------------------------------------------


class _Source:
    """A file in pieces; what was read too much is put back."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._back = stream, b""
        self.position = 0
        """Of the next byte."""

    def piece(self) -> bytes:
        """The next bytes; none at the end."""
        data, self._back = self._back or self._stream.read(PIECE), b""
        self.position += len(data)
        return data

    def put_back(self, data: bytes) -> None:
        self._back = data + self._back
        self.position -= len(data)

    def peek(self, count: int) -> bytes:
        """The next few bytes, still to come."""
        data = b""
        while len(data) < count and (piece := self.piece()):
            data += piece
        self.put_back(data)
        return data[:count]


class _Feed:
    """Pieces as one run of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._buffer = pieces, b""
        self.taken = 0

    def _more(self) -> bool:
        piece = next(self._pieces, b"")
        self._buffer += piece
        return bool(piece)

    def is_at_end(self) -> bool:
        return not self._buffer and not self._more()

    def until(self, mark: bytes, most: int) -> bytes:
        """What comes before the mark, which is passed over; `_Broken` where there is none."""
        while (at := self._buffer.find(mark)) < 0:
            if len(self._buffer) > most or not self._more():
                begins = self._buffer[:20]
                raise _Broken(f"no WARC record begins here: {begins!r}")
        before, self._buffer = self._buffer[:at], self._buffer[at + len(mark) :]
        self.taken += at + len(mark)
        return before

    def exactly(self, count: int) -> Iterator[bytes]:
        """So many bytes; fewer at the end."""
        while count and not self.is_at_end():
            part, self._buffer = self._buffer[:count], self._buffer[count:]
            count -= len(part)
            self.taken += len(part)
            yield part

    def skip_to(self, mark: bytes) -> bool:
        """Up to the mark, which stays; False where there is none."""
        while (at := self._buffer.find(mark)) < 0:
            kept = self._buffer[-len(mark) :]
            self.taken += len(self._buffer) - len(kept)
            self._buffer = kept
            if not self._more():
                return False
        self._buffer = self._buffer[at:]
        self.taken += at
        return True


def _inflated(source: _Source) -> Iterator[bytes]:
    """The content of the gzip member that begins here; the source then stands behind it."""
    inflater = isal_zlib.decompressobj(GZIP)
    while not inflater.eof:
        data = inflater.unconsumed_tail or source.piece()
        if not data:
            raise _Broken("the gzip member is cut: the file ends inside of it")
        try:
            yield inflater.decompress(data, MOST_INFLATED)
        except isal_zlib.error as error:  # pyright: ignore[reportGeneralTypeIssues]  a class; the stub says an instance
            raise _Broken(f"the gzip member is damaged ({error})") from None
    source.put_back(inflater.unused_data)


# --- Files -----------------------------------------------------------------------------------------------------------


def _of_members(source: _Source, found: Checked) -> Iterator[tuple[int, str]]:
    """A compressed file: every member is one record, and nothing stands between or behind them."""
    while head := source.peek(2):
        offset = source.position
        if head != GZIP_MAGIC:
            found.stopped_at = offset
            yield offset, f"bytes that are no gzip member: {source.peek(20)!r}"
            return
        feed = _Feed(piece for piece in _inflated(source) if piece)
        try:
            record, problems = _record(feed, offset)
            is_alone = feed.is_at_end()
        except _Broken as broken:
            found.stopped_at = offset
            yield offset, str(broken)
            return
        for message in problems:
            yield offset, message
        if not is_alone:
            found.stopped_at = offset
            yield offset, f"more than one record in one gzip member: offsets are of no use{REPACKED}"
            return
        if record:
            found.records.append(_with_length(record, source.position - offset))


def _of_plain(source: _Source, found: Checked) -> Iterator[tuple[int, str]]:
    """A file without compression: after a record that does not end where it says, the next one is looked for."""
    feed = _Feed(iter(source.piece, b""))
    while not feed.is_at_end():
        offset = feed.taken
        try:
            record, problems = _record(feed, offset)
        except _Broken as broken:
            yield offset, str(broken)
            if not feed.skip_to(b"WARC/1."):
                return
            continue
        for message in problems:
            yield offset, message
        if record:
            found.records.append(_with_length(record, feed.taken - offset))
        elif not feed.skip_to(b"WARC/1."):
            return


def _with_length(record: Record, length: int) -> Record:
    return Record(
        offset=record.offset, length=length, type=record.type, url=record.url, record_id=record.record_id,
        payload_digest=record.payload_digest,
    )  # fmt: skip


# --- Records ---------------------------------------------------------------------------------------------------------


def _record(feed: _Feed, offset: int) -> tuple[Record | None, list[str]]:
    """The record that begins here, without its length, and what is wrong with it; no record when its end is missed."""
    version, _, lines = feed.until(_END, MOST_HEAD).partition(b"\r\n")
    if not version.startswith(b"WARC/1."):
        raise _Broken(f"no WARC record begins here: {version[:20]!r}")
    fields = {name.lower(): value for name, value in header_lines(lines)}
    problems = [*_field_problems(fields), *_line_problems(lines)]
    length = fields.get("content-length", "")
    if not _LENGTH.match(length):
        raise _Broken("a record without a length")
    payload, came = Payload(fields), 0
    for piece in feed.exactly(int(length)):
        payload.take(piece)
        came += len(piece)
    if came < int(length):
        return None, [*problems, f"the record is cut: {came} of its {length} bytes are there"]
    problems += payload.problems()
    end = b"".join(feed.exactly(4))
    if end != _END:
        return None, [*problems, f"the record does not end where it says: {end!r} follows its {length} bytes"]
    return Record(
        offset=offset, length=0, type=fields.get("warc-type", ""), url=fields.get("warc-target-uri", ""),
        record_id=fields.get("warc-record-id", ""), payload_digest=digest_of(fields.get("warc-payload-digest", "")),
    ), problems  # fmt: skip


def _field_problems(fields: dict[str, str]) -> Iterator[str]:
    for name in _MANDATORY:
        if not fields.get(name):
            yield f"{name} is missing"
    kind, url = fields.get("warc-type", ""), fields.get("warc-target-uri")
    if url is not None and not _URI.match(url):
        yield f"WARC-Target-URI is no URI: {url[:80]!r}"
    if url is None and kind in _WITH_URI:
        yield f"a {kind} record without WARC-Target-URI"
    if (said := fields.get("warc-record-id")) and not _ID.match(said):
        yield f"WARC-Record-ID is no URI in angle brackets: {said[:80]!r}"
    if kind == "revisit" and not fields.get("warc-profile"):
        yield "a revisit record without WARC-Profile"
    if (date := fields.get("warc-date")) and not _is_moment(date):
        yield f"WARC-Date is no time in UTC: {date[:40]!r}"


def _line_problems(lines: bytes) -> Iterator[str]:
    for line in lines.split(b"\r\n"):
        if not _HEADER.match(line):
            yield f"not a header line: {line[:60]!r}"


def _is_moment(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.utcoffset() is not None and not moment.utcoffset()


def repeated(checked: Iterable[Checked], seen: set[bytes]) -> Iterator[Problem]:
    """Records whose id is that of an earlier one; `seen` keeps the ids from call to call."""
    for each in checked:
        for record in each.records:
            short = hashlib.blake2b(record.record_id.encode(), digest_size=16).digest()
            if short in seen:
                yield Problem(file=each.file, offset=record.offset, message=f"not the first record {record.record_id}")
            seen.add(short)
