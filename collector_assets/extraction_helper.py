"""The child of `extraction_pool`: loads one source, is told about pages as JSON, answers with COPY lines.

Loading makes half a million objects and no garbage, so nothing looks for any until it is done: a tenth of the start.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":  # whoever only imports this keeps the collector
    gc.disable()

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection

from collector_assets import garbage, registry
from collector_assets.archive import open_archive
from collector_assets.extraction import Extraction, pages_from_json
from collector_assets.extraction_pool import END, FAILED, PAGES, PARENT_CHECK_S, RAW, ROWS, Job
from collector_assets.staging import Piece


def main(descriptor: int, parent: int) -> None:
    """Read what the pipe at `descriptor` tells of, until it ends or the process `parent` does."""
    _go_when_parent_goes(parent)
    with (
        contextlib.ExitStack() as away,
        Connection(descriptor) as pipe,
        contextlib.suppress(EOFError, BrokenPipeError),
    ):
        job, extraction = Job.from_json(pipe.recv_bytes()), None
        with contextlib.suppress(Exception):  # started ahead; what is wrong is told when there is somebody to hear it
            extraction = _ready(job)
        gc.enable()
        away.enter_context(garbage.collected_rarely())
        while True:
            batch = pages_from_json(pipe.recv_bytes())
            try:
                extraction = extraction or _ready(job)
                for piece in extraction.read(batch):
                    _send(pipe, piece)
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001  told to the parent, which fails with it
                pipe.send_bytes(FAILED + f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
            pipe.send_bytes(END)


def _ready(job: Job) -> Extraction:
    """The extraction with everything loaded that the first page would have to wait for."""
    source = registry.load_one(job.locator)
    extraction = Extraction(source=source, archive=open_archive(job.archive), window=job.window)
    extraction.warm()
    return extraction


def _send(pipe: Connection, piece: Piece) -> None:
    for tag, content in ((ROWS, piece.rows), (RAW, piece.raw), (PAGES, piece.pages)):
        if content:
            pipe.send_bytes(tag + content)


def _go_when_parent_goes(parent: int) -> None:
    """Killed parents close no pools: Linux tells us, elsewhere we look."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: also in the middle of a regular expression
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it went before we could ask
        os._exit(1)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_S)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
