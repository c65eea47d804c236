"""Dates and instants: by the order, language and zone of the source, said once; a value that cannot be is an error.

Nothing is repaired and nothing is guessed from the value: `13/04/2026` is no proof of day before month. "Now" is always
the page's (`now=page.fetched_at`), so that a page read again says the same.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final, Literal
from zoneinfo import ZoneInfo

from collector_assets.normalize.languages import ENGLISH, Language
from collector_assets.normalize.words import whitespace
from collector_assets.record import Unreadable

Order = Literal["dmy", "mdy", "ymd"]
YearRule = Literal["past", "future"]
Unit = Literal["s", "ms", "us"]

LONGEST: Final = 100
"""Characters of a date with its time, in words."""

# Compiled at first use, which `re` remembers: together they cost every process that loads a source 40 ms.
_WORD: Final = r"[^\W\d_]+(?:['’-][^\W\d_]+)*\.?"
_YEAR: Final = r"(?P<year>[0-9]{4}|['’]?[0-9]{2})"
_YEAR_FIRST: Final = r"(?P<year>[0-9]{4})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})\.?"
_BASIC: Final = r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
_NUMERIC: Final = rf"(?P<first>[0-9]{{1,2}})(?P<mark>[-/.]) ?(?P<second>[0-9]{{1,2}})(?:(?P=mark) ?{_YEAR}?)?"
_DAY_FIRST: Final = (
    rf"(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th|er|[.ºª])?(?: of| de| di)?[ ./-]*(?P<word>{_WORD})"
    rf"(?:(?:,| del?| di)?[ /-]*{_YEAR})?"
)
_MONTH_FIRST: Final = rf"(?P<word>{_WORD})[ -]?(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?(?:,? ?\b{_YEAR})?"
_WEEKDAY: Final = rf"(?P<word>{_WORD}),? "
_AGO: Final = (
    r"(?i)(?P<number>[0-9]{1,4}|an?) ?(?P<unit>sec(?:ond)?s?|min(?:ute)?s?|hours?|hrs?|h|days?|d|weeks?|w) ago"
)
_VAGUE: Final = r"(?i)(?:[0-9]{1,4}|an?) ?(?:months?|years?|mo|y) ago"
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_CLOCK: Final = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?"
)
_OFFSET: Final = (
    r"(?: ?(?P<offset>Z|(?P<utc>UTC|GMT)?"
    r"(?:(?P<east>[-+\u2212])(?P<hours>(?(utc)[0-9]{1,2}|[0-9]{2}))(?::?(?P<minutes>[0-9]{2}))?)?)"
    r"(?: ?\([A-Z]{2,5}\))?)?"
)
_DATE_TIME: Final = rf"(?i)(?P<date>.*?[^:])(?:T|,? (?:at |um )?){_CLOCK}{_OFFSET}"
_TIME_DATE: Final = rf"(?i){_CLOCK}{_OFFSET},? (?:on )?(?P<date>[^:]+)"


def date(
    text: str,
    *,
    order: Order | None = None,
    language: Language = ENGLISH,
    century: int | None = None,
    year: YearRule | None = None,
    now: dt.datetime | None = None,
    zone: str = "UTC",
) -> dt.date:
    """The one date that the text says.

    `order` is how the source writes digits (`13/04/2026` is "dmy"); a year of four digits in front needs none.
    `century` is added to a year of two digits. A date without a year needs `year`: the nearest one in the past or
    the future of `now`. "today", "yesterday" and "3 days ago" need `now` too, and the source's `zone`.
    """
    said = _bounded(text)
    today = now.astimezone(_zone(zone)).date() if now else None
    if found := _relative(said, language, today):
        return found
    weekday, rest = _without_weekday(said, language)
    parts = _parts(rest, order, language)
    if parts is None:
        raise Unreadable("malformed" if said else "missing", f"{text[:100]!r} is not one date")
    found = _made(parts, said, century, year, today)
    if weekday is not None and found.weekday() != weekday:
        raise Unreadable("impossible", f"{text[:100]!r}: {found} is another day of the week")
    return found


def instant(
    text: str,
    *,
    zone: str | None = None,
    fold: Literal[0, 1] | None = None,
    order: Order | None = None,
    language: Language = ENGLISH,
    century: int | None = None,
    year: YearRule | None = None,
    now: dt.datetime | None = None,
) -> dt.datetime:
    """The one moment that the text says, in UTC: a date (see `date`) and a time of day.

    An offset in the text decides; without one the source's `zone` must be known ("Europe/London"). Of an hour that the
    clocks repeat, `fold` says which (0: the first); an hour that they skip is impossible.
    """
    said = _bounded(text)
    match = re.fullmatch(_DATE_TIME, said) or re.fullmatch(_TIME_DATE, said)
    if match is None:
        raise Unreadable("malformed" if said else "missing", f"{text[:100]!r} is not one date with a time of day")
    day = date(
        match["date"], order=order, language=language, century=century, year=year, now=now, zone=zone or "UTC"
    )  # fmt: skip
    local = dt.datetime.combine(day, _time(match, text))
    if match["offset"]:
        return _by_offset(local, match, text)
    if zone is None:
        raise Unreadable("ambiguous", f"{text[:100]!r} has no time zone, and the source names none")
    return _by_zone(local, _zone(zone), fold, text)


def epoch(value: str | float | Decimal, *, unit: Unit) -> dt.datetime:
    """The moment that a count since 1970 means, in UTC; whether it counts seconds or parts of them, the source says."""
    try:
        count = Decimal(whitespace(value) if isinstance(value, str) else str(value))
        microseconds = int(count * {"s": 1_000_000, "ms": 1_000, "us": 1}[unit])
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds)
    except InvalidOperation:
        raise Unreadable("malformed", f"{value!r} is not a number of {unit} since 1970") from None
    except (OverflowError, ValueError):
        raise Unreadable("impossible", f"{value!r} {unit} since 1970 is in no year: another unit?") from None


def ago(text: str, *, now: dt.datetime) -> dt.datetime:
    """The moment that "3 hours ago" means, as exact as it is said. Months and years are not: they are ambiguous."""
    said = _bounded(text)
    match = re.fullmatch(_AGO, said)
    if match:
        return now - _length(match)
    check = "ambiguous" if re.fullmatch(_VAGUE, said) else "malformed" if said else "missing"
    raise Unreadable(check, f"{text[:100]!r} does not say how many seconds, minutes, hours, days or weeks ago")


def _bounded(text: str) -> str:
    said = whitespace(text)
    if len(said) > LONGEST:
        raise Unreadable("malformed", f"{said[:40]!r}… is too long for one date")
    return said


# --- The date --------------------------------------------------------------------------------------------------------

_Parts = tuple[str | None, int, int]
"""Year as written, month, day."""


def _relative(said: str, language: Language, today: dt.date | None) -> dt.date | None:
    shift = language.shift(said) if re.fullmatch(_WORD, said) else None
    match = re.fullmatch(_AGO, said)
    if match and match["unit"][0].lower() in "dw":
        shift = -_length(match).days
    if shift is None:
        return None
    if today is None:
        raise Unreadable("ambiguous", f"{said!r} depends on when the page was fetched: give now=page.fetched_at")
    return today + dt.timedelta(days=shift)


def _length(match: re.Match[str]) -> dt.timedelta:
    number = 1 if match["number"].lower() in ("a", "an") else int(match["number"])
    return dt.timedelta(seconds=number * _SECONDS[match["unit"][0].lower()])


def _without_weekday(said: str, language: Language) -> tuple[int | None, str]:
    match = re.match(_WEEKDAY, said)
    if match is None or language.month(match["word"]) is not None:
        return None, said
    weekday = language.weekday(match["word"])
    return weekday, said if weekday is None else said[match.end() :]


def _parts(said: str, order: Order | None, language: Language) -> _Parts | None:
    if match := re.fullmatch(_YEAR_FIRST, said) or re.fullmatch(_BASIC, said):
        return match["year"], int(match["month"]), int(match["day"])
    if match := re.fullmatch(_NUMERIC, said):
        return _by_order(match, order, said)
    for pattern in (_DAY_FIRST, _MONTH_FIRST):
        match = re.fullmatch(pattern, said)
        month = language.month(match["word"]) if match else None
        if match and month:
            return match["year"], month, int(match["day"])
    return None


def _by_order(match: re.Match[str], order: Order | None, said: str) -> _Parts:
    first, second = int(match["first"]), int(match["second"])
    match order:
        case "dmy":
            return match["year"], second, first
        case "mdy":
            return match["year"], first, second
        case "ymd" if match["year"] and len(match["year"]) == 2:
            return match["first"], second, int(match["year"])
        case None:
            raise Unreadable("ambiguous", f"{said!r}: whether day or month comes first, the source must say (order)")
        case _:
            raise Unreadable("malformed", f"{said!r} is not one date that begins with its year")


def _made(parts: _Parts, said: str, century: int | None, rule: YearRule | None, today: dt.date | None) -> dt.date:
    written, month, day = parts
    if written is None:
        return _nearest(month, day, said, rule, today)
    if len(written) == 4:
        return _checked(int(written), month, day, said)
    if century is None:
        raise Unreadable("ambiguous", f"{said!r} has a year of two digits, and the source names no century")
    return _checked(century + int(written.lstrip("'’")), month, day, said)


def _nearest(month: int, day: int, said: str, rule: YearRule | None, today: dt.date | None) -> dt.date:
    """The closest day of that name; a leap day may be eight years away."""
    if rule is None or today is None:
        raise Unreadable("ambiguous", f"{said!r} has no year, and the source gives no rule for it (year, now)")
    step = -1 if rule == "past" else 1
    is_right: Callable[[dt.date], bool] = today.__ge__ if rule == "past" else today.__le__
    for year in range(today.year, today.year + 9 * step, step):
        try:
            found = dt.date(year, month, day)
        except ValueError:
            continue
        if is_right(found):
            return found
    raise Unreadable("impossible", f"{said!r} is a day of no year")


def _checked(year: int, month: int, day: int, said: str) -> dt.date:
    try:
        return dt.date(year, month, day)
    except ValueError as error:
        raise Unreadable("impossible", f"{said[:100]!r}: {error}") from None


# --- The time of day -------------------------------------------------------------------------------------------------


def _time(match: re.Match[str], text: str) -> dt.time:
    hour, half = int(match["hour"]), (match["half"] or "").lower()
    if half and not 1 <= hour <= 12:
        raise Unreadable("impossible", f"{text[:100]!r}: no hour {hour} {half}m")
    if half:
        hour = hour % 12 + 12 * (half == "p")
    microsecond = int((match["part"] or "0").ljust(6, "0")[:6])
    try:
        return dt.time(hour, int(match["minute"]), int(match["second"] or 0), microsecond)
    except ValueError as error:
        raise Unreadable("impossible", f"{text[:100]!r}: {error}") from None


def _by_offset(local: dt.datetime, match: re.Match[str], text: str) -> dt.datetime:
    hours, over = int(match["hours"] or 0), int(match["minutes"] or 0)
    minutes = (hours * 60 + over) * (1 if match["east"] == "+" else -1)
    if abs(minutes) > 14 * 60 or over > 59:
        raise Unreadable("impossible", f"{text[:100]!r}: no place has the offset {match['offset']}")
    try:
        return local.replace(tzinfo=dt.timezone(dt.timedelta(minutes=minutes))).astimezone(dt.UTC)
    except OverflowError:
        raise Unreadable("impossible", f"{text[:100]!r} is in no year") from None


def _by_zone(local: dt.datetime, zone: ZoneInfo, fold: Literal[0, 1] | None, text: str) -> dt.datetime:
    first, second = (local.replace(tzinfo=zone, fold=each) for each in (0, 1))
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None and after is not None  # noqa: S101, PT018  for the type checker: zones have offsets
    if before < after:
        raise Unreadable("impossible", f"{text[:100]!r}: the clocks of {zone.key} skip this time")
    if before > after and fold is None:
        raise Unreadable("ambiguous", f"{text[:100]!r}: the clocks of {zone.key} show this time twice (fold)")
    return (second if fold else first).astimezone(dt.UTC)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError):
        raise TypeError(f"{name!r} is no time zone: write one like 'Europe/London'") from None
