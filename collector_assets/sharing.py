"""Who gets the next turn on a budget key: pure decisions over the key's rows (rule 7).

Sources share by start-time fair queueing: each carries the requests it was served per weight, and the next free slot
goes to the live waiter whose source has the least. A held slot counts for what its turn is expected to serve, so that
one slow report cannot win every slot of a key. Among the processes of one source: who holds fewer, then who has waited
longer. A source that was away starts level with the others, so being away earns no burst and costs no starvation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

SHORTEST_WAIT_S = 0.01
NEAR_WAIT_S = 0.05
LONGEST_WAIT_S = 0.25
LONGEST_CLOSED_WAIT_S = 1.0
AWAY_AFTER_S = 2.0
"""Between giving a slot back and asking for the next one a source is not away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A row of `budget_slots`; times in seconds from now, negative when past, None on a slot nobody holds."""

    slot: int
    holder: str | None
    source: str | None
    held_for: float | None
    back_in: float | None
    turn_for: float | None
    ended_ago: float | None
    served: int
    pace: float

    @property
    def is_free(self) -> bool:
        """Nobody holds it, or the lease and the request deadline of a dead holder have passed."""
        return self.back_in is None or self.back_in <= 0

    @property
    def is_held(self) -> bool:
        """Somebody holds it under a lease that goes on."""
        return self.held_for is not None and self.held_for > 0

    @property
    def expected(self) -> float:
        """Requests still to come in the turn: about a second at the slot's pace, at least the one under way."""
        return max(1.0, self.pace - self.served)

    def ready_in(self, gap_s: float) -> float:
        """Seconds until the gap has passed; negative when it has."""
        if self.back_in is not None:  # held: at the latest when a dead holder's last response has ended
            return self.back_in + gap_s
        return -1e9 if self.ended_ago is None else gap_s - self.ended_ago


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A live row of `budget_demands`."""

    source: str
    gap_s: float
    slots: int
    weight: float
    served: float
    away: float
    live_for: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """A live row of `budget_waiters`."""

    holder: str
    source: str
    waited: float
    wanted: int
    live_for: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Everything that decides about one budget key at one moment."""

    per: str
    closed_for: float
    slots: tuple[Slot, ...]
    shares: tuple[Share, ...]
    waiters: tuple[Waiter, ...]
    crawl_delay_s: float = 0.0
    """The longest that robots.txt files of the key ask for; none is 0."""

    @property
    def gap_s(self) -> float:
        """The greatest of the live demands; a Crawl-delay is its floor (rule 9)."""
        return max(self.crawl_delay_s, *(share.gap_s for share in self.shares), 0.0)

    @property
    def width(self) -> int:
        """How many slots there are: the fewest of the live demands; none without a demand.

        One under a Crawl-delay: it is the time between any two requests, however many slots would each keep it.
        """
        return min((1 if self.crawl_delay_s else share.slots for share in self.shares), default=0)

    def share(self, source: str) -> Share | None:
        """The source's live demand."""
        return next((share for share in self.shares if share.source == source), None)

    def waiter(self, holder: str) -> Waiter | None:
        """The holder's live place in the queue."""
        return next((waiter for waiter in self.waiters if waiter.holder == holder), None)

    def holding(self, holder: str) -> int:
        """How many slots the holder has, live or not yet back."""
        return sum(slot.holder == holder and not slot.is_free for slot in self.slots)

    def is_wanted_by_others(self, holder: str) -> bool:
        """Whether another holder waits."""
        return any(waiter.holder != holder for waiter in self.waiters)


def grantable(key: Key) -> list[Slot]:
    """The slots that may be granted now, the first ready first.

    A slot beyond the width that is in use, or whose gap still runs, takes the place of one within it: after the width
    shrank there are never more in use than it says.
    """
    if key.closed_for > 0:
        return []
    busy = sum(not slot.is_free or (slot.slot >= key.width and slot.ready_in(key.gap_s) > 0) for slot in key.slots)
    free = [slot for slot in key.slots if slot.is_free and slot.slot < key.width]
    return sorted(free, key=lambda slot: slot.ready_in(key.gap_s))[: max(0, key.width - busy)]


def allot(key: Key, free: Iterable[Slot]) -> list[tuple[Slot, str]]:
    """Which waiter each free slot is for."""
    weight = {share.source: share.weight for share in key.shares}
    served = {share.source: share.served for share in key.shares}
    holding: Counter[str] = Counter()
    for slot in key.slots:
        if slot.holder is not None and slot.source in served and not slot.is_free:
            holding[slot.holder] += 1
            served[slot.source] += slot.expected / weight[slot.source]
    wanted = {waiter.holder: waiter.wanted for waiter in key.waiters}
    allotted = []
    for slot in free:
        waiting = [waiter for waiter in key.waiters if wanted[waiter.holder] > 0 and waiter.source in served]
        if not waiting:
            break
        best = min(waiting, key=lambda w: (served[w.source], holding[w.holder], -w.waited, w.holder))
        served[best.source] += max(1.0, slot.pace) / weight[best.source]
        holding[best.holder] += 1
        wanted[best.holder] -= 1
        allotted.append((slot, best.holder))
    return allotted


def level(key: Key, source: str) -> float:
    """Requests per weight that a source starts with, or goes on with, when it joins the waiters.

    Sending or waiting, or a moment ago: what it has. Live but away: not below the least of the active. New, or away for
    longer than its demand lived: level with the least of the active, else of the live.
    """
    others = [share for share in key.shares if share.source != source]
    active = _active(key)
    least = min((share.served for share in others if share.source in active), default=None)
    own = key.share(source)
    if own is None:
        return min((share.served for share in others), default=0.0) if least is None else least
    if source in active or own.away < AWAY_AFTER_S or least is None:
        return own.served
    return max(own.served, least)


def _active(key: Key) -> set[str | None]:
    return {slot.source for slot in key.slots if slot.is_held} | {waiter.source for waiter in key.waiters}


def retry_in(key: Key) -> float:
    """Seconds after which a waiter should ask again: when a turn may end, else often enough to lose less than a gap."""
    if key.closed_for > 0:
        return min(max(key.closed_for, SHORTEST_WAIT_S), LONGEST_CLOSED_WAIT_S)
    near = min(max(key.gap_s / 2, SHORTEST_WAIT_S), NEAR_WAIT_S)
    longest = min(max(key.gap_s, NEAR_WAIT_S), LONGEST_WAIT_S)
    soonest = min((_may_come_back_in(slot, key.gap_s) for slot in key.slots if slot.slot < key.width), default=longest)
    return min(max(soonest, near), longest)


def _may_come_back_in(slot: Slot, gap_s: float) -> float:
    if slot.is_free:
        return 0.0
    if slot.is_held:
        return (slot.turn_for or 0.0) - gap_s  # the holder gives it back when its next start would be too late
    return slot.back_in or 0.0


def surplus(key: Key) -> frozenset[int]:
    """Held slots that must go back at once: beyond the width, as long as too many are in use."""
    return frozenset(slot.slot for slot in key.slots if slot.slot >= key.width and not slot.is_free)
