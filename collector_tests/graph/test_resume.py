"""The sensor `resume`: unfinished windows go on as runs (rule 23); which ones is `store/test_freshness.py`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from collector_assets import mutes, windows
from collector_assets.contract import Source, replace
from collector_assets.graph import names, resume
from collector_assets.graph.factory import build_source
from collector_assets.graph.resources import Installation
from collector_assets.sources.shop import SHOP
from collector_assets.window import Window
from collector_tests.fixtures.frontier import Work, requests
from collector_tests.graph.conftest import made

DAY = datetime(2026, 3, 10, tzinfo=UTC)
NOW = DAY + timedelta(hours=6)
NAMED = replace(SHOP, start_urls=("http://shop.localhost:8765/on/{window.start:%Y-%m-%d}/",))
STATUS = dg.DagsterRunStatus


@pytest.fixture
def stores(dsn: str, tmp_path: Path) -> Iterator[Installation]:
    installation = made(dsn, tmp_path)
    yield installation
    installation.close()


def unfinished(stores: Installation, source: Source = SHOP, start: datetime = DAY) -> Work:
    """A window with three requests to fetch."""
    window = Window(key=f"{start:%Y-%m-%d}", start=start, end=start + timedelta(days=1))
    with stores.database.transaction() as connection:
        windows.open_window(
            connection, source=source.name, window=window, capacity=100, max_requests=100,
            names_window=source.is_window_named, closes_at=window.closes_at(source.grace),
        )  # fmt: skip
    work = Work(database=stores.database, source=source.name, start=start)
    work.add(requests(3))
    return work


def tick(
    stores: Installation, instance: dg.DagsterInstance, source: Source = SHOP, now: datetime = NOW
) -> list[dg.RunRequest]:
    built = build_source(source, stores)
    sensor = resume.sensor([source], stores, list(built.jobs or ()), clock=lambda: now)
    repository = dg.Definitions.merge(built, dg.Definitions(sensors=[sensor])).get_repository_def()
    found = sensor.evaluate_tick(dg.build_sensor_context(instance=instance, repository_def=repository))
    return list(found.run_requests or ())


def ran(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, key: str = "2026-03-10", **tags: str) -> None:
    run_tags = {**names.run_tags(SHOP), names.PARTITION_TAG: key, **tags}
    instance.add_run(dg.DagsterRun("collect_shop", run_id=str(uuid.uuid4()), status=status, tags=run_tags))


def test_an_unfinished_window_becomes_a_run_between_scheduled_ones_and_backfills(
    stores: Installation, instance: dg.DagsterInstance
) -> None:
    """Rule 23."""
    unfinished(stores)
    (request,) = tick(stores, instance)
    assert (request.job_name, request.partition_key, request.run_key) == ("collect_shop", "2026-03-10", None)
    assert request.tags["collector/source"] == "shop"
    assert names.BACKFILL < int(request.tags["dagster/priority"]) < names.SCHEDULED
    assert request.tags["dagster/partition"] == "2026-03-10"
    assert tick(stores, instance) == []  # a moment later, whether it is there yet or not


@pytest.mark.parametrize("status", [STATUS.NOT_STARTED, STATUS.STARTED, STATUS.CANCELING])
def test_a_window_with_a_run_gets_no_second(
    stores: Installation, instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    """Rule 23: never two runs for one window."""
    # Mutation: drop "waiting", "working" in resume._free
    unfinished(stores)
    ran(instance, status)
    assert tick(stores, instance) == []


def test_a_run_that_was_cancelled_was_somebodys_decision(stores: Installation, instance: dg.DagsterInstance) -> None:
    # Mutation: drop "canceled"
    unfinished(stores)
    ran(instance, STATUS.FAILURE)
    ran(instance, STATUS.CANCELED)
    assert tick(stores, instance) == []
    ran(instance, STATUS.SUCCESS)
    assert len(tick(stores, instance)) == 1


def test_a_failed_run_is_no_obstacle(stores: Installation, instance: dg.DagsterInstance) -> None:
    unfinished(stores)
    ran(instance, STATUS.FAILURE)
    assert len(tick(stores, instance)) == 1


def test_of_one_source_one_window_at_a_time_oldest_first(stores: Installation, instance: dg.DagsterInstance) -> None:
    # Mutation: drop the look for runs with RESUME_TAG
    for number in (9, 8, 10):
        unfinished(stores, NAMED, DAY.replace(day=number))
    assert [request.partition_key for request in tick(stores, instance, NAMED)] == ["2026-03-08"]
    ran(instance, STATUS.STARTED, "2026-03-08", **{resume.RESUME_TAG: "true"})
    assert tick(stores, instance, NAMED, NOW + timedelta(minutes=10)) == []


def test_nothing_is_resumed_late(stores: Installation, instance: dg.DagsterInstance) -> None:
    """Rule 22: never by a sensor."""
    unfinished(stores)
    assert tick(stores, instance, now=DAY + timedelta(days=1, hours=2)) == []
    assert len(tick(stores, instance, now=DAY + timedelta(days=1, minutes=30))) == 1


def test_a_window_that_is_no_partition_any_more_is_left_alone(
    stores: Installation, instance: dg.DagsterInstance
) -> None:
    # Mutation: drop has_partition_key: Dagster refuses the whole tick
    unfinished(stores, NAMED, datetime(2020, 1, 1, tzinfo=UTC))
    assert tick(stores, instance, NAMED) == []


def test_without_work_a_tick_says_so(stores: Installation, instance: dg.DagsterInstance) -> None:
    sensor = resume.sensor([SHOP], stores, list(build_source(SHOP, stores).jobs or ()))
    found = sensor.evaluate_tick(dg.build_sensor_context(instance=instance))
    assert found.skip_message == "no unfinished window has work that is due"


def test_a_paused_source_is_started_by_nobody_but_people(stores: Installation) -> None:
    # Mutation: drop the look at pause_of in the schedule
    unfinished(stores)
    with stores.database.transaction() as connection:
        until = datetime(2099, 1, 1, tzinfo=UTC)
        mutes.put(connection, source="shop", until=until, pauses=True, reason="rebuilt", by_whom="ann")
    with dg.instance_for_test() as recorded:
        assert tick(stores, recorded) == []
        repository = build_source(SHOP, stores).get_repository_def()
        schedule = repository.get_schedule_def(names.schedule_name("shop"))
        context = dg.build_schedule_context(
            instance=recorded, scheduled_execution_time=DAY + timedelta(days=1), repository_def=repository
        )
        found = schedule.evaluate_tick(context)
    assert found.run_requests == []
    assert found.skip_message == "paused until 2099-01-01 00:00 UTC: rebuilt"
