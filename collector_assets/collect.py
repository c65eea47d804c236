"""Use case: claim -> permission -> fetch -> archive -> complete. The one asyncio loop of a worker.

A worker claims only what it may send now, sends inside its slots, and hands answers to the depositor in batches. No
round trip per page: slots are held over a turn and renewed by the heartbeat, claims and deposits go in batches.
Several workers on one window, in any number of processes and hosts, share it through the database alone.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

import psycopg
import uvloop

from collector_assets import budget, frontier, interrupts
from collector_assets.archive import Archive
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.deposit import Answered, Depositor, Stored
from collector_assets.errors import CollectorError
from collector_assets.fetch import Fetcher, FetchRequest, NotSent
from collector_assets.heartbeat import Heartbeat
from collector_assets.permission import Permission
from collector_assets.request import Lease, RequestId, loaded_headers
from collector_assets.windows import WindowRow

LOG = logging.getLogger(__name__)
T = TypeVar("T")

SLOT_LEASE = timedelta(seconds=3)
CLAIM_AHEAD_S = 0.1
"""How much work is claimed ahead of sending, in seconds of sending: what a kill -9 may cost in attempts."""
MOST_CLAIMED = 256
MOST_DEPOSITED = 256
LINGER_S = 0.02
"""How long answers gather before a deposit: an fsync and a commit serve all of them."""
MOST_WAITING_ANSWERS = 512
MOST_WAITING_BYTES = 64 * 2**20
LOOK_AGAIN_S = 0.5
"""How often an idle worker looks at the frontier: others' pages may have found work."""
PROGRESS_EVERY_S = 2.0


