"""A process that stores answers as a worker does, with nothing but the storing in it, made to be killed.

Started as `python -m collector_tests.end_to_end.archive_driver '<json of Plan>'`: claims, makes up an answer for each
request, stores the batch with the worker's own `Depositor`, and prints one line per step, until nothing can be claimed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collector_assets import frontier, windows
from collector_assets.archive import ArchiveWriter, Exchange, LocalArchive, Location
from collector_assets.contract import Kind, Source
from collector_assets.database import Database
from collector_assets.deposit import Answered, Depositor
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome
from collector_assets.page import Page
from collector_assets.request import Lease
from collector_assets.window import Daily

BATCH = 10
LEASE = timedelta(seconds=1)
HOST = "shop.localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one process does."""

    dsn: str
    archive: str
    worker: str
    body_bytes: int = 20_000
    stop_before_commit: bool = False
    """After the first batch is durable: say so and wait to be killed."""
    die_at_bytes: int = 0
    """The kernel writes this much of a file and then kills the process, without a word to Python; 0: never."""

    def text(self) -> str:
        return json.dumps(asdict(self))


class Unread:
    """A schema that nobody asks: importing pandera would take longer than a whole run of the driver."""

    columns = ("url",)
    validate = None


def extract(page: Page) -> Iterator[Mapping[str, object]]:
    """Never called here: the pages are fetched and not read."""
    yield {"url": page.url}


SOURCE = Source(
    name="crash",
    start_urls=(f"http://{HOST}:8765/",),
    kinds={"detail": Kind(extract=extract)},
    schema=Unread,
    entity="url",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
)


class HaltingWriter:
    """The real writer; it says when a batch is durable and then waits for the end of its process."""

    def __init__(self, writer: ArchiveWriter) -> None:
        self._writer = writer

    def append(self, batch: Sequence[Exchange]) -> list[Location]:
        self._writer.append(batch)
        say("durable")
        while True:
            time.sleep(60)

    def close(self) -> None:
        self._writer.close()


def say(word: str) -> None:
    print(word, flush=True)  # noqa: T201


def answer_to(lease: Lease, body_bytes: int) -> Response:
    """A good answer of bytes that do not compress, so that a write takes its time."""
    now = datetime.now(UTC)
    return Response(
        outcome=Outcome.OK, reason="", url=lease.url, final_url=lease.url, http_version="1.1", status=200,
        status_text="OK", headers=((b"Content-Type", b"application/octet-stream"),), body=os.urandom(body_bytes),
        truncated=None, request_headers=(("Host", HOST),), requested_at=now, fetched_at=now, ended_at=time.monotonic(),
        ip="127.0.0.1",
    )  # fmt: skip


def main(plan: Plan) -> None:
    """Store until nothing is left."""
    if plan.die_at_bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.die_at_bytes, plan.die_at_bytes))
    with Database(plan.dsn, application_name=plan.worker) as database:
        with database.transaction() as connection:
            window = windows.newest(connection, SOURCE.name)
        assert window is not None
        archive = LocalArchive(Path(plan.archive))
        writer: ArchiveWriter = archive.writer(SOURCE.name, window.window.key)
        if plan.stop_before_commit:
            writer = HaltingWriter(writer)
        depositor = Depositor(source=SOURCE, window=window, database=database, archive=archive, writer=writer)
        while leases := claim(database, window, plan.worker):
            depositor.store([Answered(lease=lease, answer=answer_to(lease, plan.body_bytes)) for lease in leases])
            say("committed")
        writer.close()


def claim(database: Database, window: windows.WindowRow, worker: str) -> list[Lease]:
    """The next batch."""
    with database.transaction() as connection:
        return frontier.claim(
            connection, source=SOURCE.name, window_start=window.window.start, budget_key=HOST, worker=worker,
            count=BATCH, lease=LEASE, kinds=None, lane_weights={"*": 1}, discovering=(), interleave=None,
        )  # fmt: skip


if __name__ == "__main__":
    main(Plan(**json.loads(sys.argv[1])))
