"""The judge of politeness, on arrivals made by hand."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from collector_assets.demo.arrivals import Arrival, min_gap, parsed, shares, used_share, violations


def _arrivals(*spans: tuple[float, float], agent: str = "a") -> list[Arrival]:
    return [
        Arrival(
            n=n,
            host="shop.localhost",
            path=f"/{n}",
            method="GET",
            arrived=arrived,
            ended=ended,
            status=200,
            bytes=10,
            peer_port=1,
            user_agent=agent,
            misbehaviour=None,
        )
        for n, (arrived, ended) in enumerate(spans, start=1)
    ]


def test_a_gap_kept_exactly_is_no_violation() -> None:
    assert violations(_arrivals((0.0, 1.0), (1.5, 2.0), (2.5, 3.0)), gap=0.5, slots=1) == []


def test_a_start_too_soon_after_the_end_is_a_violation_that_says_by_how_much() -> None:
    [found] = violations(_arrivals((0.0, 1.0), (1.25, 2.0), (2.5, 3.0)), gap=0.5, slots=1)
    assert (found.kind, found.arrival.n, found.after.n) == ("gap", 2, 1)
    assert found.missing_seconds == pytest.approx(0.25)


def test_the_gap_counts_from_the_end_of_the_response_not_from_its_start() -> None:
    # Mutation: `after.arrived + gap` in violations().
    assert len(violations(_arrivals((0.0, 1.0), (1.1, 1.2)), gap=0.5, slots=1)) == 1


def test_an_overlap_is_a_violation_without_any_gap() -> None:
    [found] = violations(_arrivals((0.0, 2.0), (1.0, 3.0)), gap=0.0, slots=1)
    assert found.kind == "overlap"


def test_two_slots_allow_two_at_once_and_no_third() -> None:
    assert violations(_arrivals((0.0, 2.0), (0.1, 2.0)), gap=0.5, slots=2) == []
    [found] = violations(_arrivals((0.0, 2.0), (0.1, 3.0), (1.0, 1.5)), gap=0.5, slots=2)
    assert (found.kind, found.arrival.n, found.after.n) == ("overlap", 3, 1)


def test_each_start_takes_the_slot_that_ended_first() -> None:
    # Mutation: heapreplace of the newest instead of the earliest slot makes 3 follow 2 and accuses it.
    assert violations(_arrivals((0.0, 1.0), (0.0, 1.4), (1.5, 5.0), (1.9, 2.0)), gap=0.5, slots=2) == []


def test_the_order_of_the_lines_does_not_matter() -> None:
    ordered = _arrivals((0.0, 1.0), (1.1, 2.0), (2.6, 3.0))
    assert violations(ordered[::-1], gap=0.5, slots=1) == violations(ordered, gap=0.5, slots=1)


def test_a_tolerance_forgives_only_what_is_within_it() -> None:
    late = _arrivals((0.0, 1.0), (1.499, 2.0), (2.49, 3.0))
    assert len(violations(late, gap=0.5, slots=1)) == 2
    assert [each.arrival.n for each in violations(late, gap=0.5, slots=1, tolerance=0.002)] == [3]


def test_the_shortest_gap_is_measured_from_everything_before() -> None:
    assert min_gap(_arrivals((0.0, 1.0), (1.3, 1.4), (1.9, 2.0))) == pytest.approx(0.3)
    assert min_gap(_arrivals((0.0, 5.0), (1.0, 2.0), (5.5, 6.0))) == pytest.approx(-4.0)
    assert min_gap(_arrivals((0.0, 1.0))) is None


def test_the_used_share_counts_the_mean_response_time() -> None:
    full = _arrivals(*((n * 0.5, n * 0.5 + 0.1) for n in range(20)))
    assert used_share(full, gap=0.4, slots=1, seconds=10) == pytest.approx(1.0)
    assert used_share(full, gap=0.4, slots=2, seconds=10) == pytest.approx(0.5)
    assert used_share([], gap=0.4, slots=1, seconds=10) == 0.0


def test_shares_are_by_a_field_or_by_a_function() -> None:
    mixed = _arrivals((0, 1), (2, 3), (4, 5), agent="heavy") + _arrivals((1, 2), agent="light")
    assert shares(mixed, by="user_agent") == {"heavy": 0.75, "light": 0.25}
    assert shares(mixed, by=lambda each: each.path[:1]) == {"/": 1.0}


def test_a_torn_last_line_of_a_killed_site_is_left_out() -> None:
    lines = "".join(json.dumps(asdict(each)) + "\n" for each in _arrivals((2.0, 3.0), (0.0, 1.0)))
    assert [each.arrived for each in parsed(lines + '{"n": 3, "ho')] == [0.0, 2.0]
