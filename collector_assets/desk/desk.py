"""The slots on one budget key, and serial sending in each of them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from collector_assets import budget, closing, landing
from collector_assets.asking import LOOK_AGAIN_S, SLOT_LEASE, demand_of, request_of, to_its_end
from collector_assets.database import Connection
from collector_assets.deposit import Answered, answered_of
from collector_assets.desk.claims import Claims
from collector_assets.desk.shift import Shift
from collector_assets.fetch import NotSent, Response
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.permission import Permission
from collector_assets.politeness import Forbidden, Permit
from collector_assets.request import Lease


class Desk:
    """Works on one budget key until there is nothing to send on it."""

    def __init__(self, key: str, shift: Shift) -> None:
        self.key, self._shift = key, shift
        self._demand = demand_of(shift.source, key)
        self._senders: dict[asyncio.Task[None], Permission] = {}
        self._permissions: tuple[Permission, ...] = ()
        """Those in hand; replaced, never changed: the heartbeat reads it from its thread."""
        self._claims = Claims(key, shift)
        self._is_declared = False
        """The demand is written as the source says it now: an earlier run may have left another that still lives."""
        self._unavailable = shift.unavailable.setdefault(key, set())
        self._pulse = asyncio.Event()

    def wake(self) -> None:
        """There may be work again, or it is time to stop."""
        self._claims.look_again()
        self._pulse.set()

    async def work(self) -> None:
        """Hold slots while there is work for them; at the end everything is given back."""
        ask_at = 0.0
        try:
            while self._senders or (
                (self._claims.has_work or self._claims.learning) and not self._shift.is_stopping and not self._is_closed
            ):
                self._claims.unpark()
                back, want = self._ended(), self._wanted()
                if back or (want and time.monotonic() >= ask_at):
                    ask_at = time.monotonic() + await to_its_end(self._exchange(back, want))
                    continue
                await self._until_something(max(0.0, ask_at - time.monotonic()) if want else None)
        finally:
            tasks = [*self._senders, *self._claims.learning]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._close()

    @property
    def _is_closed(self) -> bool:
        """Nothing may be sent on the key, by nobody: whoever waits for it does so without a desk."""
        return self._shift.stops.closed_for_s(self.key) > 0

    async def _until_something(self, within_s: float | None) -> None:
        """Until a sender ends, work may have come, or it is time to ask again."""
        self._pulse.clear()
        pulse = asyncio.create_task(self._pulse.wait())
        things = {pulse, *self._senders, *self._claims.learning}
        await asyncio.wait(things, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        pulse.cancel()

    async def _close(self) -> None:
        """Everything back: unsent leases, slots, the place in the queue."""
        await self._claims.close()
        await asyncio.to_thread(self.leave)

    # --- Slots -------------------------------------------------------------------------------------------------------

    def _wanted(self) -> int:
        """Slots to ask for; none without work for them."""
        if self._shift.is_stopping or not self._claims.has_work or self._is_closed:
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
        before, mark, delays = time.monotonic(), self._shift.stops.mark, self._claims.delays
        acquired = await self._shift.transact(lambda connection: self._exchange_now(connection, back, want))
        after = time.monotonic()
        if acquired is not None:
            self._shift.stops.learn_closed({self.key: acquired.closed_for_s}, mark)
            for grant in acquired.grants:
                permission = Permission(grant, gap_s=acquired.gap_s, before=before, after=after)
                self._senders[asyncio.create_task(self._send(permission, delays))] = permission
        self._permissions = tuple(self._senders.values())
        self._claims.slots = len(self._permissions)
        if not self._senders:
            await self._claims.put_back()
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
        back, self._permissions, self._claims.slots = list(self._senders.values()), (), 0
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
            if wait_s == math.inf or self._is_closed or delays != self._claims.delays:
                await self._told()
                return
            if wait_s > 0:
                await asyncio.sleep(min(wait_s, LOOK_AGAIN_S))
                continue
            found = await self._claims.next()
            if found is None:
                return
            lease, permit = found
            if not permission.may_start(time.monotonic()) or delays != self._claims.delays:
                self._claims.put_first(lease)
                continue
            answered = await self._fetch(lease, permit, permission)
            if answered is not None:
                self._claims.answers += 1
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
            self._claims.put_first(lease)
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
