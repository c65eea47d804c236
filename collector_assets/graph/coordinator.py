"""The run coordinator of an installation: what the queue's limits look at is on every run that fetches.

Tags of assets and ops never become tags of runs, and a run started from an asset page or an asset backfill has no
job's tags either; here every run passes, however it was started. Named in `dagster.yaml`. Extends private classes of
Dagster: the version is pinned, and a test uses each of them.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import dagster as dg
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from sqlalchemy.exc import DBAPIError

from collector_assets.graph import names

BACKFILLS_EVERY_S: Final = 5


def look_for_backfills_often() -> None:
    """In the daemon's process: a backfill begins, and is called complete, when the daemon looks for it the next time.

    Dagster looks every 30 s and has no setting for it; whoever has just clicked sits there and waits.
    """
    if controller := sys.modules.get("dagster._daemon.controller"):
        controller.__dict__["DEFAULT_DAEMON_INTERVAL_SECONDS"] = BACKFILLS_EVERY_S  # read when the loop starts


look_for_backfills_often()


class StampingRunCoordinator(QueuedRunCoordinator):
    """Queues runs, with their source, domain and priority as tags, and their pools made before first use."""

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Stamp the run, then queue it."""
        run = context.dagster_run
        if missing := names.stamps(run.tags, list(_fetching(context))):
            self._instance.add_run_tags(run.run_id, missing)
        if run.run_op_concurrency:
            create_pools(self._instance, run.run_op_concurrency.all_pools or ())
        return super().submit_run(context)


def _fetching(context: SubmitRunContext) -> Iterator[Mapping[str, str]]:
    """The tags of the run's assets that send requests."""
    run, graph = context.dagster_run, context.workspace.asset_graph
    keys = run.asset_selection or graph.get_materialization_asset_keys_for_job(run.job_name)
    for key in keys:
        if graph.has(key) and key.path[-1] in names.FETCHING and names.SOURCE_TAG in (tags := graph.get(key).tags):
            yield tags


def create_pools(instance: dg.DagsterInstance, pools: Iterable[str]) -> None:
    """Make the pools that do not exist yet, with the default limit.

    The queue would let the whole first batch of runs pass a pool that it has never seen.
    """
    storage = instance.event_log_storage
    if instance.global_op_concurrency_default_limit is None:
        return
    known = {pool.name for pool in storage.get_pool_limits()}
    for pool in sorted(set(pools) - known):
        try:
            storage.initialize_concurrency_limit_to_default(pool)
        except DBAPIError:
            # Another process made it in the same moment.
            if pool not in {pool.name for pool in storage.get_pool_limits()}:
                raise
