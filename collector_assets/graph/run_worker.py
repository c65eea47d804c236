"""What this process is to run, if it is a run's: so that it builds the definitions of that run's sources, not of all.

Dagster loads a code location anew in the process of every run and tells it neither run nor job: 200 sources cost each
run seconds. The answer stands on the stack, in `core_execute_run`, whichever launcher started the process. That
function is private: the version is pinned, a test runs it, and where it is not found everything is built.
"""

import sys
from collections.abc import Sequence

import dagster as dg

from collector_assets.graph import names

_RUNS, _RUN = "core_execute_run", "dagster_run"


def sources_of_run() -> list[str] | None:
    """The sources that the run of this process is about; None in any other process, and where all may be meant."""
    frame = sys._getframe()  # noqa: SLF001  the documented way to one's own callers
    while frame is not None:
        run = frame.f_locals.get(_RUN) if frame.f_code.co_name == _RUNS else None
        if isinstance(run, dg.DagsterRun):
            return _sources(run)
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
