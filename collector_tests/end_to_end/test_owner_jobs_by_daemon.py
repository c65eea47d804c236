"""The owner's tools through a running Dagster, as its pages launch them: nobody needs a shell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from collector_assets.demo import DemoSite
from collector_assets.demo.catalogue import book
from collector_tests.fixtures.dagster_dev import LOCATION, Dev

KEY = "2026-03-05"
ASSETS = [["shop", stage] for stage in ("frontier", "raw_pages", "records", "latest")]
UPC = book(7, seed="demo", edition=1).upc


def launched(dev: Dev, job: str, config: Mapping[str, Any]) -> str:
    """What the button of a launchpad does; the run's id."""
    found = dev.ask(
        "mutation($wish: ExecutionParams!) { launchPipelineExecution(executionParams: $wish) { __typename"
        " ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }"
        " ... on RunConfigValidationInvalid { errors { message } } } }",
        wish={
            "selector": {**LOCATION, "pipelineName": job}, "mode": "default",
            "runConfigData": {"ops": {job: {"config": dict(config)}}},
        },
    )["launchPipelineExecution"]  # fmt: skip
    assert found["__typename"] == "LaunchRunSuccess", found
    return found["run"]["runId"]


def output_of(dev: Dev, run: str) -> dict[str, Any]:
    """What the run's page shows beside its one output: texts and numbers."""
    events = dev.ask(
        "query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events { __typename"
        " ... on ExecutionStepOutputEvent { metadataEntries { label"
        " ... on TextMetadataEntry { text } ... on IntMetadataEntry { intValue }"
        " ... on BoolMetadataEntry { boolValue } } } } } } }",
        id=run,
    )["logsForRun"]["events"]
    (entries,) = [event["metadataEntries"] for event in events if event["__typename"] == "ExecutionStepOutputEvent"]
    return {
        entry["label"]: next((entry[name] for name in ("text", "intValue", "boolValue") if name in entry), None)
        for entry in entries
    }


@pytest.mark.timeout(400)
def test_a_page_is_recollected_from_the_launchpad(dagster_dev: Dev, site: DemoSite) -> None:
    """Rule 15: the job queues and ends beside everything else; the partition then sends one request."""
    assert dagster_dev.ended(dagster_dev.launch(ASSETS, KEY), 240)["status"] == "SUCCESS"
    sent = len(site.arrivals(host="shop.localhost"))
    config = {"source": "shop", "window": KEY, "entities": [UPC], "reason": "corrected today", "by": "ada"}

    dry = launched(dagster_dev, "recollect", config)
    assert dagster_dev.ended(dry)["status"] == "SUCCESS"
    assert output_of(dagster_dev, dry)["dry_run"] is True
    run = dagster_dev.ended(launched(dagster_dev, "recollect", config | {"dry_run": False}))
    assert (run["status"], run["tags"]["collector/source"]) == ("SUCCESS", "shop")
    said = output_of(dagster_dev, run["runId"])
    assert (said["requests"], said["partition"]) == (1, KEY)
    assert len(site.arrivals(host="shop.localhost")) == sent

    assert dagster_dev.ended(dagster_dev.launch(ASSETS[1:], KEY), 240)["status"] == "SUCCESS"
    assert len(site.arrivals(host="shop.localhost")) == sent + 1
