"""A process that sends as fast as its permissions allow: the collect loop with nothing but the budget in it.

Started as `python -m collector_tests.end_to_end.budget_driver '<json of Plan>'`. One asyncio loop sends, a request per
slot at a time; the statements run in threads; a heartbeat thread renews on a connection of its own. It prints one line
of JSON when it can send ("ready") and one when it has ended ("done"). SIGTERM ends it in good order.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

import psycopg

from collector_assets import budget
from collector_assets.database import Connection, connect
from collector_assets.errors import DatabaseUnreachable
from collector_assets.permission import Permission, Returned

DATABASE_ERRORS = (DatabaseUnreachable, psycopg.OperationalError, psycopg.InterfaceError)
RETRY_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one process does; times in seconds."""

    dsn: str
    site: str
    host: str
    source: str
    holder: str
    seconds: float
    budget_key: str = "shared.localhost"
    path: str = "/echo"
    gap: float = 0.1
    slots: int = 1
    weight: float = 1.0
    lease: float = 3.0
    timeout: float = 1.0

    def text(self) -> str:
        return json.dumps(asdict(self))


class Driver:
    """Permissions, the tasks that send in them, and the conversation with the budget."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lease = timedelta(seconds=plan.lease)
        self.demand = budget.Demand(
            budget_key=plan.budget_key,
            per="domain",
            source=plan.source,
            gap=timedelta(seconds=plan.gap),
            slots=plan.slots,
            weight=plan.weight,
            deadline=timedelta(seconds=plan.timeout),
        )
        self.senders: dict[asyncio.Task[None], Permission] = {}
        self.permissions: tuple[Permission, ...] = ()  # replaced, never changed: the heartbeat reads it
        self.stopping = False
        self.sent = self.lost = self.acquires = self.renewals = 0
        self._connection: Connection | None = None

    # --- Sending ----------------------------------------------------------------------------------------------------

    async def _send(self, permission: Permission) -> None:
        """Serial requests in one slot until it is over, lost, or we stop."""
        while not self.stopping:
            wait_s = permission.wait_s(time.monotonic())
            if wait_s == float("inf"):
                break
            if wait_s > 0:
                await asyncio.sleep(min(wait_s, 0.1))
            elif permission.may_start(time.monotonic()):
                permission.started(time.monotonic())
                try:
                    await asyncio.wait_for(self._get(permission), self.plan.timeout)
                except (TimeoutError, OSError):
                    pass
                finally:
                    permission.ended(time.monotonic())

    async def _get(self, permission: Permission) -> None:
        loop, (host, _, port) = asyncio.get_running_loop(), self.plan.site.rpartition(":")
        request = (
            f"GET {self.plan.path} HTTP/1.1\r\nHost: {self.plan.host}\r\nConnection: close\r\n"
            f"User-Agent: {self.plan.source}/{self.plan.holder}\r\n\r\n"
        ).encode()
        with socket.socket() as client:
            client.setblocking(False)
            await loop.sock_connect(client, (host, int(port)))
            if not permission.may_send(time.monotonic()):
                return
            client.send(request)  # at once: between the question and the bytes there is nothing
            self.sent += 1
            while await loop.sock_recv(client, 65_536):
                pass

    # --- The budget -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        loop.call_later(self.plan.seconds, self.stop)
        beat = threading.Thread(target=self._heartbeat, daemon=True)
        beat.start()
        _say(ready=self.plan.holder)
        ask_at, back = 0.0, list[Permission]()
        while not self.stopping or self.senders:
            back += self._ended()
            wanted = 0 if self.stopping else self.plan.slots - len(self.senders)
            if back or (wanted and time.monotonic() >= ask_at):
                ask_at = time.monotonic() + await self._exchange(back, wanted)
            timeout = max(0.0, ask_at - time.monotonic()) if wanted else 0.1
            if self.senders:
                await asyncio.wait(self.senders, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(timeout)
        await self._leave([*back, *self._ended()])
        _say(
            done=self.plan.holder,
            sent=self.sent,
            lost=self.lost,
            acquires=self.acquires,
            renewals=self.renewals,
        )

    def stop(self) -> None:
        self.stopping = True

    def _ended(self) -> list[Permission]:
        """The permissions whose senders have ended."""
        ended = [task for task in self.senders if task.done()]
        permissions = [self.senders.pop(task) for task in ended]
        for task in ended:
            task.result()
        self.lost += sum(permission.is_lost(time.monotonic()) for permission in permissions)
        self.permissions = tuple(self.senders.values())
        return permissions

    async def _exchange(self, back: list[Permission], wanted: int) -> float:
        """Give back and acquire in one transaction; the seconds until it makes sense to ask again."""
        before = time.monotonic()
        try:
            acquired = await asyncio.to_thread(self._acquire, [each.returned(before) for each in back], wanted)
        except DATABASE_ERRORS:
            self._connection = None
            return RETRY_S
        after = time.monotonic()
        back.clear()
        for grant in acquired.grants:
            permission = Permission(grant, gap_s=acquired.gap_s, before=before, after=after)
            self.senders[asyncio.create_task(self._send(permission))] = permission
        self.permissions = tuple(self.senders.values())
        return acquired.retry_in_s

    def _acquire(self, returned: list[Returned], wanted: int) -> budget.Acquired:
        self.acquires += 1
        if self._connection is None or self._connection.closed:
            self._connection = connect(self.plan.dsn)
        with self._connection.transaction():
            return budget.acquire(
                self._connection, demand=self.demand, holder=self.plan.holder, want=wanted, lease=self.lease,
                returned=returned,
            )  # fmt: skip

    async def _leave(self, back: list[Permission]) -> None:
        with connect(self.plan.dsn) as connection:
            budget.give_back(
                connection, budget_key=self.plan.budget_key, holder=self.plan.holder,
                returned=[each.returned(time.monotonic()) for each in back],
            )  # fmt: skip
            budget.stop_waiting(connection, budget_key=self.plan.budget_key, holder=self.plan.holder)

    def _heartbeat(self) -> None:
        """Renew what is held, three times a lease; silence from the database only lets the permissions run out."""
        connection: Connection | None = None
        while True:
            time.sleep(self.plan.lease / 3)
            permissions, before = self.permissions, time.monotonic()
            if not permissions:
                continue
            try:
                connection = connection or connect(self.plan.dsn)
                with connection.transaction():
                    renewed = budget.renew(
                        connection, budget_key=self.plan.budget_key, holder=self.plan.holder,
                        held=[each.held() for each in permissions], lease=self.lease,
                        deadline=self.demand.deadline,
                    )  # fmt: skip
            except DATABASE_ERRORS:
                connection = None
                continue
            after = time.monotonic()
            self.renewals += 1
            for each in permissions:
                each.renewed(
                    renewed.slots.get(each.slot), gap_s=renewed.gap_s, closed_for_s=renewed.closed_for_s,
                    before=before, after=after,
                )  # fmt: skip


def _say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main(values: Mapping[str, object]) -> None:
    """Run one plan."""
    asyncio.run(Driver(Plan(**values)).run())  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
