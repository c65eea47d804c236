"""Batches go to Postgres as arrays: whatever is in a list comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, LiteralString

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector_assets.database import Database

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)))
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9998, 1, 1), timezones=st.sampled_from(  # noqa: DTZ001  given a zone
    [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-3))]))  # fmt: skip
LISTS: dict[LiteralString, st.SearchStrategy[Any]] = {
    "SELECT %s::text[]": TEXT,
    "SELECT %s::bigint[]": st.integers(-(2**63), 2**63 - 1),
    "SELECT %s::bytea[]": st.binary(),
    "SELECT %s::boolean[]": st.booleans(),
    "SELECT %s::timestamptz[]": MOMENTS,
    "SELECT %s::double precision[]": st.floats(allow_nan=False),
}


@pytest.mark.parametrize("statement", LISTS)
def test_a_list_comes_back_as_it_was(database: Database, statement: LiteralString) -> None:
    # Mutation: quotes or backslashes not doubled in _write_text
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
    @given(st.lists(st.none() | LISTS[statement], max_size=20))
    def comes_back(values: list[Any]) -> None:
        with database.transaction() as connection:
            row = connection.execute(statement, [values]).fetchone()
        assert row == (values,)

    comes_back()


@pytest.mark.parametrize("text", ['"', "\\", "NULL", "null", "", " ", ",", "{}", '\\"', "a\nb", "\U0001f600"])
def test_text_that_means_something_in_an_array(database: Database, text: str) -> None:
    with database.transaction() as connection:
        assert connection.execute("SELECT %s::text[]", [[text, None, text]]).fetchone() == ([text, None, text],)


def test_lists_of_lists_and_of_mixed_numbers_still_work(database: Database) -> None:
    with database.transaction() as connection:
        assert connection.execute("SELECT %s::int[]", [[[1, 2], [3, 4]]]).fetchone() == ([[1, 2], [3, 4]],)
        assert connection.execute("SELECT 'a' = ANY(%s)", [["a", "b"]]).fetchone() == (True,)
        assert connection.execute("SELECT %s::text[]", [[]]).fetchone() == ([],)


def test_a_nul_is_refused_and_never_cuts_a_value(database: Database) -> None:
    # Mutation: without the check in _write_text the rest of the array is lost
    with pytest.raises(psycopg.DataError, match="NUL"), database.transaction() as connection:
        connection.execute("SELECT %s::text[]", [["a\0b", "c"]])


def test_a_naive_datetime_is_refused_in_a_list_too(database: Database) -> None:
    with pytest.raises(ValueError, match="naive"), database.transaction() as connection:
        connection.execute("SELECT %s::timestamptz[]", [[datetime(2026, 3, 29, 2, 30)]])  # noqa: DTZ001  on purpose
