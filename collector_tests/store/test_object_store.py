"""What is particular to an archive in an object store; what it shares with the others is in `test_archive.py`."""

from __future__ import annotations

import logging
import os

import pytest

from collector_assets.archive import ObjectStoreArchive
from collector_assets.archive.check import check
from collector_assets.errors import ArchiveUnreachable, ArchiveUnwritable, BrokenRecord, ConfigurationError
from collector_tests.fixtures.object_store import SECRETS, unanswered
from collector_tests.store.test_archive import exchange, stored


def test_each_batch_is_one_closed_object(bucket: str) -> None:
    """Rule 10: an object that is there is whole, and is a WARC file of its own."""
    archive = ObjectStoreArchive(bucket)
    writer = archive.writer("shop", "2026-03-29")
    places = [*writer.append([exchange(), exchange("http://shop.localhost/2")]), *writer.append([exchange()])]
    writer.close()
    assert archive.files() == sorted({place.file for place in places})
    assert archive.files("shop/2026-03-29") == archive.files()
    assert archive.files("shop/2026-03-30") == []
    for file in archive.files():
        with archive.stream(file) as stream:
            found = check(file, stream)
        assert found.problems == []
        assert found.types["warcinfo"] == 1


def test_pages_of_a_batch_are_read_with_one_request(bucket: str, caplog: pytest.LogCaptureFixture) -> None:
    archive = ObjectStoreArchive(bucket)
    places = stored(archive, *(exchange(f"http://shop.localhost/{n}", body=os.urandom(500)) for n in range(50)))
    with caplog.at_level(logging.DEBUG, logger="s3fs"):
        for place in places:
            assert archive.read(place).url == place.url
    calls = [record.getMessage() for record in caplog.records if record.getMessage().startswith("CALL: get_object")]
    assert len(calls) == 1


def test_a_bucket_that_is_not_there_is_told_before_anything_is_sent(bucket: str) -> None:
    with pytest.raises(ArchiveUnwritable, match="s3://nobody-has-made-it"):
        ObjectStoreArchive("s3://nobody-has-made-it/x").writer("shop", "2026-03-29")


def test_a_store_that_does_not_answer_is_told_apart_from_a_record_that_is_broken(bucket: str) -> None:
    """A page is not unreadable because the network is down: reading stops, and is tried again."""
    [place] = stored(ObjectStoreArchive(bucket), exchange())
    with pytest.raises(BrokenRecord, match="no such object"):
        ObjectStoreArchive(f"{bucket}/elsewhere").read(place)
    with unanswered(), pytest.raises(ArchiveUnreachable, match="127.0.0.1:9") as raised:
        ObjectStoreArchive(bucket).read(place)
    assert not any(secret in str(raised.value) for secret in SECRETS)


def test_credentials_have_no_place_in_a_location() -> None:
    with pytest.raises(ConfigurationError, match="names credentials") as raised:
        ObjectStoreArchive("s3://key:secret-word@bucket/x")
    assert "secret-word" not in str(raised.value)
