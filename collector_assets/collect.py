"""Use case: claim -> permission -> fetch -> archive -> complete. The one asyncio loop of a worker.

The worker decides when there is work and when there is nothing more to wait for; a desk per budget key sends
(`desk/`), the outbox stores (`outbox.py`), the heartbeat renews what is held. Several workers on one window, in any
number of processes and hosts, share it through the database alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from enum import StrEnum
from typing import Final

import psycopg
import uvloop

from collector_assets import budget, frontier, garbage, interrupts, origins
from collector_assets.archive import Archive
from collector_assets.asking import LOOK_AGAIN_S, SLOT_LEASE
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.deposit import Depositor
from collector_assets.desk import Desk, Shift
from collector_assets.errors import CollectorError, OriginHalted
from collector_assets.fetch import Fetcher
from collector_assets.heartbeat import Heartbeat
from collector_assets.holdings import Holdings
from collector_assets.membership import Membership
from collector_assets.outbox import Outbox
from collector_assets.politeness import Politeness
from collector_assets.revisits import EarlierPages
from collector_assets.stops import Stops
from collector_assets.unfold import UnfoldingDepositor
from collector_assets.windows import WindowRow

LOG = logging.getLogger(__name__)

PROGRESS_EVERY_S: Final = 2.0
REST_S: Final = 0.2
"""At least between two looks at the window while a desk is at work."""
HALT_SETTLES_S: Final = 2 * SLOT_LEASE.total_seconds() / 3
"""What other workers hold for a halted origin is back by then: they hear of the halt at their next renewal."""


class Ending(StrEnum):
    """Why a worker stopped."""

    DRAINED = "drained"
    WAITING = "waiting"
    """What is left is not due within the source's patience."""
    TURN_OVER = "turn_over"
    HALTED = "halted"
    """What is left is for origins that refused us."""
    STOPPED = "stopped"
    """A fetcher can send nothing more; `run` raises why."""


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
    loads: Mapping[str, int] = field(default_factory=dict)
    """What pages in a browser wanted besides their documents, by what became of it (`gate.Load`)."""
    troubles: tuple[str, ...] = ()
    """Whose robots.txt could not be had, and why."""


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
    and propagates; after a lost database they run out by themselves. Raises `OriginHalted` when all that is left is for
    origins that refused us, and `RenderingStopped` when a rendering service cannot go on.
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
    with garbage.collected_rarely(), interrupts.held_back() as interrupted:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                collected = runner.run(interrupted.stoppable(worker.drain()))
        finally:
            worker.let_go()
    if worker.stopped_by:
        raise worker.stopped_by
    if collected.ending is Ending.HALTED:
        raise _halted(source, window, kinds, database)
    return collected


