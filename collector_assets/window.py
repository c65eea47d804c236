"""Collection windows: half-open intervals `[start, end)` in a source's time zone, named by their start.

A `Schedule` says how a source's time is cut; Dagster's `TimeWindowPartitionsDefinition`, made from it in the graph,
is what turns a key into a `Window` (right over DST changes). The use cases get the `Window`, and read it back from
its row later: nothing below the graph does calendar arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from collector_assets.errors import ContractError

DAY_FORMAT = "%Y-%m-%d"
MINUTE_FORMAT = "%Y-%m-%d-%H:%M"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One collection window; `start` and `end` are aware."""

    key: str
    start: datetime
    end: datetime

    def closes_at(self, grace: timedelta) -> datetime:
        """From here on, what is collected for this window is late."""
        return self.end + grace


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How a source's time is cut into windows. Build it with `Daily`, `Hourly` or `Cron`."""

    cron: str
    start: str
    timezone: str = "UTC"
    format: str = DAY_FORMAT

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ContractError("window.timezone", f"unknown time zone {self.timezone!r}") from error
        try:
            datetime.strptime(self.start, self.format).replace(tzinfo=ZoneInfo(self.timezone))
        except ValueError as error:
            raise ContractError("window.start", f"{self.start!r} is not like {self.format!r}") from error


def Daily(*, start: str, timezone: str = "UTC") -> Schedule:  # noqa: N802  reads as a type in a source file
    """One window per local day; 23 and 25 hours long on the days of a DST change."""
    return Schedule(cron="0 0 * * *", start=start, timezone=timezone)


def Hourly(*, start: str, timezone: str = "UTC") -> Schedule:  # noqa: N802
    """One window per hour."""
    return Schedule(cron="0 * * * *", start=start, timezone=timezone, format=MINUTE_FORMAT)


def Cron(cron: str, *, start: str, timezone: str = "UTC") -> Schedule:  # noqa: N802
    """One window from each tick of a cron line to the next."""
    return Schedule(cron=cron, start=start, timezone=timezone, format=MINUTE_FORMAT)


def utc(moment: datetime) -> datetime:
    """The same instant in UTC; a naive one is a programming error."""
    if moment.tzinfo is None:
        raise ValueError(f"naive datetime {moment!r}")
    return moment.astimezone(UTC)
