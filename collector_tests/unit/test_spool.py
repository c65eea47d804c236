"""Bodies that are too large for memory."""

from __future__ import annotations

import gzip
import io
import os
import resource
import zipfile
from collections.abc import Callable

import pytest
import zstandard

from collector_assets import decoding, files
from collector_assets.cases import page
from collector_assets.decoding import DecodingError
from collector_assets.spool import PIECE, SPOOLED_FROM, Sink, Spool, SpoolFull, sha256, whole

CONTENT = os.urandom(PIECE + 17)


def spooled(content: bytes = CONTENT) -> Spool:
    made = Spool()
    made.write(content[:10])
    made.write(content[10:])
    return made


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


def test_a_spool_gives_back_what_was_written() -> None:
    made = spooled()
    assert len(made) == len(CONTENT)
    assert made.read() == whole(made) == CONTENT
    assert made[:5] == CONTENT[:5]
    assert made[5:1_000] == CONTENT[5:1_000]
    assert made[len(CONTENT) :] == b""
    assert [len(piece) for piece in made.pieces()] == [PIECE, 17]
    assert sha256(made) == sha256(CONTENT)
    assert not Spool()


def test_readers_are_independent_and_seek() -> None:
    made = spooled()
    with made.open() as one, made.open() as other:
        assert (one.read(7), other.read(3)) == (CONTENT[:7], CONTENT[:3])
        one.seek(-4, os.SEEK_END)
        assert (one.read(), one.tell()) == (CONTENT[-4:], len(CONTENT))
        assert other.read() == CONTENT[3:]


@pytest.mark.parametrize(("size", "is_file"), [(SPOOLED_FROM, False), (SPOOLED_FROM + 1, True)])
def test_only_a_large_body_is_in_a_file(size: int, *, is_file: bool) -> None:
    sink = Sink()
    for at in range(0, size, PIECE):
        sink.add(bytes(min(PIECE, size - at)))
    assert isinstance(sink.body(), Spool) == is_file
    assert len(sink.body()) == sink.size == size
    assert Sink().body() == b""


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("", bytes), ("zstd", zstd)])
def test_what_is_decoded_is_in_a_file_too(coding: str, compress: Callable[[bytes], bytes]) -> None:
    large, small = b"0123456789" * (SPOOLED_FROM // 10 + 1), b"0123456789"
    packed = spooled(compress(large)) if not coding else compress(large)
    decoded = decoding.decode(packed, coding, limit=2 * SPOOLED_FROM).body
    assert isinstance(decoded, Spool)
    assert decoded.read() == large
    assert decoding.decode(spooled(compress(small)), coding, limit=2 * SPOOLED_FROM).body[:] == small
    with pytest.raises(DecodingError):
        decoding.decode(packed, coding, limit=SPOOLED_FROM)


def test_no_room_is_an_error_of_ours_and_no_trouble_of_the_site() -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    made = Spool()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        with pytest.raises(SpoolFull, match="a large body"):
            made.write(bytes(5_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_page_is_read_from_its_file() -> None:
    body = Spool()
    body.write(b"sku,price\n" + b"00123,5.00\n" * 100_000)
    large = page(body, headers={"content-type": "text/csv"})
    assert sum(1 for _ in files.csv_rows(large)) == 100_000
    assert "body" not in vars(large), "nobody asked for all of it"
    assert large.text.startswith("sku,price\n00123")
    buffer = io.BytesIO()
    with large.open() as rows, zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("rows.csv", rows.read(200))
    packed = spooled(buffer.getvalue())
    assert sum(1 for _ in files.csv_rows(files.unzip(page(packed), "*.csv"))) > 10
