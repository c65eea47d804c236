"""Answers on their way into archive and database: they gather for a moment, then go in one batch.

One deposit at a time, on a thread; answers wait in memory only as far as the limits here allow.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from collector_assets.deposit import Answered, Depositor, Stored
from collector_assets.holdings import Holdings
from collector_assets.stops import Stops

MOST_DEPOSITED: Final = 256
LINGER_S: Final = 0.02
"""How long answers gather before a deposit: an fsync and a commit serve all of them."""
MOST_WAITING_ANSWERS: Final = 512
MOST_WAITING_BYTES: Final = 64 * 2**20


@dataclass(slots=True)
class Tally:
    """What has been deposited so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    found: int = 0
    wire_bytes: int = 0
    late: int = 0

    def add(self, stored: Stored) -> None:
        """Count one batch."""
        self.outcomes += stored.outcomes
        self.refused += stored.refused
        self.found += stored.found
        self.wire_bytes += stored.wire_bytes
        self.late += stored.late


class Outbox:
    """Made and used inside the worker's event loop; `store_the_rest` after it has ended."""

    def __init__(
        self, *, depositor: Depositor, holdings: Holdings, stops: Stops, on_deposit: Callable[[], None]
    ) -> None:
        self.tally = Tally()
        self.in_flight = 0
        """Requests under way: with none, no answer is worth waiting for."""
        self._depositor, self._holdings, self._stops, self._on_deposit = depositor, holdings, stops, on_deposit
        self._waiting: list[Answered] = []
        self._waiting_bytes = 0
        self._depositing = 0
        self._is_closing = False
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._next_deposit: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_busy(self) -> bool:
        """Whether an answer is on its way into the database."""
        return bool(self._waiting) or self._depositing > 0

    async def has_room(self) -> None:
        """Until another answer may come."""
        await self._room.wait()

    async def deposited(self) -> None:
        """Until the deposit that is next has been made."""
        await asyncio.wait({self._next_deposit})

    def put(self, answered: Answered) -> None:
        """Take an answer; it is safe only after its deposit."""
        self._waiting.append(answered)
        self._waiting_bytes += _size(answered)
        if len(self._waiting) >= MOST_WAITING_ANSWERS or self._waiting_bytes >= MOST_WAITING_BYTES:
            self._room.clear()
        self._wake.set()

    def close(self) -> None:
        """Deposit what is there, and end."""
        self._is_closing = True
        self._wake.set()

    async def run(self) -> None:
        """Deposit batch after batch, until closed and empty; an error ends it."""
        while not (self._is_closing and not self._waiting):
            await self._wake.wait()
            self._wake.clear()
            if self.in_flight and len(self._waiting) < MOST_DEPOSITED:
                await asyncio.sleep(LINGER_S)
            while self._waiting:
                await self._deposit()

    async def _deposit(self) -> None:
        batch = self._waiting[:MOST_DEPOSITED]
        del self._waiting[: len(batch)]
        self._waiting_bytes -= sum(map(_size, batch))
        self._depositing = len(batch)
        try:
            stored = await asyncio.to_thread(self._depositor.store, batch)
            refusals = Counter(item.origin for item in batch if item.is_refusal)
            self._stops.settle(stored.halted, stored.closed_for_s, refusals, is_all=not self._waiting)
            self.tally.add(stored)
        finally:
            self._depositing = 0
            # Renewed until the commit (rule 4); after an error the leases run out and the work is collected again.
            self._holdings.forget(item.lease for item in batch)
            self._room.set()
            self._on_deposit()
            made, self._next_deposit = self._next_deposit, asyncio.get_running_loop().create_future()
            made.set_result(None)

    def store_the_rest(self) -> None:
        """After an interrupt: answers that had come in are kept too."""
        if self._waiting:
            batch, self._waiting = self._waiting, []
            self._holdings.forget(item.lease for item in batch)
            self._depositor.store(batch)


def _size(answered: Answered) -> int:
    return len(getattr(answered.answer, "body", b""))
