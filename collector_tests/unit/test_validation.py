"""Rows judged by pandera schemas: types value by value, checks lazily, every reason kept."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandera.engines.pandas_engine import Decimal as ExactDecimal

from collector_assets import columns
from collector_assets.columns import Unfit
from collector_assets.contract import Daily, Source
from collector_assets.errors import ContractError
from collector_assets.record import Unreadable, attempt
from collector_assets.validation import Candidate, Judge, Judged, Origin, entity_of

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
ORIGIN = Origin(page_id=7, request_id=3, collected_at=AT)


class Item(pa.DataFrameModel):
    """A row with one column of each type."""

    sku: str
    price: ExactDecimal = pa.Field(ge=0, nullable=True, dtype_kwargs={"precision": 10, "scale": 2})
    stock: int = pa.Field(ge=0, nullable=True)
    weight: float = pa.Field(lt=100, nullable=True)
    active: bool = pa.Field(nullable=True)
    seen_at: Annotated[pd.DatetimeTZDtype, "ns", "UTC"] = pa.Field(nullable=True)
    day: date = pa.Field(nullable=True)
    more: object = pa.Field(nullable=True)

    class Config(pa.DataFrameModel.Config):
        """Text becomes what the column is."""

        coerce = True


def source_of(schema: Any, **more: Any) -> Source:
    return Source(
        name="things", start_urls=("http://shop.localhost:8765/",), extract=lambda _page: [], schema=schema,
        entity=more.pop("entity", "sku"), extractor_version="1", window=Daily(start="2026-01-01"), **more,
    )  # fmt: skip


def judge(rows: Sequence[Any], schema: Any = Item, **more: Any) -> Judged:
    candidates = [Candidate(origin=ORIGIN, ordinal=number, values=row) for number, row in enumerate(rows)]
    return Judge(source_of(schema, **more), "record").judge(candidates)


def data(row: Any, schema: Any = Item) -> dict[str, Any]:
    """The stored values of a row that must pass; numbers as exact text."""
    judged = judge([row], schema)
    assert not judged.rejects, judged.rejects
    return json.loads(judged.good[0].data, parse_float=Decimal)


def reasons(row: Any, schema: Any = Item) -> list[tuple[str | None, str, str | None]]:
    """Why a row that must not pass did not."""
    judged = judge([row], schema)
    assert not judged.good
    return [(reason.column, reason.check, reason.value) for reason in judged.rejects[0].reasons]


def model(**columns_: Any) -> pa.DataFrameSchema:
    """A schema with a sku and these columns."""
    return pa.DataFrameSchema({"sku": pa.Column(str), **columns_}, coerce=True)


# --- Types -----------------------------------------------------------------------------------------------------------


def test_nullable_integers_stay_integers_beside_missing_ones() -> None:
    """DF-02: one value that is none names its row and no other."""
    schema = model(n=pa.Column(int, nullable=True))
    judged = judge([{"sku": str(i), "n": n} for i, n in enumerate(["1", 2, None, "1 ", "x"])], schema)
    assert [json.loads(row.data)["n"] for row in judged.good] == [1, 2, None, 1]
    assert [(row.ordinal, row.reasons[0].check) for row in judged.rejects] == [(4, "is_integer")]


def test_integers_are_never_shown_as_floats() -> None:
    """DF-11: neither by a page without rows nor by a missing value."""
    schema = model(a=pa.Column(int, nullable=True))
    assert '"a":1,' in judge([{"sku": "x", "a": 1}, {"sku": "y", "a": None}], schema).good[0].data


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, "9" * 30])
def test_an_integer_of_more_than_64_bits_is_a_reject(value: object) -> None:
    assert "is_between" in reasons({"sku": "a", "stock": value})[0][1]


def test_an_id_is_text_even_where_a_page_has_a_number() -> None:
    """DF-08: types come from the schema; nothing is guessed from what text looks like."""
    for given_, stored in [("00123", "00123"), ("NA", "NA"), ("12", "12"), (123, "123"), ("nan", "nan")]:
        assert data({"sku": given_})["sku"] == stored
    assert reasons({"sku": 1.0}) == [("sku", "is_text", "1.0")]


def test_times_of_mixed_offsets_are_one_instant_in_utc() -> None:
    """DF-05: around a DST change."""
    judged = judge([{"sku": s, "seen_at": s} for s in ("2026-03-29T00:30:00+00:00", "2026-03-29T03:30:00+02:00")])
    assert [json.loads(row.data)["seen_at"] for row in judged.good] == [
        "2026-03-29T00:30:00+00:00",
        "2026-03-29T01:30:00+00:00",
    ]


def test_a_time_without_zone_is_a_reject_and_names_its_row_only() -> None:
    """DF-05, DBQ-20: mixed with an aware one."""
    judged = judge([{"sku": "a", "seen_at": AT}, {"sku": "b", "seen_at": AT.replace(tzinfo=None)}])
    assert [row.entity for row in judged.good] == ["a"]
    assert [(row.entity, row.reasons[0].check) for row in judged.rejects] == [("b", "has_time_zone")]


def test_far_dates_do_not_overflow_a_schema_in_nanoseconds() -> None:
    """DF-13: the frame has microseconds, whatever unit the schema names."""
    far = datetime(9999, 12, 31, tzinfo=UTC)
    assert data({"sku": "a", "seen_at": far, "day": date(9999, 12, 31)}) | {} == data(
        {"sku": "a", "seen_at": far.isoformat(), "day": "9999-12-31"}
    )
    schema = model(at=pa.Column("datetime64[ns, UTC]", checks=pa.Check.ge(pd.Timestamp("2026-01-01", tz="UTC"))))
    assert reasons({"sku": "a", "at": datetime(2025, 1, 1, tzinfo=UTC)}, schema)[0][1].startswith(
        "greater_than_or_equal"
    )
    assert data({"sku": "a", "at": far}, schema)["at"] == "9999-12-31T00:00:00+00:00"


def test_decimals_are_exact_and_never_rounded() -> None:
    assert data({"sku": "a", "price": "51.70"})["price"] == Decimal("51.7")
    assert reasons({"sku": "a", "price": "51.705"}) == [("price", "is_decimal(10, 2)", "51.705")]
    schema = model(n=pa.Column(ExactDecimal))  # pandera's own default would round to whole numbers
    assert (
        '"n":0.1234567890123456789012345678901'
        in judge([{"sku": "a", "n": "0.1234567890123456789012345678901"}], schema).good[0].data
    )


@pytest.mark.parametrize("value", [math.inf, -math.inf, "1e400", Decimal("Infinity")])
def test_infinity_is_a_reject(value: object) -> None:
    """DBQ-05: numeric 'Infinity' would pass every range check that has no upper end."""
    assert reasons({"sku": "a", "weight": value})[0][:2] == ("weight", "is_finite")


@pytest.mark.parametrize("value", [math.nan, Decimal("NaN"), None, pd.NA, pd.NaT])
def test_nan_and_its_kin_are_missing_and_nothing_else(value: object) -> None:
    """DBQ-05: null where the schema allows it, a reject where it does not."""
    assert data({"sku": "a", "price": value, "weight": value, "stock": value})["price"] is None
    assert reasons({"sku": "a", "n": value}, model(n=pa.Column(float))) == [("n", "not_nullable", None)]


@pytest.mark.parametrize("value", ["false", "FALSE ", 0, False])
def test_false_is_false_in_every_spelling(value: object) -> None:
    assert data({"sku": "a", "active": value})["active"] is False


def test_without_coerce_nothing_is_converted() -> None:
    schema = pa.DataFrameSchema({"sku": pa.Column(str), "n": pa.Column(int)})
    assert reasons({"sku": 5, "n": "5"}, schema) == [("n", "is_integer", "5"), ("sku", "is_text", "5")]


def test_lists_and_mappings_are_kept_as_they_are() -> None:
    more = {"b": [1, Decimal("1.10"), math.nan], "a": {"at": AT}}
    assert data({"sku": "a", "more": more})["more"] == {
        "a": {"at": "2026-03-01T09:00:00+00:00"},
        "b": [1, Decimal("1.1"), None],
    }
    assert reasons({"sku": "a", "more": {1: 2}})[0][1] == "is_json"
    schema = model(tags=pa.Column(list[str]))
    assert data({"sku": "a", "tags": ["x"]}, schema)["tags"] == ["x"]
    assert reasons({"sku": "a", "tags": [1]}, schema)[0][0] == "tags"


def test_a_trap_of_nested_lists_is_a_reject() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert reasons({"sku": "a", "more": deep})[0][1] == "is_nested_less_deeply"


@pytest.mark.parametrize("value", [Decimal("1E+1000000"), 10**5_000], ids=["decimal", "integer"])
def test_a_short_number_that_is_a_megabyte_long_is_a_reject(value: object) -> None:
    assert reasons({"sku": "a", "more": value})[0][1] == "is_a_number_of_bounded_length"


# --- Text that a database refuses ------------------------------------------------------------------------------------


def test_nul_and_lone_surrogates_are_cleaned_and_marked() -> None:
    """DBQ-01, DBQ-03: keys and nested values too; the original is in the archive."""
    row = judge([{"sku": "a\0b", "more": {"k\0": ["x\ud83d", "\ude00y", "\ud83d\ude00"]}}]).good[0]
    assert row.entity == "ab"
    assert row.cleaned
    assert json.loads(row.data)["more"] == {"k": ["x\ufffd", "\ufffdy", "\U0001f600"]}
    row.data.encode()


def test_a_reject_is_storable_whatever_it_holds() -> None:
    """DBQ-01, DBQ-03, DBQ-05: also what has no JSON form at all."""

    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    row = {"sku": None, "k\0": "x\ud83d", "odd": Odd(), "set": {1}, 5: math.inf}
    rejected = judge([row]).rejects[0]
    text = rejected.data + "".join(reason.json() for reason in rejected.reasons)
    assert "\0" not in text
    json.loads(rejected.data)
    text.encode()


# --- Rows ------------------------------------------------------------------------------------------------------------


def test_a_row_keeps_all_its_reasons() -> None:
    assert reasons({"sku": "a", "price": -1, "stock": -2, "weight": 200}) == [
        ("price", "greater_than_or_equal_to(0)", "-1"),
        ("stock", "greater_than_or_equal_to(0)", "-2"),
        ("weight", "less_than(100)", "200.0"),
    ]


@pytest.mark.parametrize(
    ("row", "check"),
    [
        ({}, "entity_is_given"),
        ({"sku": None}, "entity_is_given"),
        ({"sku": " "}, "entity_is_given"),
        ({"sku": "x" * 501}, "entity_has_at_most(500)_characters"),
    ],
)
def test_a_row_without_a_usable_entity_is_a_reject(row: dict[str, Any], check: str) -> None:
    assert reasons(row) == [("sku", check, None)]


@pytest.mark.parametrize("row", [5, None, "text", ["sku"], b"sku"])
def test_what_is_not_a_mapping_is_a_reject(row: object) -> None:
    assert reasons(row)[0][:2] == (None, "is_a_mapping")


def test_a_field_that_the_schema_does_not_name_is_refused_kept_or_dropped_as_it_says() -> None:
    row = {"sku": "a", "extra": 5}
    columns_ = {"sku": pa.Column(str)}
    assert reasons(row, pa.DataFrameSchema(columns_, strict=True)) == [("extra", "column_in_schema", "5")]
    assert data(row, pa.DataFrameSchema(columns_)) == row
    assert data(row, pa.DataFrameSchema(columns_, strict="filter")) == {"sku": "a"}


def test_an_optional_column_is_judged_where_it_is_given() -> None:
    schema = model(note=pa.Column(str, required=False, checks=pa.Check.str_length(min_value=2)))
    judged = judge([{"sku": "a"}, {"sku": "b", "note": "long"}, {"sku": "c", "note": "x"}], schema)
    assert [json.loads(row.data) for row in judged.good] == [{"sku": "a"}, {"sku": "b", "note": "long"}]
    assert [row.entity for row in judged.rejects] == ["c"]


def test_a_default_stands_for_what_is_missing() -> None:
    assert data({"sku": "a"}, model(n=pa.Column(int, default=3)))["n"] == 3


def test_a_check_of_the_whole_row_names_its_row_once() -> None:
    class Pair(pa.DataFrameModel):
        sku: str
        low: int
        high: int

        @pa.dataframe_check
        def is_ordered(cls, frame: pd.DataFrame) -> Any:  # noqa: N805
            return frame["low"] <= frame["high"]

    judged = judge([{"sku": "a", "low": 1, "high": 2}, {"sku": "b", "low": 3, "high": 2}], Pair)
    assert [(row.entity, [(r.column, r.check) for r in row.reasons]) for row in judged.rejects] == [
        ("b", [(None, "is_ordered")])
    ]


def test_a_check_that_breaks_on_one_row_costs_that_row() -> None:
    """Rule 14: a verdict is the row's own.

    Mutation: without the halving in `Judge._check`, the first row of the frame takes the blame.
    """
    schema = model(n=pa.Column(int, checks=pa.Check(lambda n: n.map(lambda value: 1 / value > 0), name="inverse")))
    judged = judge([{"sku": str(n), "n": (n + 13) % 20} for n in range(20)], schema)
    assert len(judged.good) == 19
    assert [(row.entity, row.reasons[0].check) for row in judged.rejects] == [("7", "inverse")]
    assert "ZeroDivisionError" in str(judged.rejects[0].reasons[0].value)


def test_a_check_that_reports_few_cases_still_fails_every_row() -> None:
    """Mutation: without `_all_failures` the second row passes."""
    schema = model(n=pa.Column(int, checks=pa.Check.ge(0, n_failure_cases=1)))
    assert len(judge([{"sku": "a", "n": -1}, {"sku": "b", "n": -2}], schema).rejects) == 2


@given(
    st.lists(st.tuples(st.none() | st.integers(-3, 3), st.sampled_from(["1", "x", None, 2.5])), max_size=12),
    st.integers(1, 12),
)
def test_a_verdict_does_not_depend_on_the_other_rows_of_the_frame(cells: list[tuple[Any, Any]], size: int) -> None:
    """Rule 14: however rows are cut into frames."""
    schema = model(n=pa.Column(int, pa.Check.ge(0), nullable=True), f=pa.Column(float, nullable=True))
    rows = [{"sku": str(i), "n": n, "f": f} for i, (n, f) in enumerate(cells)]
    at_once = judge(rows, schema)
    cut = [judge(rows[k : k + size], schema) for k in range(0, len(rows), size)]
    assert [row.data for row in at_once.good] == [row.data for part in cut for row in part.good]
    assert [row.reasons for row in at_once.rejects] == [row.reasons for part in cut for row in part.rejects]


@pytest.mark.parametrize("columns_", [None, ["sku"]])
def test_no_rows_are_a_typed_frame_and_no_records(columns_: list[str] | None) -> None:
    """DF-03: the same for every way to have nothing."""
    assert judge(pd.DataFrame([], columns=columns_).to_dict("records")) == Judged(good=[], rejects=[])
    frame = Judge(source_of(Item), "record").frame([])
    assert list(frame.dtypes.astype(str)) == [
        "str",
        "object",
        "Int64",
        "float64",
        "boolean",
        "datetime64[us, UTC]",
        "object",
        "object",
    ]


# --- What is stored --------------------------------------------------------------------------------------------------


def test_the_same_values_have_the_same_digest_whatever_they_looked_like() -> None:
    """DF-12: spelling is not change."""
    rows = [
        {"sku": "a", "price": "51.70", "seen_at": "2026-03-29T03:30:00+02:00", "weight": "0"},
        {"weight": -0.0, "price": Decimal("51.7"), "sku": "a", "seen_at": datetime(2026, 3, 29, 1, 30, tzinfo=UTC)},
    ]
    first, second = judge(rows).good
    assert first.digest == second.digest
    assert first.digest != judge([{"sku": "a", "price": "51.71"}]).good[0].digest


def test_the_source_s_own_time_is_kept_apart() -> None:
    """Rule 19: `collected_at` is ours, `source_revised_at` is the page's claim.

    Mutation: `source_revised_at=row.candidate.origin.collected_at` in `Judge._good`.
    """
    row = judge([{"sku": "a", "seen_at": AT - timedelta(days=9)}], revised_at="seen_at").good[0]
    assert row.source_revised_at == AT - timedelta(days=9)
    assert row.origin.collected_at == AT


def test_entities_are_text_integers_or_days() -> None:
    assert [entity_of(value) for value in ("a", 5, Decimal("1.50"), date(2026, 3, 1))] == [
        "a",
        "5",
        "1.50",
        "2026-03-01",
    ]
    with pytest.raises(Unfit):
        entity_of(1.5)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
def test_a_decimal_survives_its_json(value: Decimal) -> None:
    try:
        text = columns.json_text(value)
    except Unfit:
        return
    assert Decimal(text) == value


# --- Schemas that no row can answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (model(a=pa.Column(str, unique=True)), "unique=True"),
        (model(a=pa.Column("category")), "has type category"),
        (model(a=pa.Column(str, parsers=pa.Parser(lambda s: s))), "parser"),
        (pa.DataFrameSchema({"sku": pa.Column(str)}, unique=["sku", "a"]), "Config.unique"),
        (pa.DataFrameSchema({"sku": pa.Column(str)}, index=pa.Index(int)), "index"),
        (pa.DataFrameSchema({"sku": pa.Column(float)}), "names the entity"),
    ],
)
def test_a_schema_that_needs_more_than_a_row_is_refused(schema: pa.DataFrameSchema, words: str) -> None:
    """Rule 14: what needs the whole window is judged in SQL, not in whichever frame a row falls into."""
    with pytest.raises(ContractError, match=words):
        Judge(source_of(schema), "record")


# --- What the extractor could not read -------------------------------------------------------------------------------


def test_a_value_that_cannot_be_read_rejects_its_row_with_the_reason() -> None:
    # Mutation: take Unreadable for any other value in _Read.take -> "is_decimal" and no word of what was wrong.
    row = {
        "sku": "a",
        "price": Unreadable("ambiguous", "'1 – 2' is not one price"),
        "stock": Unreadable("missing", "no"),
    }
    assert reasons(row) == [("price", "ambiguous", "'1 – 2' is not one price"), ("stock", "missing", "no")]


def test_a_row_that_cannot_be_read_is_a_reject() -> None:
    judged = judge([{"sku": "a"}, Unreadable("missing", "'b' matches 0 elements")])
    assert [good.entity for good in judged.good] == ["a"]
    assert [(why.column, why.check) for why in judged.rejects[0].reasons] == [(None, "missing")]


def test_an_entity_that_cannot_be_read_says_why() -> None:
    assert reasons({"sku": Unreadable("malformed", "x")}) == [("sku", "malformed", "x")]


def test_a_field_beside_the_schema_that_cannot_be_read_rejects_too() -> None:
    assert reasons({"sku": "a", "other": Unreadable("malformed", "x")}) == [("other", "malformed", "x")]


def test_enc_05_lost_characters_are_in_no_key_and_in_no_required_text_of_a_page_in_doubt() -> None:
    # Mutation: drop the check of REPLACEMENT in entity_of.
    assert reasons({"sku": "caf\ufffd"}) == [("sku", "entity_is_decoded", None)]
    schema = model(name=pa.Column(str), note=pa.Column(str, nullable=True))
    row = {"sku": "a", "name": "caf\ufffd", "note": "caf\ufffd"}
    assert data(row, schema) == row
    doubtful = Candidate(origin=replace(ORIGIN, suspect=True), ordinal=0, values=row)
    (refused,) = Judge(source_of(schema), "record").judge([doubtful]).rejects
    assert [(why.column, why.check) for why in refused.reasons] == [("name", "is_decoded")]


def test_attempt_takes_what_the_page_is_to_blame_for_and_nothing_else() -> None:
    found = attempt(int, "x")
    assert isinstance(found, Unreadable)
    assert (found.check, attempt(int, "7")) == ("malformed", 7)
    missing = attempt({"a": 1}.__getitem__, "b")
    assert isinstance(missing, Unreadable)
    assert missing.check == "missing"
    assert attempt(str, missing) is missing
    with pytest.raises(TypeError):
        attempt(len, 5)
