"""Downloads: rows of text, bounded, nothing guessed."""

from __future__ import annotations

import gzip
import io
import itertools
import tracemalloc
import zipfile
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, BinaryIO, cast

import openpyxl
import pytest

from collector_assets import files
from collector_assets.cases import page
from collector_assets.contract import Page
from collector_assets.record import Unreadable


def download(body: bytes, content_type: str = "text/csv", **more: Any) -> Page:
    return page(body, headers={"content-type": content_type}, **more)


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name.replace("_", "."), body)
    return packed.getvalue()


# --- CSV -------------------------------------------------------------------------------------------------------------


def test_df_08_text_stays_text() -> None:
    rows = files.csv_rows(download(b'sku,country,modified\n00123,NA,12\n"a,b","x ""y""","1\n2"\n'))
    assert list(rows) == [
        {"sku": "00123", "country": "NA", "modified": "12"},
        {"sku": "a,b", "country": 'x "y"', "modified": "1\n2"},
    ]


def test_rows_of_another_length_or_with_lost_characters_are_rejected_alone() -> None:
    rows = list(files.csv_rows(download(b"a,b\n1,2\n3\n\n4,\xff\n5,6,7\n8,9\n", "text/csv; charset=utf-8")))
    assert [row["a"] for row in rows if not isinstance(row, Unreadable)] == ["1", "8"]
    assert [str(row) for row in rows if isinstance(row, Unreadable)] == [
        "line 3 has 1 fields, not 2", "line 5 is not in the encoding of the file", "line 6 has 3 fields, not 2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "content_type", "more"),
    [
        ("a;b\n£;ü\n".encode(), "text/csv", {}),
        ("\ufeffa;b\n£;ü\n".encode(), "text/csv; charset=windows-1252", {}),
        ("\ufeffa;b\r\n£;ü\r\n".encode("utf-16-le"), "text/csv", {}),
        ("a;b\n£;ü\n".encode("cp1252"), "text/csv", {}),
        ("a;b\n£;ü\n".encode("cp1252"), "text/csv; charset=utf-8", {"encoding": "latin1"}),
        (b"a;b\n\0\xa3;\0\xfc\n", "text/csv", {}),
    ],
)
def test_encoding_is_that_of_pages(body: bytes, content_type: str, more: dict[str, Any]) -> None:
    (row,) = files.csv_rows(download(body, content_type, **more), delimiter=";")
    assert row == {"a": "£", "b": "ü"}


def test_columns_and_lines_in_front() -> None:
    given = download(b"# made by hand\r\n1\t2\r\n")
    assert list(files.csv_rows(given, delimiter="\t", columns=("a", "b"), skip=1)) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no header"),
        (b"a,,b\n", "are empty or repeat"),
        (b"a,a\n", "are empty or repeat"),
        (b'a,b\n1,"2\n3,4\n', "line 3: unexpected end of data"),
        (b'a,b\n1,"2"x\n', "line 2"),
    ],
)
def test_file_that_is_no_table_raises(body: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        list(files.csv_rows(download(body)))


def test_line_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 1_000)
    with pytest.raises(Unreadable, match="a line of more than 1,000"):
        list(files.csv_rows(download(b"a,b\n" + b"x" * 2_000)))


class Endless(io.RawIOBase):
    """A stream of rows that was never in memory."""

    def __init__(self, size: int) -> None:
        self._rows = itertools.chain([b"sku,price\n"], itertools.repeat(b"00123,5.00\n" * 1_000))
        self._left = size
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while len(self._rest) < len(buffer) and self._left > 0:
            piece = next(self._rows)
            self._left -= len(piece)
            self._rest += piece
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def test_rows_are_read_as_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SNIFFED", 2**14)
    tracemalloc.start()
    try:
        count = sum(1 for _ in files.csv_rows(cast("BinaryIO", Endless(2**19))))
        assert count > 40_000
        assert tracemalloc.get_traced_memory()[1] < 2**18
    finally:
        tracemalloc.stop()


# --- JSON lines ------------------------------------------------------------------------------------------------------


