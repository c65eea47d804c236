"""One budget key in a worker's hands: the slots held on it, the leases waiting for them, the requests under way.

Slots are held over a turn and renewed by the heartbeat; leases are claimed a moment ahead, in small batches: no round
trip per page, and a kill -9 costs few attempts (rule 3).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from collector_assets import budget, closing, frontier, landing
from collector_assets.asking import LOOK_AGAIN_S, SLOT_LEASE, demand_of, request_of, to_its_end
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.deposit import Answered, answered_of
from collector_assets.errors import CollectorError
from collector_assets.fetch import Fetcher, NotSent, Response
from collector_assets.holdings import Holdings
from collector_assets.membership import Membership
from collector_assets.outbox import Outbox
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.permission import Permission
from collector_assets.politeness import Forbidden, Permit, Politeness, Unknown
from collector_assets.request import Lease, RequestId
from collector_assets.revisits import EarlierPages
from collector_assets.sitemap_links import is_robots
from collector_assets.stops import Stops

T = TypeVar("T")
Learn = Callable[[Callable[[], None]], Coroutine[Any, Any, None]]
"""What is waited for; it tells when it takes a slot."""

CLAIM_AHEAD_S: Final = 0.1
"""How much work is claimed ahead of sending, in seconds of sending: what a kill -9 may cost in attempts."""
MOST_CLAIMED: Final = 256
SESSION: Final = "session"
"""What requests wait for that are not an origin's; no origin is called so."""
GLANCE_S: Final = 0.1
"""How long a slot is kept while a robots.txt is looked up that another worker may have fetched, or is fetching."""


@dataclass(slots=True, kw_only=True)
class Shift:
    """What the desks of one worker share."""

    worker: str
    source: Source
    window_start: datetime
    kinds: Sequence[str] | None
    database: Database
    fetcher: Fetcher
    politeness: Politeness
    holdings: Holdings
    outbox: Outbox
    earlier: EarlierPages
    stops: Stops
    membership: Membership | None = None
    """Of a source with a session."""
    unavailable: dict[str, set[RequestId]] = field(default_factory=dict)
    """By budget key, the requests in a row that found the site down: a desk may close between two of them."""
    sent: int = 0
    loads: Counter[str] = field(default_factory=Counter)
    """What pages in a browser wanted besides, by what became of it."""
    is_stopping: bool = False
    """Nothing more is claimed or sent."""
    stopped_by: CollectorError | None = None
    """What the worker ends with, once what is under way is in."""

    def stop(self, error: CollectorError) -> None:
        """Claim and send nothing more, because a fetcher cannot."""
        self.is_stopping, self.stopped_by = True, self.stopped_by or error

    async def transact(self, unit: Callable[[Connection], T]) -> T:
        """One transaction, on a thread."""

        def work() -> T:
            with self.database.transaction() as connection:
                return unit(connection)

        return await asyncio.to_thread(work)


