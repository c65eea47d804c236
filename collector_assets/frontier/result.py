"""How an attempt ended: what a worker hands to `finish`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from collector_assets.outcome import Outcome
from collector_assets.request import Fence, RequestId


@dataclass(frozen=True, slots=True)
class Fetched:
    """The page is archived; reading it comes next."""

    request_id: RequestId
    fence: Fence


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do: a discovering page whose links are in the frontier."""

    request_id: RequestId
    fence: Fence


@dataclass(frozen=True, slots=True)
class Failed:
    """Ended for good, in fetching or in reading."""

    request_id: RequestId
    fence: Fence
    phase: Literal["fetch", "read"]
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Tried again after `wait`; failed(fetch) with this reason when that was the last attempt."""

    request_id: RequestId
    fence: Fence
    wait: timedelta
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Put back until `wait` from now; the attempt does not count."""

    request_id: RequestId
    fence: Fence
    wait: timedelta
    outcome: Outcome | None = None
    reason: str = ""
    was_sent: bool = False
    """The site was asked and said "later": counted in `snoozes`, so that there is an end to it."""
    forgets_redirects: bool = False
    """From its own address again, wherever redirects had led."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Redirected: queued again at once, at the next address of `chain`; the attempt does not count again."""

    request_id: RequestId
    fence: Fence
    chain: Mapping[str, Any]
    budget_key: str
    """Of the next address."""
    reason: str


@dataclass(frozen=True, slots=True)
class Released:
    """Put back unsent; the attempt does not count."""

    request_id: RequestId
    fence: Fence


@dataclass(frozen=True, slots=True)
class Skipped:
    """Not wanted after all."""

    request_id: RequestId
    fence: Fence
    outcome: Outcome
    reason: str
    counts: bool = True
    """As an attempt: not when nothing was sent, nor when it may have to be asked again."""


Result: TypeAlias = Fetched | Done | Failed | Retry | Snoozed | Moved | Released | Skipped
