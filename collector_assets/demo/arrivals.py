"""The judge of politeness: pure functions over the site's log of arrivals.

Times are seconds of `time.monotonic()` of the machine that the site runs on. `ended` is read just before the last bytes
leave, `arrived` just after a request came, so a client that waits long enough is never accused by reading the clock.
The exception is a response that ends when the *client* closes the connection: the site sees that a moment later.
A `tolerance` of 1–2 ms allows for it; the default is none.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One line of the log: one request that has ended."""

    n: int  # in order of arrival, from 1
    host: str
    path: str  # with its query
    method: str
    arrived: float
    ended: float
    status: int | None  # None: no status line was sent
    bytes: int  # sent, with the head
    peer_port: int
    user_agent: str
    misbehaviour: str | None


_NAMES = {each.name for each in fields(Arrival)}


def parsed(lines: str | bytes) -> list[Arrival]:
    """The arrivals of a log, in order of arrival; a torn last line (the site was killed) is left out."""
    text = lines.decode() if isinstance(lines, bytes) else lines
    whole = text[: text.rfind("\n") + 1]
    values = (json.loads(line) for line in whole.splitlines())
    found = [Arrival(**{name: each[name] for name in _NAMES}) for each in values]
    return sorted(found, key=attrgetter("arrived", "n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A request that came too soon."""

    kind: Literal["overlap", "gap"]  # overlap: all slots were busy; gap: the first to end had just ended
    arrival: Arrival
    after: Arrival  # whose end freed, or had yet to free, the slot
    missing_seconds: float  # how much later it should have come


def violations(arrivals: Iterable[Arrival], *, gap: float, slots: int, tolerance: float = 0.0) -> list[Violation]:
    """What broke the budget of one key: at most `slots` at once, each `gap` seconds after the end before it.

    Each start is matched to the slot that ended first. That is the best matching: a slot that is ready for this start
    is ready for every later one, so which of the ready ones is taken does not matter; and if the first is not, none is.
    """
    busy: list[tuple[float, int, Arrival]] = []
    found = []
    for each in sorted(arrivals, key=attrgetter("arrived", "n")):
        if len(busy) < slots:
            heapq.heappush(busy, (each.ended, each.n, each))
            continue
        after = busy[0][2]
        missing = after.ended + gap - each.arrived
        if missing > tolerance:
            kind: Literal["overlap", "gap"] = "overlap" if each.arrived < after.ended else "gap"
            found.append(Violation(kind=kind, arrival=each, after=after, missing_seconds=missing))
        heapq.heapreplace(busy, (each.ended, each.n, each))
    return found


def min_gap(arrivals: Iterable[Arrival]) -> float | None:
    """The shortest time from the end of everything before to the next start, for one slot; None for fewer than two.

    Negative when two requests overlapped.
    """
    ordered = sorted(arrivals, key=attrgetter("arrived", "n"))
    shortest, ended = None, None
    for each in ordered:
        if ended is not None:
            waited = each.arrived - ended
            shortest = waited if shortest is None else min(shortest, waited)
        ended = each.ended if ended is None else max(ended, each.ended)
    return shortest


def mean_response_seconds(arrivals: Sequence[Arrival]) -> float:
    """The mean time from a request's arrival to the end of its response; 0 for none."""
    return sum(each.ended - each.arrived for each in arrivals) / len(arrivals) if arrivals else 0.0


def used_share(arrivals: Sequence[Arrival], *, gap: float, slots: int, seconds: float) -> float:
    """Requests made, as a share of what the budget allows: slots × seconds ÷ (gap + mean response time)."""
    allowed = slots * seconds / (gap + mean_response_seconds(arrivals))
    return len(arrivals) / allowed


def shares(arrivals: Iterable[Arrival], by: str | Callable[[Arrival], str]) -> dict[str, float]:
    """The share of the requests that each value of a field (or of a function of the arrival) has."""
    key = attrgetter(by) if isinstance(by, str) else by
    counts = Counter(str(key(each)) for each in arrivals)
    total = counts.total()
    return {name: count / total for name, count in counts.items()}
