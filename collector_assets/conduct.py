"""What a batch of answers says about how a site fares, written in the transaction that stores the batch (rule 9).

Budget keys are closed and origins are halted here. A batch of good answers from where nothing was wrong costs one
look, which also tells the time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from collector_assets import budget, closing, origins
from collector_assets.closing import Sign
from collector_assets.contract import Source
from collector_assets.database import Connection
from collector_assets.facts import fact
from collector_assets.origins import Look, Origin
from collector_assets.outcome import Outcome, Policy, policy

CLOSING: Final = frozenset({Outcome.THROTTLED, Outcome.UNAVAILABLE})


@fact
class Answer:
    """One answer, as far as it matters here; ages in seconds before the look."""

    origin: str
    budget_key: str
    request_id: int
    outcome: Outcome
    reason: str
    is_declared: bool
    """The kind says what this status means: no refusal."""
    sent_ago_s: float
    received_ago_s: float
    asked: timedelta | None
    """By Retry-After."""

    @property
    def is_good(self) -> bool:
        """A page as it should be."""
        return policy(self.outcome) is Policy.KEEP

    @property
    def is_refusal(self) -> bool:
        """The site says no, to us and not to this one request."""
        return policy(self.outcome) is Policy.HALT and not self.is_declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What was written."""

    now: datetime
    """By the database's clock, at the look."""
    wait: Mapping[int, timedelta] = field(default_factory=dict)
    """How long requests wait for their key instead of being charged an attempt, by request id."""
    closed: Mapping[str, timedelta] = field(default_factory=dict)
    """Keys that had trouble, and for how long each is closed."""
    halted: frozenset[str] = frozenset()
    """Origins that this batch halted."""


def take_note(connection: Connection, source: Source, answers: Sequence[Answer], chance: random.Random) -> Note:
    """Close keys and halt origins as the answers say; the caller stores them in the same transaction, after this."""
    seen = origins.look(connection, {a.origin for a in answers}, {a.budget_key for a in answers})
    ordered = sorted(answers, key=lambda answer: -answer.received_ago_s)
    closed, wait = _close(connection, seen, ordered, chance)
    halted = _halt(connection, seen, source, ordered)
    return Note(now=seen.now, wait=wait, closed=closed, halted=halted)


def _close(
    connection: Connection, seen: Look, answers: Sequence[Answer], chance: random.Random
) -> tuple[dict[str, timedelta], dict[int, timedelta]]:
    troubled = {a.budget_key for a in answers if a.outcome in CLOSING} | seen.budget_keys
    if not troubled:
        return {}, {}
    before = budget.locked_closings(connection, troubled)
    now, waiting = dict(before), dict[int, str]()
    for answer in answers:
        if answer.budget_key in now:
            state, waits = closing.after(now[answer.budget_key], _sign(answer, seen.now), chance)
            now[answer.budget_key] = state
            if waits:
                waiting[answer.request_id] = answer.budget_key
    for key, state in now.items():
        if state != before[key]:
            budget.write_closing(connection, key, state)
    left = {key: state.remaining(seen.now) for key, state in now.items()}
    return left, {request_id: left[key] for request_id, key in waiting.items()}


def _sign(answer: Answer, now: datetime) -> Sign:
    return Sign(
        request_id=answer.request_id,
        outcome=answer.outcome,
        sent_at=now - timedelta(seconds=answer.sent_ago_s),
        received_at=now - timedelta(seconds=answer.received_ago_s),
        asked=answer.asked,
        reason=answer.reason,
    )


def _halt(connection: Connection, seen: Look, source: Source, answers: Sequence[Answer]) -> frozenset[str]:
    concerned = {a.origin: a.budget_key for a in answers if a.is_refusal or a.origin in seen.origins}
    if not concerned:
        return frozenset()
    rows, halted = origins.locked(connection, concerned), set[str]()
    for origin, row in rows.items():
        refusals, last = _in_a_row(row, [a for a in answers if a.origin == origin])
        origins.count_refusals(connection, origin, refusals)
        if last is not None and refusals >= source.refusal_limit:
            reason = f"{last.outcome}: {last.reason}; {refusals} in a row"
            if origins.halt(connection, origin, source=source.name, reason=reason):
                halted.add(origin)
    return frozenset(halted)


def _in_a_row(row: Origin, answers: Sequence[Answer]) -> tuple[int, Answer | None]:
    """How many refusals there are since the last good page, and the newest of them if it is of this batch."""
    refusals, last = row.refusals, None
    for answer in answers:
        if answer.is_refusal:
            refusals, last = refusals + 1, answer
        elif answer.is_good:
            refusals, last = 0, None
    return refusals, last
