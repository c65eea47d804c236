"""Smooth weighted round robin (rule 5)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets import lanes


def spread(available: Mapping[str, int], weights: Mapping[str, int], count: int, before: lanes.Credits | None = None):
    """Names of the lanes in the order of their turns, and the credits after."""
    ids = iter(range(1_000_000))
    queues = {lanes.ALL: {lane: [next(ids) for _ in range(number)] for lane, number in available.items()}}
    lane_of = {i: lane for lane, numbers in queues[lanes.ALL].items() for i in numbers}
    taken, after = lanes.take_turns(
        queues, count=count, ring="claim", group_weights={lanes.ALL: 1}, lane_weights=weights, before=before or {}
    )
    return "".join(lane_of[i] for i in taken), after


def test_turns_follow_the_weights_smoothly():
    """Rule 5: 3 to 1 is A A B A, not A A A B."""
    # Mutation: drop `credit[richest] -= sum(weights.values())` -> "aaaaaaaa".
    assert spread({"a": 9, "b": 9}, {"a": 3, "b": 1}, 8)[0] == "aabaaaba"
    assert spread({"a": 9, "b": 9, "c": 9}, {"a": 5, "b": 1, "c": 1}, 7)[0] == "aabacaa"


def test_lane_that_is_not_named_weighs_what_the_star_weighs():
    """Rule 5."""
    assert lanes.weight({"a": 3, "*": 2}, "b") == 2
    assert lanes.weight({"a": 3}, "b") == 1


def test_lanes_without_work_leave_their_turns_to_the_others():
    assert spread({"a": 1, "b": 4}, {"a": 100, "b": 1}, 9)[0] == "abbbb"


def test_lane_that_was_away_saves_up_no_burst():
    # Mutation: drop `credit[richest] -= sum(weights.values())`.
    _, after = spread({"a": 100}, {"a": 1, "b": 1}, 100)
    assert spread({"a": 10, "b": 10}, {"a": 1, "b": 1}, 6, after)[0] in {"ababab", "bababa"}


def test_best_of_a_lane_goes_first():
    taken, _ = lanes.take_turns(
        {lanes.ALL: {"a": [7, 3, 5]}},
        count=2,
        ring="claim",
        group_weights={lanes.ALL: 1},
        lane_weights={},
        before={},
    )
    assert taken == [7, 3]


def test_groups_of_kinds_take_turns_before_their_lanes_do():
    taken, _ = lanes.take_turns(
        {lanes.DISCOVERING: {"*": [1, 2, 3]}, lanes.OTHER: {"a": [11, 12, 13], "b": [21, 22, 23]}},
        count=9,
        ring="claim",
        group_weights={lanes.DISCOVERING: 1, lanes.OTHER: 2},
        lane_weights={},
        before={},
    )
    assert taken == [11, 1, 21, 12, 2, 22, 13, 3, 23]


WEIGHTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 9), min_size=1)


@given(weights=WEIGHTS, batches=st.lists(st.integers(1, 7), max_size=12))
def test_turns_taken_in_batches_are_the_turns_taken_at_once(weights: dict[str, int], batches: list[int]):
    available = dict.fromkeys(weights, 100)
    credit: lanes.Credits = {}
    names = ""
    for count in batches:
        some, credit = spread(available, weights, count, credit)
        names += some
    assert names == spread(available, weights, sum(batches))[0]


@given(weights=WEIGHTS)
def test_each_lane_gets_exactly_its_weight_in_every_round(weights: dict[str, int]):
    names, after = spread(dict.fromkeys(weights, 200), weights, 3 * sum(weights.values()))
    assert {lane: names.count(lane) for lane in weights} == {lane: 3 * weight for lane, weight in weights.items()}
    assert not any(after[f"claim {lanes.ALL}"].values()) if len(weights) > 1 else True


@given(available=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)), count=st.integers(0, 40))
def test_everything_is_taken_once_and_nothing_else(available: dict[str, int], count: int):
    names, _ = spread(available, {}, count)
    assert len(names) == min(count, sum(available.values()))
    assert all(names.count(lane) <= number for lane, number in available.items())


@pytest.mark.parametrize("small", [1, 2, 5])
def test_lane_with_work_is_never_starved(small: int):
    """Rule 5: however heavy the others are, it waits at most a whole round."""
    weights = {"heavy": 50, "small": small}
    ids = {"heavy": list(range(1_000)), "small": [9_999]}
    taken, _ = lanes.take_turns(
        {lanes.ALL: ids},
        count=50 + small,
        ring="claim",
        group_weights={lanes.ALL: 1},
        lane_weights=weights,
        before={},
    )
    assert 9_999 in taken
