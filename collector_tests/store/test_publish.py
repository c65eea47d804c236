"""`publish`: which observation is the newest that counts, and the typed views, in real Postgres."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pandas as pd
import pandera.pandas as pa
import pytest
from pandera.engines.pandas_engine import Decimal as ExactDecimal

from collector_assets import latest, views
from collector_assets.contract import Daily, Expect, Page, Record, Source, replace
from collector_assets.errors import ContractError, UnknownWindow, VerdictRefused
from collector_assets.windows import WindowRow
from collector_tests.fixtures.stored import FIRST_DAY, Stored


class Item(pa.DataFrameModel):
    """A thing with a price."""

    sku: str
    price: ExactDecimal = pa.Field(ge=0)

    class Config(pa.DataFrameModel.Config):
        """Prices come as text."""

        coerce = True


def extract(page: Page) -> Iterator[Any]:
    """The rows of the body."""
    yield from page.json()


SOURCE = Source(
    name="things",
    start_urls=("http://shop.localhost:8765/",),
    extract=extract,
    schema=Item,
    entity="sku",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    expect=Expect(min_records=1, max_reject_rate=0.5),
)
NINE = FIRST_DAY + timedelta(hours=9)


def collected(stored: Stored, number: int, prices: dict[str, Any], *, source: Source = SOURCE) -> WindowRow:
    """A window with one page of these prices, read."""
    row = stored.window(source, number)
    stored.add(source, row, [[{"sku": sku, "price": price} for sku, price in prices.items()]])
    stored.process(source, row)
    return row


def prices(stored: Stored) -> dict[str, Decimal]:
    return dict(stored.rows("SELECT entity, (data ->> 'price')::numeric FROM latest ORDER BY entity"))


def at(number: int) -> datetime:
    """When the page of a day was fetched."""
    return NINE + timedelta(days=number)


# --- Newest wins -----------------------------------------------------------------------------------------------------


def test_the_newest_observation_wins_and_an_older_window_changes_nothing(stored: Stored) -> None:
    """Rule 17: by (collected_at, page id), whatever was published last.

    Mutation: order by `window_start` ascending in `latest.recompute`, or drop the ORDER BY of `newest_first`.
    """
    newer = collected(stored, 1, {"a": 2, "b": 2})
    older = collected(stored, 0, {"a": 1, "c": 1})
    assert (stored.publish(SOURCE, newer).inserted, stored.publish(SOURCE, older).inserted) == (2, 1)
    assert prices(stored) == {"a": 2, "b": 2, "c": 1}


def test_what_is_seen_again_unchanged_keeps_its_publication(stored: Stored) -> None:
    """DF-12: `last_seen_at` moves, `changed_at` and `published_at` stay; a new value moves all three."""
    stored.publish(SOURCE, collected(stored, 0, {"a": "1.50", "b": 0}))
    report = stored.publish(SOURCE, collected(stored, 1, {"a": "1.50", "b": 1}))
    assert (report.inserted, report.updated, report.unchanged) == (0, 1, 1)
    times = "SELECT first_seen_at, changed_at, last_seen_at, published_at = min(published_at) OVER () FROM latest"
    assert stored.rows(times + " ORDER BY entity") == [(at(0), at(0), at(1), True), (at(0), at(1), at(1), False)]


def test_publishing_twice_touches_no_row(stored: Stored) -> None:
    row = collected(stored, 0, {"a": 1, "b": 2})
    stored.publish(SOURCE, row)
    before = stored.rows("SELECT xmin, ctid, xmax FROM latest ORDER BY entity")
    report = stored.publish(SOURCE, row)
    assert (report.inserted, report.updated, report.unchanged, report.total, report.missing) == (0, 0, 2, 2, 0)
    assert stored.rows("SELECT xmin, ctid, xmax FROM latest ORDER BY entity") == before


def test_latest_moves_back_when_an_observation_stops_counting(stored: Stored) -> None:
    """Rule 17: a better extractor takes an entity away; the window that held it is recomputed, and an older one wins.

    Mutation: drop `AND w.counted_version = o.extractor_version` in `latest.recompute`.
    """
    stored.publish(SOURCE, collected(stored, 0, {"a": 1, "b": 1}))
    row = collected(stored, 1, {"a": 2, "b": 2, "c": 2})
    stored.publish(SOURCE, row)

    def better(page: Page) -> Iterator[Any]:
        yield from (record for record in page.json() if record["sku"] == "b")

    second = replace(SOURCE, extractor_version="2", extract=better)
    stored.process(second, row)
    report = stored.publish(second, row)
    assert (report.moved_back, report.withdrawn, report.from_window) == (1, 1, 1)
    assert prices(stored) == {"a": 1, "b": 2}


def test_observations_of_a_version_that_does_not_count_are_not_there(stored: Stored) -> None:
    """Rule 17.

    Mutation: drop `AND w.counted_version = o.extractor_version` in `latest.recompute`.
    """
    row = collected(stored, 0, {"a": 1})
    stored.publish(SOURCE, row)
    failing = replace(SOURCE, extractor_version="2", expect=Expect(min_records=9))
    newer = collected(stored, 1, {"a": 2}, source=failing)
    assert stored.rows("SELECT count(*) FROM observations") == [(2,)]
    with pytest.raises(VerdictRefused):
        stored.publish(failing, newer)
    stored.publish(SOURCE, row)
    assert prices(stored) == {"a": 1}


def test_not_seen_is_not_removed(stored: Stored) -> None:
    """Rule 18: an entity that a newer window does not list stays; `test_removals.py` says when it is removed.

    Mutation: in `latest.recompute`, take all entities of the source, and the observations of the window alone.
    """
    stored.publish(SOURCE, collected(stored, 0, {"a": 1, "b": 1}))
    report = stored.publish(SOURCE, collected(stored, 1, {"a": 1}))
    assert (report.withdrawn, report.total) == (0, 2)
    assert stored.rows("SELECT entity, last_seen_at, removed_at FROM latest ORDER BY entity") == [
        ("a", at(1), None),
        ("b", at(0), None),
    ]


def test_a_tie_in_time_goes_to_the_later_page(stored: Stored) -> None:
    """DBQ-07: two windows saw the same entity at the same instant."""
    for number, price in ((1, 5), (0, 6)):
        row = stored.window(SOURCE, number)
        stored.add(SOURCE, row, [[{"sku": "a", "price": price}]], fetched_at=NINE)
        stored.process(SOURCE, row)
        stored.publish(SOURCE, row)
    assert prices(stored) == {"a": 6}


def test_two_publishers_of_one_source_go_one_after_the_other(stored: Stored) -> None:
    """Two windows hold the same entity: whoever comes second sees what the first wrote.

    Mutation: drop `latest.lock` in `publish.run`: the second does not wait.
    """
    row = collected(stored, 0, {"a": 1})
    done = threading.Event()
    with stored.database.transaction() as connection:
        latest.lock(connection, SOURCE.name)
        thread = threading.Thread(target=lambda: (stored.publish(SOURCE, row), done.set()))
        thread.start()
        assert not done.wait(0.5)
    assert done.wait(10)
    thread.join()


# --- The verdict decides ---------------------------------------------------------------------------------------------


def test_a_window_without_a_pass_is_refused_by_name(stored: Stored) -> None:
    """Rule 16: however it was started; the message says which check, and why.

    Mutation: drop `_require_pass` in `publish.run`.
    """
    row = stored.window(SOURCE)
    with pytest.raises(VerdictRefused, match="never read"):
        stored.publish(SOURCE, row)
    stored.add(SOURCE, row, [[{"sku": "a", "price": 1}]])
    stored.process(replace(SOURCE, expect=Expect(min_records=2)), row)
    with pytest.raises(VerdictRefused, match="record_count_expected: 1 records; expected at least 2"):
        stored.publish(SOURCE, row)
    assert stored.rows("SELECT count(*) FROM latest") == [(0,)]
    assert stored.rows("SELECT published_at FROM windows") == [(None,)]


def test_an_earlier_pass_does_not_help_a_window_that_failed_since(stored: Stored) -> None:
    """Rule 16: the newest verdict decides.

    Mutation: look for any passed verdict in `verdicts.newest`.
    """
    row = collected(stored, 0, {"a": 1})
    stored.process(replace(SOURCE, extractor_version="2", expect=Expect(min_records=2)), row)
    with pytest.raises(VerdictRefused, match="extractor version 2"):
        stored.publish(SOURCE, row)


def test_a_window_that_was_never_opened_is_an_error(stored: Stored) -> None:
    row = stored.window(SOURCE)
    stored.do("DELETE FROM windows")
    with pytest.raises(UnknownWindow):
        stored.publish(SOURCE, row)


# --- Typed views -----------------------------------------------------------------------------------------------------


class Everything(pa.DataFrameModel):
    """One column of each type, and two whose names are ours or odd."""

    sku: str
    whole: int = pa.Field(nullable=True)
    exact: ExactDecimal = pa.Field(nullable=True)
    rough: float = pa.Field(nullable=True)
    flag: bool = pa.Field(nullable=True)
    seen: Annotated[pd.DatetimeTZDtype, "us", "UTC"] = pa.Field(nullable=True)
    on: date = pa.Field(nullable=True)
    more: object = pa.Field(nullable=True)
    entity: str = pa.Field(nullable=True)
    odd: str = pa.Field(nullable=True, alias="o'd\"d {x} %s")

    class Config(pa.DataFrameModel.Config):
        """From JSON."""

        coerce = True


FULL = {
    "sku": "a", "whole": 2**62, "exact": "1.10", "rough": 1.5, "flag": True, "seen": "2026-03-01T10:00:00+02:00",
    "on": "2026-03-01", "more": {"k": [1]}, "entity": "theirs", "o'd\"d {x} %s": "odd",
}  # fmt: skip


def test_a_view_has_the_types_of_the_schema(stored: Stored) -> None:
    source = replace(SOURCE, schema=Everything)
    row = stored.window(source)
    stored.add(source, row, [[FULL, {"sku": "b"}]])
    stored.process(source, row)
    report = stored.publish(source, row)
    assert report.views == ("latest_things",)
    assert stored.rows("SELECT * FROM latest_things ORDER BY sku")[0][:11] == (
        "a", 2**62, Decimal("1.1"), 1.5, True, datetime(2026, 3, 1, 8, tzinfo=UTC), date(2026, 3, 1), {"k": [1]},
        "theirs", "odd", "a",
    )  # fmt: skip
    types = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'latest_things'"
    assert dict(stored.rows(types)) == {
        "sku": "text", "whole": "bigint", "exact": "numeric", "rough": "double precision", "flag": "boolean",
        "seen": "timestamp with time zone", "on": "date", "more": "jsonb", "entity": "text", "o'd\"d {x} %s": "text",
        "_entity": "text", "collected_at": "timestamp with time zone", "source_revised_at": "timestamp with time zone",
        "first_seen_at": "timestamp with time zone", "last_seen_at": "timestamp with time zone",
        "changed_at": "timestamp with time zone", "removed_at": "timestamp with time zone",
        "window_start": "timestamp with time zone", "page_id": "bigint", "extractor_version": "text",
    }  # fmt: skip
    assert stored.rows("SELECT whole, exact, seen FROM latest_things WHERE sku = 'b'") == [(None,) * 3]


def test_a_view_follows_the_schema_and_is_left_alone_when_that_did_not_change(stored: Stored) -> None:
    row = collected(stored, 0, {"a": 1})
    stored.publish(SOURCE, row)
    view = "SELECT oid, obj_description(oid) FROM pg_class WHERE relname = 'latest_things'"
    before = stored.rows(view)
    stored.publish(SOURCE, row)
    assert stored.rows(view) == before
    stored.publish(replace(SOURCE, schema=Everything), row)
    assert stored.rows(view) != before
    assert stored.rows("SELECT whole FROM latest_things") == [(None,)]


def test_a_row_of_an_older_schema_does_not_take_the_view_away(stored: Stored) -> None:
    """Values in another form are null; the rest of the row and all other rows stay readable."""
    row = collected(stored, 0, {"a": 1})
    source = replace(SOURCE, schema=Everything)
    stored.publish(source, row)
    for value in ('"text"', "1.5", "99999999999999999999", "[1]", '"2026-13-45T00:00:00"', "true", "null"):
        everywhere = ", ".join(f"'{name}', v" for name in ("whole", "exact", "rough", "flag", "seen", "on"))
        stored.do(  # names of this test
            f"UPDATE latest SET data = jsonb_build_object('sku', 'a', {everywhere}) FROM (SELECT %s::jsonb AS v) AS x",  # noqa: S608
            value,
        )
        assert stored.rows("SELECT sku, whole, exact, rough, flag, seen FROM latest_things")[0][0] == "a"


def test_a_view_that_others_built_on_stays_and_publishing_goes_on(stored: Stored) -> None:
    """DBQ-18: what is in the way of the view is no reason to lose the transaction.

    Mutation: drop the savepoint in `views._refresh_one`.
    """
    row = collected(stored, 0, {"a": 1})
    stored.publish(SOURCE, row)
    stored.do("CREATE VIEW dearest AS SELECT * FROM latest_things")
    try:
        report = stored.publish(replace(SOURCE, schema=Everything), row)
        assert "latest_things stays as it was" in str(report.view_problem)
        assert report.total == 1
    finally:
        stored.do("DROP VIEW dearest")


def test_each_record_type_has_a_view(stored: Stored) -> None:
    source = replace(SOURCE, name="two", schema=None, records={"x": Item, "y": Item}, extract=typed)
    row = stored.window(source)
    stored.add(source, row, [[{"sku": "a", "price": 1}]])
    stored.process(source, row)
    assert stored.publish(source, row).views == ("latest_two__x", "latest_two__y")
    assert stored.rows("SELECT x.sku, y.sku FROM latest_two__x AS x, latest_two__y AS y") == [("a", "a")]


def typed(page: Page) -> Iterator[Any]:
    for row in page.json():
        yield Record("x", row)
        yield Record("y", row)


def test_a_view_never_takes_the_place_of_another(stored: Stored) -> None:
    """Names of sources can meet (`shop__x` and type `x` of `shop`); so can tables of somebody else."""
    stored.do("DROP VIEW IF EXISTS latest_things")
    stored.do("CREATE VIEW latest_things AS SELECT 1")
    stored.do("COMMENT ON VIEW latest_things IS 'mine'")
    row = collected(stored, 0, {"a": 1})
    with pytest.raises(ContractError, match="latest_things is already there"):
        stored.publish(SOURCE, row)
    assert stored.rows("SELECT count(*) FROM latest") == [(0,)]
    stored.do("DROP VIEW latest_things")


def test_long_names_stay_apart() -> None:
    names = {views.name_of("s" * 63, record_type, is_only_type=False) for record_type in ("x" * 63, "x" * 62 + "y")}
    assert len(names) == 2
    assert all(len(name.encode()) <= views.MAX_NAME for name in names)
