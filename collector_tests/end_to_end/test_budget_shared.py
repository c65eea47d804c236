"""Several processes, several sources, one budget key; judged by the site's log alone (rules 7 and 8)."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import pytest
from psycopg import conninfo, sql

from collector_assets.database import Connection, connect
from collector_assets.demo import Arrival, DemoSite
from collector_assets.demo.arrivals import used_share, violations
from collector_tests.end_to_end.budget_driver import Plan
from collector_tests.fixtures.postgres import Server

HOST = "shared.localhost"
SETTLING_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One driver process."""

    plan: Plan
    process: subprocess.Popen[str]

    def counted(self) -> dict[str, int]:
        """What it counted, when it has ended."""
        output, _ = self.process.communicate(timeout=20)
        assert self.process.returncode == 0
        return json.loads(output.splitlines()[-1])


def ended(*processes: Running) -> list[dict[str, int]]:
    """Let them end in good order; what they counted."""
    for each in processes:
        each.process.terminate()
    return [each.counted() for each in processes]


@contextmanager
def running(*plans: Plan) -> Iterator[list[Running]]:
    """The processes, once all of them can send; killed at the end if still there."""
    processes = [
        Running(
            plan=plan,
            process=subprocess.Popen(
                [sys.executable, "-m", "collector_tests.end_to_end.budget_driver", plan.text()],
                stdout=subprocess.PIPE,
                text=True,
            ),
        )
        for plan in plans
    ]
    try:
        for each in processes:
            assert each.process.stdout
            assert select.select([each.process.stdout], [], [], 30)[0], "the driver did not start"
            assert each.plan.holder in each.process.stdout.readline()
        yield processes
    finally:
        for each in processes:
            if each.process.poll() is None:
                each.process.kill()
            each.process.communicate()


@pytest.fixture
def plan(dsn: str, site: DemoSite) -> Plan:
    return Plan(dsn=dsn, site=site.address, host=HOST, source="gold", holder="gold-1", seconds=60)


def but(plan: Plan, **changes: object) -> Plan:
    return Plan(**(json.loads(plan.text()) | changes))


def crew(plan: Plan, each: int, **weights: float) -> list[Plan]:
    """`each` processes for every source, by weight."""
    return [
        but(plan, source=source, holder=f"{source}-{number}", weight=weight)
        for source, weight in weights.items()
        for number in range(each)
    ]


def holder(arrival: Arrival) -> str:
    return arrival.user_agent.partition("/")[2]


def source(arrival: Arrival) -> str:
    return arrival.user_agent.partition("/")[0]


def between(arrivals: list[Arrival], start: float, seconds: float) -> list[Arrival]:
    return [each for each in arrivals if start <= each.arrived < start + seconds]


def share_three_to_one(plan: Plan, site: DemoSite, seconds: float, *, slots: int = 1) -> tuple[list[Arrival], float]:
    """Two sources, 3:1, two processes each, for so many seconds: what arrived, and gold's requests per one of tin's."""
    with running(*crew(but(plan, slots=slots), 2, gold=3.0, tin=1.0)) as processes:
        start = time.monotonic() + SETTLING_S
        time.sleep(SETTLING_S + seconds)
        ended(*processes)
    everything = site.arrivals(host=HOST)
    assert violations(everything, gap=plan.gap, slots=slots) == []
    arrivals = between(everything, start, seconds)
    by_source = Counter(map(source, arrivals))
    return arrivals, by_source["gold"] / by_source["tin"]


def test_two_sources_in_four_processes_share_one_slot_three_to_one(plan: Plan, site: DemoSite) -> None:
    """Rule 7: no overlap, the gap from the end of each response, and turns by least requests per weight."""
    # Mutation: `0::float8` for ready_in in grant: gap violations. Mutation: no `served[w.source]` in the order of
    # sharing.allot: 1:1. Mutation: lock_key, `s.holder IS NULL` in grant and Slot.is_free dropped: overlaps.
    arrivals, ratio = share_three_to_one(plan, site, 12)
    assert used_share(arrivals, gap=plan.gap, slots=1, seconds=12) >= 0.8  # busy machine; the minute wants 0.95
    assert 2.0 <= ratio <= 4.5  # a turn of tin more or less is a third of what it gets in 12 s
    by_holder = Counter(map(holder, arrivals))
    assert len(by_holder) == 4, "a process starves"
    assert min(by_holder.values()) >= 3, by_holder  # the window may cut into its one turn


