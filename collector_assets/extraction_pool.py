"""Extraction in all cores: this process reads, and helpers beside it, one per further core.

A helper is a fresh interpreter (never a fork of a process that has threads and connections) that loads one source by
its locator, is told about pages as JSON, reads their bytes itself, and answers with COPY lines. It goes when its
parent goes. One that dies costs its batch a second try, in a new helper; a second death is an error that names pages.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection, Pipe
from typing import Final

from collector_assets.errors import Unavailable
from collector_assets.extraction import Extraction, pages_to_json
from collector_assets.pages import StoredPage
from collector_assets.staging import Piece
from collector_assets.window import Window

PIECES_IN_FLIGHT: Final = 4
"""Per helper; what bounds memory when the database is slower than extraction."""
DEATHS: Final = 2
"""Of helpers on one batch before it is an error."""
STOP_S: Final = 5.0
PARENT_CHECK_S: Final = 0.5
HELPER: Final = "collector_assets.extraction_helper"
"""The child's module."""
ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1"}
"""A helper is one per core; OpenBLAS (numpy) would start a thread per core in each, which spins for 0.1 s."""

ROWS, RAW, PAGES, END, FAILED = b"r", b"w", b"p", b"e", b"f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a helper is told first."""

    locator: str
    """`registry.load_one` finds the source by it."""
    archive: str
    """`open_archive` opens it there."""
    window: Window

    def to_json(self) -> bytes:
        """For the pipe: nothing is pickled."""
        start, end = self.window.start.isoformat(), self.window.end.isoformat()
        told = {"locator": self.locator, "archive": self.archive, "key": self.window.key, "start": start, "end": end}
        return json.dumps(told).encode()

    @classmethod
    def from_json(cls, told: bytes) -> Job:
        """The inverse of `to_json`."""
        values = json.loads(told)
        start, end = (datetime.fromisoformat(values[name]) for name in ("start", "end"))
        return cls(
            locator=values["locator"],
            archive=values["archive"],
            window=Window(key=values["key"], start=start, end=end),
        )


@dataclass(frozen=True, slots=True)
class Discarded:
    """Pages whose pieces so far must be forgotten: they are read again."""

    page_ids: tuple[int, ...]


class _Batches:
    """One iterator for several threads; while they read, a thread of its own fetches what is next."""

    def __init__(self, batches: Iterator[Sequence[StoredPage]]) -> None:
        self._batches, self._lock = batches, threading.Lock()
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="extraction-batches")
        self._next = self._ahead.submit(next, batches, None)

    def take(self) -> Sequence[StoredPage] | None:
        with self._lock:
            batch = self._next.result()
            if batch is not None:
                self._next = self._ahead.submit(next, self._batches, None)
            return batch

    def close(self) -> None:
        """Fetch no more."""
        self._ahead.shutdown(cancel_futures=True)


class Helpers:
    """Helpers that may be started before there is anything to read: each needs a second until it is ready."""

    def __init__(self, job: Job, number: int) -> None:
        self.job = job
        self.each = [_Helper() for _ in range(number)]
        self.is_started = False

    def start(self) -> None:
        """Start all; they load the source at once and wait for pages."""
        for helper in self.each:
            helper.start(self.job)
        self.is_started = True

    def stop(self) -> None:
        """End all; twice is fine."""
        for helper in self.each:
            helper.end()


def read_all(
    batches: Iterator[Sequence[StoredPage]],
    *,
    here: Extraction,
    helpers: Helpers | None = None,
    is_worth_helpers: Callable[[], bool] = lambda: True,
) -> Iterator[Piece | Discarded]:
    """Read every batch, here and in helpers too: from the start if they are started, else from when it is worth them.

    Pieces of one reader come in order. The helpers are ended.
    """
    shared, pool = _Batches(batches), None
    try:
        while (batch := shared.take()) is not None:
            if helpers and helpers.each and pool is None and (helpers.is_started or is_worth_helpers()):
                pool = _Pool(helpers, shared)
            for piece in here.read(batch):
                yield piece
                yield from pool.ready() if pool else ()
        yield from pool.rest() if pool else ()
    finally:
        if pool:
            pool.stop()
        elif helpers:
            helpers.stop()
        shared.close()


