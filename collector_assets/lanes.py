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
Credits: TypeAlias = Mapping[tuple[str, str], int]
"""(ring, member) -> credit; a member that is not in it has none."""


def take_turns(
    queues: Queues,
    *,
    count: int,
    ring: str,
    group_weights: Mapping[str, int],
    lane_weights: Mapping[str, int],
    before: Credits,
) -> tuple[list[int], dict[tuple[str, str], int]]:
    """At most `count` ids in their turn, and the credits that changed.

    Two rings in one: groups of kinds take turns (ring `ring`), and inside a group its lanes (ring `ring` + group).
    """
    credit = dict(before)
    waiting = {
        group: {lane: list(reversed(ids)) for lane, ids in lanes.items() if ids} for group, lanes in queues.items()
    }
    taken: list[int] = []
    while len(taken) < count and (groups := [group for group, lanes in waiting.items() if lanes]):
        group = _turn(credit, ring, {name: group_weights[name] for name in groups})
        lanes = waiting[group]
        lane = _turn(credit, f"{ring} {group}", {name: weight(lane_weights, name) for name in lanes})
        taken.append(lanes[lane].pop())
        if not lanes[lane]:
            del lanes[lane]
    return taken, {key: value for key, value in credit.items() if value != before.get(key, 0)}


def weight(weights: Mapping[str, int], lane: str) -> int:
    """A lane's weight; a lane that is not named weighs what `"*"` weighs, or 1."""
    return weights.get(lane, weights.get(EVERY_OTHER, 1))


def _turn(credit: dict[tuple[str, str], int], ring: str, weights: Mapping[str, int]) -> str:
    """Who takes one turn of this ring; the names decide between equals."""
    for name, gain in weights.items():
        credit[ring, name] = credit.get((ring, name), 0) + gain
    richest = min(weights, key=lambda name: (-credit[ring, name], name))
    credit[ring, richest] -= sum(weights.values())
    return richest
