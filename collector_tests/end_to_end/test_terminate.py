"""A run that is terminated in the middle of its pages gives everything back."""

from __future__ import annotations

from typing import Any

import pytest

from collector_assets import database
from collector_assets.demo import DemoSite
from collector_tests.fixtures.dagster_dev import Dev

KEY = "2026-02-20"
STAGES = [["shop", stage] for stage in ("frontier", "raw_pages", "records", "latest")]

DONE = """SELECT url, attempts FROM requests JOIN windows USING (source, window_start)
          WHERE source = 'shop' AND window_key = %(key)s AND state = 'done'"""


def held(dev: Dev) -> tuple[int, int, int]:
    """Leased requests, held slots, places in queues for a slot."""
    with database.connect(dev.dsn) as connection:
        row: Any = connection.execute(
            "SELECT (SELECT count(*) FROM requests WHERE state = 'leased'),"
            " (SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL), (SELECT count(*) FROM budget_waiters)"
        ).fetchone()
        return row


@pytest.mark.timeout(300)
def test_a_terminated_run_leaves_no_lease_and_is_canceled(dagster_dev: Dev, site: DemoSite) -> None:
    # Mutation: collect.run without interrupts.held_back: the loop logs Dagster's interrupt and goes on
    site.misbehave("delay", prefix="/catalogue/", arg="1.5", host="shop.localhost")
    run = dagster_dev.launch(STAGES, KEY)
    dagster_dev.until(lambda: len(site.arrivals(host="shop.localhost")) >= 6, 120)
    assert held(dagster_dev)[0] > 0

    dagster_dev.terminate(run)
    ended = dagster_dev.ended(run, within_s=60)
    assert ended["status"] == "CANCELED", dagster_dev.log.read_text()[-3_000:]
    assert held(dagster_dev) == (0, 0, 0)

    site.behave()
    again = dagster_dev.launch(STAGES, KEY)
    assert dagster_dev.ended(again)["status"] == "SUCCESS"
    with database.connect(dagster_dev.dsn) as connection:
        done = connection.execute(DONE, {"key": KEY}).fetchall()
    assert len(done) == 63
    # A request that was given back has not used up an attempt.
    assert {attempts for _, attempts in done} == {1}
