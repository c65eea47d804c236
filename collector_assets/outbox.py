"""Answers on their way into archive and database: they gather for a moment, then go in one batch.

While one batch is committed the next one is archived and judged: the database works while we do. Each of the two on a
thread, one batch in each at a time; answers wait in memory only as far as the limits here allow.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from collector_assets.asking import to_its_end
from collector_assets.deposit import Answered, Depositor, Judged, Stored
from collector_assets.holdings import Holdings
from collector_assets.stops import Stops

MOST_DEPOSITED: Final = 256
MOST_DEPOSITED_BYTES: Final = 2**20
"""Of a batch of several: large pages are read for their links while the ones before are committed."""
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
        """Requests under way: with none, no answer is worth waiting for. Counted down before the answer is put."""
        self._depositor, self._holdings, self._stops, self._on_deposit = depositor, holdings, stops, on_deposit
        self._waiting: list[Answered] = []
        self._waiting_bytes = 0
        self._depositing = 0
        self._prepared: tuple[Sequence[Answered], list[Judged]] | None = None
        """Archived, and next to be committed."""
        self._committing: asyncio.Task[None] | None = None
        self._is_closing = False
        self._wake, self._room, self._quiet = asyncio.Event(), asyncio.Event(), asyncio.Event()
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
        if not self.in_flight or len(self._waiting) >= MOST_DEPOSITED:
            self._quiet.set()
        self._wake.set()

    def close(self) -> None:
        """Deposit what is there, and end."""
        self._is_closing = True
        self._wake.set()

    async def run(self) -> None:
        """Deposit batch after batch, until closed and empty; an error ends it."""
        try:
            while not (self._is_closing and not self._waiting):
                await self._wake.wait()
                self._wake.clear()
                self._raise_of_commit()
                if self._waiting:
                    await self._gather()
                while self._waiting:
                    await self._deposit()
            await self._committed()
        finally:
            if self._committing:
                self._committing.add_done_callback(_seen)

    async def _gather(self) -> None:
        """A moment for more answers, where any are to be expected."""
        self._quiet.clear()
        if self.in_flight and len(self._waiting) < MOST_DEPOSITED:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self._quiet.wait()

    async def _deposit(self) -> None:
        """Prepare a batch; it is committed while this one's successor is prepared."""
        batch = self._take()
        try:
            await to_its_end(asyncio.to_thread(self._prepare, batch))
        except Exception:
            self._over(batch)
            raise
        await self._committed()
        assert self._prepared is not None  # noqa: S101  just now
        (_, judged), self._prepared = self._prepared, None
        self._committing = asyncio.create_task(self._commit(batch, judged))
        self._committing.add_done_callback(lambda _: self._wake.set())

    def _take(self) -> list[Answered]:
        number, size = 0, 0
        for item in self._waiting[:MOST_DEPOSITED]:
            size += _size(item)
            if number and size > MOST_DEPOSITED_BYTES:
                break
            number += 1
        batch = self._waiting[:number]
        del self._waiting[:number]
        self._waiting_bytes -= sum(map(_size, batch))
        self._depositing += number
        return batch

    def _prepare(self, batch: Sequence[Answered]) -> None:
        """On a thread: an interrupt meanwhile leaves what came out to `store_the_rest`."""
        self._prepared = batch, self._depositor.prepare(batch)

    async def _committed(self) -> None:
        """Until the batch before is in; its error is raised here."""
        if self._committing:
            await asyncio.wait({self._committing})
            self._raise_of_commit()

    def _raise_of_commit(self) -> None:
        """Where the last commit has failed: nothing more is stored after it."""
        if self._committing and self._committing.done():
            self._committing.result()

    async def _commit(self, batch: Sequence[Answered], judged: list[Judged]) -> None:
        try:
            stored = await asyncio.to_thread(self._depositor.commit, judged)
            refusals = Counter(item.origin for item in batch if item.is_refusal)
            is_all = not self._waiting and self._depositing == len(batch)
            self._stops.settle(stored.halted, stored.closed_for_s, refusals, is_all=is_all)
            self.tally.add(stored)
        finally:
            self._over(batch)

    def _over(self, batch: Sequence[Answered]) -> None:
        """The batch is in; or an error has left it to its leases, which run out, and it is collected again.

        Not before the commit: until then its leases are renewed (rule 4).
        """
        self._depositing -= len(batch)
        self._holdings.forget(item.lease for item in batch)
        self._room.set()
        self._on_deposit()
        made, self._next_deposit = self._next_deposit, asyncio.get_running_loop().create_future()
        made.set_result(None)

    def store_the_rest(self) -> None:
        """After an interrupt: answers that had come in are kept too."""
        if self._prepared:
            (batch, judged), self._prepared = self._prepared, None
            self._holdings.forget(item.lease for item in batch)
            self._depositor.commit(judged)
        if self._waiting:
            batch, self._waiting = self._waiting, []
            self._holdings.forget(item.lease for item in batch)
            self._depositor.store(batch)


def _size(answered: Answered) -> int:
    return len(getattr(answered.answer, "body", b""))


def _seen(task: asyncio.Task[None]) -> None:
    """What ended the worker was raised; this came after it."""
    if not task.cancelled():
        task.exception()
