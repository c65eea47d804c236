"""Schedules: each window is started at its start, and a missed one is caught up.

Dagster's own schedule of a partitioned job collects only the newest missed window, and its `run_key` does not
deduplicate over ticks. Here a window is started when it was never opened and has no run; going on with a window that
was opened is not the schedule's work.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import dagster as dg

from collector_assets.contract import Source
from collector_assets.graph import names
from collector_assets.graph.resources import Installation
from collector_assets.resume import pause_of
from collector_assets.status import opened_keys

LOOKBACK = 24
"""Windows that a tick looks back over: a day of hours, three weeks of days. What is older is a backfill's."""
MOST_FAILED = 3
"""Runs that may fail before a window is opened; then it takes a person."""


def window_schedule(source: Source, installation: Installation) -> dg.ScheduleDefinition:
    """One tick per window, at its start."""
    partitions = names.partitions_of(source)

    # The job by name: given the object, every run would resolve every job (500 sources: 7.8 s instead of 0.6 s).
    @dg.schedule(
        name=names.schedule_name(source.name),
        job_name=names.job_name(source.name),
        cron_schedule=source.window.cron,
        execution_timezone=source.window.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING
        if source.schedule == "on"
        else dg.DefaultScheduleStatus.STOPPED,
        description=f"Starts each window of {source.name} at its start; {_catches_up(source)}.",
    )
    def windows(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        if pause := pause_of(installation.database, source.name):
            yield dg.SkipReason(f"paused until {pause.until:%Y-%m-%d %H:%M} UTC: {pause.reason}")
            return
        keys = candidates(source, partitions, context.scheduled_execution_time)
        opened = opened_keys(installation.database, source.name, keys)
        runs = _runs_by_window(context.instance, source.name, keys)
        due = [key for key in keys if key not in opened and may_start(runs[key])]
        for key in due:
            tags = {**names.run_tags(source), names.PRIORITY_TAG: str(names.SCHEDULED)}
            yield dg.RunRequest(run_key=f"{key}#{len(runs[key])}", partition_key=key, tags=tags)
        if not due:
            yield dg.SkipReason(_why_not(keys, opened))

    return windows


def candidates(source: Source, partitions: dg.TimeWindowPartitionsDefinition, at: datetime) -> list[str]:
    """The windows that a tick may start, oldest first.

    Where the starts do not name the window only the newest: yesterday's page cannot be fetched today (rule 22).
    """
    keys = partitions.get_partition_keys(current_time=at)
    return list(keys[-LOOKBACK:] if source.is_window_named else keys[-1:])


def may_start(runs: Sequence[dg.DagsterRunStatus]) -> bool:
    """Whether a window that was never opened gets a run: none was tried, or only few and they failed.

    A run that waits or works will open it; one that was cancelled was somebody's decision.
    """
    return len(runs) < MOST_FAILED and all(status is dg.DagsterRunStatus.FAILURE for status in runs)


def _runs_by_window(
    instance: dg.DagsterInstance, source: str, keys: Sequence[str]
) -> Mapping[str, list[dg.DagsterRunStatus]]:
    """How the runs that fetch for these windows stand, however they were started."""
    found: dict[str, list[dg.DagsterRunStatus]] = defaultdict(list)
    if not keys:
        return found
    tags = {names.SOURCE_TAG: [source, names.SEVERAL], names.PARTITION_TAG: list(keys)}
    for run in instance.get_runs(dg.RunsFilter(tags=tags)):
        if run.tags[names.SOURCE_TAG] == source or any(key.path[0] == source for key in run.asset_selection or ()):
            found[run.tags[names.PARTITION_TAG]].append(run.status)
    return found


def _catches_up(source: Source) -> str:
    if source.is_window_named:
        return f"catches up with as many as {LOOKBACK} that were missed, oldest first"
    return "one that was missed is gone, since its pages show the site as it is now"


def _why_not(keys: Sequence[str], opened: set[str]) -> str:
    if not keys:
        return "the first window has not begun"
    if set(keys) <= opened:
        return f"already opened: {keys[-1]}" if len(keys) == 1 else f"all of {keys[0]} to {keys[-1]} were opened before"
    return f"each of {keys[0]} to {keys[-1]} was opened before, has a run, or failed {MOST_FAILED} times"
