"""What replaces a window's rows stays linear, however wrong the statistics are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from collector_assets import staging
from collector_assets.database import Connection, Database, statements
from collector_tests.fixtures.stored import FIRST_DAY

ROWS = 1_000
PLACE = {"source": "things", "window_start": FIRST_DAY, "version": "1"}

STAGED = """
INSERT INTO staged_pages (page_id, request_id, may_be_empty, moves, yielded, outcome, records)
SELECT n, n, false, true, 2, 'ok', 1 FROM generate_series(1, %(rows)s) AS n;
"""
STAGED_ROWS = """
INSERT INTO staged_rows (page_id, request_id, ordinal, record_type, entity, data, data_digest, collected_at, late,
    combined, cleaned, reasons)
SELECT n, n, kind, 'record', n::text, '{"value": 1}', '\\x01', %(at)s, false, false, false,
    CASE kind WHEN 1 THEN '[{"check": "is_text"}]'::jsonb END
FROM generate_series(1, %(rows)s) AS n, generate_series(0, 1) AS kind;
"""
WINDOW = """
INSERT INTO windows (source, window_start, window_end, window_key, capacity, max_requests, names_window, closes_at,
    counted_version)
VALUES (%(source)s, %(window_start)s, %(window_start)s::timestamptz + interval '1 day', 'k', 1, 1, true, now(),
    %(version)s);
"""
FILL = (
    statements("readings")["insert_new"],
    statements("observations")["insert_new"],
    statements("rejects")["insert_new"],
    WINDOW,
    statements("latest")["recompute"],
)


@pytest.fixture(params=["never", "when it was empty"])
def full(database: Database, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A window whose rows are all there, in a transaction; its tables were analyzed at the wrong moment."""
    with database.connect() as connection:
        if request.param != "never":
            connection.execute("ANALYZE observations, readings, rejects, latest, windows")
        staging.create(connection)
        for statement in (STAGED, STAGED_ROWS):
            connection.execute(statement.encode(), {"rows": ROWS, "at": FIRST_DAY})
        for name in ("index_raw", "index_records", "index_rejects", "analyze_rows"):
            connection.execute(statements("staging")[name])
        for statement in FILL:
            connection.execute(statement.encode(), PLACE)
        yield connection
        connection.rollback()


def wasted(plan: dict[str, Any]) -> float:
    """Rows that a plan looked at for nothing."""
    here = sum(plan.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Join Filter"))
    return here * plan["Actual Loops"] + sum(wasted(part) for part in plan.get("Plans", []))


REPLACING = [
    (store, name) for store in ("observations", "readings", "rejects") for name in ("delete_stale", "insert_new")
]


@pytest.mark.parametrize(
    ("store", "name"),
    [*REPLACING, ("latest", "recompute")],
)
def test_a_window_that_is_there_already_costs_each_row_once(full: Connection, store: str, name: str) -> None:
    """Joins of whole sets took half a minute for 10,000 rows where a table had just been filled.

    Mutation: index `staged_rows` by page instead of record type and entity, in `staging.index_records`.
    """
    query = b"EXPLAIN (ANALYZE, FORMAT JSON) " + statements(store)[name].encode()
    row: Any = full.execute(query, PLACE).fetchone()
    plan = (row[0] if isinstance(row[0], list) else json.loads(row[0]))[0]["Plan"]
    assert wasted(plan) <= 10 * ROWS
