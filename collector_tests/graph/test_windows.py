"""Partition keys and windows are the same thing, also when clocks change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from collector_assets.contract import Cron, Daily, Hourly, Source, replace
from collector_assets.graph import names
from collector_assets.sources.shop import SHOP
from collector_assets.window import Schedule, Window

BERLIN = ZoneInfo("Europe/Berlin")


def source_of(window: Schedule) -> Source:
    return replace(SHOP, window=window)


def windows(window: Schedule, *, until: datetime) -> Iterator[Window]:
    """Every window up to a moment, as an asset body sees it."""
    partitions = names.partitions_of(source_of(window))
    for key in partitions.get_partition_keys(current_time=until):
        times = partitions.time_window_for_partition_key(key)
        yield Window(key=key, start=times.start, end=times.end)


def hours(window: Window) -> float:
    return (window.end.astimezone(UTC) - window.start.astimezone(UTC)) / timedelta(hours=1)


def test_days_have_23_and_25_hours_when_clocks_change() -> None:
    """DAG-01."""
    found = {
        each.key: each
        for each in windows(
            Daily(start="2026-01-01", timezone="Europe/Berlin"), until=datetime(2027, 1, 1, tzinfo=BERLIN)
        )
    }
    assert hours(found["2026-03-29"]) == 23
    assert hours(found["2026-10-25"]) == 25
    assert found["2026-03-29"].start.astimezone(UTC) == datetime(2026, 3, 28, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    "schedule",
    [Daily(start="2026-01-01", timezone="Europe/Berlin"), Hourly(start="2026-01-01-00:00", timezone="Europe/Berlin")],
)
def test_windows_of_a_year_cover_every_second_once(schedule: Schedule) -> None:
    """DAG-01."""
    year = list(windows(schedule, until=datetime(2026, 12, 31, 23, 30, tzinfo=BERLIN)))
    assert all(one.end == two.start for one, two in pairwise(year))
    assert year[0].start.astimezone(UTC) == datetime(2025, 12, 31, 23, tzinfo=UTC)
    assert year[-1].end.astimezone(UTC) == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert len({each.key for each in year}) == len(year)


def test_the_hour_that_comes_twice_has_two_keys_and_two_windows() -> None:
    found = [
        each
        for each in windows(
            Hourly(start="2026-10-25-00:00", timezone="Europe/Berlin"), until=datetime(2026, 10, 25, 12, tzinfo=BERLIN)
        )
        if "02:00" in each.key
    ]
    assert len(found) == 2
    first, second = found
    assert first.end == second.start
    assert second.start.astimezone(UTC) == datetime(2026, 10, 25, 1, tzinfo=UTC)


def test_an_hourly_tick_agrees_with_its_window_in_a_half_hour_zone() -> None:
    """DAG-03."""
    partitions = names.partitions_of(source_of(Hourly(start="2026-01-01-00:00", timezone="Asia/Kolkata")))
    tick = datetime(2026, 1, 2, 18, tzinfo=ZoneInfo("Asia/Kolkata"))
    key = partitions.get_partition_keys(current_time=tick)[-1]
    assert key == "2026-01-02-18:00"
    window = partitions.time_window_for_partition_key(key)
    assert (window.start, window.end) == (tick, tick + timedelta(hours=1))


def test_the_running_window_is_a_partition_from_its_first_moment() -> None:
    """Rule 22: a window is collectable from its start."""
    # Mutation: end_offset=0 in names.partitions_of
    partitions = names.partitions_of(source_of(Daily(start="2026-01-01", timezone="Europe/Berlin")))
    start = datetime(2026, 3, 29, tzinfo=BERLIN)
    assert partitions.get_partition_keys(current_time=start)[-1] == "2026-03-29"
    assert partitions.get_partition_keys(current_time=start - timedelta(seconds=1))[-1] == "2026-03-28"


@pytest.mark.parametrize(
    "schedule",
    [
        Daily(start="2026-01-01", timezone="Europe/Berlin"),
        Hourly(start="2026-10-24-00:00", timezone="Europe/Berlin"),
        Cron("30 */6 * * *", start="2026-10-20-00:00", timezone="Asia/Kolkata"),
    ],
)
def test_keys_are_short_and_plain(schedule: Schedule) -> None:
    """DAG-05; the `+` marks the hour that comes twice."""
    keys = [each.key for each in windows(schedule, until=datetime(2026, 10, 26, tzinfo=UTC))]
    assert all(re.fullmatch(r"[A-Za-z0-9._:+-]{1,120}", key) for key in keys)
