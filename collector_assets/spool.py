"""Bytes that are too many for memory: in a temporary file without a name, gone when nobody holds it.

`Body` is what travels from the fetcher to the archive and from there to the page: bytes, or from `SPOOLED_FROM` on such
a file. Slices are bytes; the whole is read in pieces.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, TypeAlias

from collector_assets.errors import CollectorError

SPOOLED_FROM: Final = 8 * 2**20
"""Bytes of a body from which it is kept in a file."""
PIECE: Final = 2**20
"""Bytes in memory at once."""


class SpoolFull(CollectorError):
    """There is no room for a large body where temporary files are (TMPDIR)."""


class Spool:
    """Written once, by one; then read by any number, each from where it likes."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  open as long as the spool lives
        self._size = 0
        self._sha256 = hashlib.sha256()

    def __del__(self) -> None:
        self._file.close()

    def write(self, piece: bytes | memoryview) -> None:
        """Append; `SpoolFull` when there is no room."""
        self._sha256.update(piece)
        rest = memoryview(piece)
        try:
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
        except OSError as error:
            raise SpoolFull(f"a large body, in {tempfile.gettempdir()}: {error.strerror}") from error
        self._size += len(piece)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """A part that fits into memory."""
        start, stop, _ = part.indices(self._size)
        return os.pread(self._file.fileno(), max(0, stop - start), start)

    def pieces(self) -> Iterator[bytes]:
        """All of it, at most `PIECE` bytes at once."""
        for start in range(0, self._size, PIECE):
            yield self[start : start + PIECE]

    def read(self) -> bytes:
        """All of it in memory: for whoever must."""
        found = self[:]
        return found if len(found) == self._size else b"".join(self.pieces())  # one call reads 2 GiB at most

    def open(self) -> BinaryIO:
        """All of it as a stream that can be sought in."""
        return io.BufferedReader(_Reader(self), PIECE)

    def sha256(self) -> bytes:
        """The digest of what was written."""
        return self._sha256.digest()


Body: TypeAlias = bytes | Spool


class _Reader(io.RawIOBase):
    """A place in a spool; it keeps the spool alive."""

    def __init__(self, spool: Spool) -> None:
        self._spool, self._at = spool, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._spool)}[whence]
        if base + offset < 0:
            raise ValueError(f"no place before the beginning: {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        piece = self._spool[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


class Sink:
    """Where a body is collected piece by piece: in memory as long as it is small."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._spool: Spool | None = None
        self.size = 0

    def add(self, part: bytes) -> None:
        """The next piece; `SpoolFull` when it finds no room."""
        self.size += len(part)
        if self._spool is not None:
            self._spool.write(part)
            return
        self._parts.append(part)
        if self.size > SPOOLED_FROM:
            self._spool = Spool()
            for early in self._parts:
                self._spool.write(early)
            self._parts.clear()

    def body(self) -> Body:
        """What came."""
        if self._spool is not None:
            return self._spool
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


def sha256(body: Body) -> bytes:
    """The digest of a body."""
    return body.sha256() if isinstance(body, Spool) else hashlib.sha256(body).digest()


def whole(body: Body) -> bytes:
    """The body in memory."""
    return body.read() if isinstance(body, Spool) else body
