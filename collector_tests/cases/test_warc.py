"""The WARC cases of the field, and HTTP-23: what is in the archive, and what others read there."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from collector_assets import audit, trial
from collector_assets.archive import Location
from collector_assets.archive.check import check
from collector_assets.contract import Source, replace
from collector_assets.errors import BadSelection, BrokenRecord
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands

LISTING = "/catalogue/page-1.html"
CAREFUL = replace(QUICK, max_attempts=1, max_requests=1)
"""The first listing, once."""


def the_file(hands: Hands) -> Path:
    [file] = hands.folder.rglob("*.warc.gz")
    return file


def collected(hands: Hands, do: str, source: Source = CAREFUL) -> Path:
    hands.site.misbehave(do, prefix=LISTING)
    hands.discover(source)
    return the_file(hands)


def test_warc_01_header_says_chunked_body_is_not(hands: Hands) -> None:
    """The transfer coding is undone and its header renamed: two readers give the same body."""
    file = collected(hands, "chunked")
    with file.open("rb") as stream:
        assert check(file.name, stream).problems == []
        stream.seek(0)
        response = next(record for record in ArchiveIterator(stream) if record.rec_type == "response")
        theirs, headers = response.content_stream().read(), response.http_headers
    [(offset, length, digest, url)] = hands.rows(
        "SELECT warc_offset, warc_length, payload_digest, final_url FROM pages"
    )
    ours = hands.archive.read(place(hands, offset, length, digest, url))
    assert theirs == ours.body
    assert theirs.startswith(b"<!DOCTYPE html>")
    assert headers.get_header("Transfer-Encoding") is None
    assert headers.get_header("X-Archive-Orig-Transfer-Encoding") == "chunked"
    assert headers.get_header("Content-Length") == str(len(theirs))


def test_warc_04_line_breaks_in_the_target_uri(hands: Hands) -> None:
    """Through the whole way, from a link to the record: one record, the URI escaped, no line injected."""
    url = "http://shop.localhost:8765/a\r\nWARC-Type: metadata\r\n\r\nx"
    hands.discover(replace(CAREFUL, start_urls=(url,)))
    with the_file(hands).open("rb") as stream:
        records = [
            (record.rec_type, record.rec_headers.get_header("WARC-Target-URI")) for record in ArchiveIterator(stream)
        ]
    assert [kind for kind, _ in records] == ["warcinfo", "response", "request"]
    assert {uri for _, uri in records[1:]} == {"http://shop.localhost:8765/aWARC-Type:%20metadatax"}


@pytest.mark.parametrize(
    ("do", "reason"), [("short_body", "disconnect"), ("oversized", "length"), ("hang_after_headers", "time")]
)
def test_warc_05_cut_bodies_are_marked_and_not_read_unless_asked(hands: Hands, do: str, reason: str) -> None:
    quick = replace(
        CAREFUL, max_bytes=1_000_000, read_timeout=QUICK.read_timeout / 60, connect_timeout=QUICK.connect_timeout
    )
    hands.site.misbehave(do, prefix=LISTING, arg="1000" if do == "hang_after_headers" else "")
    hands.discover(quick)
    with the_file(hands).open("rb") as stream:
        said = [record.rec_headers.get_header("WARC-Truncated") for record in ArchiveIterator(stream)]
    assert said == [None, reason, None]
    assert hands.column("SELECT truncated FROM pages") == [reason]
    with pytest.raises(BadSelection, match="no good page"):
        trial.of_archive(quick, url=None, kind="listing", database=hands.database, archive=hands.archive)
    [asked] = trial.of_archive(
        quick, url=None, kind="listing", database=hands.database, archive=hands.archive, cut=True
    )  # fmt: skip
    assert asked.stages[0].name == "decode"
    assert hands.column("SELECT count(*) FROM observations") == [0]


def test_warc_08_recompressed_files(hands: Hands) -> None:
    """No wrong record for an old offset, and it is said what is the matter."""
    hands.discover(QUICK)
    file = the_file(hands)
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())))
    for row in hands.rows("SELECT warc_offset, warc_length, payload_digest, final_url FROM pages"):
        with pytest.raises(BrokenRecord, match="again per record|ends before"):
            hands.archive.read(place(hands, *row))
    found = audit.run(hands.archive, [f"shop/{TODAY.key}"], database=hands.database)
    assert "compress it again per record" in found.problems[0].message


def place(hands: Hands, offset: int, length: int, digest: bytes, url: str) -> Location:
    [file] = hands.column("SELECT DISTINCT warc_file FROM pages")
    return Location(file=file, offset=offset, length=length, payload_digest=digest, url=url)


def test_http_23_304_means_still_there(hands: Hands) -> None:
    """With a Content-Length of 500 and no body: `last_seen_at` moves, rows are kept, nothing waits for 500 bytes."""
    hands.whole(QUICK)
    hands.publish(QUICK)
    before = hands.rows("SELECT entity, data, changed_at FROM latest ORDER BY 1")
    [seen] = hands.column("SELECT max(last_seen_at) FROM latest")
    hands.site.misbehave("unmodified", prefix="/catalogue/")
    hands.whole(QUICK, TOMORROW)
    hands.publish(QUICK, TOMORROW)
    assert hands.column("SELECT DISTINCT outcome FROM pages WHERE window_start = %s", TOMORROW.start) == [
        "not_modified"
    ]
    assert hands.rows("SELECT entity, data, changed_at FROM latest ORDER BY 1") == before
    assert hands.column("SELECT min(last_seen_at) > %s FROM latest", seen) == [True]
