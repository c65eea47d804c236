"""What this process is to run, if it is a run's: so that it builds the definitions of that run's sources, not of all.

Dagster loads a code location anew in the process of every run and tells it neither run nor job: 200 sources cost each
run seconds. The answer stands on the stack, in `core_execute_run`, whichever launcher started the process. That
function is private: the version is pinned, a test runs it, and where it is not found everything is built.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Sequence
from multiprocessing.process import BaseProcess

import dagster as dg

from collector_assets.graph import names

_RUNS, _RUN = "core_execute_run", "dagster_run"


def sources_of_run() -> list[str] | None:
    """The sources that the run of this process is about; None in any other process, and where all may be meant."""
    run = _run_of_this_process()
    return None if run is None else _sources(run)


def end_with_server() -> None:
    """Have the run of this process interrupted when the code server that started it is gone.

    By then the run is called failed and its window resumed elsewhere: it must not succeed after that. A process that
    was not started by a code server (a command, a container of its own) is left alone.
    """
    server = multiprocessing.parent_process()
    if server is not None and _run_of_this_process() is not None:
        threading.Thread(target=_interrupt_after, args=(server,), name="ends-with-server", daemon=True).start()


def _interrupt_after(server: BaseProcess) -> None:
    server.join()
    os.kill(os.getpid(), signal.SIGINT)  # what "Terminate" sends: leases and slots go back


def _run_of_this_process() -> dg.DagsterRun | None:
    frame = sys._getframe()  # noqa: SLF001  the documented way to one's own callers
    while frame is not None:
        run = frame.f_locals.get(_RUN) if frame.f_code.co_name == _RUNS else None
        if isinstance(run, dg.DagsterRun):
            return run
        frame = frame.f_back
    return None


def _sources(run: dg.DagsterRun) -> list[str] | None:
    keys: Sequence[dg.AssetKey] = [
        *(run.asset_selection or ()), *(check.asset_key for check in run.asset_check_selection or ()),
    ]  # fmt: skip
    if keys:
        return sorted({key.path[0] for key in keys})
    prefix = names.job_name("")
    return [run.job_name.removeprefix(prefix)] if run.job_name.startswith(prefix) else None
