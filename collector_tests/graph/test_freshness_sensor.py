"""The sensor `freshness` and its check: what the UI is told, and which window is asked for (rules 19, 21)."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, TickData, TickStatus
from dagster._core.test_utils import in_process_test_workspace
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._daemon.types import DaemonHeartbeat
from dagster_shared.error import SerializableErrorInfo

from collector_assets import freshness as use_case
from collector_assets import mutes
from collector_assets.causes import Cause
from collector_assets.contract import Budget, Source, hours, replace, seconds
from collector_assets.graph import freshness, names
from collector_assets.graph.dagster_facts import SCHEDULER, DagsterFacts
from collector_assets.graph.factory import build_source
from collector_assets.graph.resources import Installation
from collector_assets.sources.shop import SHOP
from collector_tests.fixtures.frontier import open_work, requests
from collector_tests.graph.conftest import made

# Dagster reads a property of its own that it has deprecated, while it makes a code location in process.
pytestmark = pytest.mark.filterwarnings("ignore:.*environment_vars:DeprecationWarning")

DAY = datetime(2026, 3, 10, tzinfo=UTC)
NOW = DAY + timedelta(hours=6)
MINUTE = timedelta(minutes=1)
LATEST = dg.AssetKey(["shop", "latest"])
STATUS = dg.DagsterRunStatus


@pytest.fixture
def recorded() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture
def stores(dsn: str, tmp_path: Path) -> Iterator[Installation]:
    installation = made(dsn, tmp_path)
    yield installation
    installation.close()


@pytest.fixture
def schedule(recorded: dg.DagsterInstance) -> Iterator[InstigatorState]:
    """The schedule of the shop, turned on as by a click; it has not ticked."""
    origin = LoadableTargetOrigin(
        executable_path=sys.executable, module_name="collector_assets.definitions", attribute="defs",
        working_directory=str(Path(__file__).resolve().parents[2]),
    )  # fmt: skip
    with in_process_test_workspace(recorded, origin) as workspace:
        repository = workspace.code_locations[0].get_repository("__repository__")
        yield recorded.start_schedule(repository.get_schedule("shop_windows"))


def ticked(
    instance: dg.DagsterInstance, state: InstigatorState, at: datetime, status: TickStatus = TickStatus.SUCCESS
) -> None:
    error = SerializableErrorInfo("boom", [], None) if status is TickStatus.FAILURE else None
    tick = TickData(
        instigator_origin_id=state.instigator_origin_id, instigator_name=state.instigator_name,
        instigator_type=InstigatorType.SCHEDULE, status=status, timestamp=at.timestamp(),
        selector_id=state.selector_id, run_ids=[], error=error,
    )  # fmt: skip
    instance.create_tick(tick)


def beaten(instance: dg.DagsterInstance, at: datetime) -> None:
    instance.add_daemon_heartbeat(DaemonHeartbeat(at.timestamp(), SCHEDULER, "daemon", []))


class Sensor:
    """The sensor of some sources, with a clock that a test moves; each tick gets the cursor of the one before."""

    def __init__(self, stores: Installation, instance: dg.DagsterInstance, sources: Sequence[Source] = (SHOP,)) -> None:
        self.now, self.cursor, self.instance = NOW, None, instance
        built = [build_source(source, stores) for source in sources]
        jobs = [job for each in built for job in each.jobs or ()]
        self.definition = freshness.sensor(sources, stores, jobs, clock=lambda: self.now)
        self.repository = dg.Definitions.merge(*built, dg.Definitions(sensors=[self.definition])).get_repository_def()

    def tick(self, *, later: timedelta = timedelta(0)) -> Any:
        self.now += later
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, repository_def=self.repository, sensor_name="freshness"
        )
        found = self.definition.evaluate_tick(context)
        self.cursor = found.cursor
        return found


def ran(instance: dg.DagsterInstance, request: dg.RunRequest, status: dg.DagsterRunStatus = STATUS.FAILURE) -> None:
    tags = {**request.tags, "dagster/partition": str(request.partition_key)}
    instance.add_run(dg.DagsterRun(job_name=str(request.job_name), run_id=str(uuid.uuid4()), status=status, tags=tags))


# --- What the UI is told ---------------------------------------------------------------------------------------------


def test_the_check_is_told_with_cause_numbers_and_what_to_do(
    stores: Installation, recorded: dg.DagsterInstance
) -> None:
    open_work(stores.database, start=DAY).add(requests(3))
    (event,) = Sensor(stores, recorded).tick().asset_events
    assert (event.asset_key, event.check_name, event.partition) == (LATEST, "fresh", None)
    assert (event.passed, event.severity) == (False, dg.AssetCheckSeverity.ERROR)
    said = {name: value.value for name, value in event.metadata.items()}
    assert said["cause"] == "backlog"
    assert said["to_fetch"] == 3
    assert "3 of 3 requests wait" in said["message"]
    assert said["what to do"]
    recorded.report_runless_asset_event(event)  # as the daemon does with the events of a tick
    key = dg.AssetCheckKey(LATEST, "fresh")
    stored = recorded.event_log_storage.get_latest_asset_check_execution_by_key([key])
    assert stored[key].event is not None


def test_the_same_is_told_once_and_again_after_hours(stores: Installation, recorded: dg.DagsterInstance) -> None:
    """Rule 21: a handful of events, not one a minute."""
    # Mutation: Told.is_news always true
    open_work(stores.database, start=DAY).add(requests(3))
    sensor = Sensor(stores, recorded)
    told = [len(sensor.tick(later=10 * MINUTE).asset_events) for _ in range(60)]
    assert sum(told) == 2
    assert told[0] == 1


def test_another_cause_is_news(stores: Installation, recorded: dg.DagsterInstance) -> None:
    sensor = Sensor(stores, recorded)
    assert [event.metadata["cause"].value for event in sensor.tick().asset_events] == ["never_collected"]
    open_work(stores.database, start=DAY).add(requests(3))
    assert [event.metadata["cause"].value for event in sensor.tick(later=MINUTE).asset_events] == ["backlog"]


def test_many_sources_are_told_over_several_ticks(stores: Installation, recorded: dg.DagsterInstance) -> None:
    # Mutation: drop `len(events) < MOST_TOLD`
    sources = [replace(SHOP, name=f"shop{number}") for number in range(freshness.MOST_TOLD + 10)]
    sensor = Sensor(stores, recorded, sources)
    assert [len(sensor.tick(later=MINUTE).asset_events) for _ in range(3)] == [freshness.MOST_TOLD, 10, 0]


def test_a_cursor_that_cannot_be_read_is_an_empty_one(stores: Installation, recorded: dg.DagsterInstance) -> None:
    for cursor in ("[1]", "no json"):
        sensor = Sensor(stores, recorded)
        sensor.cursor = cursor
        assert len(sensor.tick().asset_events) == 1


def test_the_check_can_be_executed_by_a_click(stores: Installation, recorded: dg.DagsterInstance) -> None:
    """It asks anew, is not partitioned, and no part of the job that collects a window."""
    built = build_source(SHOP, stores)
    job = built.get_repository_def().get_job("collect_shop")
    assert {node.name for node in job.nodes} == {f"shop__{stage}" for stage in names.STAGES}
    fresh = freshness.check(SHOP, stores)
    result = dg.materialize([fresh], instance=recorded, selection=dg.AssetSelection.checks(fresh))
    (evaluation,) = result.get_asset_check_evaluations()
    assert evaluation.metadata["cause"].value == "never_collected"
    assert evaluation.severity is dg.AssetCheckSeverity.WARN


def test_whoever_materializes_a_window_by_a_click_gets_the_check_too(
    installation: Installation, instance: dg.DagsterInstance
) -> None:
    """In a run of one window the check is still about no window; it knows nothing of schedules without a storage."""
    quick = replace(SHOP, budget=Budget(gap=seconds(0), slots=8))
    repository = dg.Definitions.merge(build_source(quick, installation)).get_repository_def()
    result = repository.get_job("__ASSET_JOB").execute_in_process(partition_key="2026-02-03", instance=instance)
    (fresh,) = [each for each in result.get_asset_check_evaluations() if each.check_name == "fresh"]
    assert (fresh.partition, fresh.passed) == (None, False)  # of February


def test_the_badge_has_the_promise_of_the_source(stores: Installation) -> None:
    def badge(source: Source) -> Any:
        made: list[Any] = list(build_source(source, stores).assets or ())
        (spec,) = [spec for asset in made for spec in asset.specs if spec.key == LATEST]
        return spec.freshness_policy

    assert badge(SHOP).fail_window.to_timedelta() == timedelta(hours=26)
    assert badge(replace(SHOP, freshness=None)) is None
    assert badge(replace(SHOP, freshness=timedelta.max)) is None


# --- Which window is asked for ---------------------------------------------------------------------------------------


@pytest.fixture
def down(stores: Installation, recorded: dg.DagsterInstance, schedule: InstigatorState) -> Sensor:
    """A schedule that is on and did not tick for today's window."""
    open_work(stores.database, start=DAY - timedelta(days=3))
    started = recorded.all_instigator_state(instigator_type=InstigatorType.SCHEDULE)[0]
    recorded.update_instigator_state(
        started.with_data(started.instigator_data._replace(start_timestamp=(DAY - timedelta(days=9)).timestamp()))  # pyright: ignore[reportOptionalMemberAccess]
    )
    ticked(recorded, schedule, DAY - timedelta(days=3))
    return Sensor(stores, recorded)