class Ending(StrEnum):
    """Why a worker stopped."""

    DRAINED = "drained"
    WAITING = "waiting"
    """What is left is not due within the source's patience."""
    TURN_OVER = "turn_over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a worker stands; for a line in a log every few seconds."""

    to_fetch: int
    answered: int
    per_second: float
    waiting_for: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What one worker did."""

    ending: Ending
    next_due_in_s: float | None
    outcomes: Counter[str]
    sent: int
    refused: int
    found: int
    wire_bytes: int
    late: int
    seconds: float


@dataclass(slots=True)
class _Tally:
    outcomes: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    refused: int = 0
    found: int = 0
    wire_bytes: int = 0
    late: int = 0

    def add(self, stored: Stored) -> None:
        self.outcomes += stored.outcomes
        self.refused += stored.refused
        self.found += stored.found
        self.wire_bytes += stored.wire_bytes
        self.late += stored.late


@dataclass(slots=True)
class _Desk:
    """One budget key: the slots held on it and the leases waiting for them."""

    demand: budget.Demand
    senders: dict[asyncio.Task[None], Permission] = field(default_factory=dict)
    permissions: tuple[Permission, ...] = ()
    """Those in hand; replaced, never changed: the heartbeat reads it from its thread."""
    leases: deque[Lease] = field(default_factory=deque)
    claiming: asyncio.Task[None] | None = None
    is_declared: bool = False
    """The demand is written as this source says it now: an earlier run may have left another one that still lives."""
    is_dry: bool = False
    """The last claim found less than it asked for."""
    answers: int = 0
    since: float = field(default_factory=time.monotonic)
    pulse: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def has_work(self) -> bool:
        return bool(self.leases) or not self.is_dry

    def claim_size(self) -> int:
        """What may be sent in the next moment: at least a request per slot, at most CLAIM_AHEAD_S of sending."""
        elapsed = max(time.monotonic() - self.since, 0.05)
        ahead = math.ceil(self.answers / elapsed * CLAIM_AHEAD_S)
        return max(len(self.permissions), min(ahead, MOST_CLAIMED))

    def wake(self) -> None:
        """There may be work again."""
        self.is_dry = False
        self.pulse.set()


@dataclass(slots=True)
class _Idleness:
    """How long nothing has moved in the window, by us or by others."""

    since: float = field(default_factory=time.monotonic)
    to_fetch: int = -1

    def seen(self, to_fetch: int, *, is_busy: bool, now: float) -> None:
        if is_busy or to_fetch != self.to_fetch:
            self.since, self.to_fetch = now, to_fetch

    def lasts(self, now: float) -> float:
        return now - self.since


@dataclass(slots=True)
class _Metronome:
    """Says yes once per interval."""

    every_s: float
    next_at: float = field(default_factory=time.monotonic)

    def is_due(self, now: float) -> bool:
        if now < self.next_at:
            return False
        self.next_at = now + self.every_s
        return True


def run(
    *,
    source: Source,
    window: WindowRow,
    kinds: Sequence[str] | None,
    database: Database,
    archive: Archive,
    fetcher: Callable[[], Fetcher],
    progress: Callable[[Progress], None] = lambda _: None,
) -> Collected:
    """Work on an open window until it is drained, nothing is due within `patience`, or the `turn` is over.

    `kinds` are the kinds this pass drains (nothing: every kind). An interrupt or an error gives leases and slots back
    and propagates; after a lost database they run out by themselves.
    """
    worker = Worker(
        source=source,
        window=window,
        kinds=kinds,
        database=database,
        archive=archive,
        fetcher=fetcher,
        progress=progress,
    )
    with interrupts.held_back() as interrupted:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(interrupted.stoppable(worker.drain()))
        finally:
            worker.let_go()


class Worker:
    """One process's hands on one window."""

    def __init__(
        self,
        *,
        source: Source,
        window: WindowRow,
        kinds: Sequence[str] | None,
        database: Database,
        archive: Archive,
        fetcher: Callable[[], Fetcher],
        progress: Callable[[Progress], None],
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._source, self._window, self._kinds = source, window, kinds
        self._start = window.window.start
        self._database, self._make_fetcher, self._progress = database, fetcher, progress
        self._writer = archive.writer(source.name, window.window.key)
        self._depositor = Depositor(source=source, window=window, database=database, writer=self._writer)
        self._desks: dict[str, _Desk] = {}
        self._held: dict[RequestId, Lease] = {}
        self._held_lock = threading.Lock()
        self._outbox: list[Answered] = []
        self._outbox_bytes = 0
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._stopping = False
        self._in_deposit = 0
        self._in_flight = 0
        self._tally = _Tally()
        self._began = time.monotonic()
        self._heartbeat = Heartbeat(
            database, self._beat, interval_s=min(SLOT_LEASE.total_seconds(), source.lease.total_seconds()) / 3
        )

    # --- The life of a worker ------------------------------------------------------------------------------------

    async def drain(self) -> Collected:
        """Until drained, waiting or out of time."""
        self._fetcher = self._make_fetcher()
        self._next_deposit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heartbeat.start()
        depositing = asyncio.create_task(self._deposit_all())
        try:
            ending, due_in = await self._direct(depositing)
            self._stopping = True
            self._wake.set()
            await depositing
            return self._report(ending, due_in)
        finally:
            self._stopping = True
            depositing.cancel()
            await self._fetcher.close()

    def let_go(self) -> None:
        """Give everything back that is still held: after a clean end nothing, after an interrupt what was under way."""
        self._heartbeat.stop()
        try:
            if self._outbox:
                batch, self._outbox = self._outbox, []
                self._forget(batch)
                self._depositor.store(batch)
            self._release(list(self._held.values()))
            for key, desk in sorted(self._desks.items()):
                self._leave(key, desk)
        except (psycopg.Error, CollectorError, OSError) as error:
            LOG.warning("leases and slots could not be given back, they run out by themselves: %s", error)
        finally:
            self._writer.close()

    def _report(self, ending: Ending, due_in: float | None) -> Collected:
        tally = self._tally
        return Collected(
            ending=ending,
            next_due_in_s=due_in,
            outcomes=tally.outcomes,
            sent=tally.sent,
            refused=tally.refused,
            found=tally.found,
            wire_bytes=tally.wire_bytes,
            late=tally.late,
            seconds=time.monotonic() - self._began,
        )

    async def _direct(self, depositing: asyncio.Task[None]) -> tuple[Ending, float | None]:
        """Open a desk per budget key with work; decide when there is nothing more to wait for."""
        turn_ends = self._began + self._source.turn.total_seconds()
        desks: dict[str, asyncio.Task[None]] = {}
        idle, lines = _Idleness(), _Metronome(PROGRESS_EVERY_S)
        try:
            while True:
                self._changed.clear()
                # Before the look: what was under way then may be done by now, and what was seen is old.
                is_busy = bool(desks) or self._is_depositing
                due = await self._transact(self._look)
                now = time.monotonic()
                idle.seen(due.to_fetch, is_busy=is_busy, now=now)
                if now >= turn_ends:
                    return await self._finish_turn(desks), due.next_due_in
                self._open_desks(desks, due)
                if not desks and not is_busy:
                    if due.to_fetch == 0:
                        return Ending.DRAINED, None
                    if self._is_hopeless(due, idle.lasts(now)):
                        return Ending.WAITING, due.next_due_in
                if lines.is_due(now):
                    self._progress(self._standing(due))
                await self._pause(desks, depositing, due)
                for key in [key for key, task in desks.items() if task.done()]:
                    await desks.pop(key)
        finally:
            for task in desks.values():
                task.cancel()
            await asyncio.gather(*desks.values(), return_exceptions=True)

    def _open_desks(self, desks: dict[str, asyncio.Task[None]], due: frontier.Due) -> None:
        for key in [key for key, ready in due.by_key.items() if ready]:
            if key not in desks:
                desks[key] = asyncio.create_task(self._work(key))
            elif key in self._desks:
                self._desks[key].wake()

    @property
    def _is_depositing(self) -> bool:
        return bool(self._outbox) or self._in_deposit > 0

    def _look(self, connection: Connection) -> frontier.Due:
        return frontier.due(connection, self._source.name, self._start, self._kinds)

    def _is_hopeless(self, due: frontier.Due, waited_s: float) -> bool:
        """Whether what is left is not due within what is left of the patience."""
        if any(due.by_key.values()):
            return False
        patience = self._source.patience.total_seconds()
        return waited_s + (due.next_due_in or 0.0) > patience

    async def _pause(
        self, desks: dict[str, asyncio.Task[None]], depositing: asyncio.Task[None], due: frontier.Due
    ) -> None:
        """Until something may have changed: a desk closed, a batch was stored, or it is time to look again."""
        changed = asyncio.create_task(self._changed.wait())
        limit = LOOK_AGAIN_S if due.next_due_in is None else min(LOOK_AGAIN_S, max(due.next_due_in, 0.01))
        if desks:
            limit = PROGRESS_EVERY_S
        await asyncio.wait({changed, depositing, *desks.values()}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        if depositing.done():
            await depositing  # raises what ended it: without deposits there is no point in sending

    async def _finish_turn(self, desks: dict[str, asyncio.Task[None]]) -> Ending:
        """Send nothing more, let answers come in, and say that the turn is over."""
        self._stopping = True
        for desk in self._desks.values():
            desk.pulse.set()
        await asyncio.gather(*desks.values())
        return Ending.TURN_OVER

    def _standing(self, due: frontier.Due) -> Progress:
        answered = sum(self._tally.outcomes.values())
        waiting = "" if any(due.by_key.values()) or self._desks else f"work due in {due.next_due_in or 0:.0f} s"
        return Progress(
            to_fetch=due.to_fetch,
            answered=answered,
            per_second=answered / max(time.monotonic() - self._began, 0.001),
            waiting_for=waiting,
        )

    # --- One budget key --------------------------------------------------------------------------------------------

    async def _work(self, key: str) -> None:
        """Hold slots on a budget key while there is work for them."""
        desk = self._desks[key] = _Desk(demand=self._demand(key))
        ask_at = 0.0
        try:
            while desk.senders or (desk.has_work and not self._stopping):
                back, want = self._ended(desk), self._wanted(desk)
                if back or (want and time.monotonic() >= ask_at):
                    ask_at = time.monotonic() + await _to_its_end(self._exchange(key, desk, back, want))
                    continue
                await self._until_something(desk, max(0.0, ask_at - time.monotonic()) if want else None)
        finally:
            for task in desk.senders:
                task.cancel()
            await asyncio.gather(*desk.senders, return_exceptions=True)
            await self._close(key, desk)

    def _wanted(self, desk: _Desk) -> int:
        """Slots to ask for; none without work for them."""
        if self._stopping or not desk.has_work:
            return 0
        return max(0, min(self._source.in_flight, self._source.budget.slots) - len(desk.senders))

    def _ended(self, desk: _Desk) -> list[Permission]:
        """The permissions whose senders have ended; an error of a sender is raised here."""
        ended = [task for task in desk.senders if task.done()]
        back = [desk.senders.pop(task) for task in ended]
        for task in ended:
            task.result()
        return back

    async def _exchange(self, key: str, desk: _Desk, back: Sequence[Permission], want: int) -> float:
        """Give back and acquire in one transaction; the seconds until it makes sense to ask again."""
        before = time.monotonic()
        acquired = await self._transact(lambda connection: self._exchange_now(connection, key, desk, back, want))
        after = time.monotonic()
        if acquired is not None:
            for grant in acquired.grants:
                permission = Permission(grant, gap_s=acquired.gap_s, before=before, after=after)
                desk.senders[asyncio.create_task(self._send(key, desk, permission))] = permission
        desk.permissions = tuple(desk.senders.values())
        if not desk.senders and desk.leases:
            await self._put_back(desk)
        return acquired.retry_in_s if acquired is not None else LOOK_AGAIN_S

    async def _put_back(self, desk: _Desk) -> None:
        """Without a slot nothing may be sent: what was claimed ahead is for whoever has one (rule 3)."""
        unsent, desk.leases = list(desk.leases), deque()
        desk.is_dry = False
        await asyncio.to_thread(self._release, unsent)

    def _exchange_now(
        self, connection: Connection, key: str, desk: _Desk, back: Sequence[Permission], want: int
    ) -> budget.Acquired | None:
        now = time.monotonic()
        returned = [permission.returned(now) for permission in back]
        if want:
            if not desk.is_declared:
                budget.declare(connection, desk.demand)
                desk.is_declared = True
            return budget.acquire(
                connection, demand=desk.demand, holder=self.name, want=want, lease=SLOT_LEASE, returned=returned
            )
        budget.give_back(connection, budget_key=key, holder=self.name, returned=returned)
        return None

    async def _until_something(self, desk: _Desk, within_s: float | None) -> None:
        """Until a sender ends, work may have come, or it is time to ask again."""
        desk.pulse.clear()
        pulse = asyncio.create_task(desk.pulse.wait())
        await asyncio.wait({pulse, *desk.senders}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        pulse.cancel()

    async def _close(self, key: str, desk: _Desk) -> None:
        """Everything back: unsent leases, slots, the place in the queue."""
        if desk.claiming:
            await asyncio.gather(desk.claiming, return_exceptions=True)
        leases, desk.leases = list(desk.leases), deque()
        await asyncio.to_thread(self._release, leases)
        await asyncio.to_thread(self._leave, key, desk)
        del self._desks[key]
        self._changed.set()

    def _leave(self, key: str, desk: _Desk) -> None:
        back, desk.permissions = list(desk.senders.values()), ()
        desk.senders.clear()
        now = time.monotonic()
        with self._database.transaction() as connection:
            returned = [permission.returned(now) for permission in back]
            budget.give_back(connection, budget_key=key, holder=self.name, returned=returned)
            budget.stop_waiting(connection, budget_key=key, holder=self.name)

    async def _send(self, key: str, desk: _Desk, permission: Permission) -> None:
        """Serial sending in one slot, the gap between an answer's end and the next start."""
        while not self._stopping:
            await self._room.wait()
            wait_s = permission.wait_s(time.monotonic())
            if wait_s == math.inf or permission.is_closed(time.monotonic()):
                return
            if wait_s > 0:
                await asyncio.sleep(min(wait_s, LOOK_AGAIN_S))
                continue
            lease = await self._next_lease(key, desk)
            if lease is None:
                return
            if not permission.may_start(time.monotonic()):
                desk.leases.appendleft(lease)
                continue
            answered = await self._fetch(lease, desk, permission)
            if answered is not None:
                desk.answers += 1
                self._put(answered)

    async def _fetch(self, lease: Lease, desk: _Desk, permission: Permission) -> Answered | None:
        source = self._source
        request = FetchRequest(
            url=lease.url,
            method=lease.method,
            headers=loaded_headers(lease.headers),
            body=lease.body,
            connect_s=source.connect_timeout.total_seconds(),
            read_s=source.read_timeout.total_seconds(),
            total_s=source.total_timeout.total_seconds(),
            max_bytes=source.max_bytes,
        )
        permission.started(time.monotonic())
        self._in_flight += 1
        ended_at: float | None = None
        try:
            answer = await self._fetcher.fetch(request, lambda: permission.may_send(time.monotonic()))
            ended_at = answer.ended_at
        finally:
            self._in_flight -= 1
            # An interrupted request was under way until now.
            permission.ended(time.monotonic() if ended_at is None else ended_at)
        if isinstance(answer, NotSent):
            desk.leases.appendleft(lease)
            return None
        self._tally.sent += 1
        return Answered(lease=lease, answer=answer)

    async def _next_lease(self, key: str, desk: _Desk) -> Lease | None:
        """A lease that is still ours, claimed ahead in small batches."""
        while not self._stopping:
            if len(desk.leases) <= len(desk.permissions) // 2 and desk.claiming is None and not desk.is_dry:
                desk.claiming = asyncio.create_task(self._claim(key, desk))
            while desk.leases:
                lease = desk.leases.popleft()
                if lease.request_id in self._held:
                    return lease
            if desk.claiming is not None:
                await asyncio.wait({desk.claiming})
            elif self._is_depositing:
                # What is on its way into the database may lead further, and it counts against the capacity until it is
                # there. Keeping the slot for that moment is cheaper than asking for it again.
                await self._deposited()
                desk.is_dry = False
            else:
                return None
        return None

    async def _claim(self, key: str, desk: _Desk) -> None:
        count = desk.claim_size()
        try:
            claimed = await self._transact(lambda connection: self._claim_now(connection, key, count))
            with self._held_lock:
                self._held.update({lease.request_id: lease for lease in claimed})
            desk.leases.extend(claimed)
            desk.is_dry = len(claimed) < count
        except BaseException:
            desk.is_dry = True
            raise
        finally:
            desk.claiming = None

    def _claim_now(self, connection: Connection, key: str, count: int) -> list[Lease]:
        source = self._source
        return frontier.claim(
            connection,
            source=source.name,
            window_start=self._start,
            budget_key=key,
            worker=self.name,
            count=count,
            lease=source.lease,
            kinds=self._kinds,
            lane_weights=source.lanes,
            discovering=source.with_discover,
            interleave=source.interleave_weights if source.interleave else None,
        )

    # --- Answers -----------------------------------------------------------------------------------------------------

    async def _deposited(self) -> None:
        """Until the deposit that is next has been made."""
        await asyncio.wait({self._next_deposit})

    def _put(self, answered: Answered) -> None:
        self._outbox.append(answered)
        self._outbox_bytes += len(getattr(answered.answer, "body", b""))
        if len(self._outbox) >= MOST_WAITING_ANSWERS or self._outbox_bytes >= MOST_WAITING_BYTES:
            self._room.clear()
        self._wake.set()

    async def _deposit_all(self) -> None:
        """Store what has come in, batch after batch, until the worker stops."""
        while not (self._stopping and not self._outbox):
            await self._wake.wait()
            self._wake.clear()
            if self._in_flight and len(self._outbox) < MOST_DEPOSITED:
                await asyncio.sleep(LINGER_S)
            while self._outbox:
                await self._deposit()

    async def _deposit(self) -> None:
        batch = self._outbox[:MOST_DEPOSITED]
        del self._outbox[: len(batch)]
        self._outbox_bytes -= sum(len(getattr(item.answer, "body", b"")) for item in batch)
        self._in_deposit = len(batch)
        try:
            self._tally.add(await asyncio.to_thread(self._depositor.store, batch))
        finally:
            self._in_deposit = 0
            self._forget(batch)
            self._room.set()
            self._changed.set()
            made, self._next_deposit = self._next_deposit, asyncio.get_running_loop().create_future()
            made.set_result(None)

    def _forget(self, batch: Sequence[Answered]) -> None:
        with self._held_lock:
            for item in batch:
                self._held.pop(item.lease.request_id, None)

    # --- What is held -----------------------------------------------------------------------------------------------

    def _beat(self, connection: Connection) -> None:
        """Renew slots, then leases; on the heartbeat's thread and connection."""
        for key, desk in sorted(self._desks.items()):
            self._renew_slots(connection, key, desk)
        with self._held_lock:
            held = sorted((lease.request_id, lease.fence) for lease in self._held.values())
        if not held:
            return
        ours = frontier.renew(connection, held, self._start, self._source.lease)
        lost = [request_id for request_id, _ in held if request_id not in ours]
        with self._held_lock:
            for request_id in lost:
                self._held.pop(request_id, None)

    def _renew_slots(self, connection: Connection, key: str, desk: _Desk) -> None:
        permissions = desk.permissions
        if not permissions:
            return
        before = time.monotonic()
        renewed = budget.renew(
            connection,
            budget_key=key,
            holder=self.name,
            held=[permission.held() for permission in permissions],
            lease=SLOT_LEASE,
            deadline=desk.demand.deadline,
        )
        after = time.monotonic()
        for permission in permissions:
            permission.renewed(
                renewed.slots.get(permission.slot),
                gap_s=renewed.gap_s,
                closed_for_s=renewed.closed_for_s,
                before=before,
                after=after,
            )

    def _demand(self, key: str) -> budget.Demand:
        limits = self._source.budget
        return budget.Demand(
            budget_key=key,
            per=limits.per,
            source=self._source.name,
            gap=limits.gap,
            slots=limits.slots,
            weight=limits.weight,
            deadline=self._source.total_timeout,
        )

    def _release(self, leases: Sequence[Lease]) -> None:
        with self._held_lock:
            mine = [lease for lease in leases if self._held.pop(lease.request_id, None)]
        if mine:
            with self._database.transaction() as connection:
                frontier.finish(
                    connection,
                    self._start,
                    [frontier.Released(request_id=lease.request_id, fence=lease.fence) for lease in mine],
                )

    async def _transact(self, unit: Callable[[Connection], T]) -> T:
        def work() -> T:
            with self._database.transaction() as connection:
                return unit(connection)

        return await asyncio.to_thread(work)


async def _to_its_end(step: Coroutine[Any, Any, T]) -> T:
    """The step; a cancellation waits for its end: slots that it took must be known to be given back."""
    task = asyncio.ensure_future(step)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
