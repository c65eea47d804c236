"""Lanes and interleaving (rule 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from collector_assets.database import Database
from collector_assets.request import Lease
from collector_tests.fixtures.frontier import START, Work, open_work, requests

WEIGHTS = {"a": 3, "*": 1}


def lanes_of(leases: Sequence[Lease]) -> str:
    return "".join(lease.lane for lease in leases)


def with_lanes(database: Database, counts: dict[str, int], **more: Any) -> Work:
    work = open_work(database, **more)
    for lane, count in counts.items():
        work.add(requests(count, lane=lane))
    return work


def test_lanes_share_claims_by_weight_and_a_lane_not_named_weighs_the_star(database: Database):
    """Rule 5."""
    # Mutation: order by priority and age alone (`take` without take_turns) -> "aaaaaaaa".
    work = with_lanes(database, {"a": 20, "b": 20})
    assert lanes_of(work.claim(8, lane_weights=WEIGHTS)) == "aabaaaba"


def test_claims_one_by_one_are_the_claims_of_a_batch(database: Database):
    """Rule 5: where the turns stand is kept, so small batches are as fair as large ones."""
    # Mutation: drop sharing.save() from claim -> "aaaaaaaaaa".
    counts = {"a": 20, "b": 20, "c": 20}
    batch = with_lanes(database, counts).claim(10, lane_weights=WEIGHTS)
    small = with_lanes(database, counts, start=START + timedelta(days=1))
    singles = [lease for _ in range(10) for lease in small.claim(1, lane_weights=WEIGHTS)]
    mixed = with_lanes(database, counts, start=START + timedelta(days=2))
    steps = [lease for count in (3, 1, 4, 2) for lease in mixed.claim(count, lane_weights=WEIGHTS)]
    assert lanes_of(batch) == lanes_of(singles) == lanes_of(steps) == "abacaabaca"


def test_lane_that_came_first_cannot_fill_the_capacity_for_ever(database: Database):
    """Rule 5: admission shares by weight too, so a lane with work is never starved."""
    # Mutation: take candidates in order of age in `_admit` -> the first 30 are all of lane a.
    work = with_lanes(database, {"a": 100}, capacity=4)
    work.claim(1)
    work.add(requests(100, lane="b"))
    claimed = ""
    for _ in range(30):
        leases = work.claim(2)
        claimed += lanes_of(leases)
        work.fetched(*leases)
    assert 25 <= Counter(claimed)["b"] <= 31


def test_turns_of_one_place_at_a_time_go_round(database: Database):
    """Rule 5: with a capacity of 1 every admission is a single turn."""
    work = with_lanes(database, {"a": 9, "b": 9}, capacity=1)
    claimed = ""
    for _ in range(8):
        leases = work.claim(1, lane_weights=WEIGHTS)
        claimed += lanes_of(leases)
        work.fetched(*leases)
    assert claimed == "aabaaaba"


def test_windows_keep_their_own_turns(database: Database):
    first = with_lanes(database, {"a": 5, "b": 5})
    second = with_lanes(database, {"a": 5, "b": 5}, start=START + timedelta(days=1))
    assert lanes_of(first.claim(1)) == lanes_of(second.claim(1)) == "a"
    assert lanes_of(first.claim(1)) == lanes_of(second.claim(1)) == "b"


@pytest.mark.parametrize(("weights", "expected"), [((1, 1), "ldldldld"), ((1, 3), "dldddldd"), ((2, 1), "ldlldlld")])
def test_listings_and_details_interleave_by_weight(database: Database, weights: tuple[int, int], expected: str):
    """Rule 5: `interleave` weighs (discovering kinds, other kinds)."""
    # Mutation: pass interleave=None in claim -> details first, as they are older.
    work = open_work(database)
    work.add([*requests(20), *requests(20, "listing")])
    claimed = "".join(lease.kind[0] for lease in work.claim(8, interleave=weights))
    assert claimed == expected


def test_lanes_keep_their_shares_inside_interleaved_kinds(database: Database):
    work = open_work(database)
    for lane in "ab":
        work.add([*requests(20, lane=lane), *requests(20, "listing", lane=lane)])
    claimed = Counter((lease.kind, lease.lane) for lease in work.claim(16, interleave=(1, 1), lane_weights=WEIGHTS))
    assert claimed == {("detail", "a"): 6, ("detail", "b"): 2, ("listing", "a"): 6, ("listing", "b"): 2}


def test_admission_interleaves_too(database: Database):
    """A capacity full of details does not keep the listings out."""
    work = open_work(database, capacity=4)
    work.add([*requests(50), *requests(50, "listing")])
    kinds: Counter[str] = Counter()
    for _ in range(10):
        leases = work.claim(2, interleave=(1, 1))
        kinds.update(lease.kind for lease in leases)
        work.fetched(*leases)
    assert kinds == {"detail": 10, "listing": 10}


def test_many_lanes_are_all_served(database: Database):
    work = with_lanes(database, {f"lane-{n}": 3 for n in range(40)}, capacity=20)
    served: Counter[str] = Counter()
    for _ in range(8):
        leases = work.claim(10)
        served.update(lease.lane for lease in leases)
        work.fetched(*leases)
    assert len(served) == 40
    assert max(served.values()) <= 3
