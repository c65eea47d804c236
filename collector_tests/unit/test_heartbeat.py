"""A heartbeat that never began: a worker whose fetcher could not be made stops before it starts."""

from __future__ import annotations

from collector_assets.database import Database
from collector_assets.heartbeat import Heartbeat


def test_stopping_before_the_start_does_not_hide_why() -> None:
    # Mutation: join without looking at the thread's ident -> RuntimeError instead of the worker's own error.
    Heartbeat(Database("postgresql://nobody@127.0.0.1:1/none"), lambda _: None, interval_s=1.0).stop()
