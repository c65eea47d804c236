"""The process of a run, and the code server that started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import dagster as dg
import pytest

from collector_assets.graph import run_worker

SPAWN = multiprocessing.get_context("spawn")
INTERRUPTED = 7


def core_execute_run(dagster_run: dg.DagsterRun) -> None:
    """Stands where Dagster's function of this name stands: what is loaded below it is loaded for that run."""
    assert dagster_run.job_name
    run_worker.end_with_server()


def a_process(told: Connection, *, is_run: bool) -> None:
    """Ends when it is interrupted, or after 30 s."""
    if is_run:
        core_execute_run(dg.DagsterRun(job_name="collect_shop"))
    else:
        run_worker.end_with_server()
    told.send(os.getpid())
    ends_at = time.monotonic() + 30
    try:
        while time.monotonic() < ends_at:  # a signal right before a sleep would be heard after it
            time.sleep(0.05)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)


def a_server(told: Connection, *, is_run: bool) -> None:
    """Starts the process, as Dagster's code server does."""
    process = SPAWN.Process(target=a_process, args=(told,), kwargs={"is_run": is_run})
    process.start()
    process.join()


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("is_run", [True, False], ids=["of a run", "of something else"])
def test_the_process_of_a_run_ends_with_its_code_server(*, is_run: bool) -> None:
    """A run whose server was killed is called failed: it must not go on and succeed after that."""
    # Mutation: run_worker._interrupt_after without os.kill
    here, there = SPAWN.Pipe(duplex=False)
    server = SPAWN.Process(target=a_server, args=(there,), kwargs={"is_run": is_run})
    server.start()
    assert here.poll(60)
    pid = here.recv()
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    server.join(10)
    deadline = time.monotonic() + (20 if is_run else 1.5)
    while is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_there(pid) is not is_run
    if not is_run:
        os.kill(pid, signal.SIGKILL)
