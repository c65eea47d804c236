"""One heartbeat per worker, on a thread and a connection of its own: it renews slots and leases until the commit.

It never raises into the worker: what is not renewed runs out by itself, and permissions end *before* their lease
does (rule 8: no budget, no request).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import psycopg

from collector_assets.database import Connection, Database
from collector_assets.errors import CollectorError

LOG = logging.getLogger(__name__)


class Heartbeat:
    """Calls `beat(connection)` in a transaction, every `interval_s` seconds, until `stop()`."""

    def __init__(self, database: Database, beat: Callable[[Connection], None], *, interval_s: float) -> None:
        self._database, self._beat, self._interval_s = database, beat, interval_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop after the beat that is under way; one that was never started is stopped already."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        connection: Connection | None = None
        while not self._stopping.wait(self._interval_s):
            try:
                connection = connection or self._database.connect()
                with connection.transaction():
                    self._beat(connection)
            except (psycopg.Error, CollectorError) as error:
                LOG.warning("heartbeat missed, nothing is renewed: %s", str(error).splitlines()[0])
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()
