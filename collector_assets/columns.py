"""Columns of a record: how a value of each type is read, checked, written as JSON and shown in SQL. Pure.

Every value is judged alone, so the answer never depends on which other rows share its frame: pandas would make
integers floats beside a missing one, and text out of a date. One canonical JSON text per row is what is stored and
digested: keys sorted, decimals exact and without trailing zeros, times in UTC, no NaN and no infinity.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

from collector_assets.storable import clean_text

MAX_DEPTH: Final = 64
"""Of nested JSON; deeper is a trap for every recursive reader of the row."""
MAX_EXPONENT: Final = 1_000
"""Digits of a number; `1E+1000000` is seven bytes on a page and a megabyte in a table."""
INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}\Z")
NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?\Z")
UNLIMITED: Final = (28, 0)
"""Precision and scale of pandera's plain Decimal, which would round every price to a whole number: read as no limit."""

text_json: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode


class Unfit(ValueError):
    """The value is not of the column's type; `str()` is the name of the check that it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """What a column may hold."""

    sql: str
    """The type in the typed view."""
    frame: str
    """The pandas type that checks see; missing values stay missing in it."""
    read: Callable[..., Any]
    """(value, coerce=whether to convert from text and the like) -> the value; raises `Unfit`."""
    json: Callable[[Any], str]
    """The canonical JSON text of a value that was read."""
    digits: tuple[int, int] | None = None
    """Of decimals: the most digits in all and after the point; None is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a record type."""

    name: str
    type: Type
    nullable: bool
    required: bool
    default: Any
    coerce: bool
    time_zone: Any = None
    """For times: the zone that checks see; None for checks written for naive times, which see UTC."""


# --- Reading a value -----------------------------------------------------------------------------------------------


def is_missing(value: object) -> bool:
    """None, NaN of any type, pandas' NA and NaT: all of them are null, and none is ever a value."""
    if value is None:
        return True
    if isinstance(value, float):
        return value != value  # noqa: PLR0124  only NaN differs from itself
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in ("NAType", "NaTType")


def plain(value: Any) -> Any:
    """A numpy scalar as Python's own; anything else as it is."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") and not value.shape else value


def read_text(value: Any, *, coerce: bool) -> str:
    """Text, cleaned; whole and decimal numbers become text where the schema converts (never 1.0 from an id)."""
    if isinstance(value, str):
        return clean_text(value)
    if coerce and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return bounded(value)
    raise Unfit("is_text")


def read_integer(value: Any, *, coerce: bool, low: int, high: int) -> int:
    """A whole number of the column's width."""
    if coerce and isinstance(value, str) and INTEGER.match(trimmed := value.strip()):
        value = int(trimmed)
    elif isinstance(value, float | Decimal) and math.isfinite(value) and abs(value) < 1e40 and value == int(value):
        value = int(value) if coerce else value
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unfit("is_integer")
    if not low <= value <= high:
        raise Unfit(f"is_between({low}, {high})")
    return value


def read_float(value: Any, *, coerce: bool) -> float:
    """A finite number."""
    if coerce and isinstance(value, str) and NUMBER.match(trimmed := value.strip()):
        value = trimmed
    elif not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise Unfit("is_number")
    try:
        number = float(value)
    except OverflowError:
        raise Unfit("is_finite") from None
    if not math.isfinite(number):
        raise Unfit("is_finite")
    return number + 0.0  # -0.0 is 0.0


def read_decimal(value: Any, *, coerce: bool, precision: int | None, scale: int) -> Decimal:
    """An exact number; one that does not fit precision and scale is refused, never rounded."""
    if coerce and isinstance(value, str) and NUMBER.match(trimmed := value.strip()):
        value = Decimal(trimmed)
    elif coerce and isinstance(value, float):
        value = Decimal(repr(value))
    elif isinstance(value, int) and not isinstance(value, bool):
        value = Decimal(value)
    if not isinstance(value, Decimal):
        raise Unfit("is_decimal")
    check_decimal(value)
    if precision is not None:
        digits = decimal_text(value).lstrip("-").replace(".", "").lstrip("0")
        fraction = decimal_text(value).partition(".")[2]
        if len(digits) > precision or len(fraction) > scale:
            raise Unfit(f"is_decimal({precision}, {scale})")
    return value


def read_bool(value: Any, *, coerce: bool) -> bool:
    """True or false; 0, 1 and the words where the schema converts (any other text would be true to Python)."""
    if isinstance(value, bool):
        return value
    if coerce and isinstance(value, int) and value in (0, 1):
        return bool(value)
    if coerce and isinstance(value, str) and (word := value.strip().lower()) in ("true", "false"):
        return word == "true"
    raise Unfit("is_true_or_false")


def read_time(value: Any, *, coerce: bool) -> datetime:
    """An instant, in UTC; one without a zone could be any of 38 and is refused."""
    if coerce and isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise Unfit("is_time") from None
    if not isinstance(value, datetime):
        raise Unfit("is_time")
    if value.utcoffset() is None:
        raise Unfit("has_time_zone")
    if to_python := getattr(value, "to_pydatetime", None):  # pandas' Timestamp; its nanoseconds have no JSON
        value = to_python(warn=False)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise Unfit("is_time") from None