def test_lines_of_json_are_values_and_a_broken_one_is_rejected_alone() -> None:
    first, bad, last = files.json_lines(download(b'{"sku": "00123", "price": 5.10}\n\n{"sku"\n[1]\n', "x/ndjson"))
    assert (first, last) == ({"sku": "00123", "price": Decimal("5.10")}, [1])
    assert isinstance(bad, Unreadable)


# --- ZIP and gzip ----------------------------------------------------------------------------------------------------


def test_the_one_member_that_fits_is_read() -> None:
    given = download(zipped(a_csv=b"x\n1\n", read_me=b"no"), "application/zip")
    assert list(files.csv_rows(files.unzip(given, "*.csv"))) == [{"x": "1"}]
    with pytest.raises(Unreadable, match="fits 2 files") as refused:
        files.unzip(given)
    assert refused.value.check == "ambiguous"
    with pytest.raises(Unreadable, match="fits 0 files"):
        files.unzip(given, "*.xml")


def test_gzip_that_is_the_file_itself_is_unpacked() -> None:
    given = download(gzip.compress(b"x\n1\n") + gzip.compress(b"2\n"), "application/gzip")
    assert list(files.csv_rows(files.gunzip(given))) == [{"x": "1"}, {"x": "2"}]


def _lying(body: bytes) -> bytes:
    """A ZIP file that says less than it holds."""
    packed = zipped(a=body)
    return packed.replace(len(body).to_bytes(4, "little"), (10).to_bytes(4, "little"))


@pytest.mark.parametrize(
    "read",
    [
        lambda: files.unzip(download(zipped(a=bytes(10_000_000))), limit=1_000_000),
        lambda: files.unzip(download(_lying(bytes(10_000_000)))).read(),
        lambda: files.gunzip(download(gzip.compress(bytes(10_000_000))), limit=1_000_000).read(),
        lambda: files.gunzip(download(gzip.compress(b"x" * 1_000)[:-9])).read(),
        lambda: files.gunzip(download(b"no gzip")).read(),
        lambda: files.unzip(download(b"PK no zip")),
        lambda: files.unzip(download(b"")),
    ],
    ids=["zip bomb", "lying zip", "gzip bomb", "cut gzip", "no gzip", "no zip", "empty"],
)
def test_packed_files_are_bounded_and_checked(read: Any) -> None:
    with pytest.raises(Unreadable):
        read()


# --- XLSX ------------------------------------------------------------------------------------------------------------


def workbook(*sheets: list[list[Any]]) -> Page:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for number, rows in enumerate(sheets, start=1):
        sheet = book.create_sheet(f"S{number}")
        for row in rows:
            sheet.append(row)
    packed = io.BytesIO()
    book.save(packed)
    return download(packed.getvalue(), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")


def test_cells_are_what_they_hold() -> None:
    at = datetime(2026, 3, 4, 10, 30)  # noqa: DTZ001  cells have no zone
    given = workbook(
        [["title of the sheet"], ["sku ", "price", "day", "on", None], ["00123", 5.1, at, True], [None], ["b", 7, None]]
    )
    first, second = files.xlsx_rows(given, header_row=2)
    assert first == {"sku": "00123", "price": Decimal("5.1"), "day": at, "on": True}
    assert second == {"sku": "b", "price": 7, "day": None, "on": None}


def test_cells_that_hold_no_value_are_named() -> None:
    row, wide = files.xlsx_rows(workbook([["a", "b"], ["#N/A", 1], [1, 2, 3]]))
    assert isinstance(row, dict)
    assert isinstance(row["a"], Unreadable)
    assert isinstance(wide, Unreadable)


def test_one_of_several_sheets_must_be_named() -> None:
    given = workbook([["a"], [1]], [["b"], [2]])
    assert list(files.xlsx_rows(given, sheet="S2")) == [{"b": 2}]
    for sheet, said in ((None, "has 2 sheets"), ("S3", "no sheet 'S3'")):
        with pytest.raises(Unreadable, match=said):
            _all(files.xlsx_rows(given, sheet=sheet))


def test_workbook_that_is_none_is_refused() -> None:
    for body in (b"<html>", zipped(a=b"x")):
        with pytest.raises(Unreadable):
            _all(files.xlsx_rows(download(body)))


def _all(rows: Iterator[Any]) -> list[Any]:
    return list(rows)
