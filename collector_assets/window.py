"""Collection windows: half-open intervals `[start, end)` in a source's time zone, named by their start.

A `Schedule` says how a source's time is cut; Dagster's `TimeWindowPartitionsDefinition`, made from it in the graph,
is what turns a key into a `Window` (right over DST changes). The use cases get the `Window`, and read it back from
its row later: nothing below the graph does calendar arithmetic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from collector_assets.errors import ContractError

DAY_FORMAT = "%Y-%m-%d"
MINUTE_FORMAT = "%Y-%m-%d-%H:%M"

_CRON_FIELDS = (("minute", 0, 59, ""), ("hour", 0, 23, ""), ("day", 1, 31, ""),
                ("month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"),
                ("weekday", 0, 7, "sun mon tue wed thu fri sat"))  # fmt: skip
_CRON_ITEM = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?")


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
        if problem := cron_problem(self.cron):
            raise ContractError("window.cron", f"{self.cron!r}: {problem}")
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


def cron_problem(line: str) -> str:
    """What is wrong with a cron line of five fields (POSIX crontab, with steps and names); empty if nothing."""
    fields = line.split()
    if len(fields) != len(_CRON_FIELDS):
        return f"a cron line has five fields (minute hour day month weekday), not {len(fields)}"
    for text, (name, least, most, names) in zip(fields, _CRON_FIELDS, strict=True):
        for item in text.lower().split(","):
            if not _is_cron_item(item, least, most, names.split()):
                return f"{item!r} is no {name} ({least} to {most})"
    return ""


def _is_cron_item(item: str, least: int, most: int, names: list[str]) -> bool:
    match = _CRON_ITEM.fullmatch(item)
    if match is None or (match[3] is not None and int(match[3]) < 1):
        return False
    numbers = {name: str(least + at) for at, name in enumerate(names)}
    written = [numbers.get(end, end) for end in match.group(1, 2) if end]
    ends = [int(end) if end.isdecimal() else -1 for end in written]
    return ends == sorted(ends) and all(least <= end <= most for end in ends)


def utc(moment: datetime) -> datetime:
    """The same instant in UTC; a naive one is a programming error."""
    if moment.tzinfo is None:
        raise ValueError(f"naive datetime {moment!r}")
    return moment.astimezone(UTC)
