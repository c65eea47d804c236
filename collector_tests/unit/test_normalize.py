"""Text into values: exact, or an error."""

from __future__ import annotations

from decimal import Decimal

import pytest

from collector_assets import normalize
from collector_assets.normalize import DecimalMark
from collector_assets.record import Unreadable, attempt


@pytest.mark.parametrize(
    ("decimal", "text", "amount"),
    [
        (",", "1.234,56 €", "1234.56"),
        (",", "1.234", "1234"),
        (",", ",89 €", "0.89"),
        (",", "1\u00a0298,00 €", "1298.00"),
        (",", "1\u202f298,00", "1298.00"),
        (",", "12,50", "12.50"),
        (",", "1'298,00", "1298.00"),
        (".", "1,234.56", "1234.56"),
        (".", "3.350", "3.350"),
        (".", ".75", "0.75"),
        (".", "£51.77", "51.77"),
        (".", "1,234", "1234"),
        (",", "1.299,-", "1299"),
        (",", "12,– €", "12"),
        (".", "CHF 5.–", "5"),
        (".", "US $5.00", "5.00"),
        (".", "Rs. 500", "500"),
        (",", "12.345,67 kr.", "12345.67"),
        (".", "1\u2007298", "1298"),
        (".", "\u00a0£\u00a051.77\n", "51.77"),
        (".", "GBP 5.00", "5.00"),
        (".", "5.00 kr", "5.00"),
        (".", "\u22125.00", "-5.00"),
        (".", "-£5", "-5"),
        (".", "£-5", "-5"),
        (".", "12 345 678.90", "12345678.90"),
        (".", "0", "0"),
    ],
)
def test_html_13_price_is_read_by_the_mark_of_its_source(decimal: DecimalMark, text: str, amount: str) -> None:
    read = normalize.price(text, decimal=decimal)
    assert (read, str(read)) == (Decimal(amount), amount)


@pytest.mark.parametrize(
    "text",
    ["", "£", "free", "from £5", "£5 – £10", "£51.77 £40.00", "1,23", "1.234,56", "1,234,56", "1234,567", "1,234 567",
     "1 298,000.00", "--5", "£5 EUR", "5.", "1e5", "NaN", "٣", "5%", "0x5", "1.2.3"],
)  # fmt: skip
def test_ambiguous_price_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="is not one|has two"):
        normalize.price(text)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("", "missing"),
        ("free", "missing"),
        ("£5 – £10", "ambiguous"),
        ("£51.77 £40.00", "ambiguous"),
        ("5-10", "ambiguous"),
        ("from £5", "ambiguous"),
        ("£5 EUR", "ambiguous"),
        ("5.00 VAT", "ambiguous"),
        ("1,23", "malformed"),
        ("5%", "malformed"),
        ("5,-", "malformed"),
        ("Â£51.77", "malformed"),
        ("51,77 â‚¬", "malformed"),  # noqa: RUF001
        ("\ufffd51.77", "malformed"),
    ],
)
def test_refusal_says_of_which_sort_it_is(text: str, check: str) -> None:
    refused = attempt(normalize.price, text)
    assert isinstance(refused, Unreadable)
    assert refused.check == check


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("£5", "GBP"),
        ("5 €", "EUR"),
        ("US$5", "USD"),
        ("CHF 5", "CHF"),
        ("5 zł", "PLN"),
        ("\u2212€5", "EUR"),
        ("AU $5", "AUD"),
        ("5 Kč", "CZK"),
    ],
)
def test_currency_is_named_by_its_iso_code(text: str, code: str) -> None:
    assert normalize.currency(text) == code


@pytest.mark.parametrize("text", ["$5", "¥5", "5 kr", "5", "£5 EUR", "five pounds", "£5 – £10", "Rs 5"])
def test_currency_that_may_be_several_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"may be several|currencies, not one|is not one price"):
        normalize.currency(text)


@pytest.mark.parametrize(
    ("classes", "value"),
    [
        ("star-rating Three", 3),
        ("Three star-rating extra", 3),
        ("star-rating One", 1),
        ("star-rating", None),
        ("", None),
    ],
)
def test_html_19_rating_is_a_word_among_class_names(classes: str, value: int | None) -> None:
    assert normalize.rating(classes) == value


@pytest.mark.parametrize(
    "classes", ["star-rating Zero", "star-rating Seven", "star-rating One Two", "star-rating three"]
)
def test_html_19_unknown_rating_is_refused(classes: str) -> None:
    with pytest.raises(ValueError, match="of the known values"):
        normalize.rating(classes)


def test_html_19_zero_is_a_rating_where_the_source_says_so() -> None:
    assert normalize.rating("star-rating Zero", words={"Zero": 0, **normalize.STARS}) == 0


def test_integer_takes_thousands_and_no_fraction() -> None:
    assert (normalize.integer("1,234"), normalize.integer("1.234", decimal=","), normalize.integer("5.0")) == (
        1234,
        1234,
        5,
    )
    with pytest.raises(ValueError, match="is not a whole number"):
        normalize.integer("1.5")


def test_whitespace_of_every_kind_is_one_blank() -> None:
    assert normalize.whitespace("\n a\u00a0\u202fb \t c ") == "a b c"
