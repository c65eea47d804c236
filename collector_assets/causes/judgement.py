"""What is said about a source: fresh, or a cause from a closed list with what led to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from collector_assets.causes.facts import Facts

UNEXPLAINED = (
    "none of the known causes applies",
    "look at the source's runs and at the ticks of its schedule",
)


class Cause(StrEnum):
    """Why a source is not fresh; a closed list, in the words of alerts, metadata and `collector status`."""

    HALTED = "halted_by_refusal"
    UNREACHABLE = "source_unreachable"
    FAILED_CHECK = "failed_check"
    BUDGET_TOO_SMALL = "budget_too_small"
    BACKLOG = "backlog"
    NOT_PUBLISHED = "not_published"
    RUN_FAILED = "run_failed"
    SCHEDULE_OFF = "schedule_off"
    SCHEDULE_FAILED = "schedule_failed"
    DAEMON_WAS_DOWN = "daemon_was_down"
    PAUSED = "paused"
    NEVER_COLLECTED = "never_collected"
    PROMISE_TOO_SHORT = "promise_too_short"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Fresh, or the one cause why not, with what led to it."""

    is_fresh: bool
    cause: Cause | None
    window_key: str | None
    """The window that the cause is about; when fresh, the one that counts."""
    message: str
    fix: str
    numbers: Mapping[str, str | int | float]
    since: datetime | None
    """When it went stale, or when it will."""
    collect: str | None = None
    """The window that would be fresh again if it were collected; None where collecting again cannot help."""

    @property
    def is_error(self) -> bool:
        """Whether somebody must look; what a person decided or has not begun yet only warns."""
        return not self.is_fresh and self.cause not in {Cause.PAUSED, Cause.NEVER_COLLECTED}


def stale(
    facts: Facts,
    cause: Cause,
    window_key: str | None,
    message: str,
    fix: str,
    *,
    collect: str | None = None,
    **numbers: str | float,
) -> Judgement:
    """Not fresh: the cause, with the numbers that every cause has."""
    counting = facts.counting
    known: dict[str, str | int | float] = {"freshness_s": round(facts.freshness.total_seconds())}
    if counting:
        known |= {"counting_window": counting.key, "age_s": round((facts.now - counting.start).total_seconds())}
    return Judgement(
        is_fresh=False, cause=cause, window_key=window_key, message=message, fix=fix, numbers=known | numbers,
        since=plus(counting.start, facts.freshness) if counting else None, collect=collect,
    )  # fmt: skip


def plus(moment: datetime, span: timedelta) -> datetime:
    """The sum, or the end of time for a promise of for ever."""
    try:
        return moment + span
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
