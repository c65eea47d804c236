"""Numbers, prices, ratings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Literal

DecimalMark = Literal[".", ","]

STARS: Final[Mapping[str, int]] = {"One": 1, "Two": 2, "Three": 3, "Four": 4, "Five": 5}

_BLANKS: Final = " \u00a0\u202f\u2009"  # plain, no-break, narrow no-break, thin
_SIGNS: Final = "-\u2212"  # hyphen-minus and the minus sign
_GROUPS: Final = {".": f",'’{_BLANKS}", ",": f".'’{_BLANKS}"}
_NUMBER: Final = {
    mark: re.compile(
        rf"(?P<whole>[0-9]+|[0-9]{{1,3}}(?P<group>[{groups}])[0-9]{{3}}(?:(?P=group)[0-9]{{3}})*)?"
        rf"(?:[{mark}](?P<part>[0-9]+))?"
    )
    for mark, groups in _GROUPS.items()
}
_CURRENCY: Final = r"Â£|[A-Z]{0,3}[$£€¥₹₽₩₺₴₪₫₱₦฿]|[A-Z]{3}|kr|zł|Kč|Ft"  # "Â£": the UTF-8 bytes of £ read as Latin-1
_PRICE: Final = re.compile(
    rf"(?P<sign>[{_SIGNS}])?(?P<before>{_CURRENCY})?[{_BLANKS}]*(?P<inner>[{_SIGNS}])?"
    rf"(?P<number>[0-9.,].*?)[{_BLANKS}]*(?P<after>{_CURRENCY})?"
)
_CODES: Final = {
    "£": "GBP", "Â£": "GBP", "€": "EUR", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₴": "UAH", "₪": "ILS",
    "₫": "VND", "₱": "PHP", "₦": "NGN", "฿": "THB", "zł": "PLN", "Kč": "CZK", "Ft": "HUF", "US$": "USD",
}  # fmt: skip


def whitespace(text: str) -> str:
    """The text with every run of blanks, line breaks and no-break spaces as one blank, none at the ends."""
    return " ".join(text.split())


def number(text: str, *, decimal: DecimalMark = ".") -> Decimal:
    """A number as the source writes it, exact; thousands in threes, marked by one and the same sign throughout."""
    bare = text.strip()
    sign, digits = ("-", bare[1:]) if bare[:1] in _SIGNS and bare else ("", bare)
    match = _NUMBER[decimal].fullmatch(digits)
    if match is None or not (match["whole"] or match["part"]):
        raise ValueError(f"{text!r} is not one number with {decimal!r} before the decimals")
    whole = re.sub(r"[^0-9]", "", match["whole"] or "0")
    return Decimal(f"{sign}{whole}.{match['part']}" if match["part"] else f"{sign}{whole}")


def integer(text: str, *, decimal: DecimalMark = ".") -> int:
    """A whole number as the source writes it."""
    value = number(text, decimal=decimal)
    if value != value.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number")
    return int(value)


def price(text: str, *, decimal: DecimalMark = ".") -> Decimal:
    """The amount of one price, exact, with or without a currency beside it; what the currency is says `currency`."""
    return _amount(_parts(text), text, decimal)


def currency(text: str) -> str:
    """The ISO 4217 code of a price's currency; ValueError for none, two, or a sign that several have ("$", "kr")."""
    parts = _parts(text)
    found = [each for each in (parts["before"], parts["after"]) if each]
    if len(found) != 1:
        raise ValueError(f"{text!r} names {len(found)} currencies, not one")
    code = found[0] if re.fullmatch("[A-Z]{3}", found[0]) else _CODES.get(found[0])
    if code is None:
        raise ValueError(f"{found[0]!r} in {text!r} may be several currencies: name it in the source")
    return code


def rating(classes: str, *, marker: str = "star-rating", words: Mapping[str, int] = STARS) -> int | None:
    """The value that stands as a word among the class names; None when only the marker is there.

    ValueError when none of the other names is a known word, or several are.
    """
    names = set(classes.split()) - {marker}
    values = {words[name] for name in names if name in words}
    if len(values) == 1:
        return values.pop()
    if not names:
        return None
    raise ValueError(f"{classes!r} holds {len(values)} of the known values {', '.join(words)}, not one")


def _parts(text: str) -> re.Match[str]:
    match = _PRICE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not one price")
    return match


def _amount(parts: re.Match[str], text: str, decimal: DecimalMark) -> Decimal:
    if (parts["sign"] and parts["inner"]) or (parts["before"] and parts["after"]):
        raise ValueError(f"{text!r} has two signs or two currencies")
    amount = number(parts["number"], decimal=decimal)
    return -amount if parts["sign"] or parts["inner"] else amount
