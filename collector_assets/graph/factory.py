"""A source as Dagster sees it: four assets with their checks, a job, a schedule."""

import dagster as dg

from collector_assets.contract import Source
from collector_assets.graph import assets, freshness, names
from collector_assets.graph.automation import window_schedule
from collector_assets.graph.resources import Installation


def build_source(source: Source, installation: Installation, locator: str | None = None) -> dg.Definitions:
    """Everything of one source; `locator` is how another process finds it (`registry.Loaded`).

    Raises whatever Dagster finds wrong with its windows.
    """
    stages = dg.AssetSelection.assets(*(names.asset_key(source.name, stage) for stage in names.STAGES))
    job = dg.define_asset_job(
        names.job_name(source.name),
        # Without the check `fresh`, which is not about one window: a sensor tells it.
        selection=stages - dg.AssetSelection.checks(freshness.check_key(source)) if source.freshness else stages,
        tags=names.run_tags(source),
        # One process, one run page, one place in the queue; a process per step costs 3.6 s of CPU each.
        executor_def=dg.in_process_executor,
        description=f"Collect one window of {source.name}: frontier, raw_pages, records, latest.",
    )
    return dg.Definitions(
        assets=assets.build(source, installation, locator),
        asset_checks=[freshness.check(source, installation)] if source.freshness else [],
        jobs=[job],
        schedules=[window_schedule(source, installation)],
    )
