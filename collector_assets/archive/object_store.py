"""The archive in an object store: each batch is one closed object, uploaded before the rows that point at it.

Over fsspec, so `s3://bucket/prefix` (the extra `s3`) and every other store that it knows. An object is never changed: a
killed worker leaves a whole object that nothing points at, or none. Where the store is and who we are there (region,
endpoint, keys) is read by its own client from its usual environment; none of it is in a location, a row or a message.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import urlsplit

from collector_assets import __version__
from collector_assets.archive import warc
from collector_assets.archive.exchange import Exchange
from collector_assets.archive.names import folder_of, new_file, require_inside
from collector_assets.errors import ArchiveUnreachable, ArchiveUnwritable, BrokenRecord, ConfigurationError
from collector_assets.page import Location, StoredResponse
from collector_assets.spool import SPOOLED_FROM, Body, Spool, whole

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

READ_AHEAD: Final = 4 * 2**20
"""Bytes that one request for a record brings: pages are read in about the order in which they were stored."""
BLOCKS_KEPT: Final = 4
PART: Final = 8 * 2**20
"""Bytes of a large record that go up or come down at once; S3 takes parts from 5 MiB on."""
SIZES_KEPT: Final = 10_000
WRITABLE: Final = ".writable"
"""A small object that tells, before anything is sent, whether objects may be written."""


class ObjectStoreArchive:
    """WARC files under one prefix: `<source>/<window>/<time>-<process>-<random>.warc.gz`, one per batch."""

    def __init__(self, location: str) -> None:
        if urlsplit(location).username is not None or urlsplit(location).password is not None:
            raise ConfigurationError(
                "COLLECTOR_ARCHIVE", "names credentials", "Leave them to the store's own environment (AWS_…)"
            )
        self._location = location.rstrip("/")
        self._lock = threading.Lock()
        self._blocks: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        self._sizes: OrderedDict[str, int | None] = OrderedDict()

    @property
    def location(self) -> str:
        """Its URL."""
        return self._location

    @cached_property
    def _store(self) -> tuple[AbstractFileSystem, str]:
        """The store and the path in it; opened at first use, in the process that uses it."""
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415  an extra

            found: Any = url_to_fs(self._location, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise ConfigurationError(
                "COLLECTOR_ARCHIVE", f"{self._location}: {error}", "Install the extra `s3`, or name a folder"
            ) from error
        return found[0], found[1].rstrip("/")

    def _path(self, file: str) -> str:
        require_inside(file)
        return f"{self._store[1]}/{file}"

    def writer(self, source: str, window_key: str) -> ObjectWriter:
        """A writer, when objects may be written."""
        self.put(WRITABLE, b"Whether objects may be written here is tried with this one.\n")
        return ObjectWriter(self, folder_of(source, window_key))

    def put(self, file: str, data: bytes) -> None:
        """Store an object whole; when this returns, it is durable."""
        try:
            self._store[0].pipe_file(self._path(file), data)
        except Exception as error:  # noqa: BLE001  each store has errors of its own; none of them is a page stored
            raise ArchiveUnwritable(self._location, _said(error)) from None

    def put_pieces(self, file: str, pieces: Sequence[Body]) -> None:
        """The same of pieces that may be too many for memory; they go up in parts of `PART` bytes."""
        if not any(isinstance(piece, Spool) for piece in pieces):
            self.put(file, b"".join(whole(piece) for piece in pieces))
            return
        try:
            with self._store[0].open(self._path(file), "wb", block_size=PART) as opened:
                written: Any = opened
                for piece in pieces:
                    for part in piece.pieces() if isinstance(piece, Spool) else (piece,):
                        written.write(part)
        except Exception as error:  # noqa: BLE001  as above
            raise ArchiveUnwritable(self._location, _said(error)) from None

    def read(self, location: Location) -> StoredResponse:
        """Exactly the bytes at that place, checked against it."""
        if location.length > SPOOLED_FROM:
            return warc.read_large(self._pieces(location), location)
        member = self._bytes(location)
        if len(member) != location.length:
            raise BrokenRecord(f"{warc.describe(location)}: the file ends before the record does")
        return warc.read_response(member, location)

    def holds(self, location: Location) -> bool:
        """Whether the object is there and long enough; asked once per object, for objects never change."""
        with self._lock:
            if location.file not in self._sizes:
                self._sizes[location.file] = self._size(location.file)
            self._sizes.move_to_end(location.file)
            size = self._sizes[location.file]
            if len(self._sizes) > SIZES_KEPT:
                self._sizes.popitem(last=False)
        return size is not None and size >= location.offset + location.length

    def files(self, under: str = "") -> list[str]:
        """The WARC files in a folder of the archive, or the one file, by name."""
        store, root = self._store
        try:
            found = store.find(f"{root}/{under}".rstrip("/"))
        except Exception as error:  # noqa: BLE001
            raise self._unreachable(error) from None
        names = sorted(path.removeprefix(f"{root}/") for path in found)
        return [name for name in names if ".warc" in PurePosixPath(name).name]

    def discard(self, file: str) -> None:
        """Remove an object."""
        try:
            self._store[0].rm_file(self._path(file))
        except FileNotFoundError:
            pass
        except Exception as error:  # noqa: BLE001  as above
            raise ArchiveUnwritable(self._location, _said(error)) from None
        with self._lock:
            self._sizes.pop(file, None)
            self._blocks.pop(file, None)

    def stream(self, file: str) -> BinaryIO:
        """A file from its beginning."""
        try:
            opened: Any = self._store[0].open(self._path(file), "rb", cache_type="readahead", block_size=READ_AHEAD)
        except FileNotFoundError:
            raise BrokenRecord(f"{file}: no such object") from None
        return opened

    # --- Reading in blocks -------------------------------------------------------------------------------------------

    def _pieces(self, location: Location) -> Iterator[bytes]:
        """A large member, part by part; none of it is kept."""
        end = location.offset + location.length
        for at in range(location.offset, end, PART):
            yield self._range(replace(location, offset=at), min(at + PART, end))

    def _bytes(self, location: Location) -> bytes:
        """The bytes at that place, as far as they are there: from the last blocks, or with what follows them."""
        end = location.offset + location.length
        with self._lock:
            start, block = self._blocks.get(location.file, (0, b""))
            if not start <= location.offset < end <= start + len(block):
                start, block = location.offset, self._range(location, max(end, location.offset + READ_AHEAD))
                self._blocks[location.file] = start, block
                if len(self._blocks) > BLOCKS_KEPT:
                    self._blocks.popitem(last=False)
            self._blocks.move_to_end(location.file)
        return block[location.offset - start : end - start]

    def _range(self, location: Location, end: int) -> bytes:
        path = self._path(location.file)
        try:
            found: Any = self._store[0].cat_file(path, start=location.offset, end=end)
        except FileNotFoundError:
            raise BrokenRecord(f"{warc.describe(location)}: no such object") from None
        except Exception as error:  # noqa: BLE001
            size = self._size(location.file)
            if size is not None and location.offset >= size:  # stores refuse a range behind the end
                return b""
            raise self._unreachable(error) from None
        return found

    def _size(self, file: str) -> int | None:
        """Of an object; nothing when there is none."""
        try:
            return int(self._store[0].info(self._path(file))["size"])
        except (FileNotFoundError, BrokenRecord):
            return None
        except Exception as error:  # noqa: BLE001
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> ArchiveUnreachable:
        return ArchiveUnreachable(f"archive {self._location}: {_said(error)}")


class ObjectWriter:
    """Stores each batch as an object of its own; threads may share it, for it keeps nothing."""

    def __init__(self, archive: ObjectStoreArchive, folder: PurePosixPath) -> None:
        self._archive, self._folder = archive, folder

    def append(self, batch: Sequence[Exchange]) -> list[Location]:
        """One object for the whole batch, closed and whole when this returns."""
        if not batch:
            return []
        now = datetime.now(UTC)
        name = new_file(now)
        file = (self._folder / name).as_posix()
        head, warcinfo_id = warc.warcinfo_record(
            filename=name, software=f"collector-assets/{__version__}", part_of=self._folder.as_posix(), now=now
        )
        records, locations = warc.batch_records(batch, file=file, begin=len(head), warcinfo_id=warcinfo_id)
        self._archive.put_pieces(file, [head, *records])
        return locations

    def close(self) -> None:
        """Nothing is open."""


def _said(error: Exception) -> str:
    """What went wrong, in one short line."""
    return " ".join((str(error) or type(error).__name__).split())[:200]
