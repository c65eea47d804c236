"""When a sitemap or a feed says that a page changed last: a hint, with what it leaves open. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import Final

ZONELESS: Final = timedelta(hours=14)
"""What a time without a zone may be off: zones reach from -12 to +14 hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastModified:
    """When the site says that a page changed last: some time between the two, in UTC."""

    earliest: datetime
    latest: datetime


# https://www.w3.org/TR/NOTE-datetime, with what sites write besides: a blank for the "T" or before the zone, no colon.
_W3C: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?: ?(?P<zone>[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?))?)?)?)?",
    re.ASCII,
)
_RFC822: Final = re.compile(
    r"(?:[A-Za-z]{3}, *)?\d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d(?::\d\d)? (?:GMT|UTC?|Z|[+-]\d{4})", re.ASCII
)
_FIRST_YEAR: Final = 1990


def last_modified(text: str, *, now: datetime) -> LastModified | None:
    """What a lastmod says, as far as it can be meant: not in the future, not before there was a web, not two at once.

    What has no zone is uncertain by 14 hours in both directions, what has no time by its day, month or year.
    """
    text = text.strip()
    found = _rfc822(text) if _RFC822.fullmatch(text) else _w3c(text)
    if found is None or found.earliest.year < _FIRST_YEAR or found.earliest > now:
        return None
    return found


def _rfc822(text: str) -> LastModified | None:
    """As feeds write it (RFC 5322 §3.3)."""
    try:
        at = parsedate_to_datetime(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return LastModified(earliest=at, latest=at + timedelta(seconds=1))


def _w3c(text: str) -> LastModified | None:
    match = _W3C.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups()[:6])
    zone = match["zone"]
    try:
        first = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=_zone(zone))
        slack = timedelta() if zone else ZONELESS
        return LastModified(
            earliest=(first - slack).astimezone(UTC),
            latest=(_next(first, month, day, hour, second) + slack).astimezone(UTC),
        )
    except (ValueError, OverflowError):
        return None


def _zone(written: str | None) -> timezone:
    if not written or not written.startswith(("+", "-")):
        return UTC
    digits = written[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if minutes > 59:
        raise ValueError(written)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if written.startswith("-") else offset)


def _next(first: datetime, month: int | None, day: int | None, hour: int | None, second: int | None) -> datetime:
    """The end of the year, month, day, minute or second that is named."""
    if month is None:
        return first.replace(year=first.year + 1)
    if day is None:
        return (first + timedelta(days=31)).replace(day=1)
    if hour is None:
        return first + timedelta(days=1)
    return first + timedelta(minutes=1 if second is None else 0, seconds=0 if second is None else 1)