class _Pool:
    """A thread per helper drives it; their pieces meet in one bounded queue."""

    def __init__(self, helpers: Helpers, batches: _Batches) -> None:
        self._job, self._helpers, number = helpers.job, helpers.each, len(helpers.each)
        self._pieces: queue.Queue[Piece | Discarded | BaseException | None] = queue.Queue(PIECES_IN_FLIGHT * number)
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._drive, args=(helper, batches), daemon=True, name="extraction-helper")
            for helper in self._helpers
        ]
        self._working = number
        for thread in self._threads:
            thread.start()

    def ready(self) -> Iterator[Piece | Discarded]:
        """What is there now."""
        with contextlib.suppress(queue.Empty):
            while self._working:
                yield from self._take(self._pieces.get_nowait())

    def rest(self) -> Iterator[Piece | Discarded]:
        """Everything until the last helper is done."""
        while self._working:
            yield from self._take(self._pieces.get())

    def stop(self) -> None:
        """End every helper; twice is fine."""
        self._stopping.set()
        for helper in self._helpers:
            helper.end()
        for thread in self._threads:
            thread.join(STOP_S)

    def _take(self, item: Piece | Discarded | BaseException | None) -> Iterator[Piece | Discarded]:
        match item:
            case None:
                self._working -= 1
            case BaseException():
                raise item
            case _:
                yield item

    def _drive(self, helper: _Helper, batches: _Batches) -> None:
        try:
            while not self._stopping.is_set() and (batch := batches.take()) is not None:
                self._read(helper, batch)
        except BaseException as error:  # noqa: BLE001  raised again where the pieces are taken
            self._put(error)
        finally:
            helper.end()
            self._put(None)

    def _read(self, helper: _Helper, batch: Sequence[StoredPage]) -> None:
        for death in range(1, DEATHS + 1):
            try:
                for piece in helper.read(self._job, batch):
                    self._put(piece)
            except (EOFError, OSError):
                code = helper.end()
                if self._stopping.is_set():
                    return
                self._put(Discarded(tuple(page.page_id for page in batch)))
                if death == DEATHS:
                    raise Unavailable(
                        f"a process that extracts died twice (last with code {code}) on the pages "
                        f"{batch[0].page_id} to {batch[-1].page_id}, from {batch[0].url} on"
                    ) from None
            else:
                return

    def _put(self, item: Piece | Discarded | BaseException | None) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(queue.Full):
                self._pieces.put(item, timeout=PARENT_CHECK_S)
                return


class _Helper:
    """One child process, started when it is first needed, or ahead."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._lock = threading.Lock()

    def read(self, job: Job, batch: Sequence[StoredPage]) -> Iterator[Piece]:
        pipe = self._pipe or self.start(job)
        pipe.send_bytes(pages_to_json(batch))
        while (answer := pipe.recv_bytes())[:1] != END:
            tag, content = answer[:1], answer[1:]
            if tag == FAILED:
                raise RuntimeError(content.decode())
            yield Piece(
                rows=content if tag == ROWS else b"",
                raw=content if tag == RAW else b"",
                pages=content if tag == PAGES else b"",
            )

    def end(self) -> int | None:
        """Kill it; its exit code, when there was one."""
        with self._lock:
            process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if pipe is not None:
            pipe.close()
        if process is None:
            return None
        process.kill()
        return process.wait(STOP_S)

    def start(self, job: Job) -> Connection:
        """Start the process and tell it its job; it gets ready by itself."""
        ours, theirs = Pipe()
        with theirs, self._lock:
            self._process = subprocess.Popen(  # noqa: S603  this interpreter, this module
                [sys.executable, "-m", HELPER, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**ONE_THREAD, **os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
            self._pipe = ours
        ours.send_bytes(job.to_json())
        return ours
