"""What is older than its source keeps it is discarded, and nothing that something newer needs (rule 10, C.8)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collector_assets import audit, pages, retain
from collector_assets.archive import Archive, ObjectStoreArchive
from collector_assets.contract import Retention, Source, days, replace
from collector_assets.errors import PagesDiscarded
from collector_assets.retain import Retained
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands, day
from collector_tests.collect.test_revisits import AFTER, both, pages_of, statuses

ROOT = Path(__file__).parents[2]
MONTH = replace(QUICK, retention=Retention(raw_pages=days(30)))
LATEST = "SELECT entity, data, window_start, first_seen_at, changed_at, last_seen_at, removed_at FROM latest ORDER BY 1"


class Remote(Hands):
    """Hands whose archive is a bucket."""

    @property
    def archive(self) -> Archive:
        return ObjectStoreArchive(str(self.folder).replace("s3:/", "s3://"))


@pytest.fixture(params=["local", "s3"])
def keeper(request: pytest.FixtureRequest, hands: Hands) -> Hands:
    """Hands on either archive."""
    if request.param == "local":
        return hands
    return Remote(database=hands.database, site=hands.site, folder=Path(request.getfixturevalue("bucket")))


def after(window: Any) -> datetime:
    """A month after a window's end, and a little more."""
    return window.end + timedelta(days=30, hours=1)


def discard(hands: Hands, now: datetime, source: Source = MONTH, *, is_dry: bool = False) -> Retained:
    [done] = retain.run([source], hands.database, hands.archive, is_dry=is_dry, now=now)
    return done


def sound(hands: Hands) -> audit.Audit:
    """The archive, which agrees with the database."""
    found = audit.run(hands.archive, database=hands.database)
    assert (found.problems, found.torn) == ([], [])
    return found


def test_pages_that_are_old_go_with_their_files_and_what_was_read_stands(keeper: Hands) -> None:
    """The dry run says what will go; `latest` and history do not change, nor what is published again."""
    keeper.whole(MONTH)
    keeper.publish(MONTH)
    before, files = keeper.rows(LATEST), len(keeper.archive.files())
    planned = discard(keeper, after(TODAY), is_dry=True)
    assert (planned.windows, planned.pages, planned.files, planned.needed) == (1, 63, files, 0)
    assert sound(keeper).rows == 63
    done = discard(keeper, after(TODAY))
    assert (done.windows, done.pages, done.files, done.bytes) == (1, 63, files, planned.bytes)
    assert (sound(keeper).files, keeper.archive.files()) == (0, [])
    assert keeper.rows("SELECT count(*) FROM pages") == keeper.rows("SELECT count(*) FROM readings") == [(0,)]
    keeper.publish(MONTH)
    assert keeper.rows(LATEST) == before
    assert keeper.column("SELECT count(*) FROM observations") == [60]
    again = discard(keeper, after(TODAY))
    assert (again.windows, again.pages, again.files) == (0, 0, 0)


def test_what_is_not_a_month_old_stays(keeper: Hands) -> None:
    keeper.whole(MONTH)
    for source, now in ((MONTH, TODAY.end + timedelta(days=29)), (QUICK, after(TODAY))):
        done = discard(keeper, now, source)
        assert (done.pages, done.files, done.waiting) == (0, 0, {})
    assert sound(keeper).rows == 63


def test_bytes_that_live_revisits_need_stay_and_go_with_the_last_of_them(keeper: Hands) -> None:
    """Rule 10, C.8: the second window is unchanged since the first; it is read again without a loss."""
    both(keeper, MONTH)
    files = len(keeper.archive.files(f"shop/{TODAY.key}"))
    done = discard(keeper, after(TODAY))
    assert (done.pages, done.files, done.needed) == (0, 0, files)
    assert sound(keeper).rows == 126
    better = replace(MONTH, extractor_version="2")
    assert keeper.read(better, TOMORROW).records_total == 60
    done = discard(keeper, after(TOMORROW))
    assert (done.windows, done.pages, done.needed, keeper.archive.files()) == (2, 126, 0, [])


def test_a_page_that_holds_bytes_for_an_older_window_goes_too(hands: Hands) -> None:
    """A back-filled window is unchanged since a newer one: the rows that are refused first go in the second pass."""
    both(hands, MONTH)
    hands.do("UPDATE windows SET window_end = window_end + interval '10 days' WHERE window_start = %s", TODAY.start)
    hands.do("UPDATE pages SET revisit_of = NULL, revisit_window = NULL, outcome = 'ok'")
    hands.do(
        "UPDATE pages AS p SET revisit_of = h.page_id, revisit_window = h.window_start FROM pages AS h"
        " WHERE p.window_start = %s AND h.window_start = %s AND h.url = p.url", TODAY.start, TOMORROW.start
    )  # fmt: skip
    done = discard(hands, after(day(TODAY.end + timedelta(days=20))))
    assert (done.windows, done.pages, hands.archive.files()) == (2, 126, [])