def test_a_missed_window_is_asked_for_once(down: Sensor, recorded: dg.DagsterInstance) -> None:
    """Rule 22: at most once per window and cause, after the schedule had its turn."""
    # Mutation: drop the look for runs with FRESH_TAG
    assert down.tick().run_requests == []
    (request,) = down.tick(later=2 * MINUTE).run_requests
    assert (request.job_name, request.partition_key) == ("collect_shop", "2026-03-10")
    assert request.tags["dagster/priority"] == "5"
    assert request.tags["collector/source"] == "shop"
    assert request.tags["collector/fresh"] == "2026-03-10 daemon_was_down"
    assert down.tick(later=MINUTE).run_requests == []
    ran(recorded, request)
    assert [len(down.tick(later=20 * MINUTE).run_requests) for _ in range(6)] == [0] * 6


def test_two_daemons_ask_once(down: Sensor, stores: Installation, recorded: dg.DagsterInstance) -> None:
    """Rule 22: at most once, whoever ticks."""
    # Mutation: drop the WHERE of ask_once
    down.tick()
    other = Sensor(stores, recorded)
    assert [len(each.tick(later=5 * MINUTE).run_requests) for each in (down, other)] == [1, 0]


def test_a_request_that_never_became_a_run_is_made_again(down: Sensor) -> None:
    down.tick()
    assert [len(down.tick(later=5 * MINUTE).run_requests) for _ in range(4)] == [1, 0, 0, 1]


