"""One request under the budget, outside any window: for `check` and `new`.

It writes the slot that it holds, and what the answer says about the site where that concerns everybody.
Nothing renews that slot: a gap that outlasts the lease is waited out by asking again, and while an answer is awaited
nobody else gets the slot before the request's deadline is over (rule 8).
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import uvloop

from collector_assets import budget, conduct, origins, urls
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.deposit import blocked_of, later_of
from collector_assets.desk import LOOK_AGAIN_S, SLOT_LEASE, demand_of, request_of
from collector_assets.errors import OriginHalted
from collector_assets.fetch import Fetcher, NoResponse, NotSent, Response
from collector_assets.outcome import Outcome
from collector_assets.permission import Permission
from collector_assets.request import NewRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How the one attempt ended, and what the budget was like."""

    got: Response | NoResponse
    waited_s: float
    """For the slot and its gap."""
    gap_s: float
    slots: int
    seconds: float
    """From the slot's readiness to the end of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """No slot came free within the source's patience; nothing was sent."""

    waited_s: float
    closed_for_s: float


def run(source: Source, request: NewRequest, *, database: Database, fetcher: Callable[[], Fetcher]) -> Answer | Busy:
    """Send the request once, in its turn among all who use the budget key. Raises `OriginHalted`."""
    errand = _Errand(source, request, database)
    errand.require_open()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(errand.go(fetcher))
    finally:
        errand.leave()


class _Errand:
    """One holder of one slot."""

    def __init__(self, source: Source, request: NewRequest, database: Database) -> None:
        self._source, self._request, self._database = source, request, database
        self._holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._demand = demand_of(source, request.budget_key)
        self._permission: Permission | None = None
        self._acquired: budget.Acquired | None = None

    def require_open(self) -> None:
        """Nothing is sent to a halted origin, by nobody (rule 9)."""
        with self._database.transaction() as connection:
            rows = {row.origin: row for row in origins.listed(connection) if row.halted_at}
        if row := rows.get(self._origin):
            said = (
                f"{row.origin} refused us and is halted since {row.halted_at:%Y-%m-%d %H:%M %Z} ({row.halted_reason})"
            )
            raise OriginHalted(self._source.name, said, [row.origin])

    async def go(self, make: Callable[[], Fetcher]) -> Answer | Busy:
        """Wait for a slot, then send; again when the slot was lost before a byte left."""
        fetcher, began = make(), time.monotonic()
        try:
            while await self._ready(began):
                ready = time.monotonic()
                got = await self._send(fetcher)
                if got is not None:
                    return self._answer(got, waited_s=ready - began, seconds=got.ended_at - ready)
            closed_for_s = self._acquired.closed_for_s if self._acquired else 0.0
            return Busy(waited_s=time.monotonic() - began, closed_for_s=closed_for_s)
        finally:
            await fetcher.close()

    def _answer(self, got: Response | NoResponse, *, waited_s: float, seconds: float) -> Answer:
        assert self._acquired is not None  # noqa: S101  there was a slot
        got = self._noted(got)
        return Answer(
            got=got, waited_s=waited_s, gap_s=self._acquired.gap_s, slots=self._acquired.slots, seconds=seconds
        )

    def _noted(self, got: Response | NoResponse) -> Response | NoResponse:
        """The answer, a challenge by its name; what it says about the site is told to everybody (rule 9)."""
        blocked = blocked_of(self._request.url, self._address, got) if isinstance(got, Response) else None
        if isinstance(got, Response) and blocked:
            got = replace(got, outcome=Outcome.BLOCKED, reason=blocked)
        later = later_of(got) if isinstance(got, Response) else None
        answer = conduct.Answer(
            origin=self._origin, budget_key=self._request.budget_key, request_id=0, outcome=got.outcome,
            reason=got.reason, is_declared=self._is_declared(got), sent_ago_s=0.0, received_ago_s=0.0,
            asked=later.wait if later else None,
        )  # fmt: skip
        with self._database.transaction() as connection:
            conduct.take_note(connection, self._source, [answer], random.Random())  # noqa: S311  jitter
        return got

    def _is_declared(self, got: Response | NoResponse) -> bool:
        kind = self._source.kind_map.get(self._request.kind)
        return isinstance(got, Response) and kind is not None and got.status in kind.on_status

    @property
    def _address(self) -> str:
        return self._request.chain["url"] if self._request.chain else self._request.url

    @property
    def _origin(self) -> str:
        return urls.origin(self._address)

    async def _ready(self, began: float) -> bool:
        """A permission that may start now; False when the patience is over."""
        while True:
            permission = self._permission
            wait_s = permission.wait_s(time.monotonic()) if permission else math.inf
            if permission and permission.may_start(time.monotonic()):
                return True
            if time.monotonic() - began > self._source.patience.total_seconds():
                return False
            if wait_s == math.inf:
                wait_s = self._acquire()
            await asyncio.sleep(min(wait_s, LOOK_AGAIN_S))

    def _acquire(self) -> float:
        """Ask for a slot, giving back one of no use any more; the seconds until it makes sense to look again."""
        before = time.monotonic()
        with self._database.transaction() as connection:
            if self._acquired is None:
                budget.declare(connection, self._demand)
            returned = [self._permission.returned(before)] if self._permission else []
            self._permission = None
            self._acquired = budget.acquire(
                connection, demand=self._demand, holder=self._holder, want=1, lease=SLOT_LEASE, returned=returned
            )
        after = time.monotonic()
        if not self._acquired.grants:
            return self._acquired.retry_in_s
        self._permission = Permission(self._acquired.grants[0], gap_s=self._acquired.gap_s, before=before, after=after)
        return 0.0

    async def _send(self, fetcher: Fetcher) -> Response | NoResponse | None:
        permission, ended_at = self._permission, None
        assert permission is not None  # noqa: S101  it is ready
        permission.started(time.monotonic())
        try:
            got = await fetcher.fetch(
                request_of(self._source, self._request), lambda: permission.may_send(time.monotonic())
            )
            ended_at = got.ended_at
        finally:
            permission.ended(time.monotonic() if ended_at is None else ended_at)
        return None if isinstance(got, NotSent) else got

    def leave(self) -> None:
        """Give the slot back, and the place in the queue."""
        key = self._demand.budget_key
        with self._database.transaction() as connection:
            if self._permission:
                back = [self._permission.returned(time.monotonic())]
                budget.give_back(connection, budget_key=key, holder=self._holder, returned=back)
            budget.stop_waiting(connection, budget_key=key, holder=self._holder)
