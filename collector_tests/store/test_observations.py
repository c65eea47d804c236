"""The stores of observations, rejects and staged rows: what goes in comes out, whatever it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pandera.pandas as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector_assets import observations, rejects, staging
from collector_assets.contract import Daily, Expect, Page, Record, Source, replace
from collector_assets.staging import Piece
from collector_assets.validation import Candidate, Good, Origin, Reason, reject
from collector_tests.fixtures.stored import FIRST_DAY, Stored

ORIGIN = Origin(page_id=1, request_id=1, collected_at=datetime(2026, 3, 1, 9, 0, 0, 123456, tzinfo=UTC), late=True)
VERSION = "1"

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
TIMES = st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda time: time.replace(fold=0))


class Item(pa.DataFrameModel):
    """A thing."""

    sku: str
    note: str = pa.Field(nullable=True)


def extract(page: Page) -> Iterator[Any]:
    """The rows of the body."""
    yield from page.json()


SOURCE = Source(
    name="things", start_urls=("http://shop.localhost:8765/",), extract=extract, schema=Item, entity="sku",
    extractor_version=VERSION, window=Daily(start="2026-01-01"), expect=Expect(max_reject_rate=1),
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entity=TEXT, data=st.dictionaries(TEXT, JSON, max_size=3), value=TEXT)
def test_every_character_survives_the_way_through_copy(
    stored: Stored, entity: str, data: dict[str, Any], value: str
) -> None:
    r"""Tabs, line ends, backslashes, `\\N` and `\\.`: COPY's own signs are text like any other."""
    good = Good(
        origin=ORIGIN, ordinal=0, entity=entity, data=json.dumps(data), digest=b"\x00\\\n\t", source_revised_at=None
    )  # fmt: skip
    bad = reject(
        Candidate(origin=ORIGIN, ordinal=1, values=data), "record", Reason(column=value, check=value, value=value),
        entity=entity,
    )  # fmt: skip
    with stored.database.transaction() as connection:
        staging.create(connection)
        lines = staging.good_line(good, "record") + staging.reject_line(bad)
        staging.copy(connection, Piece(rows=lines.encode()))
        found: list[Any] = connection.execute("SELECT * FROM staged_rows ORDER BY ordinal").fetchall()
        for table in ("staged_rows", "staged_raw", "staged_pages"):
            connection.execute(f"DROP TABLE {table}".encode())
    assert found[0][4:9] == (entity, data, b"\x00\\\n\t", None, ORIGIN.collected_at)
    assert found[0][9:] == (True, False, False, None)
    assert found[1][4:6] == (entity, data)
    assert found[1][12] == [{"column": value, "check": value, "value": value}]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.dictionaries(TEXT, JSON | st.floats() | st.decimals() | st.dates() | TIMES, max_size=3),
        min_size=1,
        max_size=4,
    )
)
def test_combine_gets_exactly_what_was_yielded(stored: Stored, rows: list[dict[str, Any]]) -> None:
    with stored.database.transaction() as connection:
        staging.create(connection)
        candidates = [Candidate(origin=ORIGIN, ordinal=n, values=Record("x", row)) for n, row in enumerate(rows)]
        lines = "".join(staging.raw_line(row, "x", "e\t\\") for row in candidates)
        staging.copy(connection, Piece(raw=lines.encode()))
        [group] = list(staging.groups(connection))
        for table in ("staged_rows", "staged_raw", "staged_pages"):
            connection.execute(f"DROP TABLE {table}".encode())
    assert (group.record_type, group.entity) == ("x", "e\t\\")
    assert repr(group.rows) == repr([Record("x", row) for row in rows])  # NaN is not equal to itself, but looks like it


def test_text_that_a_database_refuses_is_stored_without_it(stored: Stored) -> None:
    """DBQ-01, DBQ-03, DBQ-05: from the page to the row, in records and rejects; and it is counted."""
    row = stored.window(SOURCE)
    cleaned = b'{"sku": "a\\u0000b", "note": "x\\ud83d \\ud83d\\ude00"}'
    body = b'[%b, {"sku": "n", "note": NaN}, {"sku": null, "k\\u0000": Infinity}]' % cleaned
    stored.add(SOURCE, row, [body])
    report = stored.process(SOURCE, row)
    assert stored.rows("SELECT data FROM observations ORDER BY entity") == [
        ({"sku": "ab", "note": "x\ufffd \U0001f600"},),
        ({"sku": "n", "note": None},),
    ]
    assert stored.rows("SELECT data FROM rejects") == [({"sku": None, "k": "inf"},)]
    assert report.verdict.counts["cleaned"] == 1


def test_the_last_good_rows_are_shown_where_no_version_is_named(stored: Stored) -> None:
    """What people and the command line ask for: the version that counts, the rejects of the newest verdict."""
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[{"sku": "a"}, {"sku": "b"}, {"sku": None}]])
    stored.process(SOURCE, row)
    stored.process(replace(SOURCE, extractor_version="2", expect=Expect(min_records=9)), row)
    with stored.database.transaction() as connection:
        place = (connection, SOURCE.name, FIRST_DAY)
        assert observations.count(*place) == {"record": 2}
        assert observations.count(*place, "9") == {}
        first = {"record_type": "record", "entity": "a", "sku": "a", "note": None}
        assert observations.preview(*place, limit=1) == [first]
        assert rejects.count(*place) == 1
        [bad] = rejects.list_rejects(*place)
        assert (bad.extractor_version, bad.ordinal, bad.url) == ("2", 2, "http://shop.localhost:8765/0")
        assert rejects.count(*place, VERSION) == 1


def test_history_keeps_a_row_per_window_and_version(stored: Stored) -> None:
    for number in range(2):
        row = stored.window(SOURCE, number)
        stored.add(SOURCE, row, [[{"sku": "a"}]])
        for version in ("1", "2"):
            stored.process(replace(SOURCE, extractor_version=version), row)
    found = stored.rows("SELECT extract(day FROM window_start)::int, extractor_version FROM observations ORDER BY 1, 2")
    assert found == [(1, "1"), (1, "2"), (2, "1"), (2, "2")]


@pytest.mark.parametrize("table", ["observations", "rejects", "latest", "verdicts", "readings"])
def test_big_tables_are_cut_by_window(stored: Stored, table: str) -> None:
    """`window_start` makes retention a dropped partition one day; `latest` alone is not of a window."""
    keys = stored.rows(
        "SELECT a.attname FROM pg_index AS i"
        " JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
        " WHERE i.indrelid = %s::regclass AND i.indisprimary", table,
    )  # fmt: skip
    assert (("window_start",) in keys) == (table != "latest")
