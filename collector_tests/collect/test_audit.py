"""`collector archive check`: what our own files look like to a strict reader, and what it says of damaged ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from collector_assets import audit
from collector_assets.archive import LocalArchive
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands


def files(hands: Hands) -> list[Path]:
    return sorted(hands.folder.rglob("*.warc.gz"))


def messages(found: audit.Audit) -> list[str]:
    return [problem.message for problem in found.problems]


@pytest.fixture
def two_windows(hands: Hands) -> Hands:
    """A first window with bodies, a second one of revisits."""
    for window in (TODAY, TOMORROW):
        hands.discover(QUICK, window)
    return hands


def test_our_own_archive_is_sound_and_every_row_has_its_record(two_windows: Hands) -> None:
    """Rule 10: 0 page rows without bytes."""
    found = audit.run(two_windows.archive, database=two_windows.database)
    assert (found.problems, found.torn, found.unreferenced, found.rows) == ([], [], 0, 6)
    assert found.types == {"warcinfo": 2, "response": 3, "revisit": 3, "request": 6}
    assert (found.files, found.bytes) == (2, sum(file.stat().st_size for file in files(two_windows)))


def test_without_a_database_only_the_files_are_checked(two_windows: Hands) -> None:
    found = audit.run(two_windows.archive)
    assert (found.problems, found.rows) == ([], None)


def test_a_torn_end_that_no_row_needs_is_harmless(two_windows: Hands) -> None:
    """What a kill -9 in a write leaves."""
    first = files(two_windows)[0]
    whole = first.read_bytes()
    first.write_bytes(whole + whole[:100])
    found = audit.run(two_windows.archive, database=two_windows.database)
    assert (messages(found), [torn.offset for torn in found.torn]) == ([], [len(whole)])
    assert messages(audit.run(two_windows.archive)) == ["the gzip member is cut: the file ends inside of it"]


def test_a_file_that_is_cut_lacks_what_rows_point_at(two_windows: Hands) -> None:
    first = files(two_windows)[0]
    first.write_bytes(first.read_bytes()[:-1000])
    found = audit.run(two_windows.archive, database=two_windows.database)
    assert any("no sound record begins there" in message for message in messages(found))
    assert any("is cut" in message for message in messages(found))


def test_a_file_that_is_gone_is_told_once(two_windows: Hands) -> None:
    first = files(two_windows)[0]
    first.unlink()
    found = audit.run(two_windows.archive, database=two_windows.database)
    assert messages(found) == ["the file is not there, and 3 page rows point into it"]
    first.parent.rmdir()
    found = audit.run(two_windows.archive, database=two_windows.database)
    assert messages(found) == ["the file is not there, and 3 page rows point into it"]


def test_a_row_that_points_at_another_page_is_told(two_windows: Hands) -> None:
    elsewhere = "UPDATE pages SET final_url = 'http://shop.localhost/' WHERE page_id = (SELECT min(page_id) FROM pages)"
    two_windows.do(elsewhere)
    two_windows.do("UPDATE pages SET payload_digest = sha256('x') WHERE page_id = (SELECT max(page_id) FROM pages)")
    found = messages(audit.run(two_windows.archive, database=two_windows.database))
    assert len(found) == 2
    assert "the record is of http://shop.localhost:8765/catalogue/page-1.html" in found[0]
    assert found[1].endswith("the record has another payload digest")


def test_warc_08_a_file_compressed_anew_is_named(two_windows: Hands) -> None:
    first = files(two_windows)[0]
    first.write_bytes(gzip.compress(gzip.decompress(first.read_bytes())))
    found = messages(audit.run(two_windows.archive, database=two_windows.database))
    assert any(message.startswith("more than one record in one gzip member") for message in found)
    assert sum("no sound record begins there" in message for message in found) == 3


def test_one_window_alone(two_windows: Hands) -> None:
    found = audit.run(two_windows.archive, [f"shop/{TOMORROW.key}"], database=two_windows.database)
    assert (found.files, found.rows, found.problems) == (1, 3, [])


def test_the_same_file_twice_is_told(two_windows: Hands, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    for name in ("a.warc.gz", "b.warc.gz"):
        (copies / name).write_bytes(files(two_windows)[0].read_bytes())
    found = audit.run(LocalArchive(copies))
    assert {problem.file for problem in found.problems} == {"b.warc.gz"}
    assert all(message.startswith("not the first record <urn:uuid:") for message in messages(found))
