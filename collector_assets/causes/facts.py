"""What decides whether a source is fresh: windows, refusals, attempts, pace, schedule and runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from collector_assets.causes.words import length

FEWEST_UNREACHABLE = 3
"""Attempts in a row without an answer that make a site unreachable, where it answered earlier in the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A window: its key and its times."""

    key: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """A check for which a window's newest verdict is not a pass."""

    check: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The newest window that was opened."""

    window: Span
    closes_at: datetime
    names_window: bool
    planned: int
    to_fetch: int
    to_read: int
    oldest_waiting_at: datetime | None
    next_due_at: datetime | None
    """When the next request may be sent, if none may be sent now."""
    is_superseded: bool
    is_published: bool
    objections: tuple[Objection, ...]
    resumes_without_progress: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """An origin that refused us."""

    origin: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How the attempts of a window ended since its last good page."""

    last_good_at: datetime | None
    without_answer: int
    with_answer: int
    """Failed too, but the site was there."""
    outcomes: Mapping[str, int]

    @property
    def is_unreachable(self) -> bool:
        """Whether the newest attempts all ended without an answer."""
        enough = 1 if self.last_good_at is None else FEWEST_UNREACHABLE
        return not self.with_answer and self.without_answer >= enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The slowest budget key of a window: how fast its requests may be sent."""

    budget_key: str
    requests_left: int
    gap_s: float
    slots: int
    share: float
    """Of the key's requests that are this source's, by weight among the live ones; 1 when it is alone."""
    mean_response_s: float | None
    """Of the window's last good pages; None when there are none yet."""

    def seconds_for(self, requests: int) -> float:
        """How long this many requests take at the least."""
        return requests * (self.gap_s + (self.mean_response_s or 0.0)) / (self.slots * self.share)

    def arithmetic(self, requests: int) -> str:
        """The same, for a person."""
        response = "answers of 0 s, none is known" if self.mean_response_s is None else f"{self.mean_response_s:.2f} s"
        share = "" if self.share >= 1 else f" × {self.share:.0%} share of {self.budget_key}"
        return (
            f"{requests:,} requests × ({self.gap_s:g} s gap + {response} answer) / ({self.slots} slots{share})"
            f" = {length(self.seconds_for(requests))}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """What Dagster says about the source's schedule; None where it was not asked or does not know."""

    is_on: bool | None = None
    name: str = ""
    on_since: datetime | None = None
    last_tick_at: datetime | None = None
    tick_error: str | None = None
    """Why the newest tick failed; None when it did not."""
    heartbeat_at: datetime | None = None
    """Of the daemon that evaluates schedules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The newest run that collects a window."""

    run_id: str
    status: Literal["waiting", "working", "failed", "canceled", "succeeded"]
    at: datetime
    """When it was asked for, began or ended."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that decides about one source at one moment."""

    now: datetime
    freshness: timedelta
    due: Span | None
    """The window that is running now by the calendar; None before the first."""
    counting: Span | None
    """The newest window in `latest` that was published and not collected too late."""
    newest: Standing | None
    halts: tuple[Halt, ...] = ()
    attempts: Attempts | None = None
    pace: Pace | None = None
    scheduling: Scheduling = Scheduling()
    runs: Mapping[str, Run] = field(default_factory=dict)
    """By window key."""
    paused: tuple[datetime, str] | None = None
    """Until when and why the source is paused."""
