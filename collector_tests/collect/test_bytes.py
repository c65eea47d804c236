"""Rule 11 through the whole path, and rule 4 while the archive takes its time."""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from collector_assets import collect
from collector_assets.archive import Archive, ArchiveWriter, Exchange, Location
from collector_assets.contract import Link, replace, seconds
from collector_assets.page import StoredResponse
from collector_assets.spool import whole
from collector_tests.collect.conftest import QUICK, TODAY, Hands

ONE_BOOK = replace(
    QUICK, start_urls=(Link("http://shop.localhost:8765/misbehave/gzip_body"),), max_requests=1, patience=seconds(0)
)


def test_stored_bytes_are_the_bytes_received(hands: Hands) -> None:
    """Rule 11: a page that came compressed is stored compressed, with its headers, and read as text."""
    hands.site.switch(gzip=1)
    few = replace(QUICK, max_requests=3)
    hands.whole(few)
    places = hands.rows(
        "SELECT warc_file, warc_offset, warc_length, payload_digest, url, body_bytes, content_encoding FROM pages"
    )
    assert len(places) == 3
    for file, offset, length, digest, url, size, encoding in places:
        location = Location(file=file, offset=offset, length=length, payload_digest=bytes(digest), url=url)
        stored = hands.archive.read(location)
        assert encoding == "gzip"
        assert len(stored.body) == size
        assert b"<html" in gzip.decompress(whole(stored.body))
        assert ("content-encoding", "gzip") in [(name.lower(), value) for name, value in stored.headers]
    assert hands.read(few).outcomes == {"ok": 1}, "two of the three are listings"


def test_bomb_is_a_failed_page_and_costs_no_memory(hands: Hands) -> None:
    """Rule 11: decoding is bounded; the 64 MB that 64 KB would become are an outcome, not an accident."""
    bomb = replace(
        ONE_BOOK,
        start_urls=(Link("http://shop.localhost:8765/misbehave/gzip_bomb/67108864"),),
        max_decoded_bytes=1_000_000,
    )
    hands.open(bomb)
    hands.collect(bomb)
    hands.read(bomb)
    (row,) = hands.rows("SELECT state, failed_phase, outcome FROM requests")
    assert row == ("failed", "read", "too_large")


@dataclass(frozen=True)
class SlowArchive:
    """An archive on a slow disk: the local one, seconds later."""

    under: Archive
    seconds: float

    @property
    def location(self) -> str:
        return self.under.location

    def writer(self, source: str, window_key: str) -> ArchiveWriter:
        return SlowWriter(self.under.writer(source, window_key), self.seconds)

    def read(self, location: Location) -> StoredResponse:
        return self.under.read(location)

    def holds(self, location: Location) -> bool:
        return self.under.holds(location)

    def files(self, under: str = "") -> list[str]:
        return self.under.files(under)

    def stream(self, file: str) -> BinaryIO:
        return self.under.stream(file)

    def discard(self, file: str) -> None:
        self.under.discard(file)


@dataclass(frozen=True)
class SlowWriter:
    """The writer of a slow disk."""

    under: ArchiveWriter
    seconds: float

    def append(self, batch: Sequence[Exchange]) -> list[Location]:
        time.sleep(self.seconds)
        return self.under.append(batch)

    def close(self) -> None:
        self.under.close()


def test_lease_is_renewed_until_the_commit(hands: Hands) -> None:
    """Rule 4: the answer is there and the disk takes two leases to keep it; the result is still ours."""
    source = replace(ONE_BOOK, lease=seconds(3))
    hands.open(source)
    slow: Archive = SlowArchive(hands.archive, 7)
    collected = collect.run(
        source=source, window=hands.row(source, TODAY), kinds=None, database=hands.database, archive=slow,
        fetcher=hands.fetcher,
    )  # fmt: skip
    assert (collected.refused, collected.outcomes) == (0, {"ok": 1})
    assert hands.column("SELECT attempts FROM requests") == [1]
