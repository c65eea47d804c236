"""What Dagster knows about a source's windows: its calendar, its schedule, its runs. Read only.

The tables of schedules and daemons have no public reader: `all_instigator_state`, `get_ticks` and
`get_daemon_heartbeats` are methods of the instance that its own pages use. `graph/test_dagster_facts.py` holds them.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, InstigatorTick, ScheduleInstigatorData, TickStatus

from collector_assets.causes import Run, Scheduling, Span
from collector_assets.contract import Source
from collector_assets.graph import names
from collector_assets.window import utc

SCHEDULER = "SCHEDULER"
"""The daemon that evaluates schedules."""
MOST_RUNS = 20
"""Runs that are looked at for two windows; more are repetitions."""
MOST_ERROR = 300

STATUS = dg.DagsterRunStatus
WAITING = frozenset({STATUS.QUEUED, STATUS.NOT_STARTED, STATUS.MANAGED})
WORKING = frozenset({STATUS.STARTING, STATUS.STARTED, STATUS.CANCELING})
ACTIVE = WAITING | WORKING


class DagsterFacts:
    """One reading of an instance: made for one tick, so that many sources cost few queries."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance

    def due(self, source: Source, now: datetime) -> Span | None:
        """The window that is running at this moment."""
        partitions = names.partitions_of(source)
        with dg.partition_loading_context(effective_dt=now):
            key = partitions.get_last_partition_key()
        if key is None:
            return None
        times = partitions.time_window_for_partition_key(key)
        return Span(key=key, start=utc(times.start), end=utc(times.end))

    def scheduling(self, source: Source) -> Scheduling:
        """The state of the source's schedule; one that Dagster has not seen yet is as the source says."""
        name = names.schedule_name(source.name)
        state = self._schedules.get(name)
        if state is None:
            return Scheduling(is_on=source.schedule == "on", name=name, heartbeat_at=self._heartbeat_at)
        tick = self._last_tick(state)
        return Scheduling(
            is_on=state.is_running,
            name=name,
            on_since=_started(state),
            last_tick_at=_moment(tick.timestamp) if tick else None,
            tick_error=_tick_error(tick),
            heartbeat_at=self._heartbeat_at,
        )

    def runs(self, source: Source, window_keys: Sequence[str]) -> Mapping[str, Run]:
        """The newest run that fetches for each of these windows, however it was started."""
        if not window_keys:
            return {}
        found: dict[str, Run] = {}
        tags = {names.SOURCE_TAG: [source.name, names.SEVERAL], names.PARTITION_TAG: list(window_keys)}
        for record in self._instance.get_run_records(dg.RunsFilter(tags=tags), limit=MOST_RUNS):
            run = record.dagster_run
            key = run.tags[names.PARTITION_TAG]
            if key not in found and concerns(run, source.name):
                found[key] = self._run(record)
        return found

    def is_active(self, source: str, window_key: str) -> bool:
        """Whether a run waits or works for the window."""
        tags = {names.SOURCE_TAG: [source, names.SEVERAL], names.PARTITION_TAG: window_key}
        runs = self._instance.get_runs(dg.RunsFilter(tags=tags, statuses=list(ACTIVE)))
        return any(concerns(run, source) for run in runs)

    @cached_property
    def _schedules(self) -> Mapping[str, InstigatorState]:
        if self._instance.schedule_storage is None:  # an instance in memory
            return {}
        states = self._instance.all_instigator_state(instigator_type=InstigatorType.SCHEDULE)
        return {state.instigator_name: state for state in states}

    @cached_property
    def _heartbeat_at(self) -> datetime | None:
        heartbeat = self._instance.get_daemon_heartbeats().get(SCHEDULER)
        return _moment(heartbeat.timestamp) if heartbeat else None

    def _last_tick(self, state: InstigatorState) -> InstigatorTick | None:
        ticks = self._instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
        return ticks[0] if ticks else None

    def _run(self, record: dg.RunRecord) -> Run:
        run = record.dagster_run
        at = _moment(record.end_time or record.start_time) or utc(record.create_timestamp)
        if run.status in WAITING:
            return Run(run_id=run.run_id, status="waiting", at=utc(record.create_timestamp))
        if run.status in WORKING:
            return Run(run_id=run.run_id, status="working", at=at)
        if run.status is STATUS.FAILURE:
            return Run(run_id=run.run_id, status="failed", at=at, error=first_error(self._instance, run.run_id).message)
        return Run(run_id=run.run_id, status="canceled" if run.status is STATUS.CANCELED else "succeeded", at=at)


class StepError:
    """Why a run failed: the stage, the kind of error and its first words."""

    def __init__(self, *, source: str = "", stage: str = "", kind: str = "", message: str = "") -> None:
        self.source, self.stage, self.kind, self.message = source, stage, kind, message


def first_error(instance: dg.DagsterInstance, run_id: str) -> StepError:
    """The first step that failed; empty when no step did (the process was lost, or never started)."""
    found = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_FAILURE, limit=1).records
    event = found[0].event_log_entry.dagster_event if found else None
    if event is None:
        return StepError()
    source, stage = names.source_and_stage(event.step_key or "")
    data = event.step_failure_data
    said = data.user_failure_data.description if data.user_failure_data else None
    error = data.error
    while error and error.cause:
        error = error.cause
    kind = (error.cls_name if error else None) or "Failure"
    message = " ".join((said or (error.message if error else "") or kind).split())
    return StepError(source=source, stage=stage, kind=kind, message=message[:MOST_ERROR])


def concerns(run: dg.DagsterRun, source: str) -> bool:
    """Whether a run is about a source; one over several says so by its assets."""
    tag = run.tags.get(names.SOURCE_TAG)
    return tag == source or (tag == names.SEVERAL and any(key.path[0] == source for key in run.asset_selection or ()))


def _started(state: InstigatorState) -> datetime | None:
    data = state.instigator_data
    return _moment(data.start_timestamp) if isinstance(data, ScheduleInstigatorData) else None


def _tick_error(tick: InstigatorTick | None) -> str | None:
    if tick is None or tick.status is not TickStatus.FAILURE:
        return None
    error = tick.error
    while error and error.cause:
        error = error.cause
    return " ".join((error.message if error else "no error was recorded").split())[:MOST_ERROR]


def _moment(timestamp: float | None) -> datetime | None:
    return datetime.fromtimestamp(timestamp, UTC) if timestamp else None
