"""Text into dates and instants: by the source's order, language and zone, or an error."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets import normalize
from collector_assets.normalize import FRENCH, GERMAN, ITALIAN, PORTUGUESE, SPANISH, Language
from collector_assets.record import Unreadable, attempt

NOW = datetime(2026, 3, 10, 9, tzinfo=UTC)
MARCH_3 = date(2026, 3, 3)


def check_of(found: object) -> str:
    assert isinstance(found, Unreadable), found
    return found.check


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("2026-03-03", {}),
        ("2026/3/3", {}),
        ("2026.03.03", {}),
        ("20260303", {}),
        (" 2026-03-03\n", {}),
        ("03/03/2026", {"order": "dmy"}),
        ("3.3.2026", {"order": "dmy"}),
        ("3. 3. 2026", {"order": "dmy"}),
        ("3-3-26", {"order": "mdy", "century": 2000}),
        ("26/03/03", {"order": "ymd", "century": 2000}),
        ("3 March 2026", {}),
        ("3 mar. 2026", {}),
        ("03-Mar-2026", {}),
        ("3rd of March, 2026", {}),
        ("March 3, 2026", {}),
        ("March 3rd 2026", {}),
        ("Tue, 3 Mar 2026", {}),
        ("Tuesday 03/03/2026", {"order": "dmy"}),
        ("3 Mar '26", {"century": 2000}),
        ("3. März 2026", {"language": GERMAN}),
        ("Di., 3. Mrz 2026", {"language": GERMAN}),
        ("3\u00a0mars\u00a02026", {"language": FRENCH}),
        ("martes, 3 de marzo de 2026", {"language": SPANISH}),
        ("3 marzo 2026", {"language": ITALIAN}),
        ("terça-feira, 3 de março de 2026", {"language": PORTUGUESE}),
        ("today", {"now": datetime(2026, 3, 3, 23, tzinfo=UTC)}),
        ("today", {"now": datetime(2026, 3, 2, 23, tzinfo=UTC), "zone": "Europe/Berlin"}),
        ("yesterday", {"now": datetime(2026, 3, 4, 1, tzinfo=UTC)}),
        ("gestern", {"now": datetime(2026, 3, 4, 1, tzinfo=UTC), "language": GERMAN}),
        ("7 days ago", {"now": NOW}),
        ("a week ago", {"now": NOW}),
        ("Mar 3", {"year": "past", "now": NOW}),
        ("03/03", {"order": "dmy", "year": "past", "now": NOW}),
        ("3 March", {"year": "future", "now": datetime(2025, 3, 10, tzinfo=UTC)}),
    ],
)
def test_date_is_read_as_its_source_writes_it(text: str, how: dict[str, Any]) -> None:
    assert normalize.date(text, **how) == MARCH_3


@pytest.mark.parametrize(
    ("text", "how", "check"),
    [
        ("2026-13-01", {}, "impossible"),
        ("31/02/2026", {"order": "dmy"}, "impossible"),
        ("13/04/2026", {"order": "mdy"}, "impossible"),
        ("04/13/2026", {"order": "dmy"}, "impossible"),
        ("29 Feb 2025", {}, "impossible"),
        ("0000-00-00", {}, "impossible"),
        ("Wed, 3 Mar 2026", {}, "impossible"),
        ("Feb 30", {"year": "past", "now": NOW}, "impossible"),
        ("6/4/25 0730", {"order": "dmy", "century": 2000}, "malformed"),
        ("1712345678000", {}, "malformed"),
        ("March 2026", {}, "malformed"),
        ("May 2026", {}, "malformed"),
        ("2026", {}, "malformed"),
        ("03/04/2026 – 05/04/2026", {"order": "dmy"}, "malformed"),
        ("soon", {}, "malformed"),
        ("3 Foo 2026", {}, "malformed"),
        ("03/04/2026", {"order": "ymd"}, "malformed"),
        ("", {}, "missing"),
        ("13/04/2026", {}, "ambiguous"),
        ("3/4/26", {"order": "dmy"}, "ambiguous"),
        ("Mar 3", {}, "ambiguous"),
        ("Mar 3", {"year": "past"}, "ambiguous"),
        ("yesterday", {}, "ambiguous"),
        ("3 jui 2026", {"language": FRENCH}, "ambiguous"),
    ],
)
def test_html_18_nothing_is_repaired_or_guessed(text: str, how: dict[str, Any], check: str) -> None:
    assert check_of(attempt(normalize.date, text, **how)) == check


def test_leap_day_without_a_year_is_in_the_nearest_year_that_has_it() -> None:
    assert normalize.date("Feb 29", year="past", now=NOW) == date(2024, 2, 29)
    assert normalize.date("Feb 29", year="future", now=NOW) == date(2028, 2, 29)


@pytest.mark.parametrize(
    ("text", "how", "moment"),
    [
        ("2026-03-04T10:00:00Z", {}, "2026-03-04T10:00:00"),
        ("2026-03-04 10:00:00.123456789+05:30", {}, "2026-03-04T04:30:00.123456"),
        ("2026-03-04T10:00-0800", {}, "2026-03-04T18:00:00"),
        ("2026-03-04 10:00 UTC+2", {}, "2026-03-04T08:00:00"),
        ("Tue, 03 Mar 2026 10:00:00 GMT", {}, "2026-03-03T10:00:00"),
        ("Tue Mar 03 2026 10:00:00 GMT+0100 (CET)", {}, "2026-03-03T09:00:00"),
        ("2026-07-04 10:00", {"zone": "Europe/London"}, "2026-07-04T09:00:00"),
        ("04/03/2026, 10:00", {"zone": "UTC", "order": "dmy"}, "2026-03-04T10:00:00"),
        ("3 March 2026 at 1:45 pm", {"zone": "UTC"}, "2026-03-03T13:45:00"),
        ("12:05 a.m., 3 March 2026", {"zone": "UTC"}, "2026-03-03T00:05:00"),
        ("yesterday at 10:05", {"zone": "Europe/London", "now": NOW}, "2026-03-09T10:05:00"),
        ("2026-10-25 01:30", {"zone": "Europe/London", "fold": 0}, "2026-10-25T00:30:00"),
        ("2026-10-25 01:30", {"zone": "Europe/London", "fold": 1}, "2026-10-25T01:30:00"),
    ],
)
def test_instant_is_a_moment_in_utc(text: str, how: dict[str, Any], moment: str) -> None:
    assert normalize.instant(text, **how) == datetime.fromisoformat(moment).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "how", "check"),
    [
        ("2026-03-04 10:00", {}, "ambiguous"),
        ("2026-10-25 01:30", {"zone": "Europe/London"}, "ambiguous"),
        ("2026-03-29 01:30", {"zone": "Europe/London"}, "impossible"),
        ("2026-03-04T24:00Z", {}, "impossible"),
        ("2026-03-04T10:60Z", {}, "impossible"),
        ("2026-03-04 13:00 pm", {"zone": "UTC"}, "impossible"),
        ("2026-03-04T10:00+15:00", {}, "impossible"),
        ("0001-01-01T00:00+05:00", {}, "impossible"),
        ("2026-03-04 10:00 EST", {}, "malformed"),
        ("2026-03-04", {"zone": "UTC"}, "malformed"),
        ("6/4/25 0730", {"zone": "UTC", "order": "dmy"}, "malformed"),
        ("", {"zone": "UTC"}, "missing"),
    ],
)
def test_instant_that_is_none_or_two_is_refused(text: str, how: dict[str, Any], check: str) -> None:
    assert check_of(attempt(normalize.instant, text, **how)) == check


def test_a_zone_that_is_none_is_the_source_s_mistake_and_no_reject() -> None:
    with pytest.raises(TypeError, match="is no time zone"):
        attempt(normalize.instant, "2026-03-04 10:00", zone="Europe/Londn")


@pytest.mark.parametrize(
    ("value", "unit"), [(1712345678000, "ms"), ("1712345678", "s"), (1712345678.0, "s"), ("1712345678000000", "us")]
)
def test_html_18_epochs_count_in_the_declared_unit(value: Any, unit: Any) -> None:
    assert normalize.epoch(value, unit=unit) == datetime(2024, 4, 5, 19, 34, 38, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "unit", "check"),
    [(1712345678000, "s", "impossible"), (1e300, "ms", "impossible"), (float("nan"), "s", "impossible"),
     ("soon", "s", "malformed"), ("", "s", "malformed")],
)  # fmt: skip
def test_epoch_that_is_no_moment_is_refused(value: Any, unit: Any, check: str) -> None:
    assert check_of(attempt(normalize.epoch, value, unit=unit)) == check


def test_ago_is_relative_to_the_page_and_exact_or_refused() -> None:
    assert normalize.ago("3 hours ago", now=NOW) == NOW - timedelta(hours=3)
    assert normalize.ago("an hour ago", now=NOW) == NOW - timedelta(hours=1)
    assert normalize.ago("5 min ago", now=NOW) == NOW - timedelta(minutes=5)
    assert check_of(attempt(normalize.ago, "2 months ago", now=NOW)) == "ambiguous"
    assert check_of(attempt(normalize.ago, "just now", now=NOW)) == "malformed"


def test_language_of_a_source_can_be_its_own() -> None:
    czech = Language(
        ("ledna", "února", "března", "dubna", "května", "června", "července", "srpna", "září", "října", "listopadu",
         "prosince"),
        ("pondělí", "úterý", "středa", "čtvrtek", "pátek", "sobota", "neděle"),
        ("včera", "dnes", "zítra"),
    )  # fmt: skip
    assert normalize.date("úterý 3. března 2026", language=czech) == MARCH_3


@given(st.text(max_size=60))
def test_any_text_is_a_date_or_unreadable(text: str) -> None:
    for order in ("dmy", "mdy", "ymd"):
        found = attempt(normalize.date, text, order=order, year="past", now=NOW, century=2000)
        assert isinstance(found, date | Unreadable)
    assert isinstance(attempt(normalize.instant, text, zone="Europe/London", now=NOW), datetime | Unreadable)


@given(st.dates(), st.sampled_from(["%Y-%m-%d", "%d/%m/%Y", "%A, %d %B %Y", "%b %d, %Y"]))
def test_dates_come_back_as_they_were_written(day: date, form: str) -> None:
    if day.year >= 1000:  # strftime writes fewer digits before that
        assert normalize.date(day.strftime(form), order="dmy") == day


def test_long_text_takes_no_time() -> None:
    before = time.process_time()
    for text in ("1 " * 500_000, "a" * 1_000_000, "3 March 2026" + " " * 1_000_000 + "x" * 200):
        attempt(normalize.date, text, order="dmy")
        attempt(normalize.instant, text, order="dmy")
    assert time.process_time() - before < 2