def _halted(source: Source, window: WindowRow, kinds: Sequence[str] | None, database: Database) -> OriginHalted:
    with database.transaction() as connection:
        held_up = frontier.held_up(connection, source.name, window.window.start, kinds)
    whose = "; ".join(
        f"{each.requests} requests wait for {each.origin}, which refused us and is halted since"
        f" {each.halted_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC ({each.reason})"
        for each in held_up
    )
    return OriginHalted(f"{source.name} {window.window.key}", whose, [each.origin for each in held_up])


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
        self._source, self._window, self._start, self._kinds = source, window.window, window.window.start, kinds
        self._database, self._make_fetcher, self._progress = database, fetcher, progress
        self._writer = archive.writer(source.name, window.window.key)
        self._depositor = (UnfoldingDepositor if source.sitemaps else Depositor)(
            source=source, window=window, database=database, archive=archive, writer=self._writer
        )
        self._earlier = EarlierPages(source=source, window_start=self._start, archive=archive)
        self._holdings = Holdings(database=database, window_start=self._start, lease=source.lease)
        self._desks: dict[str, Desk] = {}
        self._stops = Stops()
        self._membership: Membership | None = None
        self._changed = asyncio.Event()
        self._began = time.monotonic()
        shortest = min(SLOT_LEASE, source.lease).total_seconds()
        self._heartbeat = Heartbeat(database, self._beat, interval_s=shortest / 3)

    # --- The life of a worker ------------------------------------------------------------------------------------

    async def drain(self) -> Collected:
        """Until drained, waiting or out of time."""
        self._outbox = Outbox(
            depositor=self._depositor, holdings=self._holdings, stops=self._stops, on_deposit=self._changed.set
        )
        fetcher = self._make_fetcher()
        politeness = Politeness(
            source=self._source,
            database=self._database,
            fetcher=fetcher,
            holder=self.name,
            is_stopped=self._is_stopped,
            on_closed=self._stops.close,
        )
        if self._source.session:
            self._membership = Membership(
                source=self._source, window=self._window, database=self._database, fetcher=fetcher,
                politeness=politeness, holder=self.name, is_stopped=self._is_stopped,
            )  # fmt: skip
        self._shift = Shift(
            worker=self.name,
            source=self._source,
            window_start=self._start,
            kinds=self._kinds,
            database=self._database,
            fetcher=fetcher,
            politeness=politeness,
            membership=self._membership,
            holdings=self._holdings,
            outbox=self._outbox,
            earlier=self._earlier,
            stops=self._stops,
        )
        self._heartbeat.start()
        depositing = asyncio.create_task(self._outbox.run())
        try:
            ending, due_in = await self._direct(depositing)
            self._outbox.close()
            await depositing
            return self._report(ending, due_in)
        finally:
            self._shift.is_stopping = True
            depositing.cancel()
            await self._shift.fetcher.close()

    @property
    def stopped_by(self) -> CollectorError | None:
        """Why a fetcher can send nothing more, if so."""
        return self._shift.stopped_by

    def _is_stopped(self, url: str) -> bool:
        """Whether nothing may be sent there now: its origin is halted, or its budget key is closed."""
        return self._stops.forbid(url) or self._stops.closed_for_s(self._source.budget_key(url)) > 0

    def let_go(self) -> None:
        """Give everything back that is still held: after a clean end nothing, after an interrupt what was under way."""
        self._heartbeat.stop()
        try:
            if hasattr(self, "_outbox"):
                self._outbox.store_the_rest()
            self._holdings.give_back_all()
            if self._membership:
                with self._database.transaction() as connection:
                    self._membership.sync(connection)
            for desk in self._desks.values():
                desk.leave()
        except (psycopg.Error, CollectorError, OSError) as error:
            LOG.warning("leases and slots could not be given back, they run out by themselves: %s", error)
        finally:
            self._writer.close()

    def _beat(self, connection: Connection) -> None:
        """Renew slots, then leases (rule 6), and hear of halts; on the heartbeat's thread and connection."""
        for _, desk in sorted(self._desks.items()):
            desk.renew(connection)
        mark = self._stops.mark
        halted = origins.halted(connection)
        self._holdings.renew(connection)
        self._stops.learn_halted(halted, mark)
        if self._membership:
            self._membership.sync(connection)

    def _report(self, ending: Ending, due_in: float | None) -> Collected:
        tally = self._outbox.tally
        return Collected(
            ending=ending,
            next_due_in_s=due_in,
            outcomes=tally.outcomes,
            sent=self._shift.sent,
            refused=tally.refused,
            found=tally.found,
            wire_bytes=tally.wire_bytes,
            late=tally.late,
            seconds=time.monotonic() - self._began,
            loads=dict(self._shift.loads),
            troubles=tuple(self._shift.politeness.troubles()),
        )

    # --- When to work, when to wait, when to stop ----------------------------------------------------------------

    async def _direct(self, depositing: asyncio.Task[None]) -> tuple[Ending, float | None]:
        """Open a desk per budget key with work; decide when there is nothing more to wait for."""
        turn_ends = self._began + self._source.turn.total_seconds()
        desks: dict[str, asyncio.Task[None]] = {}
        idle, lines = _Idleness(), _Metronome(PROGRESS_EVERY_S)
        try:
            while True:
                self._changed.clear()
                # Before the look: what was under way then may be done by now, and what was seen is old.
                is_busy = bool(desks) or self._outbox.is_busy
                due = await self._shift.transact(self._look)
                now = time.monotonic()
                idle.seen(due.to_fetch, is_busy=is_busy, now=now)
                if now >= turn_ends or self._shift.stopped_by:
                    return await self._finish_turn(desks), due.next_due_in
                self._open_desks(desks, due)
                if not desks and not is_busy:
                    if due.to_fetch == 0:
                        return Ending.DRAINED, None
                    if due.to_fetch == due.halted:
                        return Ending.HALTED, None
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

    def _look(self, connection: Connection) -> frontier.Due:
        """What is due, less what waits for a closed budget key."""
        due, mark = frontier.due(connection, self._source.name, self._start, self._kinds), self._stops.mark
        if unheard := due.by_key.keys() - self._desks.keys():  # a desk hears of it by its renewals
            self._stops.learn_closed(dict.fromkeys(unheard, 0.0) | budget.closed(connection, unheard), mark)
        closed = {key: for_s for key in due.by_key if (for_s := self._stops.closed_for_s(key)) > 0}
        if not closed:
            return due
        soonest = min(closed.values() if due.next_due_in is None else (due.next_due_in, *closed.values()))
        is_open = {key: ready for key, ready in due.by_key.items() if key not in closed}
        return replace(due, by_key=is_open, next_due_in=soonest)

    def _open_desks(self, desks: dict[str, asyncio.Task[None]], due: frontier.Due) -> None:
        for key in [key for key, ready in due.by_key.items() if ready]:
            if key not in desks:
                desks[key] = asyncio.create_task(self._work(key))
            elif key in self._desks:
                self._desks[key].wake()

    async def _work(self, key: str) -> None:
        desk = self._desks[key] = Desk(key, self._shift)
        await desk.work()
        del self._desks[key]  # after an error it stays: `let_go` tries once more to give its slots back
        self._changed.set()

    def _is_hopeless(self, due: frontier.Due, waited_s: float) -> bool:
        """Whether what is left is not due within what is left of the patience."""
        if any(due.by_key.values()):
            return False
        if due.halted and waited_s < HALT_SETTLES_S:
            return False
        patience = self._source.patience.total_seconds()
        return waited_s + (due.next_due_in or 0.0) > patience

    async def _pause(
        self, desks: dict[str, asyncio.Task[None]], depositing: asyncio.Task[None], due: frontier.Due
    ) -> None:
        """Until something may have changed: a desk closed, a batch was stored, or it is time to look again."""
        if desks:  # they find more work by themselves: the next look is for other keys, and counts the whole window
            await asyncio.wait({depositing, *desks.values()}, timeout=REST_S, return_when=asyncio.FIRST_COMPLETED)
        changed = asyncio.create_task(self._changed.wait())
        limit = LOOK_AGAIN_S if due.next_due_in is None else min(LOOK_AGAIN_S, max(due.next_due_in, 0.01))
        if desks:
            limit = PROGRESS_EVERY_S - REST_S
        await asyncio.wait({changed, depositing, *desks.values()}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        if depositing.done():
            await depositing  # raises what ended it: without deposits there is no point in sending

    async def _finish_turn(self, desks: dict[str, asyncio.Task[None]]) -> Ending:
        """Send nothing more, let answers come in, and say why."""
        self._shift.is_stopping = True
        for desk in self._desks.values():
            desk.wake()
        await asyncio.gather(*desks.values())
        return Ending.STOPPED if self._shift.stopped_by else Ending.TURN_OVER

    def _standing(self, due: frontier.Due) -> Progress:
        answered = sum(self._outbox.tally.outcomes.values())
        waiting = "" if any(due.by_key.values()) or self._desks else f"work due in {due.next_due_in or 0:.0f} s"
        waiting = "; ".join([*filter(None, [waiting]), *self._shift.politeness.troubles()])
        return Progress(
            to_fetch=due.to_fetch,
            answered=answered,
            per_second=answered / max(time.monotonic() - self._began, 0.001),
            waiting_for=waiting,
        )


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
