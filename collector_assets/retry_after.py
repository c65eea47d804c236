"""Retry-After (RFC 9110 §10.2.3) in the spellings that sites use: how long a site asks to be left alone.

A number counts from the receipt of the answer. A date counts from the answer's own Date, so that a site whose clock is
wrong is not misread; without a usable Date from the receipt.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST: Final = timedelta(hours=24)
"""More is a mistake of the site, or its way to say no: after a day a person should have looked."""

_NUMBER: Final = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(?:s|secs?|seconds?)?", re.IGNORECASE | re.ASCII)
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAfter:
    """What was asked for, and what was odd about it."""

    wait: timedelta | None
    """From the receipt of the answer; zero for a moment that is over, nothing when it cannot be read."""
    warning: str = ""


def read(values: Iterable[str], *, date: str | None, received_at: datetime) -> RetryAfter | None:
    """The longest wait that the header fields ask for, at most `LONGEST`; None without such a field.

    `date` is the answer's own Date field, `received_at` our clock when the answer was in.
    """
    found = [_read_one(value.strip().strip("\"'").strip(), date, received_at) for value in values]
    usable = [each for each in found if each.wait is not None]
    return max(usable, key=lambda each: each.wait or timedelta(0), default=found[0] if found else None)


def _read_one(value: str, date: str | None, received_at: datetime) -> RetryAfter:
    if number := _NUMBER.fullmatch(value):
        sign, digits = number.groups()
        # The range of float is beyond that of timedelta: bounded before it becomes one.
        seconds = 0.0 if sign == "-" else min(float(digits), LONGEST.total_seconds() + 1)
        return _bounded(timedelta(seconds=math.ceil(seconds * 1000) / 1000), value)
    until = _moment(value)
    if until is None:
        return RetryAfter(wait=None, warning=f"Retry-After is neither a number nor a date: {value[:_SHOWN]!r}")
    return _bounded(until - ((date and _moment(date)) or received_at), value)


def _bounded(wait: timedelta, value: str) -> RetryAfter:
    if wait > LONGEST:
        hours = LONGEST.total_seconds() / 3600
        return RetryAfter(wait=LONGEST, warning=f"Retry-After: {value[:_SHOWN]} is cut to {hours:g} h")
    return RetryAfter(wait=max(wait, timedelta(0)))


def _moment(value: str) -> datetime | None:
    """IMF-fixdate, RFC 850 and asctime (RFC 9110 §5.6.7), which are all UTC, or ISO 8601 with a zone."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return None
