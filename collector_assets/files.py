"""Rows of downloads: CSV, JSON lines, XLSX, and what is packed in ZIP or gzip. Streamed, bounded, and never guessed.

Text stays text: `00123` is no number and `NA` no missing value; types come from the schema. A row that does not fit is
yielded as `Unreadable`: hand it on, and it becomes a reject. A file that cannot be read at all raises it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, Final

from collector_assets import charset
from collector_assets.page import Page
from collector_assets.record import Unreadable
from collector_assets.storable import REPLACEMENT

MAX_UNPACKED: Final = 2**30
"""Bytes that a packed file may have; `limit` says otherwise."""
MAX_FIELD: Final = 16 * 2**20
"""Characters of one CSV field: a quote that never ends must not swallow a whole file."""
MAX_LINE: Final = 16 * 2**20
SNIFFED: Final = 2**20
"""Bytes from which the encoding is seen where nobody declares it."""

Row = Mapping[str, str]


def csv_rows(
    of: Page | BinaryIO,
    *,
    delimiter: str = ",",
    columns: Sequence[str] | None = None,
    skip: int = 0,
    encoding: str | None = None,
) -> Iterator[Row | Unreadable]:
    """The rows of a CSV file (RFC 4180) by its header, all text.

    `columns` names them where there is no header; `skip` passes over lines in front; `encoding` is for a stream that is
    no page. Quotes that do not close, a header with an empty or repeated name raise; a row of another length is yielded
    as `Unreadable`, and so is one with characters that the encoding could not give.
    """
    csv.field_size_limit(MAX_FIELD)
    lines = _lines(of, encoding)
    for _ in range(skip):
        next(lines, None)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    names = list(columns) if columns is not None else _header(_next(reader, skip))
    while (values := _next(reader, skip)) is not None:
        if not values:  # an empty line
            continue
        if len(values) != len(names):
            yield Unreadable("malformed", f"line {skip + reader.line_num} has {len(values)} fields, not {len(names)}")
        elif any(REPLACEMENT in value for value in values):
            yield Unreadable("malformed", f"line {skip + reader.line_num} is not in the encoding of the file")
        else:
            yield dict(zip(names, values, strict=True))


def json_lines(of: Page | BinaryIO, *, encoding: str | None = None) -> Iterator[Any]:
    """The value of each line that is not empty; a line that is no JSON is yielded as `Unreadable`."""
    for number, line in enumerate(_lines(of, encoding), start=1):
        if line.strip():
            try:
                yield json.loads(line, parse_float=Decimal)
            except (ValueError, RecursionError) as error:
                yield Unreadable("malformed", f"line {number} is not JSON: {error}")


def xlsx_rows(
    of: Page | BinaryIO, *, sheet: str | None = None, header_row: int = 1, limit: int = MAX_UNPACKED
) -> Iterator[dict[str, Any] | Unreadable]:
    """The rows of a workbook's only sheet, or of the one that is named, by the names in `header_row`.

    Values are what the cells hold: text, int, Decimal, bool, datetime, None; of formulas what was last computed. Cells
    with an error (`#N/A`) are `Unreadable`. Needs the extra `xlsx`.
    """
    book = _workbook(_stream(of), limit)
    try:
        rows = _sheet(book, sheet).iter_rows(min_row=header_row)
        header = next(rows, None)
        names = _header(None if header is None else _without_tail([_text(cell.value) for cell in header]))
        for cells in rows:
            row = [_cell(cell) for cell in cells]
            if any(value is not None for value in row):
                yield _fitted(row, names, cells)
    finally:
        book.close()


def unzip(of: Page | BinaryIO, name: str = "*", *, limit: int = MAX_UNPACKED) -> BinaryIO:
    """The only member of a ZIP file whose name fits (`*.csv`), as a stream; more than `limit` bytes raise."""
    archive = _archive(_stream(of), limit)
    fitting = [info for info in archive.infolist() if not info.is_dir() and fnmatchcase(info.filename, name)]
    if len(fitting) != 1:
        raise Unreadable(
            "ambiguous" if fitting else "missing", f"{name!r} fits {len(fitting)} files of the archive, not exactly 1"
        )
    try:
        return _Bounded(archive.open(fitting[0]), fitting[0].file_size)
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:  # encrypted, an unknown method
        raise Unreadable("malformed", f"{fitting[0].filename}: {error}") from None


def gunzip(of: Page | BinaryIO, *, limit: int = MAX_UNPACKED) -> BinaryIO:
    """A file that is itself gzip (`.csv.gz`), unpacked as it is read; more than `limit` bytes raise."""
    return _Bounded(gzip.GzipFile(fileobj=_stream(of)), limit)


# --- Streams ---------------------------------------------------------------------------------------------------------


class _Bounded(io.BufferedReader):
    """A stream that ends in `Unreadable` beyond its bound, and where its packing is damaged."""

    def __init__(self, packed: Any, limit: int) -> None:
        super().__init__(_Counted(packed, limit))


class _Counted(io.RawIOBase):
    def __init__(self, packed: Any, limit: int) -> None:
        self._packed, self._left = packed, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            piece = self._packed.read(len(buffer))
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
            raise Unreadable("malformed", f"the packed file is cut or damaged: {error}") from None
        self._left -= len(piece)
        if self._left < 0:
            raise Unreadable("malformed", "the packed file is larger than its bound")
        buffer[: len(piece)] = piece
        return len(piece)


def _stream(of: Page | BinaryIO) -> BinaryIO:
    return of.open() if isinstance(of, Page) else of


def _archive(stream: BinaryIO, limit: int) -> zipfile.ZipFile:
    """The ZIP file, if what it says that it holds is within the bound; `zipfile` reads no more than is said."""
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise Unreadable("malformed", f"not a ZIP file: {error}") from None
    total = sum(info.file_size for info in archive.infolist())
    if total > limit:
        raise Unreadable("malformed", f"the ZIP file unpacks to {total:,} bytes; at most {limit:,} are taken")
    return archive


def _lines(of: Page | BinaryIO, encoding: str | None) -> Iterator[str]:
    """The lines, their ends kept, without NUL and byte order mark; what the encoding cannot give is U+FFFD."""
    buffered = io.BufferedReader(_stream(of), SNIFFED)  # pyright: ignore[reportArgumentType]  any binary stream will do
    head = buffered.peek(SNIFFED)
    if isinstance(of, Page):
        codec = charset.sniffed_codec(head, of.headers.get("content-type", ""), encoding=encoding or of.known_encoding)
    else:
        codec = charset.sniffed_codec(head, encoding=encoding)
    text = io.TextIOWrapper(buffered, codec, "whatwg", newline="")
    is_first = True
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE and not line.endswith(("\n", "\r")):
            raise Unreadable("malformed", f"a line of more than {MAX_LINE:,} characters")
        yield (line.removeprefix("\ufeff") if is_first else line).replace("\0", "")
        is_first = False


# --- Rows ------------------------------------------------------------------------------------------------------------


def _next(reader: Any, skipped: int) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise Unreadable("malformed", f"line {skipped + reader.line_num}: {error}") from None


def _header(names: Sequence[str] | None) -> list[str]:
    if not names:
        raise Unreadable("missing", "the file has no header")
    bare = [name.strip() for name in names]
    if "" in bare or len(set(bare)) < len(bare):
        raise Unreadable("ambiguous", f"the names of the columns are empty or repeat: {', '.join(bare)[:200]}")
    return bare


def _workbook(stream: BinaryIO, limit: int) -> Any:
    from openpyxl import load_workbook  # noqa: PLC0415  the extra; pages of other kinds do not need it

    _archive(stream, limit)
    stream.seek(0)
    try:
        return load_workbook(stream, read_only=True, data_only=True, keep_links=False)
    except Exception as error:  # noqa: BLE001  whatever it meets in a file that is no workbook
        raise Unreadable("malformed", f"not a workbook: {type(error).__name__}: {error}") from None


def _sheet(book: Any, name: str | None) -> Any:
    names = book.sheetnames
    if name is None and len(names) != 1:
        raise Unreadable("ambiguous", f"the workbook has {len(names)} sheets: {', '.join(names)[:200]}")
    if name is not None and name not in names:
        raise Unreadable("missing", f"the workbook has no sheet {name!r}; it has {', '.join(names)[:200]}")
    return book[name or names[0]]


def _without_tail(names: list[str]) -> list[str]:
    """Sheets are often wider than what is in them."""
    while names and not names[-1].strip():
        names.pop()
    return names


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _cell(cell: Any) -> Any:
    value = cell.value
    if cell.data_type == "e":
        return Unreadable("missing", f"the cell {cell.coordinate} holds the error {value}")
    if isinstance(value, float):
        return Decimal(repr(value))
    if value is None or isinstance(value, str | int | datetime | date | time | timedelta):
        return value if value != "" else None
    return str(value)


def _fitted(row: list[Any], names: Sequence[str], cells: Sequence[Any]) -> dict[str, Any] | Unreadable:
    """The row by the names; cells beyond the last name must be empty."""
    if any(value is not None for value in row[len(names) :]):
        line = next((cell.row for cell in cells if cell.value is not None), 0)
        return Unreadable("malformed", f"row {line} has cells beyond the {len(names)} columns of the header")
    return dict(zip(names, row + [None] * (len(names) - len(row)), strict=False))
