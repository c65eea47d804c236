"""What a holder may do with a slot, decided from monotonic readings alone: no clock, no database, no I/O.

A grant is not an arrival (rule 8). Its not-after counts from a reading taken *before* the statement that granted or
renewed it, its not-before from a reading taken *after*: whatever the network and the lock cost, the holder believes it
has less than it has. Readings are `time.monotonic()` of the holder's process, passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The right to send on one slot of a budget key; the numbers are seconds from the grant."""

    slot: int
    fence: int
    ready_in_s: float
    """Until the gap since the last response on the slot has passed; whoever held it then."""
    held_for_s: float
    turn_for_s: float
    must_yield: bool
    """Somebody else waits: the slot goes back when the turn is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A holder's report on a slot that it keeps: the requests sent since the grant, all of them."""

    slot: int
    fence: int
    served: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotState:
    """What a renewal says about one slot; a slot that a renewal does not mention is lost."""

    held_for_s: float
    turn_for_s: float
    must_yield: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A slot on its way back, with nothing in flight on it."""

    slot: int
    fence: int
    served: int
    ended_ago_s: float | None
    """Since the end of the last response; nothing when none was sent under this grant."""


class Permission:
    """One slot in a holder's hands. One thread sends, another (the heartbeat) calls `renewed` and `lose`.

    Safe without a lock: each of them writes attributes of its own, and a stale reading only forbids.
    """

    __slots__ = ("_closed_until", "_ended_at", "_gap_s", "_grant_ready_at", "_is_sent", "_must_yield", "_not_after",
                 "_turn_until", "fence", "in_flight", "served", "slot")  # fmt: skip

    def __init__(self, grant: Grant, *, gap_s: float, before: float, after: float) -> None:
        self.slot, self.fence = grant.slot, grant.fence
        self.in_flight = False
        self.served = 0
        self._is_sent = False
        self._ended_at = -inf
        self._closed_until = -inf
        self._gap_s = gap_s
        self._grant_ready_at = after + grant.ready_in_s
        self._not_after = before + grant.held_for_s
        self._turn_until = after + grant.turn_for_s
        self._must_yield = grant.must_yield

    @property
    def not_before(self) -> float:
        """The earliest moment of the next start: the gap has passed, and the key is open."""
        return max(self._grant_ready_at, self._ended_at + self._gap_s, self._closed_until)

    @property
    def not_after(self) -> float:
        """Nothing may leave from this moment on."""
        return self._not_after

    @property
    def gap_s(self) -> float:
        """The pause after a response, as the key has it now."""
        return self._gap_s

    # --- Sending ----------------------------------------------------------------------------------------------------

    def may_start(self, now: float) -> bool:
        """Whether a request may begin (connecting included): free, ready, held, and the turn not over."""
        return not self.in_flight and self.not_before <= now < self._not_after and not self.is_over(now)

    def wait_s(self, now: float) -> float:
        """Seconds until the slot is ready, infinite when it never will be; a short lease is renewed meanwhile."""
        if self.in_flight or self.is_lost(now) or self.is_over(now):
            return inf
        return max(0.0, self.not_before - now)

    def started(self, now: float) -> None:
        """A request begins on this slot; no other may until it `ended`."""
        if not self.may_start(now):
            problem = f"slot {self.slot} may not start a request now"
            raise RuntimeError(problem)
        self.in_flight, self._is_sent = True, False

    def may_send(self, now: float) -> bool:
        """The last question, asked after connecting, right before the bytes leave; yes counts as sent."""
        if not self.in_flight or not self.not_before <= now < self._not_after:
            return False
        if not self._is_sent:
            self._is_sent = True
            self.served += 1
        return True

    def also_served(self, requests: int) -> None:
        """Count what a page asked of the key besides its document; its pace was kept inside the visit."""
        self.served += requests

    def ended(self, now: float) -> None:
        """The response, or the attempt, is over; the gap runs from here if anything was sent."""
        if self._is_sent:
            self._ended_at = now
        self.in_flight = self._is_sent = False

    # --- Keeping and giving back ------------------------------------------------------------------------------------

    def held(self) -> Held:
        """The report for the next renewal."""
        return Held(slot=self.slot, fence=self.fence, served=self.served)

    def renewed(
        self, state: SlotState | None, *, gap_s: float, closed_for_s: float, before: float, after: float
    ) -> None:
        """The lease goes on, with gap, turn and closing as the key now has them; nothing: the slot is lost."""
        if state is None:
            self.lose()
            return
        self._gap_s = gap_s
        self._closed_until = after + closed_for_s if closed_for_s > 0 else -inf
        self._turn_until = after + state.turn_for_s
        self._must_yield = state.must_yield
        self._not_after = before + state.held_for_s

    def lose(self) -> None:
        """The slot is not ours any more: nothing leaves on it. Give it back all the same once nothing is in flight."""
        self._not_after = -inf

    def is_lost(self, now: float) -> bool:
        """Whether the lease ended without a renewal."""
        return now >= self._not_after

    def is_closed(self, now: float) -> bool:
        """Whether the key is closed for everyone: nothing may be sent, and nobody knows for how long really."""
        return now < self._closed_until

    def is_over(self, now: float) -> bool:
        """Whether the slot should go back: others wait and the next start would be outside this turn.

        A turn is one request or its length, whichever is longer. A gap that reaches beyond it ends it at once: the
        next holder can wait for the rest of the gap as well as we can.
        """
        return not self.in_flight and self._must_yield and max(now, self.not_before) >= self._turn_until

    def returned(self, now: float) -> Returned:
        """What to say when giving it back; never with a request in flight."""
        if self.in_flight:
            problem = f"slot {self.slot} has a request in flight"
            raise RuntimeError(problem)
        ago = None if self._ended_at == -inf else max(0.0, now - self._ended_at)
        return Returned(slot=self.slot, fence=self.fence, served=self.served, ended_ago_s=ago)
