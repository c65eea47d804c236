"""An interrupt in the middle of the pages, as "Terminate" sends it: nothing stays held, no second attempt."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import dagster as dg

from collector_assets.demo import DemoSite
from collector_assets.graph.resources import Installation
from collector_tests.graph.test_materialize import QUICK, attempts_of, collect, failure_of, materialized

HELD = """SELECT (SELECT count(*) FROM requests WHERE state = 'leased'),
                 (SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL), (SELECT count(*) FROM budget_waiters)"""


def interrupt_after(site: DemoSite, arrivals: int) -> threading.Thread:
    """What Dagster's termination thread does once somebody clicks."""

    def work() -> None:
        deadline = time.monotonic() + 60
        while len(site.arrivals()) < arrivals and time.monotonic() < deadline:
            time.sleep(0.05)
        _thread.interrupt_main()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_an_interrupted_step_holds_nothing_and_ends_at_once(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    # Mutation: collect.run without interrupts.held_back (uvloop logs Dagster's exception and goes on), or
    # assets._explained without the interrupt (Dagster's retry policy starts the step again)
    collect(QUICK, installation, instance, "frontier")
    site.misbehave("delay", prefix="/catalogue/", arg="0.5")
    thread = interrupt_after(site, 3 + 16)
    result = collect(QUICK, installation, instance, "raw_pages", "records", "latest")
    thread.join()

    assert materialized(result) == []
    assert attempts_of(result, "raw_pages") == 1
    assert failure_of(result, "raw_pages").startswith("interrupted")
    with installation.database.transaction() as connection:
        held: Any = connection.execute(HELD).fetchone()
    assert held == (0, 0, 0)

    site.behave()
    assert materialized(collect(QUICK, installation, instance))[-1] == "latest"