class Desk:
    """Works on one budget key until there is nothing to send on it."""

    def __init__(self, key: str, shift: Shift) -> None:
        self.key, self._shift = key, shift
        self._demand = demand_of(shift.source, key)
        self._senders: dict[asyncio.Task[None], Permission] = {}
        self._permissions: tuple[Permission, ...] = ()
        """Those in hand; replaced, never changed: the heartbeat reads it from its thread."""
        self._leases: deque[Lease] = deque()
        self._claiming: asyncio.Task[None] | None = None
        self._parked: dict[str, list[Lease]] = {}
        """By origin: those whose robots.txt is being learned; and those that wait for the session."""
        self._learning: dict[asyncio.Task[None], str] = {}
        self._glance = asyncio.Event()
        """What may be known by a look into the database is known, or must be fetched."""
        self._delays = 0
        """How often a robots.txt with a Crawl-delay was learned: slots that were granted before do not know of it."""
        self._is_declared = False
        """The demand is written as the source says it now: an earlier run may have left another that still lives."""
        self._is_dry = False
        """The last claim found less than it asked for."""
        self._unavailable = shift.unavailable.setdefault(key, set())
        self._answers = 0
        self._since = time.monotonic()
        self._pulse = asyncio.Event()

    def wake(self) -> None:
        """There may be work again, or it is time to stop."""
        self._is_dry = False
        self._pulse.set()

    async def work(self) -> None:
        """Hold slots while there is work for them; at the end everything is given back."""
        ask_at = 0.0
        try:
            while self._senders or (
                (self._has_work or self._learning) and not self._shift.is_stopping and not self._is_closed
            ):
                self._unpark()
                back, want = self._ended(), self._wanted()
                if back or (want and time.monotonic() >= ask_at):
                    ask_at = time.monotonic() + await to_its_end(self._exchange(back, want))
                    continue
                await self._until_something(max(0.0, ask_at - time.monotonic()) if want else None)
        finally:
            tasks = [*self._senders, *self._learning]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._close()

    @property
    def _has_work(self) -> bool:
        return bool(self._leases) or self._may_claim

    @property
    def _may_claim(self) -> bool:
        """Whether more is to be had; not while as much as a claim waits for a robots.txt already."""
        return not self._is_dry and sum(map(len, self._parked.values())) <= self._claim_size()

    @property
    def _is_closed(self) -> bool:
        """Nothing may be sent on the key, by nobody: whoever waits for it does so without a desk."""
        return self._shift.stops.closed_for_s(self.key) > 0

    async def _until_something(self, within_s: float | None) -> None:
        """Until a sender ends, work may have come, or it is time to ask again."""
        self._pulse.clear()
        pulse = asyncio.create_task(self._pulse.wait())
        things = {pulse, *self._senders, *self._learning}
        await asyncio.wait(things, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        pulse.cancel()

    async def _close(self) -> None:
        """Everything back: unsent leases, slots, the place in the queue."""
        if self._claiming:
            await asyncio.gather(self._claiming, return_exceptions=True)
        leases, self._leases = [*self._leases, *(lease for those in self._parked.values() for lease in those)], deque()
        await asyncio.to_thread(self._shift.holdings.give_back, leases)
        await asyncio.to_thread(self.leave)

    # --- Slots -------------------------------------------------------------------------------------------------------

    def _wanted(self) -> int:
        """Slots to ask for; none without work for them."""
        if self._shift.is_stopping or not self._has_work or self._is_closed:
            return 0
        source = self._shift.source
        return max(0, min(source.in_flight, source.budget.slots) - len(self._senders))

    def _ended(self) -> list[Permission]:
        """The permissions whose senders have ended; an error of a sender is raised here."""
        ended = [task for task in self._senders if task.done()]
        back = [self._senders.pop(task) for task in ended]
        for task in ended:
            task.result()
        return back

    async def _exchange(self, back: Sequence[Permission], want: int) -> float:
        """Give back and acquire in one transaction; the seconds until it makes sense to ask again."""
        before, mark, delays = time.monotonic(), self._shift.stops.mark, self._delays
        acquired = await self._shift.transact(lambda connection: self._exchange_now(connection, back, want))
        after = time.monotonic()
        if acquired is not None:
            self._shift.stops.learn_closed({self.key: acquired.closed_for_s}, mark)
            for grant in acquired.grants:
                permission = Permission(grant, gap_s=acquired.gap_s, before=before, after=after)
                self._senders[asyncio.create_task(self._send(permission, delays))] = permission
        self._permissions = tuple(self._senders.values())
        if not self._senders and self._leases:
            await self._put_back()
        return acquired.retry_in_s if acquired is not None else 0.0

    def _exchange_now(self, connection: Connection, back: Sequence[Permission], want: int) -> budget.Acquired | None:
        now, holder = time.monotonic(), self._shift.worker
        returned = [permission.returned(now) for permission in back]
        if not want:
            budget.give_back(connection, budget_key=self.key, holder=holder, returned=returned)
            return None
        if not self._is_declared:
            budget.declare(connection, self._demand)
            self._is_declared = True
        return budget.acquire(
            connection, demand=self._demand, holder=holder, want=want, lease=SLOT_LEASE, returned=returned
        )

    async def _put_back(self) -> None:
        """Without a slot nothing may be sent: what was claimed ahead is for whoever has one (rule 3)."""
        unsent, self._leases = list(self._leases), deque()
        self._is_dry = False
        await asyncio.to_thread(self._shift.holdings.give_back, unsent)

    def renew(self, connection: Connection) -> None:
        """Extend the slots' leases; on the heartbeat's thread and connection."""
        permissions = self._permissions
        if not permissions:
            return
        before, mark = time.monotonic(), self._shift.stops.mark
        renewed = budget.renew(
            connection,
            budget_key=self.key,
            holder=self._shift.worker,
            held=[permission.held() for permission in permissions],
            lease=SLOT_LEASE,
            deadline=self._demand.deadline,
        )
        after = time.monotonic()
        self._shift.stops.learn_closed({self.key: renewed.closed_for_s}, mark)
        for permission in permissions:
            permission.renewed(
                renewed.slots.get(permission.slot),
                gap_s=renewed.gap_s,
                closed_for_s=renewed.closed_for_s,
                before=before,
                after=after,
            )

    def leave(self) -> None:
        """Give back every slot, and leave the queue for more; with nothing in flight."""
        back, self._permissions = list(self._senders.values()), ()
        self._senders.clear()
        now, holder = time.monotonic(), self._shift.worker
        with self._shift.database.transaction() as connection:
            returned = [permission.returned(now) for permission in back]
            budget.give_back(connection, budget_key=self.key, holder=holder, returned=returned)
            budget.stop_waiting(connection, budget_key=self.key, holder=holder)

    # --- Sending -----------------------------------------------------------------------------------------------------

    async def _send(self, permission: Permission, delays: int) -> None:
        """Serial sending in one slot, the gap between an answer's end and the next start."""
        while not self._shift.is_stopping:
            await self._shift.outbox.has_room()
            wait_s = permission.wait_s(time.monotonic())
            if wait_s == math.inf or self._is_closed or delays != self._delays:
                await self._told()
                return
            if wait_s > 0:
                await asyncio.sleep(min(wait_s, LOOK_AGAIN_S))
                continue
            found = await self._next_lease()
            if found is None:
                return
            lease, permit = found
            if not permission.may_start(time.monotonic()) or delays != self._delays:
                self._leases.appendleft(lease)
                continue
            answered = await self._fetch(lease, permit, permission)
            if answered is not None:
                self._answers += 1
                self._shift.outbox.put(answered)

    async def _told(self) -> None:
        """Until the database knows what closed the key: whoever gets the slot next must not be too early."""
        while self._shift.stops.is_held(self.key) and self._shift.outbox.is_busy:
            await self._shift.outbox.deposited()

    async def _fetch(self, lease: Lease, permit: Permit, permission: Permission) -> Answered | None:
        request, outbox, stops = request_of(self._shift.source, lease), self._shift.outbox, self._shift.stops
        if self._shift.source.kind_map[lease.kind].fetcher == "browser":
            request = replace(request, gap_s=permission.gap_s, may_load=self._may_load)
        membership, generation = self._shift.membership, 0
        if membership is not None:
            request, generation = membership.carried(lease, request), membership.generation
        permission.started(time.monotonic())
        outbox.in_flight += 1
        ended_at: float | None = None
        try:
            answer = await self._shift.fetcher.fetch(
                request,
                lambda: (
                    not self._is_closed and not stops.forbid(lease.address) and permission.may_send(time.monotonic())
                ),
            )
            ended_at = answer.ended_at
        finally:
            outbox.in_flight -= 1
            # An interrupted request was under way until now.
            permission.ended(time.monotonic() if ended_at is None else ended_at)
        if isinstance(answer, NotSent):
            self._leases.appendleft(lease)
            if answer.stop:
                self._shift.stop(answer.stop)
            return None
        if isinstance(answer, Response) and answer.loads:
            self._count_loads(answer.loads, permission)
        self._shift.sent += 1
        answer = landing.judged(self._shift.politeness, answer)
        answered = answered_of(self._shift.source, lease, answer, permit.rule)
        if membership is not None:
            answered = membership.heeded(answered, generation)
        self._heed(answered)
        return answered

    def _may_load(self, url: str) -> bool:
        """Whether a page may load this: not from a halted origin, nor what a robots.txt that we know forbids.

        What is not known is not asked for in the middle of a page: the slot that it would need is this one.
        """
        return not self._shift.stops.forbid(url) and not isinstance(self._shift.politeness.permit(url), Forbidden)

    def _count_loads(self, loads: Mapping[str, int], permission: Permission) -> None:
        """What a page loaded besides its document: requests to the key like others (rule 7)."""
        own = loads.get("own", 0)
        permission.also_served(own)
        self._shift.sent += own
        self._shift.loads.update(loads)

    def _heed(self, answered: Answered) -> None:
        """Stop at once where an answer closes the key, the third finds the site down, or refusals are too many.

        About all of it the deposit decides, in the light of what others have heard.
        """
        stops = self._shift.stops
        if answered.is_refusal:
            stops.refused(answered.origin, limit=self._shift.source.refusal_limit)
        elif stops.has_refusals and policy(answered.answer.outcome) is Policy.KEEP:
            stops.accepted(answered.origin)
        if answered.answer.outcome is Outcome.UNAVAILABLE:
            self._unavailable.add(answered.lease.request_id)
        else:
            self._unavailable.clear()
        closes_for = closing.UNASKED.first if len(self._unavailable) >= closing.OUTAGE else answered.closes_for
        if closes_for is not None:
            stops.hold(self.key, closes_for.total_seconds())

    # --- Leases ------------------------------------------------------------------------------------------------------

    async def _next_lease(self) -> tuple[Lease, Permit] | None:
        """A lease that is still ours and may be fetched, claimed ahead in small batches."""
        while not self._shift.is_stopping:
            if self._claiming is None and len(self._leases) <= self._claim_size() // 2 and self._may_claim:
                self._claiming = asyncio.create_task(self._claim())
            while self._leases:
                lease = self._leases.popleft()
                if lease in self._shift.holdings and (permit := await self._permitted(lease)):
                    return lease, permit
            if self._claiming is not None:
                claiming = self._claiming
                await asyncio.wait({claiming})
                claiming.result()  # an error ends the sender, and with it the worker
                await self._shift.outbox.has_room()
            elif self._learning:
                # A look into the database is worth waiting for; whoever must fetch the file needs the slot.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._glance.wait(), GLANCE_S)
                if not self._unpark():
                    return None
            elif self._shift.outbox.is_busy:
                # What is on its way into the database may lead further, and it counts against the capacity until it is
                # there. Keeping the slot for that moment is cheaper than asking for it again.
                await self._shift.outbox.deposited()
                self._is_dry = False
            else:
                return None
        return None

    async def _permitted(self, lease: Lease) -> Permit | None:
        """The permit to fetch it; without one it is put away as it ends, or parked until its robots.txt is known."""
        if self._shift.stops.forbid(lease.address):
            await asyncio.to_thread(self._shift.holdings.give_back, [lease])
            return None
        answer = self._shift.politeness.permit(lease.address)
        match answer:
            case Permit() if self._shift.source.is_sitemap(lease.kind) and is_robots(lease.address):
                # It was fetched, or was known, before: the sitemaps that it names are all that is wanted.
                self._answers += 1
                self._shift.outbox.put(Answered(lease=lease, answer=self._shift.politeness.sitemaps(lease.address)))
            case Permit():
                return answer if self._shift.membership is None else self._let_in(lease, answer, self._shift.membership)
            case Unknown(origin=origin):
                self._park(lease, origin, partial(self._shift.politeness.learn, origin))
            case _:
                self._answers += 1
                self._shift.outbox.put(Answered(lease=lease, answer=answer))
        return None

    def _let_in(self, lease: Lease, permit: Permit, membership: Membership) -> Permit | None:
        """The permit, under the source's session; without one it waits until somebody has logged in, or may."""
        if membership.is_ready:
            return permit
        if wait := membership.pause():
            self._answers += 1
            self._shift.outbox.put(Answered(lease=lease, answer=wait))
        else:
            self._park(lease, SESSION, membership.begin)
        return None

    def _park(self, lease: Lease, what: str, learn: Learn) -> None:
        self._parked.setdefault(what, []).append(lease)
        if what not in self._learning.values():
            self._glance.clear()
            learning = asyncio.create_task(learn(self._glance.set))
            learning.add_done_callback(lambda _: self._glance.set())
            self._learning[learning] = what

    def _unpark(self) -> bool:
        """What waited for a robots.txt that is known now goes on, if any; an error of learning it is raised here."""
        known = [task for task in self._learning if task.done()]
        for task in known:
            origin = self._learning.pop(task)
            self._leases.extendleft(reversed(self._parked.pop(origin, [])))
            task.result()
            self._delays += self._shift.politeness.has_delay(origin)
        return bool(known) or bool(self._leases)

    def _claim_size(self) -> int:
        """What may be sent in the next moment: at least a request per slot, at most CLAIM_AHEAD_S of sending."""
        elapsed = max(time.monotonic() - self._since, 0.05)
        ahead = math.ceil(self._answers / elapsed * CLAIM_AHEAD_S)
        return max(len(self._permissions), min(ahead, MOST_CLAIMED))

    async def _claim(self) -> None:
        count = self._claim_size()
        try:
            claimed = await asyncio.to_thread(self._claim_held, count)
            self._shift.holdings.take(claimed)
            self._leases.extend(claimed)
            self._is_dry = len(claimed) < count
        except BaseException:
            self._is_dry = True
            raise
        finally:
            self._claiming = None

    def _claim_held(self, count: int) -> list[Lease]:
        """What is claimed, and what is held of it already; the archive is asked when the transaction is over."""
        with self._shift.database.transaction() as connection:
            claimed = self._claim_now(connection, count)
        return self._shift.earlier.held(claimed)

    def _claim_now(self, connection: Connection, count: int) -> list[Lease]:
        source = self._shift.source
        claimed = frontier.claim(
            connection,
            source=source.name,
            window_start=self._shift.window_start,
            budget_key=self.key,
            worker=self._shift.worker,
            count=count,
            lease=source.lease,
            kinds=self._shift.kinds,
            lane_weights=source.lanes,
            discovering=source.with_discover,
            interleave=source.interleave_weights if source.interleave else None,
        )
        return self._shift.earlier.of(connection, claimed)
