"""A window materialized in process, against the demo site and a real Postgres."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dagster as dg

from collector_assets.contract import Budget, Expect, Page, Source, hours, replace, seconds
from collector_assets.demo import DemoSite
from collector_assets.graph import names
from collector_assets.graph.factory import build_source
from collector_assets.graph.resources import Installation
from collector_assets.sources.shop import SHOP

KEY = "2026-02-03"
QUICK = replace(SHOP, budget=Budget(gap=seconds(0), slots=8))


def collect(
    source: Source, installation: Installation, instance: dg.DagsterInstance, *stages: str, key: str = KEY
) -> dg.ExecuteInProcessResult:
    """Materialize stages (all by default) of one window; failures are results."""
    definitions = build_source(source, installation)
    return dg.materialize(
        list(definitions.assets or ()),  # pyright: ignore[reportArgumentType]
        selection=[names.asset_key(source.name, stage) for stage in stages or names.STAGES],
        instance=instance,
        partition_key=key,
        raise_on_error=False,
    )


def metadata_of(result: dg.ExecuteInProcessResult, stage: str) -> dict[str, Any]:
    """What a stage's materialization says, as plain values."""
    (event,) = [
        event
        for event in result.get_asset_materialization_events()
        if event.asset_key and event.asset_key.path[-1] == stage
    ]
    return {name: value.value for name, value in event.materialization.metadata.items()}


def checks_of(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], dg.AssetCheckEvaluation]:
    return {(each.asset_key.path[-1], each.check_name): each for each in result.get_asset_check_evaluations()}


def materialized(result: dg.ExecuteInProcessResult) -> list[str]:
    return [event.asset_key.path[-1] for event in result.get_asset_materialization_events() if event.asset_key]


def is_missing(instance: dg.DagsterInstance, source: Source, stage: str, key: str = KEY) -> bool:
    return key not in instance.get_materialized_partitions(names.asset_key(source.name, stage))


def test_a_window_becomes_four_assets_with_passing_checks(
    installation: Installation, instance: dg.DagsterInstance
) -> None:
    result = collect(QUICK, installation, instance)

    assert result.success
    assert materialized(result) == list(names.STAGES)
    assert metadata_of(result, "frontier")["planned"] == 63
    pages, records, latest = (metadata_of(result, stage) for stage in names.STAGES[1:])
    assert (pages["good_pages"], pages["dagster/partition_row_count"], pages["complete"]) == (63, 63, True)
    assert (records["records"], records["rejects"], records["verdict"]) == (60, 0, "passed")
    assert (latest["dagster/row_count"], latest["inserted"]) == (60, 60)
    found = checks_of(result)
    assert len(found) == 15
    assert all(each.partition == KEY for each in found.values())
    # Collected long after its day: the one thing to say about this window.
    assert {name for name, each in found.items() if not each.passed} == {("raw_pages", "collected_in_window")}


def test_a_complete_window_again_sends_nothing_and_says_the_same(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    """Rule 1."""
    first = collect(QUICK, installation, instance)
    sent = len(site.arrivals())
    again = collect(QUICK, installation, instance)

    assert again.success
    assert len(site.arrivals()) == sent
    assert metadata_of(again, "frontier")["planned"] == metadata_of(first, "frontier")["planned"]
    assert metadata_of(again, "raw_pages")["requests_sent"] == 0
    assert metadata_of(again, "records")["new_records"] == 0
    assert metadata_of(again, "latest")["unchanged"] == 60


def test_a_window_of_sixty_pages_is_a_handful_of_small_events(
    installation: Installation, instance: dg.DagsterInstance
) -> None:
    """Rule 21, DAG-10."""
    # Mutation: context.log.info for every page, or the list of URLs in the metadata
    result = collect(QUICK, installation, instance)

    for stage in names.STAGES:
        found = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=names.asset_key("shop", stage), asset_partitions=[KEY]), limit=50
        )
        assert len(found.records) == 1
    kinds = Counter(event.event_type_value for event in result.all_events)
    assert kinds["ASSET_MATERIALIZATION"] == 4
    assert kinds["ASSET_CHECK_EVALUATION"] == 15
    assert len(instance.all_logs(result.run_id)) < 120
    for event in result.all_events:
        assert len(repr(event)) < 10_000


