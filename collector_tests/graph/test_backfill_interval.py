"""How often Dagster's daemon looks for backfills: a constant of its own, in the daemon's process alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from collector_assets.graph.coordinator import BACKFILLS_EVERY_S

IN_THE_DAEMON = """
from dagster._daemon import backfill, controller
before = controller.DEFAULT_DAEMON_INTERVAL_SECONDS
from collector_assets.graph import coordinator
waits = []
class Event:
    def wait(self, seconds): waits.append(seconds)
backfill.execute_backfill_iteration = lambda *_, **__: iter(())
loop = backfill.execute_backfill_iteration_loop(None, None, Event())
while not waits: next(loop)
print(before, round(waits[0]))
"""
ELSEWHERE = """
import sys
from collector_assets.graph import coordinator
print("dagster._daemon.controller" in sys.modules)
"""


# Mutation: `look_for_backfills_often` returns at once -> "30 30"
@pytest.mark.parametrize(
    ("program", "said"), [(IN_THE_DAEMON, f"30 {BACKFILLS_EVERY_S}"), (ELSEWHERE, "False")], ids=["daemon", "elsewhere"]
)
def test_the_daemon_looks_every_few_seconds_and_nobody_else_loads_it(program: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == said, done.stderr
