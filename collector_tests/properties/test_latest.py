"""`latest` after any order of windows, backfills and re-extractions (rule 17)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from collector_assets import latest, windows
from collector_assets.database import Connection, Database
from collector_tests.fixtures.stored import FIRST_DAY, day

SOURCE, WINDOWS = "things", 3


@dataclass(frozen=True)
class Reading:
    """A window is read by an extractor version; a pass is published, a fail withdraws what counted of its version."""

    window: int
    version: str
    values: Mapping[str, int]
    """By entity."""
    hour: int
    """When the page was fetched; windows overlap, as backfills do."""
    passes: bool


READING = st.builds(
    Reading,
    window=st.integers(0, WINDOWS - 1),
    version=st.sampled_from("12"),
    values=st.dictionaries(st.sampled_from("abc"), st.integers(0, 1)),
    hour=st.integers(0, 5),
    passes=st.booleans(),
)


@pytest.fixture(scope="module")
def shelf(worker_dsn: str) -> Iterator[Database]:
    """One pool for every example."""
    with Database(worker_dsn) as database:
        yield database


def begin(connection: Connection) -> None:
    """No rows but three open windows."""
    for statement in (b"DELETE FROM latest", b"DELETE FROM observations", b"DELETE FROM windows"):
        connection.execute(statement)
    for window in map(day, range(WINDOWS)):
        windows.open_window(
            connection, source=SOURCE, window=window, capacity=1, max_requests=1, names_window=True,
            closes_at=window.end,
        )  # fmt: skip


def read(connection: Connection, reading: Reading, page_id: int) -> None:
    """What `process` and `publish` do to the rows that matter here."""
    start = day(reading.window).start
    connection.execute(
        "DELETE FROM observations WHERE window_start = %s AND extractor_version = %s", [start, reading.version]
    )
    for entity, value in reading.values.items():
        data = json.dumps({"value": value})
        connection.execute(
            "INSERT INTO observations (window_start, source, record_type, entity, extractor_version, request_id,"
            " page_id, data, data_digest, collected_at) VALUES (%s, %s, 'record', %s, %s, 1, %s, %s, %s, %s)",
            [
                start, SOURCE, entity, reading.version, page_id, data, hashlib.sha256(data.encode()).digest(),
                FIRST_DAY + timedelta(hours=reading.hour),
            ],
        )  # fmt: skip
    if reading.passes:
        windows.set_counted_version(connection, SOURCE, start, reading.version)
        latest.recompute(connection, SOURCE, start)
    elif windows.lock(connection, SOURCE, start).counted_version == reading.version:
        windows.set_counted_version(connection, SOURCE, start, None)


def rows(connection: Connection) -> list[Any]:
    """Everything but `published_at`."""
    return connection.execute(
        "SELECT entity, data, window_start, page_id, extractor_version, collected_at, first_seen_at, last_seen_at,"
        " changed_at, removed_at FROM latest ORDER BY entity"
    ).fetchall()


def definition(connection: Connection) -> list[Any]:
    """Of all observations that count the greatest, per entity; in Python, one by one."""
    seen: dict[str, list[Any]] = {}
    found: list[Any] = connection.execute(
        "SELECT o.entity, o.collected_at, o.page_id, o.data, o.window_start, o.extractor_version FROM observations AS o"
        " JOIN windows AS w USING (source, window_start) WHERE w.counted_version = o.extractor_version"
    ).fetchall()
    for entity, *observation in sorted(found, key=lambda row: row[:3]):
        seen.setdefault(entity, []).append(observation)
    return [_row(entity, history) for entity, history in sorted(seen.items())]


def _row(entity: str, history: list[Any]) -> Any:
    collected_at, page_id, data, window_start, version = history[-1]
    changed_at: datetime = collected_at
    for earlier in reversed(history):
        if earlier[2] != data:
            break
        changed_at = earlier[0]
    return (entity, data, window_start, page_id, version, collected_at, history[0][0], collected_at, changed_at, None)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(READING, max_size=9), st.permutations(range(WINDOWS)), st.data())
def test_any_order_of_windows_and_versions_ends_in_the_same_latest(
    shelf: Database, readings: list[Reading], order: list[int], data: st.DataObject
) -> None:
    """Rule 17: also when observations were withdrawn in between.

    Mutation: keep `l.first_seen_at` in the UPDATE of `latest.recompute`; or order by `o.page_id DESC` alone; or drop
    the rows of `latest` from `entities`.
    """
    with shelf.transaction() as connection:
        begin(connection)
        for page_id, reading in enumerate(readings, start=1):
            read(connection, reading, page_id)
        # What a failed verdict withdrew leaves with the next publication of its window.
        last = [Reading(w, "3", data.draw(READING).values, data.draw(st.integers(0, 5)), passes=True) for w in order]
        for page_id, reading in enumerate(last, start=100):
            read(connection, reading, page_id)
        found = rows(connection)
        event(f"{len(found)} entities")
        assert found == definition(connection)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(READING, min_size=1, max_size=6, unique_by=lambda r: r.window), st.data())
def test_the_order_of_publications_does_not_matter(
    shelf: Database, readings: list[Reading], data: st.DataObject
) -> None:
    """Rule 17: the same observations, published window by window in another order."""
    passing = [Reading(r.window, r.version, r.values, r.hour, passes=True) for r in readings]
    numbered = list(enumerate(passing, start=1))
    with shelf.transaction() as connection:
        seen = []
        for order in (numbered, data.draw(st.permutations(numbered))):
            begin(connection)
            for page_id, reading in order:
                read(connection, reading, page_id)
            seen.append(rows(connection))
        assert seen[0] == seen[1]
