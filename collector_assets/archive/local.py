"""The archive in a folder: one file per writing process, appended and synced; nothing is ever written twice."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from collector_assets import __version__
from collector_assets.archive import warc
from collector_assets.archive.exchange import Exchange
from collector_assets.archive.names import folder_of, new_file, require_inside
from collector_assets.errors import ArchiveUnwritable, BrokenRecord
from collector_assets.page import Location, StoredResponse
from collector_assets.spool import PIECE, SPOOLED_FROM, Body, Spool, whole

ROTATE_AT: Final = 2**30
"""Bytes after which a writer starts the next file; what the WARC guidelines advise."""
OPEN_FILES: Final = 32
"""Files that a reader keeps open."""


class LocalArchive:
    """WARC files under one folder: `<source>/<window>/<time>-<process>-<random>.warc.gz`."""

    def __init__(self, root: Path, *, rotate_at: int = ROTATE_AT) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100  resolve() would follow a link that may move later
        self._rotate_at = rotate_at
        self._open: Callable[[str], _Readable] = lru_cache(OPEN_FILES)(self._open_anew)

    @property
    def location(self) -> str:
        """The folder, absolute."""
        return str(self._root)

    def writer(self, source: str, window_key: str) -> LocalWriter:
        """A writer whose folder exists and takes files."""
        folder = folder_of(source, window_key)
        path = self._root / folder
        try:
            make_folders(path)
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise _unwritable(path, error) from error
        return LocalWriter(self._root, folder, rotate_at=self._rotate_at)

    def holds(self, location: Location) -> bool:
        """Whether the file is there and long enough; nothing is read."""
        try:
            return os.fstat(self._open(location.file).descriptor).st_size >= location.offset + location.length
        except (OSError, BrokenRecord):
            return False

    def read(self, location: Location) -> StoredResponse:
        """Exactly the bytes at that place, checked against it; one `pread` on a file that stays open."""
        if location.length > SPOOLED_FROM:
            return warc.read_large(self._pieces(location), location)
        try:
            member = os.pread(self._open(location.file).descriptor, location.length, location.offset)
        except OSError as error:
            raise BrokenRecord(f"{warc.describe(location)}: {error.strerror}") from error
        if len(member) != location.length:
            raise BrokenRecord(f"{warc.describe(location)}: the file ends before the record does")
        return warc.read_response(member, location)

    def _pieces(self, location: Location) -> Iterator[bytes]:
        file, end = self._open(location.file), location.offset + location.length
        for at in range(location.offset, end, PIECE):
            yield os.pread(file.descriptor, min(PIECE, end - at), at)

    def files(self, under: str = "") -> list[str]:
        """The WARC files in a folder of the archive, or the one file, by name."""
        path = self._root / under
        found = [path] if path.is_file() else sorted(path.rglob("*.warc*"))
        return [each.relative_to(self._root).as_posix() for each in found if each.is_file()]

    def stream(self, file: str) -> BinaryIO:
        """A file from its beginning; `BrokenRecord` when it cannot be opened."""
        require_inside(file)
        try:
            return (self._root / file).open("rb")
        except OSError as error:
            raise BrokenRecord(f"{file}: {error.strerror}") from error

    def discard(self, file: str) -> None:
        """Remove a file, durably; readers that have it open read on."""
        require_inside(file)
        path = self._root / file
        try:
            path.unlink(missing_ok=True)
            if path.parent.is_dir():
                sync_folder(path.parent)
        except OSError as error:
            raise _unwritable(path, error) from error

    def _open_anew(self, file: str) -> _Readable:
        require_inside(file)
        return _Readable(self._root / file)


class LocalWriter:
    """Appends to a file of its own; a file that may hold a torn record is left as it is and never appended to."""

    def __init__(self, root: Path, folder: PurePosixPath, *, rotate_at: int) -> None:
        self._root, self._folder, self._rotate_at = root, folder, rotate_at
        self._lock = threading.Lock()
        self._file: _Writable | None = None

    def append(self, batch: Sequence[Exchange]) -> list[Location]:
        """One write and one sync for the whole batch."""
        if not batch:
            return []
        with self._lock:
            path = self._root / self._folder
            try:
                file = self._file_with_room()
                path = file.path
                return self._append_to(file, batch)
            except OSError as error:
                self._leave_file()
                raise _unwritable(path, error) from error
            except BaseException:
                self._leave_file()
                raise

    def close(self) -> None:
        """Close the file; what was appended is durable already."""
        with self._lock:
            self._leave_file()

    def _append_to(self, file: _Writable, batch: Sequence[Exchange]) -> list[Location]:
        begin = file.size + len(file.unwritten_head)
        records, locations = warc.batch_records(batch, file=file.name, begin=begin, warcinfo_id=file.warcinfo_id)
        written = write_pieces(file.descriptor, [file.unwritten_head, *records])
        os.fsync(file.descriptor)
        if file.unwritten_head:
            sync_folders(file.path.parent, self._root)
        file.size, file.unwritten_head = file.size + written, b""
        return locations

    def _file_with_room(self) -> _Writable:
        file = self._file
        # After a fork two processes would share one file offset: the child starts a file of its own.
        if file is not None and (file.size >= self._rotate_at or file.process != os.getpid()):
            self._leave_file()
        if self._file is None:
            self._file = self._new_file()
        return self._file

    def _new_file(self) -> _Writable:
        now = datetime.now(UTC)
        name = new_file(now)
        path = self._root / self._folder / name
        make_folders(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        head, record_id = warc.warcinfo_record(
            filename=name, software=f"collector-assets/{__version__}", part_of=self._folder.as_posix(), now=now
        )
        return _Writable(
            path=path,
            name=(self._folder / name).as_posix(),
            descriptor=descriptor,
            process=os.getpid(),
            warcinfo_id=record_id,
            unwritten_head=head,
        )

    def _leave_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file.descriptor)


@dataclass(slots=True, kw_only=True)
class _Writable:
    """The file that a writer is appending to."""

    path: Path
    name: str
    """Relative to the archive."""
    descriptor: int
    process: int
    warcinfo_id: str
    unwritten_head: bytes
    """The warcinfo record, until it is written with the first batch."""
    size: int = 0


class _Readable:
    """A file open for reading; closed when the last reader lets go of it, so never under a `pread`."""

    __slots__ = ("descriptor",)

    def __init__(self, path: Path) -> None:
        self.descriptor = -1
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


def make_folders(folder: Path) -> None:
    """Make the folder and its missing parents, each durable in its parent."""
    missing = []
    while not folder.is_dir():
        if folder.exists():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a file, not a folder")
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        sync_folder(each.parent)


def sync_folders(folder: Path, root: Path) -> None:
    """Make the entries of `folder` and of its parents up to `root` durable: another process may have made them."""
    for each in (folder, *folder.parents):
        sync_folder(each)
        if each == root:
            return


def sync_folder(folder: Path) -> None:
    """Make a folder's entries durable (fsync(2): a new file's own sync does not)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_pieces(descriptor: int, pieces: Sequence[Body]) -> int:
    """Write them in order, the small ones between two large ones at once; how many bytes it were."""
    for is_large, group in itertools.groupby(pieces, key=lambda piece: isinstance(piece, Spool)):
        if not is_large:
            write_all(descriptor, b"".join(whole(piece) for piece in group))
            continue
        for spooled in group:
            for piece in spooled.pieces() if isinstance(spooled, Spool) else ():
                write_all(descriptor, piece)
    return sum(map(len, pieces))


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything. A short write is not an error yet; the one after it says why (disk full, a limit)."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _unwritable(path: Path, error: OSError) -> ArchiveUnwritable:
    return ArchiveUnwritable(str(path), error.strerror or type(error).__name__)
