"""The use cases with an archive in an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector_assets import audit, process
from collector_assets.archive import Archive, ObjectStoreArchive, open_archive
from collector_assets.errors import ArchiveUnreachable
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands
from collector_tests.fixtures.object_store import unanswered


class Remote(Hands):
    """Hands whose archive is a bucket."""

    @property
    def archive(self) -> Archive:
        return ObjectStoreArchive(str(self.folder).replace("s3:/", "s3://"))


@pytest.fixture
def remote(hands: Hands, bucket: str) -> Remote:
    return Remote(database=hands.database, site=hands.site, folder=Path(bucket))


def test_a_window_is_collected_read_and_revisited_in_a_bucket(remote: Remote) -> None:
    for window in (TODAY, TOMORROW):
        remote.whole(QUICK, window)
    assert remote.column("SELECT count(*) FROM observations") == [120]
    assert remote.column("SELECT count(*) FROM pages WHERE revisit_of IS NOT NULL") == [63]
    assert isinstance(open_archive(remote.archive.location), ObjectStoreArchive)


def test_an_archive_in_a_bucket_is_checked_too(remote: Remote) -> None:
    remote.discover(QUICK)
    found = audit.run(remote.archive, database=remote.database)
    assert (found.problems, found.rows, found.unreferenced) == ([], 3, 0)


def test_reading_stops_when_the_store_does_not_answer(remote: Remote) -> None:
    """No page is called unreadable because of that."""
    remote.discover(QUICK)
    remote.collect(QUICK)
    with unanswered(), pytest.raises(ArchiveUnreachable):
        process.run(source=QUICK, window=remote.row(QUICK), database=remote.database, archive=remote.archive)
    assert remote.column("SELECT DISTINCT state FROM requests WHERE kind = 'detail'") == ["fetched"]
