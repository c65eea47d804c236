"""Numbers as a source writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, Literal

from collector_assets.record import Unreadable

DecimalMark = Literal[".", ","]

BLANKS: Final = " \u00a0\u2007\u202f\u2009"  # plain, no-break, figure, narrow no-break, thin
SIGNS: Final = "-\u2212"  # hyphen-minus and the minus sign
_GROUPS: Final = {".": f",'’{BLANKS}", ",": f".'’{BLANKS}"}
_NUMBER: Final = {
    mark: re.compile(
        rf"(?P<whole>[0-9]+|[0-9]{{1,3}}(?P<group>[{groups}])[0-9]{{3}}(?:(?P=group)[0-9]{{3}})*)?"
        rf"(?:[{mark}](?P<part>[0-9]+))?"
    )
    for mark, groups in _GROUPS.items()
}
_DIGITS: Final = re.compile(r"[0-9](?:[0-9.,'’]*[0-9])?")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


def number(text: str, *, decimal: DecimalMark = ".") -> Decimal:
    """A number as the source writes it, exact; thousands in threes, marked by one and the same sign throughout."""
    bare = text.strip()
    sign, digits = ("-", bare[1:]) if bare[:1] in SIGNS and bare else ("", bare)
    if digits.isascii() and digits.isdecimal():
        return Decimal(sign + digits)
    match = _NUMBER[decimal].fullmatch(digits)
    if match is None or not (match["whole"] or match["part"]):
        raise unreadable(text, f"one number with {decimal!r} before the decimals")
    whole = match["whole"] or "0"
    if match["group"]:
        whole = whole.replace(match["group"], "")
    return Decimal(f"{sign}{whole}.{match['part']}" if match["part"] else f"{sign}{whole}")


def integer(text: str, *, decimal: DecimalMark = ".") -> int:
    """A whole number as the source writes it."""
    value = number(text, decimal=decimal)
    if value != value.to_integral_value():
        raise Unreadable("malformed", f"{text!r} is not a whole number")
    return int(value)


def unreadable(text: str, wanted: str) -> Unreadable:
    """Why this is not what was wanted: no number at all, more than one (or one with words beside it), or a bad one."""
    found = len(_DIGITS.findall(text))
    if not found:
        check = "missing"
    elif found > 1 or _WORD.search(text):
        check = "ambiguous"
    else:
        check = "malformed"
    return Unreadable(check, f"{text[:100]!r} is not {wanted}")
