"""Named statements: how a file is read, and that Postgres can plan every statement of every store."""

from __future__ import annotations

import re
from typing import LiteralString

import pytest
from psycopg import errors, sql

from collector_assets import database as db
from collector_assets.database import SQL_FOLDER, Database, parse_statements, statements

STORES = sorted(file.name.removesuffix(".sql") for file in SQL_FOLDER.iterdir() if file.name.endswith(".sql"))
STATEMENTS = [(store, name) for store in STORES for name in statements(store)]
PARAMETER = re.compile(r"%\((?P<name>\w+)\)[sbt]")
TEMPORARY_TABLES: list[LiteralString] = [
    query
    for store in STORES
    for query in statements(store).values()
    if re.search(r"\bCREATE TEMP(ORARY)? TABLE\b", query)
]

TEXT = """
-- What this file is about.

-- name: count_pears
-- Counts 100 % of the pears.
SELECT count(*)   -- never null
FROM pears;

-- name: drop_pear
DELETE FROM pears WHERE id = %(id)s;
"""


def test_a_statement_is_the_text_under_its_name_without_comment_lines() -> None:
    found = parse_statements("fruit", TEXT)
    assert found["count_pears"] == "/* fruit.count_pears */ SELECT count(*)   -- never null\nFROM pears"
    assert found["drop_pear"] == "/* fruit.drop_pear */ DELETE FROM pears WHERE id = %(id)s"


def test_an_unknown_statement_is_answered_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match="fruit.sql has no statement 'count_pear'; it has: count_pears, drop_pear"):
        parse_statements("fruit", TEXT)["count_pear"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;", "there twice"), ("-- name: a\n-- only words\n", "empty")],
)
def test_a_file_that_cannot_be_meant_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_statements("fruit", text)


def test_a_file_is_read_once() -> None:
    assert statements(STORES[0]) is statements(STORES[0])


@pytest.mark.parametrize(("store", "name"), STATEMENTS)
def test_postgres_can_plan_the_statement(worker_dsn: str, store: str, name: str) -> None:
    """A misspelt column, a missing cast or a dropped table fails here, whoever calls the statement."""
    with db.connect(worker_dsn) as connection:
        for query in TEMPORARY_TABLES:
            connection.execute(query)
        query = numbered(statements(store)[name])
        try:
            with connection.transaction():
                connection.execute(b"EXPLAIN (GENERIC_PLAN) " + query.encode())
        except errors.SyntaxError:  # what cannot be explained (LOCK, SET, NOTIFY, CREATE TEMP …): at least it parses
            connection.execute(sql.SQL("DO ") + sql.Literal(f"BEGIN IF false THEN {query}; END IF; END"))
        connection.rollback()


def numbered(query: str) -> str:
    """The query with `$1` for `%(x)s`, as Postgres itself takes it."""
    numbers: dict[str, int] = {}
    named = PARAMETER.sub(lambda found: f"${numbers.setdefault(found['name'], len(numbers) + 1)}", query)
    return named.replace("%%", "%")


def test_the_statement_shows_its_name_to_the_operator(database: Database) -> None:
    with database.transaction() as connection:
        query = parse_statements(
            "fruit", "-- name: look\nSELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        )
        row = connection.execute(query["look"]).fetchone()
        assert str(row).startswith("('/* fruit.look */")
