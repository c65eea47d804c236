"""A backfill by the real daemon: limits hold, every run says what it collects, and a second time sends nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from collector_assets.demo import DemoSite
from collector_tests.fixtures.dagster_dev import Dev

KEYS = ("2026-02-01", "2026-02-02", "2026-02-03")


@pytest.mark.timeout(400)
def test_a_backfill_of_three_windows_completes_and_a_second_one_sends_nothing(dagster_dev: Dev, site: DemoSite) -> None:
    site.switch(host="almanac.localhost", books=12)
    first = dagster_dev.backfill("collect_almanac", KEYS)
    assert dagster_dev.backfill_ended(first) == "COMPLETED_SUCCESS"

    runs = dagster_dev.runs(tags=[{"key": "dagster/backfill", "value": first}])
    assert sorted(run["tags"]["dagster/partition"] for run in runs) == list(KEYS)
    assert {run["status"] for run in runs} == {"SUCCESS"}
    assert {run["tags"]["collector/source"] for run in runs} == {"almanac"}
    assert {run["tags"]["collector/domain"] for run in runs} == {"almanac.localhost"}
    assert {run["tags"]["dagster/priority"] for run in runs} == {"-10"}
    in_order = sorted(runs, key=lambda run: run["startTime"])
    assert all(one["endTime"] <= two["startTime"] for one, two in pairwise(in_order)), "one run per source at a time"
    sent = len(site.arrivals(host="almanac.localhost"))
    assert sent == 3 * 13

    # Started from the asset graph: no job, whose tags could have come along.
    assets = [["almanac", stage] for stage in ("frontier", "raw_pages", "records", "latest")]
    second = dagster_dev.backfill_assets(assets, KEYS)
    assert dagster_dev.backfill_ended(second) == "COMPLETED_SUCCESS"
    again = dagster_dev.runs(tags=[{"key": "dagster/backfill", "value": second}])
    assert len(again) == len(KEYS)
    assert {(run["tags"].get("collector/source"), run["tags"].get("collector/domain")) for run in again} == {
        ("almanac", "almanac.localhost")
    }
    assert len(site.arrivals(host="almanac.localhost")) == sent


@pytest.mark.timeout(400)
def test_runs_say_what_they_fetch_however_they_were_started(dagster_dev: Dev, site: DemoSite) -> None:
    # Mutation: submit_run without add_run_tags
    key = "2026-02-10"
    several = dagster_dev.run(dagster_dev.launch([["shop", "frontier"], ["lab", "frontier"]], key))
    reading = dagster_dev.run(dagster_dev.launch([["shop", "records"], ["shop", "latest"]], key))
    one = dagster_dev.run(dagster_dev.launch([["lab", "raw_pages"]], key))

    assert several["tags"]["collector/source"] == several["tags"]["collector/domain"] == "multi"
    assert (one["tags"]["collector/source"], one["tags"]["collector/domain"]) == ("lab", "lab.localhost")
    assert not [tag for tag in reading["tags"] if tag.startswith("collector/")]
    # The pools were there before the first run could pass them by.
    pools = dagster_dev.ask(
        "{ instance { poolConfig { defaultPoolLimit } concurrencyLimits { concurrencyKey limit } } }"
    )["instance"]
    limits = {pool["concurrencyKey"]: pool["limit"] for pool in pools["concurrencyLimits"]}
    assert limits["lab.localhost"] == limits["shop.localhost"] == pools["poolConfig"]["defaultPoolLimit"]
    for run in (several, reading, one):
        dagster_dev.ended(run["runId"])
