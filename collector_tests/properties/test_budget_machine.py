"""Any order of asking, sending, renewing, giving back, dying and sleeping keeps the site's budget (rules 7 and 8).

The machine has one clock for the database and all processes, moves it in small steps, whole seconds, leases and
deadlines, and lets each statement take time on its way there and back. Processes use `Permission` as the collect loop
does. The judge is a log of the site: when requests arrived and when their responses ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from collector_assets import budget
from collector_assets.budget import Demand
from collector_assets.database import Connection, connect
from collector_assets.permission import Permission
from collector_tests.fixtures.postgres import empty

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
LEASE, DEADLINE, GAP = 3.0, 5.0, 0.5
TOLERANCE = 1e-5  # Postgres keeps microseconds
MOMENT = 0.001
TRAVEL = st.sampled_from([0.0, 0.4])
NUMBER = st.integers(0, 3)


@dataclass(eq=False, slots=True)
class Sent:
    """One request as the site saw it; it ends at its deadline at the latest."""

    arrived: float
    ended: float
    is_open: bool = True


@dataclass(eq=False, slots=True)
class Process:
    """A holder: its permissions and the requests under way in them."""

    name: str
    demand: Demand
    permissions: list[Permission] = field(default_factory=list)
    under_way: dict[Permission, Sent] = field(default_factory=dict)


class BudgetMachine(RuleBasedStateMachine):
    """Three sources with different demands, four processes; one that dies is started again under a new name."""

    dsn = ""

    def __init__(self) -> None:
        super().__init__()
        empty(self.dsn)
        self.connection: Connection = connect(self.dsn, autocommit=True)
        self.now = 1000.0
        self.born = 0
        self.processes: list[Process] = []
        self.stopped: set[Process] = set()
        self.log: list[Sent] = []

    def teardown(self) -> None:
        try:
            self._everything_comes_back()
        finally:
            self.connection.close()

    def _everything_comes_back(self) -> None:
        """Whoever died and whatever was lost: later a newcomer gets every slot."""
        self.now += LEASE + DEADLINE + GAP
        newcomer = Process(name="newcomer", demand=self._demand("c"))
        self._ask(newcomer, self.slots)
        assert len(newcomer.permissions) == self.slots

    def _demand(self, source: str) -> Demand:
        gaps, weights = {"a": GAP, "b": GAP / 5, "c": 0.0}, {"a": 3.0, "b": 1.0, "c": 0.5}
        return Demand(
            budget_key="k", per="domain", source=source, gap=timedelta(seconds=gaps[source]),
            slots=self.slots + (source == "c"), weight=weights[source], deadline=timedelta(seconds=DEADLINE),
        )  # fmt: skip

    def _at(self) -> datetime:
        return EPOCH + timedelta(seconds=self.now)

    def _travels(self, seconds: float) -> float:
        """Time passes on the way of a statement; the reading at its end."""
        self._move(seconds)
        return self.now

    def _move(self, seconds: float) -> None:
        """The clock goes on; a client ends a request at its deadline."""
        self.now += seconds
        for sent in self.log:
            if sent.is_open and sent.arrived + DEADLINE <= self.now:
                sent.is_open = False

    @initialize(slots=st.integers(1, 3))
    def start(self, slots: int) -> None:
        self.slots = slots
        for source in "abc":  # all live for as long as the machine runs: gap and slots do not change under it
            with self.connection.transaction():
                budget.declare(self.connection, self._demand(source), timedelta(days=1), now=self._at())

        self.processes = [self._born(source) for source in "aabc"]

    def _born(self, source: str) -> Process:
        self.born += 1
        return Process(name=f"{source}{self.born}", demand=self._demand(source))

    def _awake(self) -> list[Process]:
        return [process for process in self.processes if process not in self.stopped]

    # --- What processes do --------------------------------------------------------------------------------------------

    @rule(want=st.integers(1, 4), there=TRAVEL, back=TRAVEL)
    def ask(self, want: int, there: float, back: float) -> None:
        """Everyone asks, one after the other; at the end of a turn the slot goes back in the same transaction."""
        for process in self._awake():
            self._ask(process, want, there, back)

    def _ask(self, process: Process, want: int, there: float = 0.0, back: float = 0.0) -> None:
        before = self.now
        over = [each for each in process.permissions if not each.in_flight and self._should_go_back(each)]
        returned = [each.returned(before) for each in over]
        self._travels(there)
        with self.connection.transaction():
            acquired = budget.acquire(
                self.connection, demand=process.demand, holder=process.name, want=want, returned=returned,
                lease=timedelta(seconds=LEASE), now=self._at(),
            )  # fmt: skip
        after = self._travels(back)
        process.permissions = [each for each in process.permissions if each not in over]
        process.permissions += [
            Permission(grant, gap_s=acquired.gap_s, before=before, after=after) for grant in acquired.grants
        ]

    def _should_go_back(self, permission: Permission) -> bool:
        return permission.is_over(self.now) or permission.is_lost(self.now)

    @rule(connecting=TRAVEL)
    def send(self, connecting: float) -> None:
        """A request starts in every slot that is ready; its bytes leave when the connection stands."""
        for process in self._awake():
            self._send(process, connecting)

    def _send(self, process: Process, connecting: float = 0.0) -> None:
        starting = [each for each in process.permissions if each.may_start(self.now)]
        for each in starting:
            each.started(self.now)
        self._travels(connecting)
        for each in starting:
            if each.may_send(self.now):
                self._judge()
                sent = Sent(arrived=self.now, ended=self.now + DEADLINE)
                self.log.append(sent)
                process.under_way[each] = sent
            else:
                each.ended(self.now)

    def _judge(self) -> None:
        """A request that arrives now: a slot must be free of requests and of their gaps."""
        busy = [sent for sent in self.log if sent.is_open or sent.ended + GAP - TOLERANCE > self.now]
        assert len(busy) < self.slots, f"at {self.now:.3f}: {busy}"

    @rule()
    def respond(self) -> None:
        """The site's responses end, and whoever is awake hears of it."""
        for process in self._awake():
            for permission, sent in process.under_way.items():
                if sent.is_open:
                    sent.is_open, sent.ended = False, self.now
                permission.ended(self.now)
            process.under_way.clear()

    @rule(there=TRAVEL, back=TRAVEL)
    def renew(self, there: float, back: float) -> None:
        """The heartbeat of everyone that is awake."""
        for process in self._awake():
            self._renew(process, there, back)

    def _renew(self, process: Process, there: float, back: float) -> None:
        before, permissions = self.now, list(process.permissions)
        held = [each.held() for each in permissions]
        self._travels(there)
        with self.connection.transaction():
            renewed = budget.renew(
                self.connection, budget_key="k", holder=process.name, held=held, lease=timedelta(seconds=LEASE),
                deadline=timedelta(seconds=DEADLINE), now=self._at(),
            )  # fmt: skip
        after = self._travels(back)
        for each in permissions:
            each.renewed(
                renewed.slots.get(each.slot), gap_s=renewed.gap_s, closed_for_s=renewed.closed_for_s,
                before=before, after=after,
            )  # fmt: skip

    @rule(number=NUMBER, there=TRAVEL)
    def leave(self, number: int, there: float) -> None:
        """One gives back what is not in use and asks for no more."""
        process = self.processes[number]
        idle = [each for each in process.permissions if not each.in_flight]
        returned = [each.returned(self.now) for each in idle]
        process.permissions = [each for each in process.permissions if each.in_flight]
        self._travels(there)
        with self.connection.transaction():
            budget.give_back(self.connection, budget_key="k", holder=process.name, returned=returned, now=self._at())
            budget.stop_waiting(self.connection, budget_key="k", holder=process.name, now=self._at())

    # --- What happens to them -----------------------------------------------------------------------------------------

    @rule(number=NUMBER)
    def die(self, number: int) -> None:
        """Killed: nothing is given back; the site goes on answering until the deadline."""
        process = self.processes[number]
        self.stopped.discard(process)
        self.processes[number] = self._born(process.demand.source)

    @rule(number=NUMBER)
    def stop(self, number: int) -> None:
        """Stopped: neither loop nor heartbeat run."""
        self.stopped.add(self.processes[number])

    @rule(connecting=TRAVEL)
    def go_on(self, connecting: float) -> None:
        """Those that were stopped send as if nothing had been."""
        going_on = [process for process in self.processes if process in self.stopped]
        self.stopped.clear()
        for process in going_on:
            self._send(process, connecting)

    @rule(seconds=st.sampled_from([0.05, GAP, 1.0]), number=NUMBER, there=TRAVEL)
    def work(self, seconds: float, number: int, there: float) -> None:
        """Requests of some length, the next ones as soon as they may, in the same hands or in others."""
        for process in self._awake():
            self._ask(process, 4)
            self._send(process)
        self._move(seconds)
        self.respond()
        for process in self._awake():
            self._send(process)
        self.respond()
        self.leave(number, 0.0)
        for process in self._awake():
            self._ask(process, 4, there, 0.0)
            self._send(process)

    @rule(number=NUMBER, there=TRAVEL, back=TRAVEL, connecting=TRAVEL, renews=st.booleans())
    def send_late_and_early(self, number: int, there: float, back: float, connecting: float, *, renews: bool) -> None:
        """A request at the last moment of a lease takes its time; the next holder sends at the first moment it may."""
        self._ask(self.processes[number], 4, there, back)
        if renews:
            self._renew(self.processes[number], there, back)
        leases = [each.not_after for process in self.processes for each in process.permissions if not each.in_flight]
        if leases := [moment for moment in leases if moment - MOMENT > self.now]:
            self._move(max(leases) - MOMENT - self.now)
            for process in self.processes:
                self._send(process, connecting)
        if moments := self._times_back():
            self._move(max(moments) + MOMENT - self.now)
        for process in self._awake():
            self._ask(process, 4)
        permissions = [each for process in self._awake() for each in process.permissions]
        if ready := [each.not_before for each in permissions if each.not_before > self.now]:
            self._move(min(ready) - self.now)
        for process in self._awake():
            self._send(process)

    def _times_back(self) -> list[float]:
        rows = self.connection.execute("SELECT back_at FROM budget_slots WHERE back_at > %s", [self._at()]).fetchall()
        return [(cast("datetime", back_at) - EPOCH).total_seconds() for (back_at,) in rows]

    @rule(seconds=st.sampled_from([0.05, GAP, 1.0, LEASE, LEASE + DEADLINE]))
    def wait(self, seconds: float) -> None:
        self._move(seconds)

    @precondition(lambda self: self.processes)
    @invariant()
    def no_more_slots_are_held_than_there_are(self) -> None:
        held = self.connection.execute("SELECT FROM budget_slots WHERE holder IS NOT NULL").fetchall()
        assert len(held) <= self.slots


@pytest.mark.timeout(300)
def test_no_order_of_events_breaks_the_budget(dsn: str) -> None:
    """Rules 7 and 8."""
    # Mutation: `after` for `before` in Permission.renewed; no not-after in may_send; `ended_at` not set by give_back;
    # `back_at` without the deadline; no fence in give_back; `0::float8` for ready_in in grant: each was found.
    BudgetMachine.dsn = dsn
    run_state_machine_as_test(
        BudgetMachine,
        settings=settings(
            max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
