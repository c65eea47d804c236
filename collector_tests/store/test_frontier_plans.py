"""What the statements of the frontier cost: plans at size, and every statement understood by Postgres."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from collector_assets.database import Connection, statements
from collector_assets.database import connect as connect_to
from collector_tests.fixtures import postgres
from collector_tests.fixtures.frontier import KEY, START

FINISHED, QUEUED, CANDIDATES, LEASED = 200_000, 2_000, 20_000, 300
IDS = list(range(FINISHED + 1, FINISHED + 201))
SCOPE: dict[str, Any] = {"source": "shop", "window_start": START, "now": None, "kinds": None}
LEASES = SCOPE | {"ids": IDS, "fences": IDS, "lease": timedelta(seconds=60)}
ENDING = {"state": "fetched", "failed_phase": None, "outcome": "ok", "reason": None, "wait": None}
VALUES: dict[str, dict[str, Any]] = {
    "lock_window": SCOPE,
    "add_requests": SCOPE
    | {name: [b"key"] for name in ("unique_keys", "bodies", "above")}
    | {name: ["text"] for name in ("lanes", "entities", "urls", "budget_keys", "methods", "referrers")}
    | {name: ["{}"] for name in ("headers", "hints")}
    | {
        "kinds": ["detail"],
        "priorities": [0],
        "depths": [0],
        "barren": [0],
        "known": [False],
        "known_runs": [0],
        "secrets": [None],
        "found_on": [None],
        "restarts": [0],
        "edition": 1,
        "max_attempts": 3,
        "room": 10,
    },
    "known_keys": SCOPE | {"unique_keys": [b"key"]},
    "chain_starts": SCOPE | {"ids": IDS},
    "reopen_requests": SCOPE | {"unique_keys": [b"key"], "restarts": [1]},
    "take_back_expired": SCOPE,
    "count_active": SCOPE | {"kinds": ["listing"]},
    "best_candidates": SCOPE | {"count": 200},
    "best_queued": SCOPE | {"count": 200, "budget_key": KEY},
    "send_back_foreign": SCOPE | {"kinds": ["listing"], "count": 10},
    "admit_requests": LEASES,
    "claim_requests": LEASES | {"worker": "worker-1"},
    "write_turns": SCOPE | {"turns": "{}"},
    "lock_leases": LEASES,
    "renew_leases": LEASES,
    "finish_requests": LEASES
    | ENDING
    | {"is_retry": False, "gives_back": False, "snoozes": False, "forgets_redirects": False},
    "move_requests": LEASES | {"chains": ["{}"], "budget_keys": [KEY], "reasons": ["302"]},
    "lock_readable": LEASES,
    "mark_read": LEASES | ENDING,
    "count_requests": SCOPE,
    "outlook": SCOPE,
    "due_by_key": SCOPE | {"room": 100},
    "work_by_halt": SCOPE,
    "is_in_use": SCOPE,
}
READS_THE_WINDOW = {"count_requests", "work_by_halt", "is_in_use"}
BY_PRIMARY_KEY = {"admit_requests", "claim_requests"}

FILL = """
INSERT INTO requests (source, window_start, unique_key, kind, lane, url, budget_key, state, outcome, max_attempts,
                      fence, worker, leased_until)
