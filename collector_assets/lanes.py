"""Sharing by weight, pure: smooth weighted round robin (the one that nginx balances with) over queues of work.

At each turn every member that has work gains its weight in credit; the richest takes the turn and pays the sum of the
weights. Weights 3 and 1 give A A B A, not A A A B; who was away comes back with the credit it left with, so nobody
saves up a burst; a member with work is never starved. Turns taken one by one are the turns taken at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

EVERY_OTHER: Final = "*"
ALL: Final = "all"
DISCOVERING: Final = "discovering"
OTHER: Final = "other"

Queues: TypeAlias = Mapping[str, Mapping[str, Sequence[int]]]
"""Work that waits: group of kinds -> lane -> ids, best first."""
Credits: TypeAlias = Mapping[str, Mapping[str, int]]
"""Ring -> member -> credit; a member that is not in it has none."""


def take_turns(
    queues: Queues,
    *,
    count: int,
    ring: str,
    group_weights: Mapping[str, int],
    lane_weights: Mapping[str, int],
    before: Credits,
) -> tuple[list[int], dict[str, dict[str, int]]]:
    """At most `count` ids in their turn, and the credits after that.

    Two rings in one: groups of kinds take turns (ring `ring`), and inside a group its lanes (ring `ring` + group).
    """
    after = {name: dict(credit) for name, credit in before.items()}
    waiting = {
        group: {lane: list(reversed(ids)) for lane, ids in lanes.items() if ids} for group, lanes in queues.items()
    }
    groups = {group: group_weights[group] for group, lanes in waiting.items() if lanes}
    weights = {group: {lane: weight(lane_weights, lane) for lane in waiting[group]} for group in groups}
    taken: list[int] = []
    if len(groups) == 1 and len(only := waiting[group := next(iter(groups))]) == 1:  # nobody to take turns with
        after |= {name: after.get(name, {}) for name in (ring, f"{ring} {group}")}
        return list(queues[group][next(iter(only))][:count]), after
    while groups and len(taken) < count:
        group = turn(groups, after.setdefault(ring, {}))
        lane = turn(weights[group], after.setdefault(f"{ring} {group}", {}))
        taken.append(waiting[group][lane].pop())
        if not waiting[group][lane]:
            del weights[group][lane]
        if not weights[group]:
            del groups[group]
    return taken, after


def turn(weights: Mapping[str, int], credit: dict[str, int]) -> str:
    """Who of those with work takes this turn; changes `credit`. Between equals the names decide."""
    if len(weights) == 1:
        return next(iter(weights))  # gains its weight and pays it
    richest, most, pays = "", None, 0
    for name, gain in weights.items():  # one pass: this is done twice for every request
        credit[name] = has = credit.get(name, 0) + gain
        pays += gain
        if most is None or has > most or (has == most and name < richest):
            richest, most = name, has
    credit[richest] -= pays
    return richest


def weight(weights: Mapping[str, int], lane: str) -> int:
    """A lane's weight; a lane that is not named weighs what `"*"` weighs, or 1."""
    return weights.get(lane, weights.get(EVERY_OTHER, 1))