@pytest.mark.parametrize("status", [STATUS.NOT_STARTED, STATUS.STARTED])
def test_a_window_that_has_a_run_is_not_asked_for(
    down: Sensor, recorded: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    # Mutation: drop `facts.is_active`
    wanted = dg.RunRequest(job_name="collect_shop", partition_key="2026-03-10", tags=names.run_tags(SHOP))
    ran(recorded, wanted, status)
    ran(recorded, wanted, STATUS.FAILURE)  # the newest, while the one before still works
    assert [len(down.tick(later=5 * MINUTE).run_requests) for _ in range(3)] == [0, 0, 0]


def test_nothing_is_asked_for_where_the_schedule_is_off(stores: Installation, recorded: dg.DagsterInstance) -> None:
    # Mutation: drop `facts.scheduling(source).is_on`
    sensor = Sensor(stores, recorded)
    assert [len(sensor.tick(later=5 * MINUTE).run_requests) for _ in range(3)] == [0, 0, 0]


def test_nothing_is_asked_for_a_paused_source(down: Sensor, stores: Installation) -> None:
    with stores.database.transaction() as connection:
        mutes.put(connection, source="shop", until=NOW + timedelta(days=1), pauses=True, reason="x", by_whom="me")
    found = down.tick()
    assert found.asset_events[0].metadata["cause"].value == "paused"
    assert down.tick(later=5 * MINUTE).run_requests == []


# --- What Dagster says -----------------------------------------------------------------------------------------------


def test_schedules_ticks_and_heartbeats_are_read(recorded: dg.DagsterInstance, schedule: InstigatorState) -> None:
    """Methods of the instance that are not documented: pinned."""
    beaten(recorded, NOW)
    seen = DagsterFacts(recorded).scheduling(SHOP)
    assert (seen.is_on, seen.last_tick_at, seen.tick_error, seen.heartbeat_at) == (True, None, None, NOW)
    assert seen.on_since is not None
    ticked(recorded, schedule, DAY)
    assert DagsterFacts(recorded).scheduling(SHOP).last_tick_at == DAY
    ticked(recorded, schedule, NOW, TickStatus.FAILURE)
    seen = DagsterFacts(recorded).scheduling(SHOP)
    assert (seen.last_tick_at, seen.tick_error) == (NOW, "boom")
    recorded.stop_schedule(schedule.instigator_origin_id, schedule.selector_id, None)
    assert DagsterFacts(recorded).scheduling(SHOP).is_on is False


def test_a_schedule_that_dagster_never_saw_is_as_the_source_says(recorded: dg.DagsterInstance) -> None:
    facts = DagsterFacts(recorded)
    assert facts.scheduling(SHOP).is_on is False
    assert facts.scheduling(replace(SHOP, schedule="on")).is_on is True


def test_the_window_that_is_running_is_due(recorded: dg.DagsterInstance) -> None:
    due = DagsterFacts(recorded).due(SHOP, NOW)
    assert due is not None
    assert (due.key, due.start, due.end) == ("2026-03-10", DAY, DAY + timedelta(days=1))
    assert DagsterFacts(recorded).due(SHOP, datetime(2020, 1, 1, tzinfo=UTC)) is None


def test_the_newest_run_of_a_window_counts_also_one_over_several_sources(recorded: dg.DagsterInstance) -> None:
    for status, source, keys in (
        (STATUS.FAILURE, "shop", None),
        (STATUS.STARTED, "multi", [["shop", "frontier"], ["lab", "frontier"]]),
        (STATUS.NOT_STARTED, "multi", [["lab", "frontier"]]),
    ):
        selection = frozenset(map(dg.AssetKey, keys)) if keys else None
        tags = {names.SOURCE_TAG: source, names.PARTITION_TAG: "2026-03-10"}
        run_id = str(uuid.uuid4())
        recorded.add_run(
            dg.DagsterRun("collect_shop", run_id=run_id, status=status, tags=tags, asset_selection=selection)
        )
    runs = DagsterFacts(recorded).runs(SHOP, ["2026-03-10", "2026-03-09"])
    assert {key: run.status for key, run in runs.items()} == {"2026-03-10": "working"}


def test_each_cause_of_the_daemon_and_the_schedule_is_told_apart(down: Sensor, stores: Installation) -> None:
    recorded, (found,) = down.instance, freshness_of(down, stores)
    assert found.judgement.cause is Cause.DAEMON_WAS_DOWN
    (state,) = recorded.all_instigator_state(instigator_type=InstigatorType.SCHEDULE)
    ticked(recorded, state, DAY, TickStatus.FAILURE)
    (found,) = freshness_of(down, stores)
    assert found.judgement.cause is Cause.SCHEDULE_FAILED
    recorded.stop_schedule(state.instigator_origin_id, state.selector_id, None)
    (found,) = freshness_of(down, stores)
    assert found.judgement.cause is Cause.SCHEDULE_OFF


def freshness_of(down: Sensor, stores: Installation) -> list[use_case.Found]:
    facts = DagsterFacts(down.instance)
    source = replace(SHOP, freshness=hours(26))
    return list(use_case.judge([source], database=stores.database, scheduler=facts, now=NOW))