@pytest.mark.chaos
@pytest.mark.timeout(180)
def test_shares_are_three_to_one_within_ten_percent_in_a_minute(plan: Plan, site: DemoSite) -> None:
    """Rule 7, the figures of the issue: 60 s, 0 violations, 95 % of the allowed rate, 3:1 within 10 %."""
    arrivals, ratio = share_three_to_one(plan, site, 60)
    assert used_share(arrivals, gap=plan.gap, slots=1, seconds=60) >= 0.95
    assert 2.7 <= ratio <= 3.3


def test_three_slots_are_shared_and_never_more(plan: Plan, site: DemoSite) -> None:
    """Rule 7 with several slots: three at once, each with its own gap, shared by the same weights."""
    arrivals, ratio = share_three_to_one(plan, site, 12, slots=3)
    assert used_share(arrivals, gap=plan.gap, slots=3, seconds=12) >= 0.75
    assert 1.9 <= ratio <= 4.8  # two turns of tin more or less
    assert min(Counter(map(holder, arrivals)).values()) >= 3


def test_slow_answers_and_long_gaps_never_overlap(plan: Plan, site: DemoSite) -> None:
    """Rule 7: a turn is one request when that is longer than a second, and its gap is waited for by whoever is next."""
    site.misbehave("delay", host=HOST, arg="1.2")
    slow = but(plan, gap=0.5, timeout=5.0)
    with running(but(slow, holder="gold-1"), but(slow, source="tin", holder="tin-1")) as processes:
        time.sleep(9)
        ended(*processes)
    arrivals = site.arrivals(host=HOST)
    assert violations(arrivals, gap=0.5, slots=1) == []
    turns = [holder(each) for each in arrivals]
    assert len(turns) >= 4
    assert all(one != next_one for one, next_one in pairwise(turns)), "not one request per turn"


def test_slot_of_a_killed_process_comes_back_after_lease_and_deadline(plan: Plan, site: DemoSite) -> None:
    """Rule 8: not earlier, whatever the others want, and not much later."""
    # Mutation: `back_at = clock.now + %(lease)s` (no deadline) in grant and renew: the next arrival is too early.
    first, second = but(plan, lease=1.5, timeout=1.0), but(plan, holder="gold-2", lease=1.5, timeout=1.0)
    with running(first, second) as (victim, other):
        time.sleep(2.5)
        while holder((before := site.arrivals(host=HOST))[-1]) != "gold-1":
            time.sleep(0.02)
        os.kill(victim.process.pid, signal.SIGKILL)
        killed_at = time.monotonic()
        time.sleep(4.5)
        ended(other)
    after = [each for each in site.arrivals(host=HOST) if each.n > before[-1].n and holder(each) == "gold-2"]
    own = [each for each in site.arrivals(host=HOST) if holder(each) == "gold-1"]
    # The last renewal was at most a third of a lease before the kill.
    assert after[0].arrived >= killed_at + 1.5 * 2 / 3 + 1.0 + plan.gap - 0.1
    assert after[0].arrived <= killed_at + 1.5 + 1.0 + plan.gap + 1.0
    assert own[-1].arrived <= killed_at + 0.05
    assert violations(site.arrivals(host=HOST), gap=plan.gap, slots=1) == []


def stopped_past_its_lease(plan: Plan, site: DemoSite, rounds: int) -> int:
    """Stop whoever sends for longer than lease and deadline, then let it go on; how often the other took over."""
    takeovers = 0
    short = but(plan, lease=0.9, timeout=0.3, seconds=900)
    with running(short, but(short, holder="gold-2")) as (first, second):
        by_name = {"gold-1": first, "gold-2": second}
        for _ in range(rounds):
            time.sleep(1.5)
            victim = by_name[holder((before := site.arrivals(host=HOST))[-1])]
            victim.process.send_signal(signal.SIGSTOP)
            time.sleep(0.9 + 0.3 + 1.0)
            victim.process.send_signal(signal.SIGCONT)
            others = {holder(each) for each in site.arrivals(host=HOST) if each.n > before[-1].n + 1}
            takeovers += others - {victim.plan.holder} != set()
        ended(first, second)
    assert violations(site.arrivals(host=HOST), gap=plan.gap, slots=1) == []
    return takeovers