def read_date(value: Any, *, coerce: bool) -> date:
    """A calendar day."""
    if coerce and isinstance(value, str):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            raise Unfit("is_date") from None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise Unfit("is_date")
    return value


def read_json(value: Any, *, coerce: bool) -> Any:  # noqa: ARG001  the signature of every reader
    """Anything that JSON can say (times and decimals included); judged when it is written."""
    json_text(value)
    return value


# --- Writing a value -----------------------------------------------------------------------------------------------


def check_decimal(value: Decimal) -> None:
    """Refuse infinities and numbers of absurd length."""
    if not value.is_finite():
        raise Unfit("is_finite")
    if value and not -MAX_EXPONENT <= int(value.as_tuple().exponent) <= value.adjusted() <= MAX_EXPONENT:
        raise Unfit("is_a_number_of_bounded_length")


def bounded(value: int | Decimal) -> str:
    """Digits of a number of bounded length."""
    if isinstance(value, Decimal):
        check_decimal(value)
        return format(value, "f")
    if value.bit_length() > 4 * MAX_EXPONENT:
        raise Unfit("is_a_number_of_bounded_length")
    return str(value)


def decimal_text(value: Decimal) -> str:
    """Exact, without exponent and trailing zeros: 51.70 and 51.7 are the same price."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def time_text(value: datetime) -> str:
    """ISO 8601 in UTC, quoted."""
    return f'"{value.isoformat()}"'


def date_text(value: date) -> str:
    """ISO 8601, quoted."""
    return f'"{value.isoformat()}"'


def bool_text(value: object) -> str:
    """JSON's spelling."""
    return "true" if value else "false"


def json_text(value: Any, depth: int = 0) -> str:
    """Canonical JSON of any value that has one; raises `Unfit` for the rest."""
    if depth > MAX_DEPTH:
        raise Unfit("is_nested_less_deeply")
    value = plain(value)
    match value:
        case Mapping():
            return _object_text(value, depth)
        case list() | tuple():
            return "[" + ",".join(json_text(item, depth + 1) for item in value) + "]"
        case _:
            return "null" if is_missing(value) else _scalar_text(value)


def _scalar_text(value: Any) -> str:
    match value:
        case bool():
            return bool_text(value)
        case str():
            return text_json(clean_text(value))
        case int():
            return bounded(value)
        case float():
            return repr(read_float(value, coerce=False))
        case Decimal():
            check_decimal(value)
            return decimal_text(value)
        case datetime():
            return time_text(read_time(value, coerce=False))
        case date():
            return date_text(value)
        case _:
            raise Unfit("is_json")


def _object_text(value: Mapping[Any, Any], depth: int) -> str:
    if not all(isinstance(key, str) for key in value):
        raise Unfit("is_json")
    members = {clean_text(key): json_text(item, depth + 1) for key, item in value.items()}
    return "{" + ",".join(f"{text_json(key)}:{members[key]}" for key in sorted(members)) + "}"


def shown_json(value: Any, depth: int = 0) -> str:
    """Like `json_text` for people: what has no JSON form is shown as text. Never raises."""
    try:
        if isinstance(value, Mapping) and depth < 2:
            members = {clean_text(str(key)): shown_json(item, depth + 1) for key, item in value.items()}
            return "{" + ",".join(f"{text_json(key)}:{members[key]}" for key in sorted(members)) + "}"
        return json_text(value)
    except (Unfit, RecursionError, InvalidOperation):
        return text_json(shown(value))


def shown(value: Any, limit: int = 200) -> str:
    """A value in at most `limit` characters, storable; a broken `__str__` is no reason to fail."""
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception as error:  # noqa: BLE001  somebody else's __str__
        text = f"<{type(value).__name__}: {type(error).__name__}>"
    return clean_text(text if len(text) <= limit else text[: limit - 1] + "…")


# --- Types ---------------------------------------------------------------------------------------------------------

TEXT: Final = Type(sql="text", frame="str", read=read_text, json=text_json)
FLOAT: Final = Type(sql="double precision", frame="float64", read=read_float, json=repr)
BOOL: Final = Type(sql="boolean", frame="boolean", read=read_bool, json=bool_text)
TIME: Final = Type(sql="timestamptz", frame="time", read=read_time, json=time_text)
DATE: Final = Type(sql="date", frame="object", read=read_date, json=date_text)
JSON: Final = Type(sql="jsonb", frame="object", read=read_json, json=json_text)


def integer(bits: int, *, signed: bool) -> Type:
    """Whole numbers of a width."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    sql = "bigint" if signed or bits < 64 else "numeric"
    return Type(
        sql=sql, frame="Int64" if signed else "UInt64", read=partial(read_integer, low=low, high=high), json=str
    )


def decimal(precision: int, scale: int) -> Type:
    """Exact numbers; pandera's default precision and scale are no limit."""
    limit = None if (precision, scale) == UNLIMITED else precision
    return Type(
        sql="numeric", frame="object", read=partial(read_decimal, precision=limit, scale=scale), json=decimal_text,
        digits=None if limit is None else (precision, scale),
    )  # fmt: skip
