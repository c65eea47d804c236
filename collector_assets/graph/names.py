"""Names that several modules of the graph must agree on: stages, tags, checks, keys."""

import dagster as dg

from collector_assets.contract import Source
from collector_assets.window import Window

STAGES = ("frontier", "raw_pages", "records", "latest")
SOURCE_TAG = "collector/source"
DOMAIN_TAG = "collector/domain"
PRIORITY_TAG = "dagster/priority"


def asset_key(source: str, stage: str) -> dg.AssetKey:
    return dg.AssetKey([source, stage])


def job_name(source: str) -> str:
    return f"collect_{source}"


def schedule_name(source: str) -> str:
    return f"{source}_windows"


def run_tags(source: Source) -> dict[str, str]:
    """What the run queue's limits look at."""
    return {SOURCE_TAG: source.name, DOMAIN_TAG: source.domain}


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
