"""The rows of collection windows (rule 22)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from collector_assets import frontier, windows
from collector_assets.database import Database
from collector_assets.errors import ContractError, UnknownWindow
from collector_assets.window import Window
from collector_tests.fixtures.frontier import NOON, START, Work, open_work, requests

DAY = timedelta(days=1)
CLOSES_AT = START + DAY + timedelta(hours=1)


def opened(database: Database, **more: Any) -> tuple[windows.WindowRow, bool]:
    values: dict[str, Any] = {
        "source": "shop",
        "window": Window(key="2026-01-29", start=START, end=START + DAY),
        "capacity": 500,
        "max_requests": 5_000,
        "names_window": False,
        "closes_at": CLOSES_AT,
    }
    with database.transaction() as connection:
        return windows.open_window(connection, **(values | more))


def find(database: Database, work: Work) -> windows.WindowRow:
    with database.transaction() as connection:
        return windows.lock(connection, work.source, work.start)


def test_window_is_new_once(database: Database):
    row, is_new = opened(database)
    assert is_new
    assert opened(database) == (row, False)


def test_window_that_exists_takes_the_limits_the_source_has_now(database: Database):
    opened(database)
    row, _ = opened(database, capacity=7, max_requests=70)
    assert (row.capacity, row.max_requests) == (7, 70)


def test_key_that_named_another_interval_is_refused(database: Database):
    opened(database)
    moved = Window(key="2026-01-29", start=START + timedelta(hours=1), end=START + DAY)
    with pytest.raises(ContractError, match="the schedule was changed"):
        opened(database, window=moved)


def test_window_is_found_by_its_key_with_its_interval(database: Database):
    row, _ = opened(database)
    with database.transaction() as connection:
        assert windows.find(connection, "shop", "2026-01-29") == row
        assert windows.find(connection, "shop", "2026-01-30") is None
    assert row.window == Window(key="2026-01-29", start=START, end=START + DAY)


def test_window_that_was_never_opened_is_unknown(database: Database):
    with database.transaction() as connection, pytest.raises(UnknownWindow, match="never opened"):
        windows.lock(connection, "shop", START)
    with database.transaction() as connection, pytest.raises(UnknownWindow, match="never opened"):
        windows.is_late(connection, "shop", START)
    with database.transaction() as connection, pytest.raises(UnknownWindow, match="never opened"):
        windows.set_published(connection, "shop", START)


@pytest.mark.parametrize(
    ("now", "names_window", "late"),
    [
        (START, False, False),
        (CLOSES_AT - timedelta(seconds=1), False, False),
        (CLOSES_AT, False, True),
        (CLOSES_AT, True, False),
    ],
)
def test_work_is_late_from_end_and_grace_unless_the_starts_name_the_window(
    database: Database, *, now: datetime, names_window: bool, late: bool
):
    """Rule 22."""
    # Mutation: drop `NOT names_window AND` from is_late -> the last case fails.
    opened(database, names_window=names_window)
    with database.transaction() as connection:
        assert windows.is_late(connection, "shop", START, now) is late


def test_newer_window_ends_the_older_ones_that_cannot_be_finished_any_more(database: Database):
    """Rule 22: superseded is what still had something to fetch and whose starts do not name it."""
    # Mutation: drop `NOT w.names_window AND` or the three EXISTS from supersede_older.
    days = [START + n * DAY for n in range(5)]
    waiting, queued, finished, named, newest = (
        open_work(database, start=day, names_window=day == days[3], capacity=1) for day in days
    )
    for work in (waiting, queued, finished, named, newest):
        work.add(requests(1))
    queued.claim(now=NOON)
    finished.fetched(*finished.claim())
    with database.transaction() as connection:
        assert windows.supersede_older(connection, "shop", newest.start) == [d.isoformat() for d in days[:2]]
        assert windows.supersede_older(connection, "shop", newest.start) == []
    ended = [find(database, work).superseded_at is not None for work in (waiting, queued, finished, named, newest)]
    assert ended == [True, True, False, False, False]


def test_other_sources_are_not_superseded(database: Database):
    other = open_work(database, source="lab")
    other.add(requests(1))
    newest = open_work(database, start=START + DAY)
    with database.transaction() as connection:
        assert windows.supersede_older(connection, "shop", newest.start) == []
    assert find(database, other).superseded_at is None


def test_first_bound_stays_and_late_results_add_up(database: Database):
    work = open_work(database)
    with database.transaction() as connection:
        windows.mark_bound(connection, "shop", START, "max_requests")
        windows.mark_bound(connection, "shop", START, "max_depth")
        windows.count_late_results(connection, "shop", START, 2)
        windows.count_late_results(connection, "shop", START, 3)
    row = find(database, work)
    assert (row.bound_reached, row.late_results) == ("max_requests", 5)


def test_counted_version_and_publication_are_kept(database: Database):
    work = open_work(database)
    with database.transaction() as connection:
        windows.set_counted_version(connection, "shop", START, "2")
        windows.set_published(connection, "shop", START)
    assert find(database, work).counted_version == "2"
    assert find(database, work).published_at is not None
    with database.transaction() as connection:
        windows.set_counted_version(connection, "shop", START, None)
    assert find(database, work).counted_version is None


def test_windows_are_listed_newest_first(database: Database):
    days = [START + n * DAY for n in range(3)]
    for day in days:
        open_work(database, start=day)
    open_work(database, source="lab")
    with database.transaction() as connection:
        assert [row.window.start for row in windows.all_windows(connection, "shop")] == days[::-1]
        assert len(windows.all_windows(connection)) == 4
        assert (newest := windows.newest(connection, "shop"))
        assert newest.window.start == days[2]
        assert windows.newest(connection, "nobody") is None


def test_planned_is_what_was_accepted(database: Database):
    work = open_work(database)
    work.add(requests(5))
    work.add(requests(7))
    assert find(database, work).planned == work.counts().planned == 7


def test_frontier_refuses_a_window_that_was_never_opened(database: Database):
    work = Work(database=database)
    for attempt in (lambda: work.add(requests(1)), work.claim, work.due):
        with pytest.raises(UnknownWindow):
            attempt()
    assert work.counts() == frontier.Counts(rows=())
