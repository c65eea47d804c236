"""Use case: a table as a file, whole or not at all: CSV, JSON Lines or Parquet by the name's suffix.

CSV is UTF-8 with a header; text, times and JSON are in quotes, numbers are not; a missing value is nothing between
commas, where an empty text is `""` (what Postgres' COPY and DuckDB read). JSON Lines: an object a row, numbers exact.
Parquet has decimals as decimals and times in microseconds with their zone; lists and objects are JSON text in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from collector_assets import columns
from collector_assets.columns import Column, text_json
from collector_assets.errors import ConfigurationError
from collector_assets.tables import Row, Table

if TYPE_CHECKING:
    import pyarrow as pa

OPTION: Final = "--to"
MOST_DIGITS: Final = 76
"""Of a decimal in Parquet, as Arrow has them."""
Write = Callable[[Table, IO[bytes]], int]
"""Writes every row; how many there were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A file to be, and how it is written."""

    path: Path
    write: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What is in the file."""

    path: Path
    rows: int
    columns: tuple[str, ...]
    size: int
    """Bytes."""
    misfits: dict[str, int]
    """Values that an older extractor version stored in another form and that are missing here, by column."""


def target(path: Path) -> Target:
    """The file that can be written; `ConfigurationError` says what is in the way."""
    if path.suffix not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise ConfigurationError(OPTION, f"{path.name!r} does not say what it shall be", f"End the name in {known}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        problem = f"{path} is a folder" if path.is_dir() else f"there is no folder {path.absolute().parent}"
        raise ConfigurationError(OPTION, problem, "Name a file in a folder that exists")
    if path.suffix == ".parquet":
        _require_pyarrow()
    return Target(path=path, write=_WRITERS[path.suffix])


def write(table: Table, to: Target) -> Exported:
    """The table in the file, in place of an older one of this name; on an error the older one stays."""
    try:
        with _whole(to.path) as file:
            rows = to.write(table, file)
            size = file.tell()
    except OSError as error:
        said = error.strerror or error
        raise ConfigurationError(OPTION, f"{to.path} cannot be written ({said})", "Name a writable file") from error
    names = tuple(column.name for column in table.columns)
    return Exported(path=to.path, rows=rows, columns=names, size=size, misfits=dict(table.misfits))


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when it is complete and durable."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        assert part.stat().st_size == size  # noqa: S101  nobody else writes it
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


# --- CSV and JSON Lines ----------------------------------------------------------------------------------------------


def _csv(table: Table, file: IO[bytes]) -> int:
    file.write((",".join(_quoted(column.name) for column in table.columns) + "\n").encode())
    return _lines(table, file, _csv_line)


def _csv_line(all_: Sequence[Column], row: Row) -> str:
    return ",".join("" if value is None else _csv_value(column, value) for column, value in zip(all_, row, strict=True))


def _csv_value(column: Column, value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    written = column.type.json(value)
    return _quoted(written) if column.type is columns.JSON else written


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _jsonl(table: Table, file: IO[bytes]) -> int:
    return _lines(table, file, _json_line)


def _json_line(all_: Sequence[Column], row: Row) -> str:
    members = (
        f"{text_json(column.name)}:{'null' if value is None else column.type.json(value)}"
        for column, value in zip(all_, row, strict=True)
    )
    return "{" + ",".join(members) + "}"


def _lines(table: Table, file: IO[bytes], line: Callable[[Sequence[Column], Row], str]) -> int:
    rows = 0
    for batch in table.batches():
        file.write("".join([line(table.columns, row) + "\n" for row in batch]).encode())
        rows += len(batch)
    return rows


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _require_pyarrow() -> Any:
    try:
        from pyarrow import parquet  # noqa: PLC0415  an extra
    except ImportError as error:
        fix = "Install it with pip install 'collector-assets[parquet]', or write .csv or .jsonl"
        raise ConfigurationError(OPTION, "Parquet needs pyarrow, which is not installed", fix) from error
    return parquet


def _parquet(table: Table, file: IO[bytes]) -> int:
    import pyarrow as pa  # noqa: PLC0415

    rows, schema = 0, _arrow_schema(table)
    with _require_pyarrow().ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in table.batches():
            arrays = [
                pa.array([_arrow_value(column, value) for value in values], type=field.type)
                for column, field, values in zip(table.columns, schema, zip(*batch, strict=True), strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            rows += len(batch)
    return rows


def _arrow_schema(table: Table) -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415

    unlimited = _digits(table)
    by_type = {
        columns.TEXT: pa.string(), columns.JSON: pa.string(), columns.FLOAT: pa.float64(), columns.BOOL: pa.bool_(),
        columns.DATE: pa.date32(),
    }  # fmt: skip

    def arrow_type(at: int, column: Column) -> pa.DataType:
        if column.type is columns.TIME:
            return pa.timestamp("us", tz=str(column.time_zone))
        if column.type in by_type:
            return by_type[column.type]
        if column.type.frame in ("Int64", "UInt64"):
            return pa.int64() if column.type.frame == "Int64" else pa.uint64()
        precision, scale = column.type.digits or unlimited[at]
        if precision > MOST_DIGITS:
            problem = f"column {column.name!r} holds numbers of {precision} digits; Parquet takes {MOST_DIGITS}"
            raise ConfigurationError(OPTION, problem, "Write .csv or .jsonl")
        return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)

    return pa.schema([(column.name, arrow_type(at, column)) for at, column in enumerate(table.columns)])


def _digits(table: Table) -> dict[int, tuple[int, int]]:
    """Precision and scale of each decimal column whose schema sets no limit: what its values need."""
    found = {at: (1, 0) for at, column in enumerate(table.columns) if _is_unlimited(column)}
    for batch in table.batches() if found else ():
        for row in batch:
            for at, (whole, part) in found.items():
                if row[at] is not None:
                    needs = _digits_of(row[at])
                    found[at] = (max(whole, needs[0]), max(part, needs[1]))
    return {at: (whole + part, part) for at, (whole, part) in found.items()}


def _is_unlimited(column: Column) -> bool:
    return column.type.sql == "numeric" and column.type.frame == "object" and column.type.digits is None


def _digits_of(value: Decimal) -> tuple[int, int]:
    """Digits before the point and after it."""
    whole, _, part = columns.decimal_text(value).lstrip("-").partition(".")  # abs() would round to 28 digits
    return len(whole), len(part)


def _arrow_value(column: Column, value: Any) -> Any:
    return column.type.json(value) if column.type is columns.JSON and value is not None else value


_WRITERS: Final[dict[str, Write]] = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