SELECT 'shop', %(start)s, int8send(n), 'detail', 'lane-' || n %% 8, 'http://shop.localhost:8765/' || n, %(key)s,
       %(state)s, 'ok', 3, n, CASE %(state)s WHEN 'leased' THEN 'worker' END,
       CASE %(state)s WHEN 'leased' THEN clock_timestamp() + interval '1 hour' END
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
"""


@pytest.fixture(scope="module")
def large(server: postgres.Server) -> Iterator[Connection]:
    """A window with 200,000 finished requests, and few that still have something before them."""
    name = f"{server.session}_frontier_plans_{os.getpid()}"  # the tests of this file may run in two processes
    dsn = server.create(name, template=server.migrated_template())
    with connect_to(dsn, autocommit=True) as connection:
        fill(connection)
        yield connection
    server.drop(name)


def fill(connection: Connection) -> None:
    connection.execute(
        "INSERT INTO windows"
        " (source, window_start, window_end, window_key, capacity, max_requests, names_window, closes_at)"
        " VALUES ('shop', %(start)s, %(end)s, 'key', 3000, 1000000, false, %(end)s)",
        {"start": START, "end": START + timedelta(days=1)},
    )
    connection.execute(
        "INSERT INTO lanes SELECT 'shop', %s, 'detail', 'lane-' || n FROM generate_series(0, 7) AS n", [START]
    )
    first = 1
    for state, number in {"done": FINISHED, "queued": QUEUED, "candidate": CANDIDATES, "leased": LEASED}.items():
        values = {"start": START, "key": KEY, "state": state, "first": first, "last": first + number - 1}
        connection.execute(FILL, values)
        first += number


def plan(connection: Connection, name: str) -> list[dict[str, Any]]:
    """The nodes of a statement's plan."""
    statement = "EXPLAIN (FORMAT JSON) " + statements("frontier")[name]
    row: Any = connection.execute(statement, VALUES[name]).fetchone()
    assert row
    nodes: list[dict[str, Any]] = []
    waiting = [entry["Plan"] for entry in row[0]]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += node.get("Plans", [])
    return nodes


def test_every_statement_of_the_file_is_explained_here():
    assert statements("frontier").keys() == VALUES.keys()


@pytest.mark.parametrize("analyzed", [False, True], ids=["never analyzed", "analyzed"])
def test_statements_that_run_all_the_time_never_read_finished_rows(large: Connection, *, analyzed: bool):
    """No sequential scan of requests, and no walk along a whole window: with old statistics and with fresh ones."""
    # Mutation: drop the index queued_by_lane.
    if analyzed:
        large.execute("ANALYZE")
    for name in VALUES.keys() - READS_THE_WINDOW:
        for node in plan(large, name):
            reads_all = node["Node Type"] == "Seq Scan" and node["Relation Name"] == "requests"
            assert not reads_all, f"{name}: {json.dumps(node)}"
            if name in BY_PRIMARY_KEY and "Index Name" in node:
                assert node["Index Name"] == "requests_pkey", name


@pytest.mark.parametrize("name", ["best_queued", "best_candidates"])
def test_best_of_a_lane_are_read_in_order_and_no_further(large: Connection, name: str):
    index = {"best_queued": "queued_by_lane", "best_candidates": "candidates_by_lane"}[name]
    nodes = plan(large, name)
    assert index in {node.get("Index Name") for node in nodes}
    assert not any("Sort" in node["Node Type"] for node in nodes)


def test_renewal_is_a_heap_only_update(large: Connection):
    """No index holds leased_until, so the heartbeat writes no index."""
    # Mutation: add leased_until to the index leased_by_window.
    leased = list(range(FINISHED + QUEUED + CANDIDATES + 1, FINISHED + QUEUED + CANDIDATES + 11))
    with large.transaction(force_rollback=True):
        large.execute(
            statements("frontier")["renew_leases"],
            LEASES | {"ids": leased, "fences": leased, "lease": timedelta(hours=2)},
        )
        row = large.execute(
            "SELECT pg_stat_get_xact_tuples_updated(c.oid), pg_stat_get_xact_tuples_hot_updated(c.oid)"
            " FROM pg_class AS c WHERE c.relname = 'requests'"
        ).fetchone()
    assert row == (10, 10)


def test_attempts_stay_within_their_budget_whatever_is_written(large: Connection):
    """Rule 3, as a constraint."""
    with (
        large.transaction(force_rollback=True),
        pytest.raises(psycopg.errors.CheckViolation, match="attempts_within_budget"),
    ):
        large.execute("UPDATE requests SET attempts = 4 WHERE request_id = 1")
    with (
        large.transaction(force_rollback=True),
        pytest.raises(psycopg.errors.CheckViolation, match="attempts_within_budget"),
    ):
        large.execute("UPDATE requests SET attempts = -1 WHERE request_id = 1")
