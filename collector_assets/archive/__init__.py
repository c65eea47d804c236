"""The archive: every response as it was received, in WARC files that outlive this program (rules 10 and 11).

`warc/` is the format, pure; `local.py` keeps the files in a folder, `object_store.py` as objects in a bucket, behind
one interface and one test suite; `check.py` says what is wrong with a file. What a record says about its page is in
`pages.py`, in the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from collector_assets.archive.exchange import Exchange, Revisit
from collector_assets.archive.local import LocalArchive
from collector_assets.archive.object_store import ObjectStoreArchive
from collector_assets.page import Location, StoredResponse

__all__ = [
    "Archive",
    "ArchiveWriter",
    "Exchange",
    "LocalArchive",
    "Location",
    "ObjectStoreArchive",
    "Revisit",
    "StoredResponse",
    "open_archive",
]


class ArchiveWriter(Protocol):
    """Writes for one source's window, from one process; threads may share it."""

    def append(self, batch: Sequence[Exchange]) -> list[Location]:
        """Store the exchanges and return when they are durable; `ArchiveUnwritable` when they may not be.

        The places are those of the response records, in the order of the batch.
        """
        ...

    def close(self) -> None:
        """Release the file; a later append starts a new one."""
        ...


class Archive(Protocol):
    """Where responses are kept."""

    @property
    def location(self) -> str:
        """Where it is: `open_archive` opens it again there, in another process."""
        ...

    def writer(self, source: str, window_key: str) -> ArchiveWriter:
        """A writer for one window; `ArchiveUnwritable` at once when there is no place to write."""
        ...

    def read(self, location: Location) -> StoredResponse:
        """The response at that place; `BrokenRecord` when the bytes are not what the place says.

        A revisit comes without a body; `page.revisited` joins it with the record that holds one.
        """
        ...

    def files(self, under: str = "") -> list[str]:
        """The WARC files in a folder of the archive, or the one file of that name, relative to the archive."""
        ...

    def stream(self, file: str) -> BinaryIO:
        """A file from its beginning, to be closed; `BrokenRecord` when it is not there."""
        ...

    def discard(self, file: str) -> None:
        """Remove a file for good; one that is not there is removed. `ArchiveUnwritable` when it cannot be."""
        ...

    def holds(self, location: Location) -> bool:
        """Whether there is something at that place, cheaply: only `read` says that it is whole."""
        ...


def open_archive(location: str) -> Archive:
    """The archive at a place: a folder, or a URL with a bucket and a prefix in it (`s3://bucket/prefix`)."""
    return ObjectStoreArchive(location) if "://" in location else LocalArchive(Path(location))
