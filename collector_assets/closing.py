"""When a budget key is closed for everybody, and for how long: pure decisions over its row (rule 9).

Two signs close a key. The site says so: 429, or 502, 503, 504 with Retry-After. Or it is down as a whole: `OUTAGE`
different requests in a row end in 502, 503 or 504. One URL that is never available closes nothing: its retries end it.

All answers to requests that were sent before the key was to open again are one incident: eight that were under way when
the site had enough do not make it eight times as long.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from collector_assets.outcome import Outcome
from collector_assets.retry import Backoff

OUTAGE: Final = 3
"""Different requests in a row that were unavailable."""
QUIET: Final = timedelta(minutes=10)
"""After so long without an incident, counted from when the key was open again, the next one is the first."""
UNASKED: Final = Backoff(first=timedelta(seconds=60), most=timedelta(hours=1))
"""Where the site does not say how long."""
ASKED: Final = Backoff(first=timedelta(seconds=1), most=timedelta(minutes=1), jitter=0)
"""The least where it does: "Retry-After: 0" again and again is no leave to ask at full speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """What a key remembers."""

    until: datetime | None = None
    """Nothing is sent before; stays when it is over."""
    reason: str | None = None
    incidents: int = 0
    """In a row, each within `QUIET` of the one before."""
    unavailable: int = 0
    """Different requests in a row."""
    unavailable_request: int | None = None
    """The last of these."""

    def remaining(self, now: datetime) -> timedelta:
        """For how long nothing may be sent."""
        return max(self.until - now, timedelta(0)) if self.until else timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """An answer as far as it says how the site fares; times by the database's clock."""

    request_id: int
    outcome: Outcome
    sent_at: datetime
    received_at: datetime
    asked: timedelta | None = None
    """By Retry-After."""
    reason: str = ""


def after(before: Closing, sign: Sign, chance: random.Random) -> tuple[Closing, bool]:
    """What the key remembers after this answer, and whether the request waits for the key instead of being charged."""
    match sign.outcome:
        case Outcome.THROTTLED:
            return _closed(before, sign, chance), True
        case Outcome.UNAVAILABLE:
            counted = _counted(before, sign)
            if sign.asked is None and counted.unavailable < OUTAGE:
                return counted, False
            return _closed(counted, sign, chance), True
        case _:
            return replace(before, unavailable=0, unavailable_request=None), False


def _counted(before: Closing, sign: Sign) -> Closing:
    is_another = sign.request_id != before.unavailable_request
    return replace(before, unavailable=before.unavailable + is_another, unavailable_request=sign.request_id)


def _closed(before: Closing, sign: Sign, chance: random.Random) -> Closing:
    if before.until is not None and sign.sent_at < before.until:
        if sign.asked is None or sign.received_at + sign.asked <= before.until:
            return before
        return replace(before, until=sign.received_at + sign.asked, reason=sign.reason)
    is_forgiven = before.until is None or sign.received_at - before.until > QUIET
    incidents = 1 if is_forgiven else before.incidents + 1
    asked, least = sign.asked, ASKED.wait(incidents, chance)
    wait = UNASKED.wait(incidents, chance) if asked is None else max(asked, least)
    return replace(before, until=sign.received_at + wait, reason=sign.reason, incidents=incidents)
