"""`collector archive check`, as it is typed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from collector_tests.collect.conftest import QUICK
from collector_tests.end_to_end.test_bad_input import one_line
from collector_tests.end_to_end.test_check_new_export import Owner, owner
from collector_tests.fixtures.object_store import SECRETS

__all__ = ["owner"]


def test_our_archive_is_compared_with_the_database(owner: Owner) -> None:
    owner.hands.discover(QUICK)
    said = owner.types("archive", "check").stdout
    assert "1 files" in said
    assert "3 page rows compared" in said
    assert said.strip().endswith("all is well")


def test_a_file_of_another_writer_is_checked_alone(owner: Owner, tmp_path: Path) -> None:
    owner.hands.discover(QUICK)
    [file] = owner.hands.folder.rglob("*.warc.gz")
    cut = tmp_path / "cut.warc.gz"
    cut.write_bytes(file.read_bytes()[:-50])
    [found] = owner.asks("archive", "check", str(cut), exits=1)
    assert found["rows"] is None
    assert [problem["message"] for problem in found["problems"]] == [
        "the gzip member is cut: the file ends inside of it"
    ]


def test_without_the_database_the_files_are_checked(owner: Owner) -> None:
    owner.hands.discover(QUICK)
    nobody = "postgresql://nobody@127.0.0.1:9/none"
    done = owner.types("archive", "check", COLLECTOR_DSN=nobody)
    assert "only the files are checked" in done.stderr
    assert "all is well" in done.stdout


def test_a_path_that_is_not_there_is_one_line(owner: Owner) -> None:
    done = owner.types("archive", "check", "nowhere.warc.gz", exits=2)
    assert "nowhere.warc.gz: no such file or folder" in one_line(done)


def test_a_window_is_collected_into_a_bucket_and_checked_there(owner: Owner, bucket: str) -> None:
    """With nothing but `COLLECTOR_ARCHIVE` and the store's own environment; what is told shows no secret."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    owner.types("collect", "lab", today, COLLECTOR_ARCHIVE=bucket)
    checked = owner.types("archive", "check", COLLECTOR_ARCHIVE=bucket)
    assert checked.stdout.strip().endswith("all is well")
    assert "page rows compared, 0 responses unreferenced" in checked.stdout
    [whole] = owner.asks("archive", "check", f"{bucket}/lab/{today}", COLLECTOR_ARCHIVE=bucket)
    assert whole["rows"] == owner.hands.column("SELECT count(*) FROM pages")[0] > 0
    refused = owner.types("archive", "check", "s3://nobody-has-made-it/x", exits=3)
    assert not any(secret in refused.stderr + checked.stdout for secret in SECRETS)


def test_retain_counts_and_says_how_to_do_it(owner: Owner) -> None:
    """Every source without a name; no source of the demo says how long it keeps things, so nothing goes."""
    owner.hands.whole(QUICK)
    said = owner.types("retain").stdout
    assert "shop: would discard 0 pages in 0 files" in said
    assert said.strip().endswith("nothing was discarded: say --delete to do it")
    [done] = owner.asks("retain", "shop", "--delete")
    assert (done["source"], done["is_dry"], done["pages"], done["waiting"]) == ("shop", False, 0, {})
    assert "no source is called 'nobody'" in one_line(owner.types("retain", "nobody", exits=2))
