"""Prices: one amount, with or without its currency."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from collector_assets.normalize.numbers import BLANKS, SIGNS, DecimalMark, number, unreadable
from collector_assets.record import Unreadable

_CURRENCY: Final = (
    rf"[A-Z]{{1,3}}[{BLANKS}]?[$£€¥]|[$£€¥₹₽₩₺₴₪₫₱₦฿₸₾₡₲₵]|[A-Z]{{3}}|[Kk]r\.?|Rs\.?|zł|Kč|Ft|лв\.?|руб\.?|р\.|lei"  # noqa: RUF001  Russian
)
_PRICE: Final = re.compile(
    rf"(?P<sign>[{SIGNS}])?(?P<before>{_CURRENCY})?[{BLANKS}]*(?P<inner>[{SIGNS}])?"
    rf"(?P<number>[0-9.,][0-9.,'’{BLANKS}]*?)(?P<none>[.,][-–—\u2212]{{1,2}})?[{BLANKS}]*(?P<after>{_CURRENCY})?"
)
_CODE: Final = re.compile("[A-Z]{3}")
_MOJIBAKE: Final = re.compile("Â|Ã|â‚¬|\ufffd")  # noqa: RUF001
"""The bytes of £ or € in UTF-8, read in another encoding; and what no encoding could read."""
_CODES: Final[Mapping[str, str]] = {
    "£": "GBP", "€": "EUR", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₴": "UAH", "₪": "ILS", "₫": "VND",
    "₱": "PHP", "₦": "NGN", "฿": "THB", "₸": "KZT", "₾": "GEL", "₡": "CRC", "₲": "PYG", "₵": "GHS",
    "zł": "PLN", "Kč": "CZK", "Ft": "HUF", "лв": "BGN", "лв.": "BGN", "руб": "RUB", "руб.": "RUB", "р.": "RUB",  # noqa: RUF001  Russian
    "US$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "NZ$": "NZD", "HK$": "HKD", "S$": "SGD",
    "SG$": "SGD", "R$": "BRL", "NT$": "TWD", "MX$": "MXN", "CN¥": "CNY", "JP¥": "JPY",
}  # fmt: skip
ISO_4217: Final = frozenset("""
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
    CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
    ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
    MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
    SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND
    VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
""".split())  # fmt: skip  # noqa: SIM905
"""Codes of currencies in use (ISO 4217, without those of funds and metals)."""


def price(text: str, *, decimal: DecimalMark = ".") -> Decimal:
    """The amount of one price, exact, with or without a currency beside it; what the currency is says `currency`.

    `5,–` and `5.-` are whole amounts. A range, two prices or a word beside the price is ambiguous.
    """
    parts = _parts(text)
    if (parts["sign"] and parts["inner"]) or (parts["before"] and parts["after"]):
        raise Unreadable("ambiguous", f"{text!r} has two signs or two currencies")
    if parts["none"] and parts["none"][0] != decimal:
        raise Unreadable("malformed", f"{text!r} is not one price with {decimal!r} before the decimals")
    amount = _amount(parts["number"], text, decimal)
    return -amount if parts["sign"] or parts["inner"] else amount


_WITHOUT_BLANKS: Final = str.maketrans("", "", BLANKS)


def currency(text: str) -> str:
    """The ISO 4217 code of a price's currency; ValueError for none, two, or a sign that several have ("$", "kr")."""
    parts = _parts(text)
    found = [each.translate(_WITHOUT_BLANKS) for each in (parts["before"], parts["after"]) if each]
    if len(found) != 1:
        raise Unreadable("ambiguous" if found else "missing", f"{text!r} names {len(found)} currencies, not one")
    code = found[0] if found[0] in ISO_4217 else _CODES.get(found[0])
    if code is None:
        raise Unreadable("ambiguous", f"{found[0]!r} in {text!r} may be several currencies: name it in the source")
    return code


def _parts(text: str) -> re.Match[str]:
    if _MOJIBAKE.search(text):
        raise Unreadable("malformed", f"{text[:100]!r} was decoded wrongly: say the encoding in the source")
    match = _PRICE.fullmatch(text.strip())
    if match is None:
        raise unreadable(text, "one price")
    for word in (match["before"], match["after"]):
        if word and _CODE.fullmatch(word) and word not in ISO_4217:
            raise Unreadable("ambiguous", f"{text[:100]!r}: {word!r} is no currency")
    return match


def _amount(digits: str, text: str, decimal: DecimalMark) -> Decimal:
    try:
        return number(digits, decimal=decimal)
    except Unreadable:
        raise unreadable(text, f"one price with {decimal!r} before the decimals") from None