def test_a_condition_is_never_sent_for_bytes_that_are_gone(hands: Hands) -> None:
    """Rule 10, C.8: the next window asks plainly, and holds its bytes itself."""
    hands.whole(MONTH)
    discard(hands, after(TODAY))
    sent = len(hands.arrivals())
    hands.whole(MONTH, TOMORROW)
    assert statuses(hands, sent) == [200] * 63
    assert pages_of(hands) == {("ok", 200, False): 63}


def test_records_of_discarded_pages_are_not_read_again_and_not_withdrawn(hands: Hands) -> None:
    """Rule 14: reading what is left would make the rest stop counting; with the same version and with a better one.

    Mutation: drop either `_require_pages` in `process`.
    """
    hands.whole(MONTH)
    hands.publish(MONTH)
    before = hands.rows(LATEST)
    discard(hands, after(TODAY))
    for source in (MONTH, replace(MONTH, extractor_version="2")):
        with pytest.raises(PagesDiscarded, match="pages were discarded on .* cannot be read again"):
            hands.read(source)
        hands.publish(MONTH)
        assert hands.rows(LATEST) == before
    assert hands.column("SELECT count(*) FROM observations") == [60]


def test_pages_that_go_while_the_others_are_read_withdraw_nothing(hands: Hands) -> None:
    """The window's row decides: whoever comes second sees what the first did."""
    hands.whole(MONTH)
    better, read = replace(MONTH, extractor_version="2"), MONTH.kind_map["detail"].extract
    assert read is not None

    def slow(page: Any) -> Any:
        if not started:
            started.append(discard(hands, after(TODAY)))
        return read(page)

    started: list[Retained] = []
    better = replace(better, extract=slow)
    with pytest.raises(PagesDiscarded):
        hands.read(better)
    assert started[0].pages == 63
    assert hands.column("SELECT counted_version FROM windows") == ["1"]
    assert hands.column("SELECT count(*) FROM observations") == [60]


def test_a_window_that_is_not_read_yet_or_is_being_collected_waits(hands: Hands) -> None:
    hands.discover(MONTH)
    hands.collect(MONTH)
    done = discard(hands, after(TODAY))
    assert (done.pages, done.waiting) == (0, {TODAY.key: "pages of it are not read yet"})
    hands.read(MONTH)
    hands.do(
        "UPDATE requests SET state = 'leased', fence = 1, worker = 'w', leased_until = now() + interval '1 hour'"
        " WHERE request_id = (SELECT max(request_id) FROM requests)"
    )
    done = discard(hands, after(TODAY))
    assert (done.pages, done.waiting) == (0, {TODAY.key: "a worker holds requests of it"})


def test_a_window_that_was_collected_late_is_kept_since_then(hands: Hands) -> None:
    """What was fetched yesterday is a day old, whatever its window: of two files the one with the listings goes."""
    hands.whole(MONTH)
    hands.do("UPDATE pages SET fetched_at = %s WHERE page_id = (SELECT max(page_id) FROM pages)", after(TODAY))
    assert discard(hands, after(TODAY)).pages == 3
    assert hands.read(MONTH).records_total == 60


def test_a_page_that_points_at_the_bytes_meanwhile_keeps_them(hands: Hands) -> None:
    """A worker is about to commit a revisit of a page: whoever comes first, no row is left without its bytes."""
    hands.whole(MONTH)
    done: list[Retained] = []
    late = threading.Thread(target=lambda: done.append(discard(hands, after(TODAY))))
    hands.open(MONTH, AFTER)
    with hands.database.transaction() as connection:
        row: Any = connection.execute(b"SELECT * FROM pages ORDER BY page_id LIMIT 1").fetchone()
        earlier: Any = SimpleNamespace(window_start=TODAY.start, page_id=row[0])
        held = pages.lock_holders(connection, [earlier])
        assert held == {row[0]}
        connection.execute(
            b"INSERT INTO pages (window_start, source, request_id, attempt, fence, kind, url, final_url, outcome,"
            b" status, requested_at, fetched_at, warc_file, warc_offset, warc_length, warc_date, payload_digest,"
            b" body_bytes, revisit_of, revisit_window) SELECT %s, source, request_id, attempt, fence, kind, url,"
            b" final_url, 'not_modified', 304, requested_at, fetched_at, 'x', 0, 1, warc_date, payload_digest, 0,"
            b" page_id,"
            b" window_start FROM pages WHERE page_id = %s", [AFTER.start, row[0]],
        )  # fmt: skip
        late.start()
        late.join(1)
        assert late.is_alive(), "it waits for the commit"
    late.join(20)
    assert (done[0].pages, done[0].needed) == (60, 1), "the file with the listings stays"


