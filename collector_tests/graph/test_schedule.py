"""Which windows a tick starts (rule 22): through `evaluate_tick`, with a recorded instance and a real database."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from collector_assets import discover
from collector_assets.contract import Daily, Hourly, Source, replace
from collector_assets.errors import DatabaseUnreachable
from collector_assets.graph import automation, names
from collector_assets.graph.factory import build_source
from collector_assets.graph.resources import Installation
from collector_assets.sources.shop import SHOP
from collector_assets.window import Window
from collector_tests.graph.conftest import made

AS_IT_IS = SHOP
BY_DAY = replace(SHOP, start_urls=("http://shop.localhost:8765/on/{window.start:%Y-%m-%d}/",))
TICK = datetime(2026, 3, 10, tzinfo=UTC)
STATUS = dg.DagsterRunStatus


@pytest.fixture
def recorded() -> Iterator[dg.DagsterInstance]:
    """Schedules want an instance that another process could open."""
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture
def stores(dsn: str, tmp_path: Path) -> Iterator[Installation]:
    installation = made(dsn, tmp_path)
    yield installation
    installation.close()


def tick(
    source: Source, stores: Installation, instance: dg.DagsterInstance, at: datetime = TICK
) -> list[dg.RunRequest]:
    """What the source's schedule asks for at a tick."""
    repository = build_source(source, stores).get_repository_def()
    schedule = repository.get_schedule_def(names.schedule_name(source.name))
    context = dg.build_schedule_context(instance=instance, scheduled_execution_time=at, repository_def=repository)
    found = schedule.evaluate_tick(context)
    assert bool(found.run_requests) != bool(found.skip_message)
    return list(found.run_requests or ())


def keys(requests: list[dg.RunRequest]) -> list[str | None]:
    return [request.partition_key for request in requests]


def opened(source: Source, stores: Installation, key: str) -> None:
    partitions = names.partitions_of(source)
    times = partitions.time_window_for_partition_key(key)
    discover.open_window(source, Window(key=key, start=times.start, end=times.end), stores.database)


def ran(
    instance: dg.DagsterInstance, key: str, status: dg.DagsterRunStatus, source: str = "shop", **more: object
) -> None:
    tags = {"collector/source": source, "dagster/partition": key}
    instance.add_run(dg.DagsterRun(job_name="collect_shop", run_id=str(uuid.uuid4()), status=status, tags=tags, **more))  # pyright: ignore[reportArgumentType]


def test_a_tick_starts_the_window_that_begins_with_it(stores: Installation, recorded: dg.DagsterInstance) -> None:
    """Rule 22: a window's tick is its start."""
    # Mutation: keys[-2:-1] in automation.candidates (the window that has just ended)
    (request,) = tick(AS_IT_IS, stores, recorded)
    assert request.partition_key == "2026-03-10"
    assert request.tags["dagster/priority"] == "10"
    assert request.tags["collector/source"] == "shop"
    assert request.tags["collector/domain"] == "shop.localhost"


def test_starts_that_do_not_name_the_window_get_only_the_newest(
    stores: Installation, recorded: dg.DagsterInstance
) -> None:
    """Rule 22: yesterday's page cannot be fetched today, so no schedule tries."""
    # Mutation: keys[-LOOKBACK:] for every source
    opened(AS_IT_IS, stores, "2026-03-01")
    assert keys(tick(AS_IT_IS, stores, recorded)) == ["2026-03-10"]


def test_starts_that_name_the_window_get_every_missed_one_oldest_first(
    stores: Installation, recorded: dg.DagsterInstance
) -> None:
    opened(BY_DAY, stores, "2026-03-08")
    found = keys(tick(BY_DAY, stores, recorded))
    assert len(found) == automation.LOOKBACK - 1
    assert found == sorted(found)  # pyright: ignore[reportArgumentType]
    assert found[-2:] == ["2026-03-09", "2026-03-10"]
    assert "2026-03-08" not in found


