"""Names that several modules of the graph must agree on: stages, tags, keys, priorities."""

from collections.abc import Collection, Mapping

import dagster as dg

from collector_assets.contract import Source
from collector_assets.window import Window

STAGES = ("frontier", "raw_pages", "records", "latest")
FETCHING = frozenset({"frontier", "raw_pages"})
"""Stages that send requests: counted per source and domain. Re-extraction never queues behind them."""

SOURCE_TAG = "collector/source"
DOMAIN_TAG = "collector/domain"
SEVERAL = "multi"
TOOL_TAG = "collector/tool"
"""On runs of an owner's tool: which one."""
PARTITION_TAG = "dagster/partition"
PRIORITY_TAG = "dagster/priority"
SCHEDULE_TAG = "dagster/schedule_name"
BACKFILL_TAG = "dagster/backfill"
SCHEDULED, RESUME, BACKFILL = 10, 5, -10
"""Priorities in the run queue: what is due now goes before what is caught up on. Whoever clicks has 0."""


def asset_key(source: str, stage: str) -> dg.AssetKey:
    """`<source>/<stage>`."""
    return dg.AssetKey([source, stage])


def job_name(source: str) -> str:
    """The job that collects one window of a source."""
    return f"collect_{source}"


def schedule_name(source: str) -> str:
    """The schedule that starts the windows of a source."""
    return f"{source}_windows"


def run_tags(source: Source) -> dict[str, str]:
    """What the run queue's limits look at."""
    return {SOURCE_TAG: source.name, DOMAIN_TAG: source.domain}


def stamps(tags: Mapping[str, str], fetching: Collection[Mapping[str, str]]) -> dict[str, str]:
    """The tags that a run still needs, from those it has and the `run_tags` of the assets of it that fetch.

    One value per tag, because the queue's limits count values; a run over several sources is `multi`. A priority that
    somebody chose stays.
    """
    wanted = {tag: _one_of({asset[tag] for asset in fetching}) for tag in (SOURCE_TAG, DOMAIN_TAG)} if fetching else {}
    if PRIORITY_TAG not in tags and (priority := _priority(tags)):
        wanted[PRIORITY_TAG] = str(priority)
    return {tag: value for tag, value in wanted.items() if tags.get(tag) != value}


def _one_of(values: Collection[str]) -> str:
    return next(iter(values)) if len(values) == 1 else SEVERAL


def _priority(tags: Mapping[str, str]) -> int:
    if SCHEDULE_TAG in tags:
        return SCHEDULED
    return BACKFILL if BACKFILL_TAG in tags else 0


def source_and_stage(step_key: str) -> tuple[str, str]:
    """What a step of a run works on; no source where it is none of the four stages."""
    for stage in STAGES:
        if step_key.endswith(f"__{stage}"):
            return step_key.removesuffix(f"__{stage}"), stage
    return "", step_key


def partitions_of(source: Source) -> dg.TimeWindowPartitionsDefinition:
    """The source's windows; a window can be collected from its start (rule 22), so the running one is a partition."""
    schedule = source.window
    return dg.TimeWindowPartitionsDefinition(
        start=schedule.start,
        fmt=schedule.format,
        cron_schedule=schedule.cron,
        timezone=schedule.timezone,
        end_offset=1,
    )


def window_of(context: dg.AssetExecutionContext) -> Window:
    """The collection window of a run's partition."""
    times = context.partition_time_window
    return Window(key=context.partition_key, start=times.start, end=times.end)
