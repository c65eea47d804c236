"""Retry-After in the spellings that sites use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector_assets import retry_after

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
TWO_MINUTES = timedelta(minutes=2)


def wait_of(value: str, *, date: str | None = None) -> timedelta | None:
    found = retry_after.read([value], date=date, received_at=NOON)
    assert found
    return found.wait


@pytest.mark.parametrize(
    "value",
    [
        "120", " 120\t", "120.0", "+120", "120s", "120 seconds", '"120"', "00120",
        "Sun, 29 Nov 2026 12:02:00 GMT",  # IMF-fixdate
        "Sunday, 29-Nov-26 12:02:00 GMT",  # RFC 850
        "Sun Nov 29 12:02:00 2026",  # asctime
        "sun, 29 nov 2026 12:02:00 gmt", "29 Nov 2026 12:02:00 GMT", "Sun, 29 Nov 2026 13:02:00 +0100",
        "2026-11-29T12:02:00Z", "2026-11-29T13:02:00+01:00",
    ],
)  # fmt: skip
def test_two_minutes_in_every_spelling(value: str) -> None:
    assert wait_of(value) == TWO_MINUTES


@pytest.mark.parametrize("value", ["0", "-5", "-0.5", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_moment_that_is_over_is_now(value: str) -> None:
    assert wait_of(value) == timedelta(0)


@pytest.mark.parametrize(
    "value", ["86401", "9" * 30, "9" * 500, "1796000000", "Sun, 29 Nov 2099 12:02:00 GMT", "99999999.9"]
)
def test_what_is_absurd_is_cut_to_a_day_and_says_so(value: str) -> None:
    found = retry_after.read([value], date=None, received_at=NOON)
    assert found
    assert found.wait == timedelta(hours=24)
    assert "is cut to 24 h" in found.warning


@pytest.mark.parametrize(
    "value",
    ["", "soon", "1e3", "inf", "nan", "0x10", "٣٠", "12:00", "120, 130", "Sun, 31 Feb 2026 12:02:00 GMT", "120 apples",
     "Sun, 29 Nov 2026 25:02:00 GMT", "--5", ".", "\x00"],
)  # fmt: skip
def test_garbage_is_no_wait_but_a_warning(value: str) -> None:
    found = retry_after.read([value], date=None, received_at=NOON)
    assert found == retry_after.RetryAfter(wait=None, warning=f"Retry-After is neither a number nor a date: {value!r}")


def test_a_date_counts_from_the_answers_own_date_where_clocks_differ() -> None:
    value = "Sun, 29 Nov 2026 15:02:00 GMT"
    assert wait_of(value, date="Sun, 29 Nov 2026 15:00:00 GMT") == TWO_MINUTES
    assert wait_of(value, date="yesterday") == timedelta(hours=3, minutes=2)
    assert wait_of("120", date="Sun, 29 Nov 2026 15:00:00 GMT") == TWO_MINUTES


def test_of_several_fields_the_longest_usable_counts() -> None:
    assert retry_after.read(["soon", "3", "120"], date=None, received_at=NOON) == retry_after.RetryAfter(
        wait=TWO_MINUTES
    )
    assert retry_after.read([], date=None, received_at=NOON) is None
