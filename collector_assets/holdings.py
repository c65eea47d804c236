"""The leases that one worker holds: renewed by the heartbeat, forgotten when stored, given back when not sent."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime, timedelta

from collector_assets import frontier
from collector_assets.database import Connection, Database
from collector_assets.request import Lease, RequestId


class Holdings:
    """Leases by request; the loop, its threads and the heartbeat share it."""

    def __init__(self, *, database: Database, window_start: datetime, lease: timedelta) -> None:
        self._database, self._window_start, self._lease = database, window_start, lease
        self._leases: dict[RequestId, Lease] = {}
        self._lock = threading.Lock()

    def __contains__(self, lease: Lease) -> bool:
        """Whether the lease is still ours, as far as the last renewal told."""
        return lease.request_id in self._leases

    def take(self, leases: Iterable[Lease]) -> None:
        """Hold what was claimed."""
        with self._lock:
            self._leases.update({lease.request_id: lease for lease in leases})

    def forget(self, leases: Iterable[Lease]) -> list[Lease]:
        """Stop renewing them; those that were held."""
        with self._lock:
            return [lease for lease in leases if self._leases.pop(lease.request_id, None)]

    def give_back(self, leases: Iterable[Lease]) -> None:
        """Put unsent requests back into the queue, the attempt with them (rule 3)."""
        mine = self.forget(leases)
        if mine:
            with self._database.transaction() as connection:
                released = [frontier.Released(request_id=lease.request_id, fence=lease.fence) for lease in mine]
                frontier.finish(connection, self._window_start, released)

    def give_back_all(self) -> None:
        """Put everything back that is still held."""
        self.give_back(list(self._leases.values()))

    def renew(self, connection: Connection) -> None:
        """Extend the leases; what is not ours any more is forgotten, and its result will be refused."""
        with self._lock:
            held = list(self._leases.values())
        if held:
            pairs = sorted((lease.request_id, lease.fence) for lease in held)
            ours = frontier.renew(connection, pairs, self._window_start, self._lease)
            self.forget(lease for lease in held if lease.request_id not in ours)
