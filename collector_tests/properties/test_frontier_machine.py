"""The frontier against a model of it, in whatever order things happen (rules 1-4, 15, 20)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import ClassVar, Literal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from collector_assets import frontier
from collector_assets.database import Database
from collector_assets.outcome import Outcome
from collector_assets.request import Lease
from collector_tests.fixtures.frontier import KEY, LEASE, NOON, START, Work, name_of, open_work, request

CAPACITY = 4
MAX_ATTEMPTS = 2
SECOND = timedelta(seconds=1)
WAITS = st.sampled_from([timedelta(0), SECOND, LEASE])
WINDOWS = count()


@dataclass
class Model:
    """What a request should be; candidate and queued are both "waiting" here."""

    kind: str
    state: str = "waiting"
    attempts: int = 0
    not_before: datetime | None = None
    fence: int | None = None
    leased_until: datetime | None = None

    def take_back(self, now: datetime) -> None:
        if self.leased_until and self.leased_until <= now:
            self.end("waiting" if self.attempts < MAX_ATTEMPTS else "failed(fetch)")

    def end(self, state: str, *, given_back: int = 0, not_before: datetime | None = None) -> None:
        self.state, self.leased_until, self.not_before = state, None, not_before
        self.attempts -= given_back

    def holds(self, lease: Lease, now: datetime) -> bool:
        return self.fence == lease.fence and self.leased_until is not None and self.leased_until > now


class FrontierMachine(RuleBasedStateMachine):
    """Adds, claims, ends, renews and sweeps, while time passes; old leases are used again and again."""

    database: ClassVar[Database]
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.work: Work = open_work(self.database, start=START + next(WINDOWS) * timedelta(days=1), capacity=CAPACITY)
        self.now = NOON
        self.model: dict[str, Model] = {}
        self.highest_fence = 0

    @initialize()
    def start(self) -> None:
        for kind in ("listing", "detail"):
            self.add_some(list(range(5)), kind)

    @rule(numbers=st.lists(st.integers(0, 9), min_size=1, max_size=4), kind=st.sampled_from(["listing", "detail"]))
    def add(self, numbers: list[int], kind: str) -> None:
        self.add_some(numbers, kind)

    def add_some(self, numbers: list[int], kind: str) -> None:
        names = [f"{kind}-{number}" for number in numbers]
        added = self.work.add(
            [request(name, kind, lane=name[-1]) for name in names], max_attempts=MAX_ATTEMPTS, max_requests=14
        )
        fresh = list(dict.fromkeys(name for name in names if name not in self.model))
        room = 14 - len(self.model)
        assert added.new == len(fresh[:room])
        assert added.over_bound == len(fresh[room:])
        assert added.new + added.known + added.over_bound == len(names)
        self.model |= {name: Model(kind) for name in fresh[:room]}

    @rule(
        target=leases, number=st.integers(1, 5), kinds=st.sampled_from([None, ["listing"]]), interleaved=st.booleans()
    )
    def claim(self, number: int, kinds: list[str] | None, interleaved: bool):  # noqa: FBT001
        claimed = self.work.claim(number, kinds=kinds, interleave=(1, 2) if interleaved else None, now=self.now)
        for model in self.model.values():
            model.take_back(self.now)
        active = sum(model.state == "leased" for model in self.model.values())
        for lease in claimed:
            model = self.model[name_of(lease)]
            assert model.state == "waiting"
            assert model.not_before is None or model.not_before <= self.now
            assert kinds is None or model.kind in kinds
            assert lease.fence > self.highest_fence
            model.attempts += 1
            assert lease.attempt == model.attempts <= MAX_ATTEMPTS
            model.state, model.fence, model.leased_until = "leased", lease.fence, self.now + LEASE
            model.not_before = None
        self.highest_fence = max([self.highest_fence, *(lease.fence for lease in claimed)])
        assert len(claimed) <= min(number, CAPACITY - active)
        if not active and not self.any_waits_for_its_time():
            able = [m for m in self.model.values() if m.state == "waiting" and (kinds is None or m.kind in kinds)]
            assert claimed or not able
        return multiple(*claimed)

    def any_waits_for_its_time(self) -> bool:
        return any(m.not_before and m.not_before > self.now for m in self.model.values())

    @rule(lease=leases, way=st.sampled_from(frontier.Result.__args__), wait=WAITS)
    def end(self, lease: Lease, way: type[frontier.Result], wait: timedelta) -> None:
        mine = (lease.request_id, lease.fence)
        model = self.model[name_of(lease)]
        if way is frontier.Fetched and self.applied(lease, frontier.Fetched(*mine)):
            model.end("fetched")
        elif way is frontier.Done and self.applied(lease, frontier.Done(*mine)):
            model.end("done")
        elif way is frontier.Failed and self.applied(
            lease, frontier.Failed(*mine, "read", Outcome.NO_RECORDS, "empty")
        ):
            model.end("failed(read)")
        elif way is frontier.Skipped and self.applied(
            lease, frontier.Skipped(*mine, Outcome.OUT_OF_SCOPE, "elsewhere")
        ):
            model.end("skipped")
        elif way is frontier.Snoozed and self.applied(lease, frontier.Snoozed(*mine, wait)):
            model.end("waiting", given_back=1, not_before=self.now + wait)
        elif (way is frontier.Released and self.applied(lease, frontier.Released(*mine))) or (
            way is frontier.Moved and self.applied(lease, frontier.Moved(*mine, {"url": lease.url}, KEY, "302"))
        ):
            model.end("waiting", given_back=1)
        elif way is frontier.Retry and self.applied(lease, frontier.Retry(*mine, wait, Outcome.TIMEOUT, "slow")):
            if model.attempts < MAX_ATTEMPTS:
                model.end("waiting", not_before=self.now + wait)
            else:
                model.end("failed(fetch)")

    def applied(self, lease: Lease, result: frontier.Result) -> bool:
        """Whether the result was taken, which must be as the model says."""
        is_ours = self.model[name_of(lease)].holds(lease, self.now)
        assert self.work.finish(result, now=self.now) == ({lease.request_id} if is_ours else set())
        return is_ours

    @rule(lease=leases)
    def renew(self, lease: Lease) -> None:
        model = self.model[name_of(lease)]
        is_ours = model.holds(lease, self.now)
        assert self.work.renew(lease, now=self.now) == ({lease.request_id} if is_ours else set())
        if is_ours:
            model.leased_until = self.now + LEASE

    @rule(lease=leases, state=st.sampled_from(["done", "failed"]))
    def read(self, lease: Lease, state: Literal["done", "failed"]) -> None:
        outcome = Outcome.OK if state == "done" else Outcome.NO_RECORDS
        self.work.read(frontier.Read(lease.request_id, state, outcome, "read"))
        model = self.model[name_of(lease)]
        if model.state in {"fetched", "done", "failed(read)"}:
            model.state = "done" if state == "done" else "failed(read)"

    @rule(span=st.sampled_from([SECOND, LEASE]))
    def time_passes(self, span: timedelta) -> None:
        self.now += span

    @rule()
    def sweep(self) -> None:
        gone = [m for m in self.model.values() if m.leased_until and m.leased_until <= self.now]
        assert self.work.take_back(self.now) == len(gone)
        for model in gone:
            model.take_back(self.now)

    @invariant()
    def frontier_is_what_the_model_says(self) -> None:
        rows = self.work.rows()
        assert rows.keys() == self.model.keys()
        for name, model in self.model.items():
            row = rows[name]
            phase = f"failed({row.failed_phase})" if row.failed_phase else row.state
            assert ("waiting" if phase in {"candidate", "queued"} else phase) == model.state
            assert (row.attempts, row.leased_until) == (model.attempts, model.leased_until)

    @invariant()
    def counts_add_up_and_capacity_holds(self) -> None:
        counts = self.work.counts()
        assert counts.planned == counts.done + counts.failed + counts.skipped + counts.outstanding == len(self.model)
        assert counts.queued + counts.leased <= CAPACITY


def test_frontier_does_what_its_model_does(database: Database):
    """Rules 1-4, 15 and 20, in every order."""
    # Mutation: drop the fence, the expiry, the giving back of attempts, or the room in `_admit`: each is found.
    machine = type("Machine", (FrontierMachine,), {"database": database})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
