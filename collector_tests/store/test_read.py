"""What was collected, as frames and files: typed by the schema, and nothing changed on the way."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import pandas as pd
import pandera.pandas as pa
import pytest
from pandera.engines.pandas_engine import Date
from pandera.engines.pandas_engine import Decimal as Exact
from psycopg import sql
from pyarrow import decimal128, parquet

from collector_assets import export, read, tables
from collector_assets.contract import Daily, Expect, Kind, Page, Record, Source, replace
from collector_assets.errors import BadSelection, ConfigurationError, UnknownSource
from collector_tests.fixtures.stored import Stored

STRANGE = 'a "quoted", text\nof two lines; =1+1 \N{PILE OF POO}'


class Thing(pa.DataFrameModel):
    """Every type that a column may have."""

    code: str
    country: str = pa.Field(nullable=True)
    price: Exact = pa.Field(nullable=True, dtype_kwargs={"precision": 12, "scale": 3})
    share: Exact = pa.Field(nullable=True)
    number: int = pa.Field(nullable=True)
    big: pd.UInt64Dtype = pa.Field(nullable=True)
    ratio: float = pa.Field(nullable=True)
    is_new: bool = pa.Field(nullable=True)
    seen: Annotated[pd.DatetimeTZDtype, "us", "Europe/Berlin"] = pa.Field(nullable=True)
    born: Date = pa.Field(nullable=True)
    tags: object = pa.Field(nullable=True)
    page_id: int
    """A name that we have, too."""

    class Config(pa.DataFrameModel.Config):
        """Text becomes what its column says."""

        coerce = True


def extract(page: Page) -> Iterator[dict[str, Any]]:
    row = page.json()
    yield {**row, "seen": datetime.fromisoformat(row["seen"]) if row.get("seen") else None}


THINGS = Source(
    name="things", start_urls=("http://shop.localhost:8765/",), kinds={"detail": Kind(extract=extract)}, schema=Thing,
    entity="code", extractor_version="1", window=Daily(start="2026-01-01"), expect=Expect(max_reject_rate=1),
)  # fmt: skip

FULL: dict[str, Any] = {
    "code": "00123", "country": "NA", "price": "1234567.125", "share": "0.1234567890123456789012345678901",
    "number": 9007199254740993, "big": 2**64 - 1, "ratio": 0.1, "is_new": True, "seen": "2026-03-29T03:30:00+02:00",
    "born": "1999-12-31", "tags": {"a": [1.5, "x"]}, "page_id": 7,
}  # fmt: skip
TEXT: dict[str, Any] = {"code": "1e5", "country": "", "page_id": 8, "price": "-0.5", "share": "12345.5"}
EMPTY: dict[str, Any] = {"code": STRANGE, "page_id": 9}
ROWS = (FULL, TEXT, EMPTY)
OWN = (
    "code", "country", "price", "share", "number", "big", "ratio", "is_new", "seen", "born", "tags", "page_id",
)  # fmt: skip
SEEN = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


@pytest.fixture
def collected(stored: Stored) -> Stored:
    """Two windows of things: in the second one the first has another price."""
    changed = {**FULL, "price": "2.5"}
    for number, bodies in enumerate([ROWS, [changed]]):
        row = stored.window(THINGS, number)
        stored.add(THINGS, row, bodies)
        stored.process(THINGS, row)
        stored.publish(THINGS, row)
    return stored


def frame(stored: Stored, source: Source = THINGS, **more: Any) -> pd.DataFrame:
    with tables.opened(source, stored.database, **more) as table:
        return table.frame()


def exported(stored: Stored, path: Path, **more: Any) -> export.Exported:
    with tables.opened(THINGS, stored.database, **more) as table:
        return export.write(table, export.target(path))


# --- Frames ----------------------------------------------------------------------------------------------------------


def test_a_frame_has_the_types_of_the_schema(collected: Stored) -> None:
    found = frame(collected).set_index("code")
    first = found.loc["00123"]
    assert first["country"] == "NA"
    assert first["price"] == Decimal("2.5")
    assert first["share"] == Decimal(FULL["share"])
    assert first["number"] == FULL["number"]
    assert first["big"] == FULL["big"]
    assert first["seen"] == SEEN
    assert first["born"] == date(1999, 12, 31)
    assert first["tags"] == FULL["tags"]
    assert (first["page_id"], first["entity"]) == (7, "00123")
    assert first["_page_id"] > 0, "ours is beside the record's own"
    assert isinstance(found["seen"].dtype, pd.DatetimeTZDtype)
    assert found["seen"].dt.tz == ZoneInfo("Europe/Berlin")
    kinds = {name: str(found[name].dtype) for name in ("country", "number", "big", "ratio", "is_new", "collected_at")}
    assert kinds == {
        "country": "str", "number": "Int64", "big": "UInt64", "ratio": "float64", "is_new": "boolean",
        "collected_at": "datetime64[us, UTC]",
    }  # fmt: skip
    missing = found.loc[STRANGE]
    assert all(pd.isna(missing[name]) for name in OWN[1:-1])
    assert found.loc["1e5"]["country"] == "", "an empty text is not missing"


def test_an_empty_frame_is_typed_like_a_full_one(stored: Stored, collected: Stored) -> None:
    # Mutation: in Table.frame give pd.DataFrame the lists of values
    full = frame(collected)
    collected.do("DELETE FROM latest")
    empty = frame(collected)
    assert len(empty) == 0
    assert list(empty.dtypes.items()) == list(full.dtypes.items())


def test_history_holds_what_counted_in_every_window(collected: Stored) -> None:
    found = frame(collected, history=True)
    assert list(found["window_key"]) == ["2026-03-01"] * 3 + ["2026-03-02"]
    prices = found.loc[found["code"] == "00123", "price"]
    assert list(prices) == [Decimal("1234567.125"), Decimal("2.5")]


def test_history_leaves_out_what_does_not_count(collected: Stored) -> None:
    """Rule 17: of a window only the version that last passed."""
    # Mutation: in read_history join windows without counted_version
    collected.process(replace(THINGS, extractor_version="2"), collected.window(THINGS, 1))
    found = frame(collected, history=True)
    assert list(found["extractor_version"]) == ["1", "1", "1", "2"]


def test_a_value_of_an_older_form_is_missing_and_counted(collected: Stored) -> None:
    # Mutation: in Table._reader let Unfit through
    collected.do("""UPDATE latest SET data = data || '{"price": "12 pounds", "number": 1.5}' WHERE entity = '00123'""")
    with tables.opened(THINGS, collected.database) as table:
        found = table.frame().set_index("code").loc["00123"]
    assert pd.isna(found["price"])
    assert pd.isna(found["number"])
    assert dict(table.misfits) == {"price": 1, "number": 1}


def test_a_table_stays_as_it_was_when_it_was_opened(collected: Stored) -> None:
    # Mutation: tables._stand_still does nothing
    with tables.opened(THINGS, collected.database) as table:
        before = len(table.frame())
        collected.do("DELETE FROM latest")
        assert len(table.frame()) == before == 3


def test_several_record_types_want_one_of_them_named(stored: Stored) -> None:
    def several(page: Page) -> Iterator[Record]:
        for row in page.json():
            yield Record(row.pop("type"), row)

    source = replace(
        THINGS, schema=None, records={"big_thing": Small, "thing": Small}, entity="code",
        kinds={"detail": Kind(extract=several)},
    )  # fmt: skip
    row = stored.window(source)
    stored.add(source, row, [[{"type": "thing", "code": "1"}, {"type": "big_thing", "code": "2"}]])
    stored.process(source, row)
    stored.publish(source, row)
    assert list(frame(stored, source, record_type="thing")["code"]) == ["1"]
    with pytest.raises(BadSelection, match="big_thing, thing"):
        frame(stored, source)
    with pytest.raises(BadSelection, match="no record type 'other'"):
        frame(stored, source, record_type="other")


class Small(pa.DataFrameModel):
    code: str


# --- Files -----------------------------------------------------------------------------------------------------------


def test_csv_says_what_is_text_and_what_is_missing(collected: Stored, tmp_path: Path) -> None:
    # Mutation: in export._csv_line write every missing value as ""
    done = exported(collected, tmp_path / "things.csv")
    text = (tmp_path / "things.csv").read_text("utf-8")
    assert (done.rows, done.size) == (3, len(text.encode()))
    assert '\n"00123","NA",2.5,' in text
    assert '\n"1e5","",-0.5,12345.5,,,,,,,,8,' in text
    found = {row["code"]: row for row in csv.DictReader(text.splitlines(keepends=True))}
    assert set(found) == {"00123", "1e5", STRANGE}
    assert found["00123"]["share"] == FULL["share"]
    assert found["00123"]["seen"] == SEEN.isoformat()
    assert json.loads(found["00123"]["tags"]) == FULL["tags"]


def test_csv_is_read_back_by_types(collected: Stored, tmp_path: Path) -> None:
    """DF-08: a reader that does not guess gets `00123` and `NA` back."""
    exported(collected, tmp_path / "things.csv")
    found = pd.read_csv(tmp_path / "things.csv", dtype=str, keep_default_na=False)
    assert list(found["code"]) == list(frame(collected)["code"])
    assert "NA" in set(found["country"])


def test_postgres_reads_the_csv_as_it_was(collected: Stored, tmp_path: Path) -> None:
    done = exported(collected, tmp_path / "things.csv")
    names = [sql.Identifier(name) for name in done.columns]
    with collected.database.transaction() as connection:
        every = sql.SQL(", ").join(sql.SQL("{} text").format(name) for name in names)
        connection.execute(sql.SQL("CREATE TEMP TABLE back ({}) ON COMMIT DROP").format(every))
        with connection.cursor().copy("COPY back FROM STDIN (FORMAT csv, HEADER)") as copy:
            copy.write((tmp_path / "things.csv").read_bytes())
        found = {row[0]: row[1:] for row in connection.execute("SELECT code, country, price, seen FROM back")}
    assert found == {
        "00123": ("NA", "2.5", SEEN.isoformat()), "1e5": ("", "-0.5", None), STRANGE: (None, None, None),
    }  # fmt: skip


def test_json_lines_keep_numbers_and_text_apart(collected: Stored, tmp_path: Path) -> None:
    exported(collected, tmp_path / "things.jsonl", history=True)
    lines = (tmp_path / "things.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line, parse_float=Decimal) for line in lines]
    (first,) = [row for row in rows if row["code"] == "00123" and row["window_key"] == "2026-03-01"]
    assert first["price"] == Decimal("1234567.125")
    assert (first["country"], first["big"], first["tags"]["a"][1]) == ("NA", 2**64 - 1, "x")
    (bare,) = [row for row in rows if row["code"] == STRANGE]
    assert {bare[name] for name in OWN[1:-1]} == {None}


def test_parquet_keeps_every_type(collected: Stored, tmp_path: Path) -> None:
    exported(collected, tmp_path / "things.parquet")
    found = parquet.read_table(tmp_path / "things.parquet")
    schema = {name: str(found.schema.field(name).type) for name in OWN}
    assert schema == {
        "code": "string", "country": "string", "price": "decimal128(12, 3)", "share": "decimal128(36, 31)",
        "number": "int64", "big": "uint64", "ratio": "double", "is_new": "bool",
        "seen": "timestamp[us, tz=Europe/Berlin]", "born": "date32[day]", "tags": "string", "page_id": "int64",
    }  # fmt: skip
    rows = {row["code"]: row for row in found.to_pylist()}
    assert rows["00123"]["price"] == Decimal("2.5")
    assert rows["00123"]["share"] == Decimal(FULL["share"])
    assert (rows["00123"]["country"], rows["1e5"]["country"], rows[STRANGE]["country"]) == ("NA", "", None)
    assert rows["00123"]["seen"] == SEEN
    assert json.loads(rows["00123"]["tags"]) == FULL["tags"]


def test_an_empty_parquet_file_has_the_columns(stored: Stored, tmp_path: Path) -> None:
    done = exported(stored, tmp_path / "things.parquet")
    found = parquet.read_table(tmp_path / "things.parquet")
    assert (done.rows, found.num_rows) == (0, 0)
    assert found.schema.field("price").type == decimal128(12, 3)


def test_many_rows_leave_in_batches_and_arrive(collected: Stored, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tables, "AT_ONCE", 2)
    for suffix in ("csv", "jsonl", "parquet"):
        assert exported(collected, tmp_path / f"things.{suffix}", history=True).rows == 4
    assert parquet.read_table(tmp_path / "things.parquet").num_rows == 4
    assert len(frame(collected, history=True)) == 4


def test_a_failed_export_leaves_the_older_file(collected: Stored, tmp_path: Path) -> None:
    # Mutation: in export._whole open `path` itself
    path = tmp_path / "things.csv"
    path.write_text("old")
    with tables.opened(THINGS, collected.database) as table, pytest.raises(RuntimeError, match="in the middle"):
        export.write(replaced(table, fails_after=1), export.target(path))
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.glob("*") if file.is_file()] == ["things.csv"]
    assert [file.name for file in tmp_path.glob(".*")] == []


def replaced(table: tables.Table, *, fails_after: int) -> tables.Table:
    """The table whose connection is lost in the middle."""

    def lost() -> Iterator[Any]:
        for number, batch in enumerate(table.read()):
            if number == fails_after - 1:
                yield batch[:1]
                raise RuntimeError("in the middle")

    return tables.Table(columns=table.columns, own=table.own, read=lost)


@pytest.mark.parametrize(
    ("name", "said"),
    [("things.xlsx", "End the name in .csv, .jsonl, .parquet"), ("nowhere/things.csv", "no folder"), (".csv", "say")],
)
def test_a_file_that_cannot_be_is_said_before_anything_is_read(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        export.target(tmp_path / name)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError, match=r"collector-assets\[parquet\]"):
        export.target(tmp_path / "things.parquet")


# --- The front door --------------------------------------------------------------------------------------------------


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("COLLECTOR_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("COLLECTOR_SOURCES", raising=False)
    monkeypatch.delenv("COLLECTOR_DSN", raising=False)
    return monkeypatch


def test_latest_by_name_is_a_typed_frame(stored: Stored, settings: pytest.MonkeyPatch) -> None:
    settings.setenv("COLLECTOR_DSN", stored.database.dsn)
    found = read.latest("books")
    assert len(found) == len(read.history("books")) == 0
    assert str(found["rating"].dtype) == "Int64"
    assert "extractor_version" in found


def test_an_unknown_source_lists_the_known_ones(stored: Stored, settings: pytest.MonkeyPatch) -> None:
    settings.setenv("COLLECTOR_DSN", stored.database.dsn)
    with pytest.raises(UnknownSource, match="books, lab, shop"):
        read.latest("bokks")


def test_no_database_is_started_for_a_reader(settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Mutation: drop the question in read._database
    with pytest.raises(ConfigurationError, match="COLLECTOR_DSN: is not set"):
        read.latest("books")
    assert not (tmp_path / "state").exists()