def test_latest_alone_after_a_failed_verdict_publishes_nothing(
    installation: Installation, instance: dg.DagsterInstance
) -> None:
    """Rule 16: however `latest` was started."""
    # Mutation: publish without _require_pass
    demanding = replace(QUICK, expect=Expect(min_records=61))
    result = collect(demanding, installation, instance)
    assert not result.success
    assert materialized(result) == ["frontier", "raw_pages", "records"]
    assert not checks_of(result)["records", "record_count_expected"].passed

    alone = collect(demanding, installation, instance, "latest")
    assert not alone.success
    assert "record_count_expected" in failure_of(alone, "latest")
    assert is_missing(instance, demanding, "latest")
    with installation.database.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM latest").fetchone() == (0,)


def test_a_redesign_stops_at_a_check_that_says_what_was_not_found_and_where(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    # Mutation: findings without pages_readable; or `problems` left out of staging.totals
    site.switch(host="shop.localhost", redesign=1)
    few = replace(QUICK, expect=Expect(min_records=0, max_error_rate=0.5))
    result = collect(few, installation, instance)

    check = checks_of(result)["records", "pages_readable"]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert check.description == "60 of 60 pages could not be read (100.0%; 50.0% is allowed)"
    problems = check.metadata["problems"]
    assert isinstance(problems, dg.TableMetadataValue)
    (problem,) = [record.data for record in problems.records]
    assert (problem["outcome"], problem["pages"]) == ("extraction_failed", 60)
    assert "article.product_page" in str(problem["reason"])
    assert str(problem["example"]).startswith("http://shop.localhost:8765/catalogue/")
    assert is_missing(instance, few, "latest")


def failure_of(result: dg.ExecuteInProcessResult, stage: str) -> str:
    (event,) = [
        event
        for event in result.all_events
        if event.is_step_failure and event.step_key and event.step_key.endswith(f"__{stage}")
    ]
    return (
        event.step_failure_data.user_failure_data.description or "" if event.step_failure_data.user_failure_data else ""
    )


def attempts_of(result: dg.ExecuteInProcessResult, stage: str) -> int:
    retries = [
        event
        for event in result.all_events
        if event.is_step_up_for_retry and event.step_key and event.step_key.endswith(f"__{stage}")
    ]
    return 1 + len(retries)


def price_is_missing(page: Page) -> list[dict[str, object]]:
    return [{"upc": page.url}]


def test_the_schema_check_blocks_latest_within_a_run(installation: Installation, instance: dg.DagsterInstance) -> None:
    # Mutation: an empty checks.BLOCKING
    broken = replace(QUICK, extract=price_is_missing)
    result = collect(broken, installation, instance)

    schema = checks_of(result)["records", "schema_holds"]
    assert not schema.passed
    assert schema.severity is dg.AssetCheckSeverity.ERROR
    assert "examples" in schema.metadata
    assert not [event for event in result.all_events if event.is_step_start and event.step_key == "shop__latest"]
    assert attempts_of(result, "records") == 1


def test_an_unfinished_window_stays_missing_and_says_until_when(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    """Rule 23: the run succeeds, what is below is skipped, the partition stays missing."""
    # Mutation: output_required=True in assets._stage
    site.misbehave("status", prefix="/catalogue/", arg="503", every=7)
    result = collect(replace(QUICK, retry_wait=hours(1), patience=seconds(1)), installation, instance)

    assert result.success
    assert materialized(result) == ["frontier"]
    assert all(is_missing(instance, SHOP, stage) for stage in ("raw_pages", "records", "latest"))
    assert [event.step_key for event in result.all_events if event.is_step_skipped] == ["shop__records", "shop__latest"]
    waiting = checks_of(result)["raw_pages", "every_request_accounted_for"]
    assert (waiting.passed, waiting.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "materialize the partition again after 20" in (waiting.description or "")
    assert "due_at" in waiting.metadata
    # What there was nothing to judge of is skipped, not failed.
    assert ("raw_pages", "window_complete") not in checks_of(result)


def test_an_unfinished_window_is_finished_later_without_repeating_anything(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    """Rule 23."""
    site.misbehave("status", prefix="/catalogue/", arg="503", every=7)
    collect(replace(QUICK, retry_wait=seconds(4), patience=seconds(0)), installation, instance)
    site.behave()
    result = collect(QUICK, installation, instance)

    assert materialized(result) == list(names.STAGES)
    assert metadata_of(result, "latest")["dagster/row_count"] == 60
    answered = Counter(arrival.path for arrival in site.arrivals() if arrival.status == 200)
    assert len(answered) == 63
    assert set(answered.values()) == {1}
