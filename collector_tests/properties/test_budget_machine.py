"""Any order of asking, sending, renewing, giving back, dying and sleeping keeps the site's budget (rules 7 and 8).

The machine has one clock for the database and all processes, moves it in small steps, whole seconds, leases and
deadlines, and lets each statement take time on its way there and back. Processes use `Permission` as the collect loop
does. The judge is a log of the site: when requests arrived and when their responses ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

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
TRAVEL = st.sampled_from([0.0, 0.01, 0.4])
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

    @rule(number=NUMBER, want=st.integers(1, 4), there=TRAVEL, back=TRAVEL)
    def ask(self, number: int, want: int, there: float, back: float) -> None:
        """At the end of a turn the slot goes back in the same transaction."""
        self._ask(self.processes[number], want, there, back)

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

    @rule(number=NUMBER, connecting=TRAVEL)
    def send(self, number: int, connecting: float) -> None:
        """A request starts in every slot that is ready; its bytes leave when the connection stands."""
        self._send(self.processes[number], connecting)

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

    @rule(number=NUMBER)
    def respond(self, number: int) -> None:
        """The site's responses end, and the process hears of it."""
        self._respond(self.processes[number])

    def _respond(self, process: Process) -> None:
        for permission, sent in process.under_way.items():
            if sent.is_open:
                sent.is_open, sent.ended = False, self.now
            permission.ended(self.now)
        process.under_way.clear()

    @rule(number=NUMBER, there=TRAVEL, back=TRAVEL)
    def renew(self, number: int, there: float, back: float) -> None:
        process = self.processes[number]
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
        """It gives back what is not in use and asks for no more."""
        self._leave(self.processes[number], there)

    def _leave(self, process: Process, there: float = 0.0) -> None:
        idle = [each for each in process.permissions if not each.in_flight]
        returned = [each.returned(self.now) for each in idle]
        process.permissions = [each for each in process.permissions if each.in_flight]
        self._travels(there)
        with self.connection.transaction():
            budget.give_back(self.connection, budget_key="k", holder=process.name, returned=returned, now=self._at())
            budget.stop_waiting(self.connection, budget_key="k", holder=process.name, now=self._at())

    @rule(number=NUMBER, other=NUMBER, pause=st.sampled_from([0.0, 0.05, GAP]))
    def hand_over(self, number: int, other: int, pause: float) -> None:
        """Answered, given back, granted to the next, which sends as soon as it may."""
        process, following = self.processes[number], self.processes[other]
        self._respond(process)
        self._leave(process)
        self._ask(following, 4)
        self._move(pause)
        self._send(following)

    @rule(number=NUMBER, sends_first=st.booleans())
    def die(self, number: int, *, sends_first: bool) -> None:
        """Killed: nothing is given back; the site goes on answering until the deadline."""
        process = self.processes[number]
        if sends_first:
            self._send(process)
        self.processes[number] = self._born(process.demand.source)

    @rule(number=NUMBER, seconds=st.sampled_from([1.0, LEASE, LEASE + DEADLINE]))
    def stop_and_go_on(self, number: int, seconds: float) -> None:
        """Stopped for a while, others do what they like, then it sends as if nothing had been."""
        process = self.processes[number]
        self._move(seconds)
        for other in self.processes:
            if other is not process:
                self._ask(other, 4)
                self._send(other)
        self._send(process)

    @rule(seconds=st.sampled_from([0.05, GAP, 1.0, LEASE - 0.01, LEASE, DEADLINE, LEASE + DEADLINE]))
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
    # Mutation: any of those named in test_permission.py and store/test_budget.py for rules 7 and 8.
    BudgetMachine.dsn = dsn
    run_state_machine_as_test(
        BudgetMachine,
        settings=settings(
            max_examples=60, stateful_step_count=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