def test_files_that_no_row_needs_are_swept_and_others_left(hands: Hands) -> None:
    """What a killed run left; not what another program put there, nor what a worker has just begun."""
    hands.whole(MONTH)
    folder = hands.folder / "shop" / TODAY.key
    left, foreign = folder / "20260101T000000.000000Z-1-0123abcd.warc.gz", folder / "theirs.warc.gz"
    fresh = folder / f"{after(TODAY):%Y%m%dT%H%M%S.%f}Z-1-0123abcd.warc.gz"
    for file in (left, foreign, fresh):
        file.write_bytes(b"")
    assert discard(hands, after(TODAY), is_dry=True).files == 3
    assert left.exists()
    assert discard(hands, after(TODAY)).files == 3
    assert sorted(folder.iterdir()) == sorted([foreign, fresh])


KILLED = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
from collector_assets import retain
from collector_assets.archive import LocalArchive
from collector_assets.database import Database
from collector_tests.collect.test_retain import MONTH

class Dying(LocalArchive):
    left = int(sys.argv[4])

    def discard(self, file):
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        super().discard(file)

with Database(sys.argv[1]) as database:
    retain.run([MONTH], database, Dying(Path(sys.argv[2])), is_dry=False, now=datetime.fromisoformat(sys.argv[3]))
"""


@pytest.mark.parametrize("files", [0, 1])
def test_killed_in_the_middle_it_leaves_files_that_nothing_needs(hands: Hands, dsn: str, files: int) -> None:
    """Rule 10: kill -9 between the rows and the files, and between two files; the next run ends it.

    Mutation: remove the files before the rows.
    """
    hands.whole(MONTH)
    hands.publish(MONTH)
    folder = hands.folder / "shop" / TODAY.key
    (folder / "20260101T000000.000000Z-1-0123abcd.warc.gz").write_bytes(b"")
    there, before = len(hands.archive.files()), hands.rows(LATEST)
    command = [sys.executable, "-c", KILLED, dsn, str(hands.folder), after(TODAY).isoformat(), str(files)]
    killed = subprocess.run(command, cwd=ROOT, check=False, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert killed.returncode == -signal.SIGKILL
    found = audit.run(hands.archive, database=hands.database)
    assert (len(hands.archive.files()), found.rows) == (there - files, 0)
    assert found.problems == []
    assert discard(hands, after(TODAY)).files == there - files
    assert (hands.archive.files(), hands.rows(LATEST)) == ([], before)


# --- Rejects and history ---------------------------------------------------------------------------------------------


def test_old_rejects_go(hands: Hands) -> None:
    hands.whole(MONTH)
    hands.do(
        "INSERT INTO rejects (window_start, source, extractor_version, record_type, request_id, page_id, ordinal,"
        " reasons, data, collected_at) SELECT window_start, source, '1', 'record', request_id, page_id, 1, '[]', '{}',"
        " fetched_at FROM pages"
    )
    source = replace(QUICK, retention=Retention(rejects=days(30)))
    assert discard(hands, TODAY.end, source).rejects == 0
    assert discard(hands, after(TODAY), source, is_dry=True).rejects == 63
    assert (discard(hands, after(TODAY), source).rejects, hands.column("SELECT count(*) FROM rejects")) == (63, [0])


@pytest.mark.parametrize("values", ["aaaa", "abab", "aabb", "abaa", "abca", "abba"])
def test_history_keeps_what_latest_stands_on(hands: Hands, values: str, published: Callable[..., None]) -> None:
    """Rule 17: publishing again, whichever window, ends in the same `latest`."""
    published(values)
    before, source = hands.rows(LATEST), replace(QUICK, retention=Retention(history=days(30)))
    windows = [day(TODAY.start + timedelta(days=n)) for n in range(len(values))]
    planned = discard(hands, after(windows[-1]), source, is_dry=True).observations
    assert discard(hands, after(windows[-1]), source).observations == planned
    for window in windows:
        hands.publish(QUICK, window)
    assert hands.rows(LATEST) == before
    assert hands.column("SELECT count(*) FROM observations")[0] == len(values) - planned <= 4


@pytest.fixture
def published(hands: Hands) -> Callable[..., None]:
    """Windows, a day each, with one entity that has these values, published."""

    def publish(values: str) -> None:
        for n, value in enumerate(values):
            window = day(TODAY.start + timedelta(days=n))
            hands.open(QUICK, window)
            hands.do("UPDATE windows SET counted_version = '1' WHERE window_start = %s", window.start)
            hands.do(
                "INSERT INTO verdicts (source, window_start, extractor_version, passed, findings, counts)"
                " VALUES ('shop', %s, '1', true, '[]', '{}')", window.start
            )  # fmt: skip
            hands.do(
                "INSERT INTO observations (window_start, source, record_type, entity, extractor_version, request_id,"
                " page_id, data, data_digest, collected_at) VALUES (%s, 'shop', 'record', 'x', '1', 1, %s,"
                " jsonb_build_object('upc', %s::text), %s::bytea, %s)",
                window.start, n, value, value.encode(), window.start + timedelta(hours=9),
            )  # fmt: skip
            hands.publish(QUICK, window)

    return publish
