"""The budget store: what is granted, renewed, refused and charged; all times given, nothing sleeps."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from collector_assets import budget
from collector_assets.budget import Acquired, Demand, Renewed
from collector_assets.database import Connection, Database
from collector_assets.errors import ContractError
from collector_assets.permission import Grant, Held, Returned

LEASE = timedelta(seconds=3)
KEY = "site.test"
BOTH = Demand(
    budget_key=KEY, per="domain", source="a", gap=timedelta(seconds=0.1), slots=1, weight=1.0,
    deadline=timedelta(seconds=10),
)  # fmt: skip


def at(seconds: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


@dataclass(slots=True)
class Process:
    """One holder, as a test speaks of it."""

    connection: Connection
    name: str
    demand: Demand
    grants: tuple[Grant, ...] = ()

    def asks(self, second: float, want: int = 1, returned: Sequence[Returned] = ()) -> Acquired:
        acquired = budget.acquire(
            self.connection, demand=self.demand, holder=self.name, want=want, lease=LEASE, returned=returned,
            now=at(second),
        )  # fmt: skip
        self.grants += acquired.grants
        return acquired

    def renews(self, second: float, served: int = 0) -> Renewed:
        held = [Held(slot=grant.slot, fence=grant.fence, served=served) for grant in self.grants]
        return budget.renew(
            self.connection, budget_key=KEY, holder=self.name, held=held, lease=LEASE, deadline=self.demand.deadline,
            now=at(second),
        )  # fmt: skip

    def back(self, served: int = 0, ended_ago: float | None = None) -> list[Returned]:
        grants, self.grants = self.grants, ()
        return [Returned(slot=g.slot, fence=g.fence, served=served, ended_ago_s=ended_ago) for g in grants]

    def returns(self, second: float, served: int = 0, ended_ago: float | None = None) -> None:
        budget.give_back(
            self.connection, budget_key=KEY, holder=self.name, returned=self.back(served, ended_ago), now=at(second)
        )


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    with database.transaction() as connection:
        yield connection


def process(connection: Connection, name: str, **changes: Any) -> Process:
    """A process whose source is the first letter of its name."""
    return Process(connection, name, replace(BOTH, source=name[0], **changes))


def served(connection: Connection, second: float = 0.0) -> dict[str, float]:
    return {row.source: row.served for row in budget.status(connection, now=at(second))}


# --- Demands -------------------------------------------------------------------------------------------------------


def test_the_strictest_live_demand_binds_everyone(connection: Connection) -> None:
    """Rule 7: the greatest gap, the fewest slots; a demand without a process stops binding."""
    budget.declare(connection, replace(BOTH, slots=4), now=at(0))
    budget.declare(connection, replace(BOTH, source="b", slots=2, gap=timedelta(seconds=5)), now=at(0))
    strict = process(connection, "a1", slots=4).asks(1, want=4)
    assert (strict.slots, strict.gap_s, len(strict.grants)) == (2, 5.0, 2)
    loose = process(connection, "a2", slots=4).asks(40, want=4)
    assert (loose.slots, loose.gap_s) == (4, 0.1)


def test_host_and_domain_do_not_mix_on_one_key(connection: Connection) -> None:
    """Rule 7: all sources of a key agree on domain or host."""
    # Mutation: drop the comparison with `key.per` in declare.
    budget.declare(connection, BOTH, now=at(0))
    with pytest.raises(ContractError, match=r"budget\.per: 'host' for site\.test, but as 'domain' in a"):
        budget.declare(connection, replace(BOTH, source="b", per="host"), now=at(1))
    budget.declare(connection, replace(BOTH, source="b", per="host"), now=at(60))  # nobody lives on it as a domain


def test_a_demand_that_died_is_declared_again_by_asking(connection: Connection) -> None:
    late = process(connection, "a1")
    budget.declare(connection, late.demand, now=at(0))
    assert late.asks(1000).grants
    assert process(connection, "b1").asks(1000).slots == 1  # never declared at all


# --- Granting ------------------------------------------------------------------------------------------------------


def test_a_held_slot_is_granted_to_nobody_else(connection: Connection) -> None:
    """Rule 7: no two requests in one slot."""
    # Mutation: `is_free` always true in sharing.Slot (the guard in `grant` then still holds: drop it too).
    assert len(process(connection, "a1").asks(0).grants) == 1
    other = process(connection, "b1")
    assert other.asks(0.1).grants == ()
    assert other.asks(2.9).grants == ()


def test_the_gap_runs_from_the_end_of_the_last_response_whoever_sent_it(connection: Connection) -> None:
    """Rule 7: the next holder gets the slot early and waits for the rest of the gap."""
    # Mutation: `ended_at` not written by give_back.
    first, second = process(connection, "a1"), process(connection, "b1")
    first.asks(0)
    second.asks(0.1)
    first.returns(1.0, served=1, ended_ago=0.02)
    (grant,) = second.asks(1.0).grants
    assert grant.ready_in_s == pytest.approx(0.08)
    assert grant.turn_for_s == pytest.approx(1.08)
    assert grant.held_for_s == pytest.approx(3.0)


def test_a_stricter_source_that_joins_finds_its_own_gap(connection: Connection) -> None:
    """Rule 7: the slot knows when the response ended, not what gap was thought of then."""
    first, strict = process(connection, "a1"), process(connection, "b1", gap=timedelta(seconds=2))
    first.asks(0)
    first.returns(1.0, served=1, ended_ago=0.0)
    (grant,) = strict.asks(1.5).grants
    assert grant.ready_in_s == pytest.approx(1.5)


def test_slots_that_were_never_used_are_ready_at_once(connection: Connection) -> None:
    grants = process(connection, "a1", slots=3).asks(0, want=32).grants
    assert [(grant.slot, grant.ready_in_s) for grant in sorted(grants, key=lambda g: g.slot)] == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]
    assert len({grant.fence for grant in grants}) == 3


def test_of_two_that_ask_at_once_one_gets_the_slot(database: Database) -> None:
    """Rule 7, with real transactions: the second decides after the first has committed."""
    # Mutation: drop lock_key from budget._lock and `s.holder IS NULL` from grant.
    other = replace(BOTH, source="b")
    with database.transaction() as connection:
        budget.declare(connection, BOTH)
        budget.declare(connection, other)
    second: list[Grant] = []

    def ask() -> None:
        with database.transaction() as connection:
            second.extend(budget.acquire(connection, demand=other, holder="b1", want=1, lease=LEASE).grants)

    thread = threading.Thread(target=ask)
    with database.transaction() as connection:
        first = budget.acquire(connection, demand=BOTH, holder="a1", want=1, lease=LEASE)
        thread.start()
        _wait_until_blocked(database)
    thread.join()
    assert (len(first.grants), second) == (1, [])


def _wait_until_blocked(database: Database) -> None:
    """Until some session waits for a lock."""
    waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with database.connect(autocommit=True) as connection:
        for _ in range(500):
            if connection.execute(waiting).fetchone() is not None:
                return
            time.sleep(0.01)
    pytest.fail("nobody waits")


def test_asking_in_vain_waits_for_no_lock(database: Database) -> None:
    """Polling costs one statement: a waiter neither locks nor writes until something is free."""
    holder, waiting = replace(BOTH), replace(BOTH, source="b")
    with database.transaction() as connection:
        budget.acquire(connection, demand=holder, holder="a1", want=1, lease=LEASE)
        budget.acquire(connection, demand=waiting, holder="b1", want=1, lease=LEASE)
    with database.transaction() as blocker, database.transaction() as connection:
        blocker.execute("SELECT FROM budget_keys FOR UPDATE")
        connection.execute("SET LOCAL lock_timeout = '100ms'")
        acquired = budget.acquire(connection, demand=waiting, holder="b1", want=1, lease=LEASE)
        assert acquired.grants == ()
        assert 0.01 <= acquired.retry_in_s <= 0.25


def test_a_closed_key_grants_nothing(connection: Connection) -> None:
    """A key closed for all (Retry-After) is closed for a new grant as well, and holders hear of it."""
    holder = process(connection, "a1")
    holder.asks(0)
    connection.execute("UPDATE budget_keys SET closed_until = %s, closed_reason = '429'", [at(10)])
    acquired = process(connection, "b1").asks(1)
    assert (acquired.grants, acquired.closed_for_s, acquired.retry_in_s) == ((), 9.0, 1.0)
    assert holder.renews(2).closed_for_s == pytest.approx(8.0)


# --- Leases --------------------------------------------------------------------------------------------------------


def test_a_renewed_slot_stays_with_its_holder(connection: Connection) -> None:
    holder, other = process(connection, "a1"), process(connection, "b1")
    holder.asks(0)
    for second in range(1, 20):
        assert holder.renews(second).slots[0].held_for_s == pytest.approx(3.0)
        assert other.asks(second).grants == ()


def test_a_dead_holders_slot_comes_back_after_lease_deadline_and_gap(connection: Connection) -> None:
    """Rule 8: lease 3 s, deadline 10 s, gap 0.1 s after a grant at 0."""
    # Mutation: `back_at = clock.now + %(lease)s` in grant.
    process(connection, "a1").asks(0)
    other = process(connection, "b1")
    assert other.asks(3.1).grants == ()
    assert other.asks(12.9).grants == ()
    (grant,) = other.asks(13.02).grants
    assert grant.ready_in_s == pytest.approx(0.08)


def test_a_lease_that_ended_is_not_revived(connection: Connection) -> None:
    """Rule 8: even when nobody took the slot, the late holder acquires anew."""
    # Mutation: drop `s.held_until > clock.now` from renew.
    holder = process(connection, "a1")
    holder.asks(0)
    assert holder.renews(3.0).slots == {}
    assert holder.renews(2.9).slots  # (one that came in time is)


def test_a_slot_that_moved_on_is_lost_to_its_old_holder(connection: Connection) -> None:
    """Rule 8: renewing or giving back under an old fence changes nothing."""
    # Mutation: drop `s.fence = mine.fence` from give_back, with the same holder name coming back.
    old = process(connection, "a1")
    old.asks(0)
    again = process(connection, "a1")
    (grant,) = again.asks(20).grants
    assert old.renews(20.1).slots == {}
    old.returns(20.2, served=5, ended_ago=1.0)
    assert again.renews(20.3).slots
    assert grant.fence > 0
    assert process(connection, "b1").asks(20.4).grants == ()


def test_a_late_holder_that_speaks_up_spares_the_others_the_deadline(connection: Connection) -> None:
    """It knows that nothing is in flight and when its last response ended."""
    late, other = process(connection, "a1"), process(connection, "b1")
    late.asks(0)
    late.returns(5.0, served=4, ended_ago=2.5)
    (grant,) = other.asks(5.0).grants
    assert grant.ready_in_s == 0
    assert served(connection)["a"] == 4.0


def test_holders_hear_that_slots_became_fewer(connection: Connection) -> None:
    """Rule 7: what is beyond goes back after the request under way, not at the end of a turn."""
    # Mutation: `surplus` always empty.
    wide = process(connection, "a1", slots=3)
    wide.asks(0, want=3)
    budget.declare(connection, replace(BOTH, source="b", slots=1), now=at(0.1))
    states = wide.renews(0.2).slots
    assert {slot: (state.must_yield, state.turn_for_s) for slot, state in states.items() if slot} == {
        1: (True, 0.0),
        2: (True, 0.0),
    }
    assert not states[0].must_yield
    assert process(connection, "b1").asks(0.3).grants == ()


# --- Sharing -------------------------------------------------------------------------------------------------------


def test_a_holder_yields_only_when_another_waits(connection: Connection) -> None:
    """Rule 7."""
    holder, other = process(connection, "a1"), process(connection, "b1")
    assert not holder.asks(0).grants[0].must_yield
    assert not holder.renews(0.5).slots[0].must_yield
    other.asks(0.6)
    assert holder.renews(0.7).slots[0].must_yield
    assert not holder.renews(2.0).slots[0].must_yield  # it stopped asking
    other.asks(2.1)
    budget.stop_waiting(connection, budget_key=KEY, holder="b1", now=at(2.2))
    assert not holder.renews(2.3).slots[0].must_yield


def test_the_end_of_a_turn_gives_the_slot_to_the_least_served(connection: Connection) -> None:
    """Rule 7: weights 3:1 share 3:1, turn by turn; the holder itself may be the one that should have it."""
    # Mutation: charge without `/ d.weight`.
    gold, tin = process(connection, "g1", weight=3.0), process(connection, "t1")
    gold.asks(0)
    tin.asks(0)
    turns = ""
    for turn in range(1, 41):
        second = float(turn)
        holder, waiter = (gold, tin) if gold.grants else (tin, gold)
        waiter.asks(second - 0.01)
        turns += holder.name[0]
        holder.asks(second, returned=holder.back(served=9, ended_ago=0.0))
        if not holder.grants:
            waiter.asks(second + 0.01)
        assert bool(gold.grants) != bool(tin.grants)
    assert turns.count("g") == 30
    totals = served(connection, 40)
    assert totals["g"] == pytest.approx(totals["t"], abs=9)


def test_what_was_sent_is_charged_once(connection: Connection) -> None:
    """Reports are totals: one that is repeated, or follows one that was lost, neither doubles nor forgets."""
    # Mutation: `report.served` instead of the difference in charge.
    holder = process(connection, "a1", weight=2.0)
    holder.asks(0)
    holder.renews(1, served=4)
    holder.renews(1, served=4)
    holder.renews(2, served=10)
    holder.returns(2.5, served=12)
    holder.returns(2.5, served=12)
    assert served(connection)["a"] == 6.0


def test_a_dead_holder_is_charged_for_what_it_did_not_report(connection: Connection) -> None:
    """A second at its pace: dying is no way to send for free."""
    # Mutation: drop the UPDATE of budget_demands from take_back.
    holder = process(connection, "a1")
    holder.asks(0)
    holder.renews(2, served=20)
    process(connection, "b1").asks(16)
    assert served(connection)["a"] == pytest.approx(30.0)


def test_a_newcomer_starts_level_and_takes_no_backlog(connection: Connection) -> None:
    """Rule 7: never served before is no claim on what the others were served."""
    old = process(connection, "a1")
    old.asks(0)
    old.renews(1, served=1000)
    new = process(connection, "b1")
    new.asks(1.5)
    assert served(connection) == {"a": 1000.0, "b": 1000.0}
    budget.declare(connection, replace(BOTH, source="c"), now=at(1.6))
    assert served(connection)["c"] == 1000.0


def test_a_source_that_was_away_comes_back_level(connection: Connection) -> None:
    early, busy = process(connection, "a1"), process(connection, "b1")
    early.asks(0)
    early.returns(1, served=1)
    busy.asks(1)
    for second in range(2, 12):
        busy.renews(second, served=second * 10)
    early.asks(12)
    assert served(connection)["a"] == served(connection)["b"] == 111.0  # b had joined at a's 1


def test_a_source_between_two_turns_keeps_what_it_is_owed(connection: Connection) -> None:
    """Giving back and asking again in two transactions is no absence."""
    owed, other = process(connection, "a1", weight=3.0), process(connection, "b1")
    other.asks(0)
    other.returns(1, served=9)
    owed.asks(1)
    owed.returns(2, served=9)
    before = served(connection)["a"]
    other.asks(2.001)
    owed.asks(2.002)
    assert served(connection)["a"] == before


def test_a_turn_is_kept_only_for_a_waiter_that_asks(connection: Connection) -> None:
    holder, gone, other = (process(connection, name) for name in ("a1", "b1", "c1"))
    holder.asks(0)
    gone.asks(0.1)
    other.asks(0.2)
    holder.returns(0.5, served=1, ended_ago=0.0)
    assert other.asks(0.6).grants == ()  # b1 has waited longer
    assert other.asks(1.2).grants != ()  # b1 stopped asking


def test_a_holder_with_some_slots_waits_for_the_rest_behind_the_others(connection: Connection) -> None:
    first, second = process(connection, "a1", slots=2), process(connection, "a2", slots=2)
    second.asks(0, want=1)
    assert len(first.asks(0.1, want=2).grants) == 1
    third = process(connection, "a3", slots=2)
    third.asks(0.2, want=2)
    second.returns(0.5, served=1, ended_ago=1.0)
    assert first.asks(0.6).grants == ()
    assert len(third.asks(0.6, want=2).grants) == 1


def test_status_says_who_holds_and_who_waits(connection: Connection) -> None:
    holder, other = process(connection, "a1"), process(connection, "b1", weight=2.0)
    holder.asks(0)
    other.asks(0.5)
    one, two = budget.status(connection, now=at(1))
    assert (one.source, one.holding, one.expired, one.waiting, one.is_live) == ("a", 1, 0, 0, True)
    assert (two.source, two.holding, two.waiting, two.weight) == ("b", 0, 1, 2.0)
    assert budget.status(connection, now=at(4))[0].expired == 1
