"""Rules 10 and 12: a process killed anywhere between a response and its commit leaves no row without its bytes."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from collector_assets.archive import LocalArchive
from collector_assets.database import Database
from collector_assets.pages import StoredPage, for_reading
from collector_assets.spool import sha256
from collector_tests.end_to_end.archive_driver import BATCH, LEASE, SOURCE, Plan
from collector_tests.fixtures.frontier import START, Work, open_work, requests

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A window with requests, an archive, and drivers to be killed."""

    work: Work
    dsn: str
    folder: Path

    def plan(self, name: str, **more: object) -> Plan:
        return Plan(dsn=self.dsn, archive=str(self.folder), worker=name, **more)  # pyright: ignore[reportArgumentType]

    @contextlib.contextmanager
    def driver(self, plan: Plan) -> Iterator[subprocess.Popen[str]]:
        """A running driver; killed at the end of the block if it still runs."""
        command = [sys.executable, "-m", "collector_tests.end_to_end.archive_driver", plan.text()]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def finish(self) -> None:
        """Let the leases of the killed run out, and one more driver do what is left."""
        deadline = time.monotonic() + 60
        while self.work.counts().to_fetch and time.monotonic() < deadline:
            time.sleep(LEASE.total_seconds() / 2)
            self.work.take_back()
            with self.driver(self.plan("last")) as process:
                _, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors

    def pages(self) -> list[StoredPage]:
        """Every page row; each is read, and its bytes are the ones that were archived."""
        with self.work.database.transaction() as connection:
            rows = for_reading(connection, source=SOURCE.name, window_start=START, kinds=["detail"], limit=100_000)
        archive = LocalArchive(self.folder)
        for row in rows:
            response = archive.read(row.location)  # raises BrokenRecord for a row without its bytes
            assert sha256(response.body) == row.location.payload_digest
        return rows

    def archived(self) -> int:
        """Whole response records in the archive, by an independent reader; torn tails end their file."""
        found = 0
        for file in self.folder.rglob("*.warc.gz"):
            with file.open("rb") as stream, contextlib.suppress(ArchiveLoadFailed, EOFError):
                for record in ArchiveIterator(stream):
                    body = record.content_stream().read()
                    if record.rec_type == "response":
                        found += len(body) == int(record.http_headers.get_header("Content-Length"))
        return found


@pytest.fixture
def scene(database: Database, dsn: str, tmp_path: Path) -> Scene:
    return Scene(work=open_work(database, source=SOURCE.name), dsn=dsn, folder=tmp_path / "archive")


def test_killed_between_append_and_commit_leaves_only_an_unreferenced_record(scene: Scene) -> None:
    """Rule 10: bytes first. The other order would have left rows that point at nothing."""
    # Mutation: in Depositor.store append after the transaction (places from a dry run) -> rows and no bytes.
    scene.work.add(requests(BATCH))
    with scene.driver(scene.plan("killed", stop_before_commit=True)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "durable\n"
        process.send_signal(signal.SIGKILL)
    assert scene.pages() == []
    assert scene.archived() == BATCH
    assert scene.work.counts().fetched == 0
    scene.finish()
    assert len(scene.pages()) == BATCH
    assert scene.archived() == 2 * BATCH


@pytest.mark.parametrize("at", [100, 700, 30_000, 150_000])
def test_killed_in_the_middle_of_a_write_leaves_no_row_and_its_tail_is_left_alone(scene: Scene, at: int) -> None:
    """Rule 10: the kernel writes `at` bytes of the batch and ends the process there."""
    # Mutation: one name per window ("all.warc.gz") and no O_EXCL in _new_file -> the torn file grows.
    scene.work.add(requests(BATCH))
    with scene.driver(scene.plan("torn", die_at_bytes=at)) as process:
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGXFSZ
    [torn] = scene.folder.rglob("*.warc.gz")
    left = torn.read_bytes()
    assert len(left) == at
    assert scene.pages() == []
    scene.finish()
    pages = scene.pages()
    assert len(pages) == BATCH
    assert torn.read_bytes() == left
    assert torn.relative_to(scene.folder).as_posix() not in {page.location.file for page in pages}


def kill_at_random(scene: Scene, *, kills: int, seed: int) -> None:
    """Kill drivers at random moments until `kills` have died while storing; then finish and compare."""
    chance, died = random.Random(seed), 0  # noqa: S311
    scene.work.add(requests(kills * 8 * BATCH), max_attempts=100)
    while died < kills and scene.work.counts().to_fetch:
        with scene.driver(scene.plan(f"killed-{died}", body_bytes=200_000)) as process:
            assert process.stdout is not None
            process.stdout.readline()  # it stores: from here on it may die anywhere
            time.sleep(chance.uniform(0, 0.1))
            process.kill()
        died += process.returncode == -signal.SIGKILL
        scene.pages()
        scene.work.take_back()
    assert died
    scene.finish()
    counts, pages = scene.work.counts(), scene.pages()
    assert len(pages) == counts.planned == counts.fetched
    assert len({page.request_id for page in pages}) == len(pages)
    assert scene.archived() >= len(pages)


def test_killed_at_any_moment_no_row_is_without_its_bytes(scene: Scene) -> None:
    """Rules 10 and 12: what was not committed is collected again, and every row has its bytes at every moment."""
    kill_at_random(scene, kills=3, seed=1)


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_any_moment_many_times(scene: Scene, seed: int) -> None:
    """Rules 10 and 12, the long variant."""
    kill_at_random(scene, kills=10, seed=seed)
