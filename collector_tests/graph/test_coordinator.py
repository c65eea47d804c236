"""The coordinator on a recorded instance, with the code location of this package (private Dagster classes: pinned)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import in_process_test_workspace
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceRequestContext

from collector_assets.definitions import build
from collector_assets.graph.coordinator import create_pools
from collector_assets.settings import load_settings

# Dagster reads a property of its own that it has deprecated, while it makes a code location in process.
pytestmark = pytest.mark.filterwarnings("ignore:.*environment_vars:DeprecationWarning")

LIMIT = 4
SETTINGS = {
    "run_coordinator": {
        "module": "collector_assets.graph.coordinator",
        "class": "StampingRunCoordinator",
        "config": {},
    },
    "concurrency": {"pools": {"granularity": "run", "default_limit": LIMIT}},
}


@pytest.fixture
def recorded() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(overrides=SETTINGS) as instance:
        yield instance


@pytest.fixture
def workspace(recorded: dg.DagsterInstance) -> Iterator[WorkspaceRequestContext]:
    origin = LoadableTargetOrigin(
        executable_path=sys.executable, module_name="collector_assets.definitions", attribute="defs",
        working_directory=str(Path(__file__).resolve().parents[2]),
    )  # fmt: skip
    with in_process_test_workspace(recorded, origin) as workspace:
        yield workspace


def submitted(
    instance: dg.DagsterInstance, workspace: WorkspaceRequestContext, assets: Sequence[Sequence[str]] = (), *,
    job: str = "__ASSET_JOB", tags: dict[str, str] | None = None,
) -> dg.DagsterRun:  # fmt: skip
    """A run as a click makes it, after it was handed to the coordinator."""
    remote = workspace.code_locations[0].get_repository("__repository__").get_full_job(job)
    keys = frozenset(dg.AssetKey(path) for path in assets) or None
    found = build(load_settings()).defs.resolve_job_def(job)
    run = instance.create_run_for_job(
        job_def=found.get_subset(asset_selection=keys) if keys else found, asset_selection=keys,
        remote_job_origin=remote.get_remote_origin(), job_code_origin=remote.get_python_origin(),
        tags={"dagster/partition": "2026-02-01", **(tags or {})},
    )  # fmt: skip
    instance.submit_run(run.run_id, workspace)
    done = instance.get_run_by_id(run.run_id)
    assert done is not None
    assert done.status is dg.DagsterRunStatus.QUEUED
    return done


def test_a_run_from_an_asset_page_is_stamped_and_has_its_pool(
    recorded: dg.DagsterInstance, workspace: WorkspaceRequestContext
) -> None:
    # Mutation: no create_pools (the first batch of runs passes a pool that nobody has seen)
    run = submitted(recorded, workspace, [["shop", "frontier"], ["shop", "raw_pages"], ["shop", "records"]])
    assert (run.tags["collector/source"], run.tags["collector/domain"]) == ("shop", "shop.localhost")
    assert {pool.name: pool.limit for pool in recorded.event_log_storage.get_pool_limits()} == {"shop.localhost": LIMIT}


def test_a_run_that_only_reads_is_not_counted_against_source_and_domain(
    recorded: dg.DagsterInstance, workspace: WorkspaceRequestContext
) -> None:
    # Mutation: `key.path[-1] in names.FETCHING` dropped
    run = submitted(recorded, workspace, [["shop", "records"], ["shop", "latest"]])
    assert not [tag for tag in run.tags if tag.startswith("collector/")]
    assert recorded.event_log_storage.get_pool_limits() == []


def test_a_run_over_sources_is_multi_and_a_backfill_comes_last(
    recorded: dg.DagsterInstance, workspace: WorkspaceRequestContext
) -> None:
    run = submitted(recorded, workspace, [["shop", "frontier"], ["lab", "frontier"]], tags={"dagster/backfill": "abc"})
    assert (run.tags["collector/source"], run.tags["collector/domain"], run.tags["dagster/priority"]) == (
        "multi",
        "multi",
        "-10",
    )


def test_a_run_of_a_whole_job_keeps_what_the_job_says(
    recorded: dg.DagsterInstance, workspace: WorkspaceRequestContext
) -> None:
    run = submitted(recorded, workspace, job="collect_lab")
    assert (run.tags["collector/source"], run.tags["collector/domain"]) == ("lab", "lab.localhost")


def test_a_limit_that_somebody_set_stays(recorded: dg.DagsterInstance) -> None:
    # Mutation: create_pools without looking which exist
    recorded.event_log_storage.set_concurrency_slots("shop.localhost", 1)
    create_pools(recorded, ["shop.localhost", "lab.localhost"])
    limits = {pool.name: pool.limit for pool in recorded.event_log_storage.get_pool_limits()}
    assert limits == {"shop.localhost": 1, "lab.localhost": LIMIT}
