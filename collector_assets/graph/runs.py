"""Runs started by a command, in this process, recorded in the Dagster instance like any other."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import dagster as dg

from collector_assets.contract import Source
from collector_assets.errors import UnknownWindow
from collector_assets.graph import metadata, names, process_tag
from collector_assets.window import Window

INTERRUPTS = {"KeyboardInterrupt", "DagsterExecutionInterruptedError"}
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One asset check of a run."""

    stage: str
    name: str
    passed: bool
    is_error: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """How a recorded run ended."""

    run_id: str
    succeeded: bool
    materialized: tuple[str, ...]
    checks: tuple[CheckResult, ...]
    error: str
    loads: Mapping[str, int] = field(default_factory=dict)
    """What pages in a browser wanted besides their documents, by what became of it."""
    was_interrupted: bool = False
    """By a signal: what was under way was given back, and the window can go on."""

    @property
    def is_complete(self) -> bool:
        """Whether all four assets of the window were materialized."""
        return self.succeeded and set(self.materialized) == set(names.STAGES)


def newest_window(source: Source) -> str:
    """The key of the window that is running now."""
    key = names.partitions_of(source).get_last_partition_key()
    if key is None:
        raise UnknownWindow(source.name, "(newest)", f"windows begin at {source.window.start}")
    return key


def running_window(source: Source) -> Window:
    """The window that is running now."""
    key = newest_window(source)
    times = names.partitions_of(source).time_window_for_partition_key(key)
    return Window(key=key, start=times.start, end=times.end)


def require_window(source: Source, key: str) -> None:
    """UnknownWindow, with a key that would do, unless the key is one of the source's windows up to now."""
    partitions = names.partitions_of(source)
    if not partitions.has_partition_key(key):
        last = partitions.get_last_partition_key()
        raise UnknownWindow(source.name, key, f"keys look like {last!r}, from {source.window.start!r} up to now")


def collect_window(defs: dg.Definitions, source: Source, key: str) -> RunSummary:
    """Materialize the four assets of one window in this process."""
    require_window(source, key)
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    job = defs.resolve_job_def(names.job_name(source.name))
    with dg.DagsterInstance.get() as instance:
        result = job.execute_in_process(
            instance=instance, partition_key=key, tags=names.run_tags(source) | process_tag.of_this_process(),
            run_config=QUIET, raise_on_error=False,
        )  # fmt: skip
        return _summary(result)


def forget_assets(source: Source) -> None:
    """Wipe what Dagster recorded about a source's assets."""
    with dg.DagsterInstance.get() as instance:
        instance.wipe_assets([names.asset_key(source.name, stage) for stage in names.STAGES])


def _summary(result: dg.ExecuteInProcessResult) -> RunSummary:
    checks = tuple(
        CheckResult(
            stage=evaluation.asset_key.path[-1],
            name=evaluation.check_name,
            passed=evaluation.passed,
            is_error=evaluation.severity is dg.AssetCheckSeverity.ERROR,
            message=evaluation.description or "",
        )
        for evaluation in result.get_asset_check_evaluations()
    )
    events = [event for event in result.all_events if event.is_step_materialization]
    materialized = tuple(event.asset_key.path[-1] for event in events if event.asset_key)
    return RunSummary(
        run_id=result.run_id,
        succeeded=result.success,
        materialized=materialized,
        checks=checks,
        error=_first_error(result),
        loads=_loads(result),
        was_interrupted=_failed_by(result) & INTERRUPTS != set(),
    )


def _loads(result: dg.ExecuteInProcessResult) -> Counter[str]:
    found = Counter[str]()
    for event in result.all_events:
        if event.is_step_materialization:
            said = event.step_materialization_data.materialization.metadata.get(metadata.PAGE_LOADS)
            if isinstance(said, dg.JsonMetadataValue) and isinstance(said.data, dict):
                found.update({str(name): int(number) for name, number in said.data.items()})
    return found


def _failed_by(result: dg.ExecuteInProcessResult) -> set[str]:
    """The names of the errors that ended steps, as the assets' `explained` keeps them."""
    failures = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    kept = [failure.user_failure_data.metadata for failure in failures if failure.user_failure_data]
    return {str(metadata["error"].value) for metadata in kept if "error" in metadata}


def _first_error(result: dg.ExecuteInProcessResult) -> str:
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            if data.user_failure_data and data.user_failure_data.description:
                return data.user_failure_data.description
            error = data.error
            while error and error.cause:
                error = error.cause
            return error.message.strip() if error else "failed"
    return ""
