"""What one worker knows it may not send to: halted origins, closed budget keys (rule 9).

The database decides; this is what the worker has heard of it, from its own deposits at once and from its heartbeat
within a second. An answer that closes a key stops the worker itself before it is deposited.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from collector_assets import urls


@dataclass(slots=True)
class _Refusals:
    """Of one origin, as one worker sees them."""

    in_a_row: int = 0
    undeposited: int = 0


class Stops:
    """Shared by the worker's loop, the thread that deposits and the heartbeat's.

    Safe without a lock: what others read is replaced, never changed. What was read from the database before this worker
    wrote something newer is told by its `mark` and ignored; the next reading is a second away.
    """

    def __init__(self) -> None:
        self.halted: frozenset[str] = frozenset()
        self.mark = 0
        self._closed: Mapping[str, float] = {}
        """Until which `time.monotonic()`, as the database says."""
        self._held: Mapping[str, float] = {}
        """The same, as answers say that are not deposited yet."""
        self._refusals: dict[str, _Refusals] = {}
        """By origin, as this worker sees them; the loop's alone."""
        self._suspects: frozenset[str] = frozenset()
        """Origins that this worker would halt; the deposit decides."""

    # --- Asking ------------------------------------------------------------------------------------------------------

    def forbid(self, url: str) -> bool:
        """Whether the URL's origin is halted."""
        if not self.halted and not self._suspects:
            return False
        origin = urls.origin(url)
        return origin in self.halted or origin in self._suspects

    @property
    def has_refusals(self) -> bool:
        """Whether any origin has refused this worker."""
        return bool(self._refusals)

    def is_held(self, budget_key: str) -> bool:
        """Whether only this worker knows yet that the key is closed."""
        return budget_key in self._held

    def closed_for_s(self, budget_key: str) -> float:
        """Seconds until the key is open; 0 when it is."""
        if not self._closed and not self._held:
            return 0.0
        until = max(self._closed.get(budget_key, 0.0), self._held.get(budget_key, 0.0))
        return max(0.0, until - time.monotonic())

    # --- Learning ----------------------------------------------------------------------------------------------------

    def hold(self, budget_key: str, for_s: float) -> None:
        """An answer closes the key; until it is deposited nobody else knows."""
        self._held = {**self._held, budget_key: time.monotonic() + for_s}

    def refused(self, origin: str, *, limit: int) -> None:
        """An answer refuses us; at the limit nothing more is sent there until it is deposited."""
        seen = self._refusals.setdefault(origin, _Refusals())
        seen.in_a_row += 1
        seen.undeposited += 1
        if seen.in_a_row >= limit:
            self._suspects |= {origin}

    def accepted(self, origin: str) -> None:
        """A good page ends the row."""
        if origin in self._refusals:
            self._refusals[origin].in_a_row = 0

    def settle(
        self,
        halted: frozenset[str],
        closed_for_s: Mapping[str, float],
        refusals: Mapping[str, int],
        *,
        is_all: bool = True,
    ) -> None:
        """What a deposit has written, and how many refusals were in it, by origin.

        `is_all`: no answer waits for the next one. A key that it found open may be held because of such an answer.
        """
        for origin, number in refusals.items():
            seen = self._refusals[origin]
            seen.undeposited -= number
            if seen.undeposited <= 0:  # all is told: from here on the database knows better
                self._suspects -= {origin}
        if not halted and not closed_for_s:
            return
        self.mark += 1
        self.halted |= halted
        self._closed = {**self._closed, **_until(closed_for_s)}
        told = {key for key, for_s in closed_for_s.items() if for_s > 0 or is_all}
        self._held = {key: until for key, until in self._held.items() if key not in told}

    def close(self, budget_key: str, for_s: float) -> None:
        """The key is closed, and everybody can know: an answer that is no request's of the frontier said so."""
        self.mark += 1
        until = max(self._closed.get(budget_key, 0.0), time.monotonic() + for_s)
        self._closed = {**self._closed, budget_key: until}

    def learn_halted(self, halted: frozenset[str], mark: int) -> None:
        """Every halted origin, read from the database after `mark`."""
        if mark == self.mark:
            self.halted = halted

    def learn_closed(self, closed_for_s: Mapping[str, float], mark: int) -> None:
        """Keys that were looked at, and for how long each is closed (0: it is open), read after `mark`."""
        if mark == self.mark:
            self._closed = {**self._closed, **_until(closed_for_s)}


def _until(closed_for_s: Mapping[str, float]) -> dict[str, float]:
    now = time.monotonic()
    return {key: now + for_s for key, for_s in closed_for_s.items()}