def test_a_window_that_was_opened_is_not_the_schedules_any_more(
    stores: Installation, recorded: dg.DagsterInstance
) -> None:
    # Mutation: drop `key not in opened`
    opened(AS_IT_IS, stores, "2026-03-10")
    assert tick(AS_IT_IS, stores, recorded) == []


@pytest.mark.parametrize(
    "status", [STATUS.NOT_STARTED, STATUS.STARTING, STATUS.STARTED, STATUS.CANCELING, STATUS.CANCELED, STATUS.SUCCESS]
)
def test_a_window_with_a_run_gets_no_second(
    stores: Installation, recorded: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    # Mutation: may_start always true
    ran(recorded, "2026-03-10", status)
    assert tick(AS_IT_IS, stores, recorded) == []


def test_a_run_over_several_sources_counts_where_it_concerns_the_source(
    stores: Installation, recorded: dg.DagsterInstance
) -> None:
    # Mutation: names.SEVERAL left out of the filter
    ran(
        recorded,
        "2026-03-10",
        STATUS.STARTED,
        source="multi",
        asset_selection=frozenset({dg.AssetKey(["lab", "frontier"])}),
    )
    assert keys(tick(AS_IT_IS, stores, recorded)) == ["2026-03-10"]
    ran(
        recorded,
        "2026-03-10",
        STATUS.STARTED,
        source="multi",
        asset_selection=frozenset({dg.AssetKey(["shop", "frontier"])}),
    )
    assert tick(AS_IT_IS, stores, recorded) == []


def test_a_window_whose_runs_failed_early_is_tried_a_bounded_number_of_times(
    stores: Installation, recorded: dg.DagsterInstance
) -> None:
    oldest = keys(tick(BY_DAY, stores, recorded))[0]
    for attempt in range(automation.MOST_FAILED):
        request = tick(BY_DAY, stores, recorded)[0]
        assert (request.partition_key, request.run_key) == (oldest, f"{oldest}#{attempt}")
        ran(recorded, str(oldest), STATUS.FAILURE)
    assert keys(tick(BY_DAY, stores, recorded))[0] != oldest


def test_before_the_first_window_nothing_starts(stores: Installation, recorded: dg.DagsterInstance) -> None:
    later = replace(SHOP, window=Daily(start="2026-06-01"))
    assert tick(later, stores, recorded) == []


def test_an_unreachable_database_fails_the_tick_instead_of_starting_a_second_run(
    tmp_path: Path, recorded: dg.DagsterInstance
) -> None:
    """Unknown means no; the daemon tries a failed tick again."""
    gone = made("postgresql://nobody@127.0.0.1:9/none", tmp_path)
    with pytest.raises(dg.DagsterUserCodeExecutionError) as raised:
        tick(AS_IT_IS, gone, recorded)
    assert isinstance(raised.value.__cause__, DatabaseUnreachable)


def test_ticks_agree_with_windows_on_the_night_of_the_clock_change(
    stores: Installation, recorded: dg.DagsterInstance
) -> None:
    """DAG-01, DAG-03: every tick of the night starts exactly the window that begins then."""
    hourly = replace(SHOP, window=Hourly(start="2026-10-24-00:00", timezone="Europe/Berlin"))
    partitions = names.partitions_of(hourly)
    moment = datetime(2026, 10, 24, 23, tzinfo=UTC)
    found = []
    for hour in range(4):
        at = moment + timedelta(hours=hour)
        (key,) = keys(tick(hourly, stores, recorded, at.astimezone(ZoneInfo("Europe/Berlin"))))
        assert partitions.time_window_for_partition_key(str(key)).start.astimezone(UTC) == at
        found.append(key)
    assert len(set(found)) == 4


def test_the_source_says_whether_its_schedule_runs_from_the_start(stores: Installation) -> None:
    def status(source: Source) -> dg.DefaultScheduleStatus:
        return automation.window_schedule(source, stores).default_status

    assert status(SHOP) is dg.DefaultScheduleStatus.STOPPED
    assert status(replace(SHOP, schedule="on")) is dg.DefaultScheduleStatus.RUNNING