def test_process_stopped_past_its_lease_does_not_send_when_it_goes_on(plan: Plan, site: DemoSite) -> None:
    """Rule 8: the not-after is checked on the holder's own clock right before the bytes leave."""
    # Mutation: the same as below, with is_lost always false.
    assert stopped_past_its_lease(plan, site, 3) == 3


@pytest.mark.chaos
@pytest.mark.timeout(180)
def test_stopped_processes_never_send_in_twenty_rounds(plan: Plan, site: DemoSite) -> None:
    """Rule 8, the long variant."""
    assert stopped_past_its_lease(plan, site, 20) >= 18  # a stop may hit the moment of a handover


def _lease_left(connection: Connection) -> float:
    row = connection.execute("SELECT extract(epoch FROM max(held_until) - clock_timestamp())::float8 FROM budget_slots")
    return cast("tuple[float]", row.fetchone())[0]


def test_silent_database_stops_the_holder_before_its_lease_ends(plan: Plan, site: DemoSite) -> None:
    """Rule 8: no budget, no request. A database that hangs is a lock that is not released."""
    # Mutation: `now < self._not_after` dropped from Permission.may_start and may_send: it goes on sending.
    with running(but(plan, lease=1.5)) as (alone,):
        time.sleep(1.5)
        with connect(plan.dsn) as blocker:
            blocker.execute("SELECT FROM budget_keys FOR UPDATE")
            lease_ends_at = time.monotonic() + _lease_left(blocker)
            time.sleep(3.5)
            arrivals = site.arrivals(host=HOST)
            blocker.rollback()
        released_at = time.monotonic()
        time.sleep(1.5)
        (counted,) = ended(alone)
    assert arrivals[-1].arrived < lease_ends_at
    assert arrivals[-1].arrived > lease_ends_at - 1.5, "it did not even use its lease"
    assert [each for each in site.arrivals(host=HOST) if each.arrived > released_at], "it did not go on"
    assert counted["lost"] >= 1
    assert violations(site.arrivals(host=HOST), gap=plan.gap, slots=1) == []


@contextmanager
def cut_off(server: Server, dsn: str) -> Iterator[None]:
    """Refuse new connections to the database and end those that stand."""
    name = conninfo.conninfo_to_dict(dsn)["dbname"]
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with connect(server.admin_dsn, autocommit=True) as admin:
        admin.execute(allow.format(sql.Identifier(str(name)), sql.SQL("false")))
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            admin.execute(allow.format(sql.Identifier(str(name)), sql.SQL("true")))


def test_unreachable_database_stops_the_holder_and_is_survived(plan: Plan, site: DemoSite, server: Server) -> None:
    """Rule 8: refused connections stop it as well; back again, its slot needs no waiting for a deadline."""
    with running(but(plan, lease=1.5, timeout=30.0)) as (alone,):
        time.sleep(1.5)
        with cut_off(server, plan.dsn):
            lease_ends_at = time.monotonic() + 1.5
            time.sleep(3.0)
            arrivals = site.arrivals(host=HOST)
        back_at = time.monotonic()
        time.sleep(1.5)
        ended(alone)
    assert arrivals[-1].arrived < lease_ends_at
    later = [each for each in site.arrivals(host=HOST) if each.arrived > back_at]
    assert later, "it waits for the deadline although it knows that nothing is in flight"
    assert violations(site.arrivals(host=HOST), gap=plan.gap, slots=1) == []


def test_alone_and_without_a_gap_there_is_no_round_trip_per_request(plan: Plan, site: DemoSite) -> None:
    """Slots are held over turns: one acquire, a renewal a second, hundreds of requests."""
    with running(but(plan, gap=0.0, slots=32)) as (alone,):
        time.sleep(4)
        (counted,) = ended(alone)
    assert counted["sent"] > 500
    assert counted["acquires"] <= 3
    assert counted["renewals"] <= 5
    assert violations(site.arrivals(host=HOST), gap=0.0, slots=32, tolerance=0.002) == []
