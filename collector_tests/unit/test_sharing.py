"""Who gets the next turn: pure decisions over the rows of a key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collector_assets import sharing
from collector_assets.sharing import Key, Share, Slot, Waiter


def free(slot: int, *, ended_ago: float | None = None, pace: float = 0.0) -> Slot:
    return Slot(
        slot=slot, holder=None, source=None, held_for=None, back_in=None, turn_for=None, ended_ago=ended_ago,
        served=0, pace=pace,
    )  # fmt: skip


def held(slot: int, holder: str, *, held_for: float = 2.0, turn_for: float = 0.5, pace: float = 0.0) -> Slot:
    return replace(
        free(slot, pace=pace), holder=holder, source=holder[0], held_for=held_for, back_in=held_for + 5.0,
        turn_for=turn_for,
    )  # fmt: skip


def share(source: str, *, served: float = 0.0, weight: float = 1.0, slots: int = 1, gap: float = 0.1) -> Share:
    return Share(source=source, gap_s=gap, slots=slots, weight=weight, served=served, away=60.0, live_for=20.0)


def waiter(holder: str, *, waited: float = 1.0, wanted: int = 1) -> Waiter:
    """A waiting process; its source is its first letter."""
    return Waiter(holder=holder, source=holder[0], waited=waited, wanted=wanted, live_for=1.0)


def key(slots: list[Slot], shares: list[Share], waiters: list[Waiter]) -> Key:
    return Key(per="domain", closed_for=0.0, slots=tuple(slots), shares=tuple(shares), waiters=tuple(waiters))


def winners(key: Key) -> list[str]:
    return [holder for _, holder in sharing.allot(key, sharing.grantable(key))]


def test_effective_gap_is_the_greatest_and_slots_are_the_fewest() -> None:
    """Rule 7."""
    both = key([], [share("a", gap=0.1, slots=8), share("b", gap=2.0, slots=3)], [])
    assert (both.gap_s, both.width) == (2.0, 3)
    assert key([], [], []).width == 0


def test_the_next_turn_goes_to_the_least_served_per_weight() -> None:
    """Rule 7."""
    # Mutation: drop `served[w.source]` from the key in allot.
    shares = [share("a", served=10.0), share("b", served=9.0)]
    assert winners(key([free(0)], shares, [waiter("a1", waited=9.0), waiter("b1")])) == ["b1"]


def test_weights_share_turns_three_to_one() -> None:
    a, b, turns = 0.0, 0.0, ""
    for _ in range(400):
        shares = [share("a", served=a, weight=3.0), share("b", served=b)]
        (winner,) = winners(key([free(0)], shares, [waiter("a1"), waiter("b1")]))
        turns += winner[0]
        a, b = (a + 10 / 3, b) if winner == "a1" else (a, b + 10)
    assert turns.count("a") == pytest.approx(300, abs=3)
    assert "aaaaa" not in turns  # nobody waits longer than it must


def test_among_one_source_the_longest_waiting_is_next() -> None:
    waiters = [waiter("a1", waited=0.5), waiter("a2", waited=2.0), waiter("a3", waited=1.0)]
    assert winners(key([free(0)], [share("a")], waiters)) == ["a2"]


def test_free_slots_are_divided_not_taken_by_one() -> None:
    shares = [share("a", weight=3.0, slots=8), share("b", slots=8)]
    waiters = [waiter("a1", wanted=8), waiter("b1", wanted=8)]
    got = winners(key([free(n) for n in range(8)], shares, waiters))
    assert (got.count("a1"), got.count("b1")) == (6, 2)


def test_processes_of_one_source_divide_slots_equally() -> None:
    waiters = [waiter("a1", waited=3.0, wanted=8), waiter("a2", wanted=8)]
    slots = [free(n) for n in range(4)] + [held(n, "a1") for n in range(4, 8)]
    assert winners(key(slots, [share("a", slots=8)], waiters)) == ["a2"] * 4


def test_slots_in_use_count_for_what_they_will_serve() -> None:
    # Mutation: drop `+= slot.expected / weight` from allot: a newcomer takes every slot before its first report.
    shares = [share("a", served=110.0, slots=8), share("b", served=100.0, slots=8)]
    slots = [held(0, "a1", pace=10.0), held(1, "b1", pace=10.0), held(2, "b1", pace=10.0), free(3)]
    assert winners(key(slots, shares, [waiter("a1"), waiter("b1")])) == ["a1"]


def test_shrunk_key_grants_nothing_until_the_surplus_is_back_and_its_gap_over() -> None:
    """Rule 7: slots are the fewest of the live demands."""
    # Mutation: `busy` counts only slots within the width.
    two_held = [free(0), held(1, "a1"), held(2, "a1")]
    shares, waiters = [share("a", slots=2)], [waiter("a2", wanted=2)]
    assert winners(key(two_held, shares, waiters)) == []
    assert sharing.surplus(key(two_held, shares, waiters)) == {2}
    gap_runs = [free(0), held(1, "a1"), free(2, ended_ago=0.05)]
    assert winners(key(gap_runs, shares, waiters)) == []
    gap_over = [free(0), held(1, "a1"), free(2, ended_ago=0.2)]
    assert winners(key(gap_over, shares, waiters)) == ["a2"]


def test_the_slot_that_is_ready_first_is_granted_first() -> None:
    slots = [free(0, ended_ago=0.01), free(1, ended_ago=5.0), free(2)]
    assert [slot.slot for slot in sharing.grantable(key(slots, [share("a", slots=3)], []))] == [2, 1, 0]


def test_a_closed_key_grants_nothing() -> None:
    assert winners(replace(key([free(0)], [share("a")], [waiter("a1")]), closed_for=1.0)) == []


def test_a_newcomer_starts_level_with_the_least_of_the_active() -> None:
    """Being away earns no burst."""
    # Mutation: `return 0.0` for a source without a live demand.
    shares = [share("a", served=500.0), share("b", served=70.0)]
    assert sharing.level(key([held(0, "a1")], shares, []), "c") == 500.0
    assert sharing.level(key([free(0)], shares, []), "c") == 70.0
    assert sharing.level(key([], [], []), "c") == 0.0


def test_a_source_that_was_away_gains_nothing_and_loses_nothing() -> None:
    shares = [share("a", served=500.0), share("b", served=70.0), share("c", served=900.0)]
    busy = key([held(0, "a1")], shares, [])
    assert sharing.level(busy, "b") == 500.0
    assert sharing.level(busy, "c") == 900.0
    just_now = [replace(each, away=0.1) for each in shares]
    assert sharing.level(key([held(0, "a1")], just_now, []), "b") == 70.0


def test_a_waiter_asks_again_when_a_turn_may_end() -> None:
    def asks_in(slot: Slot, gap: float) -> float:
        return sharing.retry_in(key([slot], [share("a", gap=gap)], []))

    assert asks_in(held(0, "a1", turn_for=0.3), 0.1) == pytest.approx(0.1)  # often enough for an early give-back
    assert asks_in(held(0, "a1", turn_for=0.17), 0.1) == pytest.approx(0.07)
    assert asks_in(held(0, "a1", turn_for=-1.0), 0.1) == pytest.approx(0.05)
    assert asks_in(held(0, "a1", turn_for=-1.0), 0.0) == pytest.approx(0.01)
    assert asks_in(held(0, "a1", turn_for=60.0), 30.0) == pytest.approx(0.25)
    assert sharing.retry_in(replace(key([free(0)], [share("a")], []), closed_for=3600.0)) == 1.0
