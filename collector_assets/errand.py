"""One slot of a budget key for a request or two outside the desks: a robots.txt, the page of `check` and `new`.

Nothing renews that slot: a gap that outlasts the lease is waited out by asking again, and while an answer is awaited
nobody else gets the slot before the request's deadline is over (rule 8).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from collector_assets import budget
from collector_assets.asking import LOOK_AGAIN_S, SLOT_LEASE, demand_of, to_its_end
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.fetch import Fetcher, FetchRequest, NoResponse, NotSent, Response
from collector_assets.permission import Permission

FIRST_LOOK_S: Final = 0.005
"""The first wait for a slot, doubled each time: what the worker's own desk gives back is there in a moment."""


class Errand:
    """One holder of one slot; whatever happens, slot and place in the queue go back at the end of the block."""

    def __init__(self, source: Source, budget_key: str, *, holder: str, database: Database) -> None:
        self._source, self._database, self._holder = source, database, holder
        self._demand = demand_of(source, budget_key)
        self._permission: Permission | None = None
        self.acquired: budget.Acquired | None = None
        """What the budget said last."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await to_its_end(asyncio.to_thread(self._leave))

    async def ready(self, *, patience_s: float) -> bool:
        """A permission that may start now; False when the patience is over, or the key is closed for longer."""
        began, soon_s = time.monotonic(), FIRST_LOOK_S
        while True:
            permission, now = self._permission, time.monotonic()
            wait_s = permission.wait_s(now) if permission else math.inf
            if permission and permission.may_start(now):
                return True
            if now - began > patience_s or self.closed_for_s > patience_s:
                return False
            if wait_s == math.inf:
                wait_s = await to_its_end(asyncio.to_thread(self._acquire))
            await asyncio.sleep(min(wait_s, LOOK_AGAIN_S, soon_s))
            soon_s *= 2

    @property
    def closed_for_s(self) -> float:
        """How long the key was closed for everyone when the budget was asked last."""
        return self.acquired.closed_for_s if self.acquired else 0.0

    def _acquire(self) -> float:
        """Ask for a slot, giving back one of no use any more; the seconds until it makes sense to look again."""
        before = time.monotonic()
        with self._database.transaction() as connection:
            if self.acquired is None:
                budget.declare(connection, self._demand)
            returned = [self._permission.returned(before)] if self._permission else []
            self._permission = None
            acquired = budget.acquire(
                connection, demand=self._demand, holder=self._holder, want=1, lease=SLOT_LEASE, returned=returned
            )
        after, self.acquired = time.monotonic(), acquired
        if not acquired.grants:
            return acquired.retry_in_s
        self._permission = Permission(acquired.grants[0], gap_s=acquired.gap_s, before=before, after=after)
        return 0.0

    async def send(
        self, fetcher: Fetcher, request: FetchRequest, *, unless: Callable[[], bool] = lambda: False
    ) -> Response | NoResponse | None:
        """Send what `ready` allowed; None when the slot was lost, or something else forbids it, before a byte left.

        Raises what keeps the fetcher from sending anything at all.
        """
        permission, ended_at = self._permission, None
        assert permission is not None  # noqa: S101  it is ready
        if not permission.may_start(time.monotonic()):
            return None
        permission.started(time.monotonic())
        request = replace(request, gap_s=permission.gap_s)
        try:
            got = await fetcher.fetch(request, lambda: not unless() and permission.may_send(time.monotonic()))
            ended_at = got.ended_at
            if isinstance(got, Response):
                permission.also_served(got.loads.get("own", 0))
        finally:
            permission.ended(time.monotonic() if ended_at is None else ended_at)
        if isinstance(got, NotSent):
            if got.stop:
                raise got.stop
            return None
        return got

    def _leave(self) -> None:
        """Give the slot back, and the place in the queue."""
        key = self._demand.budget_key
        with self._database.transaction() as connection:
            if self._permission:
                back = [self._permission.returned(time.monotonic())]
                budget.give_back(connection, budget_key=key, holder=self._holder, returned=back)
            budget.stop_waiting(connection, budget_key=key, holder=self._holder)
