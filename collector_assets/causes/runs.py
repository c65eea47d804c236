"""What the newest run of a window has to do with it."""

from __future__ import annotations

from collector_assets.causes.facts import Facts, Run
from collector_assets.causes.judgement import Cause, Judgement, stale
from collector_assets.causes.words import shown


def run_failed(facts: Facts, key: str, run: Run) -> Judgement:
    """That the window waits because its run ended badly."""
    # One that was cancelled was somebody's decision.
    again = key if run.status == "failed" else None
    said = f"window {key}: {of_run(run)}"
    return stale(
        facts, Cause.RUN_FAILED, key, said, "read the run's error, then materialize the window", collect=again,
        run=run.run_id,
    )  # fmt: skip


def of_run(run: Run | None) -> str:
    """What became of the run, for a person."""
    if run is None:
        return "no run works on it"
    what = {
        "waiting": "waits in the queue since",
        "working": "works since",
        "failed": "failed",
        "canceled": "was cancelled",
        "succeeded": "ended without finishing it",
    }[run.status]
    return f"run {run.run_id[:8]} {what} {shown(run.at)}" + (f": {run.error}" if run.error else "")
