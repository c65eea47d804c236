"""The leases of one desk, until they are sent: claimed a moment ahead, or waiting for a robots.txt or the session."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from collector_assets import frontier
from collector_assets.database import Connection
from collector_assets.deposit import Answered
from collector_assets.desk.shift import Shift
from collector_assets.membership import Membership
from collector_assets.politeness import Permit, Unknown
from collector_assets.request import Lease
from collector_assets.sitemap_links import is_robots

Learn = Callable[[Callable[[], None]], Coroutine[Any, Any, None]]
"""What is waited for; it tells when it takes a slot."""

CLAIM_AHEAD_S: Final = 0.1
"""How much work is claimed ahead of sending, in seconds of sending: what a kill -9 may cost in attempts."""
MOST_CLAIMED: Final = 256
SESSION: Final = "session"
"""What requests wait for that are not an origin's; no origin is called so."""
GLANCE_S: Final = 0.1
"""How long a slot is kept while a robots.txt is looked up that another worker may have fetched, or is fetching."""


class Claims:
    """What is claimed on one budget key and not sent yet."""

    def __init__(self, key: str, shift: Shift) -> None:
        self._key, self._shift = key, shift
        self.slots = 0
        """In the desk's hands: at least as much is claimed."""
        self.answers = 0
        """So far: how fast they come says how much is claimed ahead."""
        self.delays = 0
        """How often a robots.txt with a Crawl-delay was learned: slots that were granted before do not know of it."""
        self._leases: deque[Lease] = deque()
        self._claiming: asyncio.Task[None] | None = None
        self._parked: dict[str, list[Lease]] = {}
        """By origin: those whose robots.txt is being learned; and those that wait for the session."""
        self.learning: dict[asyncio.Task[None], str] = {}
        self._glance = asyncio.Event()
        """What may be known by a look into the database is known, or must be fetched."""
        self._is_dry = False
        """The last claim found less than it asked for."""
        self._since = time.monotonic()

    def look_again(self) -> None:
        """There may be more than the last claim found."""
        self._is_dry = False

    @property
    def has_work(self) -> bool:
        """Whether there is a lease at hand, or more is to be had."""
        return bool(self._leases) or self._may_claim

    @property
    def _may_claim(self) -> bool:
        """Whether more is to be had; not while as much as a claim waits for a robots.txt already."""
        return not self._is_dry and sum(map(len, self._parked.values())) <= self._claim_size()

    async def next(self) -> tuple[Lease, Permit] | None:
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
            elif self.learning:
                # A look into the database is worth waiting for; whoever must fetch the file needs the slot.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._glance.wait(), GLANCE_S)
                if not self.unpark():
                    return None
            elif self._shift.outbox.is_busy:
                # What is on its way into the database may lead further, and it counts against the capacity until it is
                # there. Keeping the slot for that moment is cheaper than asking for it again.
                await self._shift.outbox.deposited()
                self._is_dry = False
            else:
                return None
        return None

    def put_first(self, lease: Lease) -> None:
        """It was not sent: it is the next."""
        self._leases.appendleft(lease)

    async def put_back(self) -> None:
        """Without a slot nothing may be sent: what was claimed ahead is for whoever has one (rule 3)."""
        if not self._leases:
            return
        unsent, self._leases = list(self._leases), deque()
        self._is_dry = False
        await asyncio.to_thread(self._shift.holdings.give_back, unsent)

    async def close(self) -> None:
        """Everything back that is unsent."""
        if self._claiming:
            await asyncio.gather(self._claiming, return_exceptions=True)
        leases, self._leases = [*self._leases, *(lease for those in self._parked.values() for lease in those)], deque()
        await asyncio.to_thread(self._shift.holdings.give_back, leases)

    async def _permitted(self, lease: Lease) -> Permit | None:
        """The permit to fetch it; without one it is put away as it ends, or parked until its robots.txt is known."""
        if self._shift.stops.forbid(lease.address):
            await asyncio.to_thread(self._shift.holdings.give_back, [lease])
            return None
        answer = self._shift.politeness.permit(lease.address)
        match answer:
            case Permit() if self._shift.source.is_sitemap(lease.kind) and is_robots(lease.address):
                # It was fetched, or was known, before: the sitemaps that it names are all that is wanted.
                self.answers += 1
                self._shift.outbox.put(Answered(lease=lease, answer=self._shift.politeness.sitemaps(lease.address)))
            case Permit():
                return answer if self._shift.membership is None else self._let_in(lease, answer, self._shift.membership)
            case Unknown(origin=origin):
                self._park(lease, origin, partial(self._shift.politeness.learn, origin))
            case _:
                self.answers += 1
                self._shift.outbox.put(Answered(lease=lease, answer=answer))
        return None

    def _let_in(self, lease: Lease, permit: Permit, membership: Membership) -> Permit | None:
        """The permit, under the source's session; without one it waits until somebody has logged in, or may."""
        if membership.is_ready:
            return permit
        if wait := membership.pause():
            self.answers += 1
            self._shift.outbox.put(Answered(lease=lease, answer=wait))
        else:
            self._park(lease, SESSION, membership.begin)
        return None

    def _park(self, lease: Lease, what: str, learn: Learn) -> None:
        self._parked.setdefault(what, []).append(lease)
        if what not in self.learning.values():
            self._glance.clear()
            learning = asyncio.create_task(learn(self._glance.set))
            learning.add_done_callback(lambda _: self._glance.set())
            self.learning[learning] = what

    def unpark(self) -> bool:
        """What waited for a robots.txt that is known now goes on, if any; an error of learning it is raised here."""
        known = [task for task in self.learning if task.done()]
        for task in known:
            origin = self.learning.pop(task)
            self._leases.extendleft(reversed(self._parked.pop(origin, [])))
            task.result()
            self.delays += self._shift.politeness.has_delay(origin)
        return bool(known) or bool(self._leases)

    def _claim_size(self) -> int:
        """What may be sent in the next moment: at least a request per slot, at most CLAIM_AHEAD_S of sending."""
        elapsed = max(time.monotonic() - self._since, 0.05)
        ahead = math.ceil(self.answers / elapsed * CLAIM_AHEAD_S)
        return max(self.slots, min(ahead, MOST_CLAIMED))

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
            budget_key=self._key,
            worker=self._shift.worker,
            count=count,
            lease=source.lease,
            kinds=self._shift.kinds,
            lane_weights=source.lanes,
            discovering=source.with_discover,
            interleave=source.interleave_weights if source.interleave else None,
        )
        return self._shift.earlier.of(connection, claimed)
