"""Rows that a window's starts come from: a query, a file, or another source's `latest` (`Source.inputs`).

All are read before anything is written, each once, into files of our own: `start` may then walk through them as often
as it likes, in whatever order, with a million of them as with ten, while neither their database nor ours waits.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import IO, Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from collector_assets import database as db
from collector_assets import latest
from collector_assets.contract import FromFile, FromQuery, FromSource, Source, named_url
from collector_assets.database import Database
from collector_assets.errors import ConfigurationError, DatabaseUnreachable, InputUnavailable, InputUnreadable
from collector_assets.window import Window

Row = Mapping[str, Any]
AT_ONCE: Final = 2_000
SEPARATORS: Final = {".csv": ",", ".tsv": "\t"}
LINES: Final = (".jsonl", ".ndjson")
_WRITTEN: Final[dict[type, Callable[[Any], Any]]] = {
    datetime: datetime.isoformat, date: date.isoformat, time: time.isoformat, timedelta: lambda each: [
        each.days, each.seconds, each.microseconds
    ],
    Decimal: str, UUID: str, bytes: bytes.hex,
}  # fmt: skip
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "datetime": datetime.fromisoformat, "date": date.fromisoformat, "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts), "Decimal": Decimal, "UUID": UUID, "bytes": bytes.fromhex,
}  # fmt: skip
"""Values that JSON does not know, by the name of their type."""


class Rows:
    """The rows of one input, as often as they are wanted: `for row in rows`, `len(rows)`."""

    def __init__(self, name: str, rows: Iterable[Row], file: IO[bytes]) -> None:
        self._file, self._count, total = file, 0, 0
        for row in rows:
            file.write(json.dumps({column: _packed(name, column, row[column]) for column in row}).encode() + b"\n")
            self._count += 1
            total += int.from_bytes(hashlib.sha256(_canonical(row)).digest())
        self.digest = (total % 2**256).to_bytes(32)
        """Of the rows in any order: a query may give them in another one each time."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        at = 0
        for _ in range(self._count):
            self._file.seek(at)
            line = self._file.readline()
            at += len(line)
            yield {column: _unpacked(value) for column, value in json.loads(line).items()}


@contextmanager
def opened(source: Source, window: Window, database: Database) -> Iterator[dict[str, Rows]]:
    """Every input of the source, read; the rows are there until the block ends.

    Raises `InputUnreadable` and `InputUnavailable`.
    """
    with ExitStack() as files:
        yield {
            name: Rows(name, _rows(name, given, window, database), files.enter_context(tempfile.TemporaryFile()))
            for name, given in source.inputs.items()
        }


def _packed(name: str, column: str, value: object) -> Any:
    """A value as JSON keeps it: what is no plain scalar is a pair of its type's name and its content."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return ["dict", {str(key): _packed(name, column, each) for key, each in value.items()}]
    if isinstance(value, list | tuple):
        return ["list", [_packed(name, column, each) for each in value]]
    if (written := _WRITTEN.get(type(value))) is None:
        raise InputUnreadable(name, f"column {column!r} is a {type(value).__name__}: cast it to text in the query")
    return [type(value).__name__, written(value)]


def _unpacked(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "dict":
        return {key: _unpacked(each) for key, each in content.items()}
    if kind == "list":
        return [_unpacked(each) for each in content]
    return _READ[kind](content)


def _canonical(row: Row) -> bytes:
    return json.dumps(row, sort_keys=True, default=_plain, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _rows(name: str, given: FromQuery | FromFile | FromSource, window: Window, database: Database) -> Iterator[Row]:
    match given:
        case FromQuery():
            return _of_query(name, given, window)
        case FromFile():
            return _of_file(name, named_url(given.url, window))
        case FromSource():
            return _of_source(name, given, database)


# --- Another source --------------------------------------------------------------------------------------------------


def _of_source(name: str, given: FromSource, database: Database) -> Iterator[Row]:
    """The values of its entities; none before it was published is an error, not an empty list."""
    with database.transaction() as connection:
        if not latest.is_published(connection, given.source):
            problem = f"nothing of source {given.source!r} is in `latest` yet: collect it first"
            raise InputUnreadable(name, problem)
        for rows in latest.values(connection, given.source, given.record, at_once=AT_ONCE):
            for (data,) in rows:
                yield data


# --- A query ---------------------------------------------------------------------------------------------------------


def _of_query(name: str, given: FromQuery, window: Window) -> Iterator[Row]:
    """Rows as the driver gives them, by a cursor on their server, in a transaction that can only read."""
    dsn = given.dsn.read()
    if dsn is None:
        raise InputUnreadable(name, f"{given.dsn.name} is not set: it holds the DSN")
    values = {"window_start": window.start, "window_end": window.end, "window_key": window.key}
    try:
        with db.connect(dsn, application_name="collector input") as connection:
            connection.read_only = True
            with connection.cursor(name="input", row_factory=dict_row) as cursor:
                # Without a name in it the text is sent as it is: a `%` of LIKE needs no doubling.
                cursor.execute(given.sql.encode(), values if "%(" in given.sql else None)
                while rows := cursor.fetchmany(AT_ONCE):
                    yield from rows
    except ConfigurationError:  # it speaks of our own database
        raise InputUnreadable(name, f"{given.dsn.name} holds no Postgres DSN") from None
    except DatabaseUnreachable as error:
        raise InputUnavailable(name, str(error)) from error
    except psycopg.OperationalError as error:
        raise InputUnavailable(name, _first_line(error)) from error
    except psycopg.Error as error:
        raise InputUnreadable(name, _first_line(error)) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


# --- A file ----------------------------------------------------------------------------------------------------------


def _of_file(name: str, url: str) -> Iterator[Row]:
    """CSV or TSV with a line of names, or JSON Lines; gzipped or not; on this machine or wherever fsspec reaches."""
    plain = url.removesuffix(".gz")
    try:
        with _open(name, url) as raw, io.TextIOWrapper(_unzipped(raw), encoding="utf-8-sig", newline="") as text:
            if plain.endswith(LINES):
                yield from _json_lines(text)
            else:
                yield from _table(text, SEPARATORS.get(plain[-4:].lower(), ","))
    except FileNotFoundError:
        raise InputUnreadable(name, f"{url}: no such file") from None
    except (OSError, EOFError) as error:
        raise InputUnavailable(name, f"{url}: {error}") from error
    except (ValueError, csv.Error) as error:
        raise InputUnreadable(name, f"{url}: {error}") from error


def _open(name: str, url: str) -> IO[bytes]:
    if "://" not in url:
        return open(url, "rb")  # noqa: PTH123  the caller closes it
    import fsspec  # noqa: PLC0415  only where a file is elsewhere

    try:
        file = fsspec.open(url, "rb")
        assert isinstance(file, fsspec.core.OpenFile)  # noqa: S101  one address, one file
        return file.open()
    except ImportError as error:  # the protocol's own package, such as s3fs
        raise InputUnreadable(name, f"{url}: {error}; for s3:// install the extra `s3`") from error


def _unzipped(raw: IO[bytes]) -> IO[bytes]:
    buffered = io.BufferedReader(raw) if not hasattr(raw, "peek") else raw  # type: ignore[arg-type]
    is_gzip = buffered.peek(2)[:2] == b"\x1f\x8b"  # type: ignore[union-attr]
    return gzip.GzipFile(fileobj=buffered) if is_gzip else buffered  # type: ignore[return-value]


def _table(text: IO[str], separator: str) -> Iterator[Row]:
    lines = csv.reader(text, delimiter=separator, strict=True)
    names = [each.strip() for each in next(lines, [])]
    if not all(names) or len(set(names)) != len(names):
        raise ValueError(f"the first line must name each column once, not {names}")
    for cells in lines:
        if not cells:
            continue
        if len(cells) != len(names):
            raise ValueError(f"line {lines.line_num}: {len(cells)} cells; the first line names {len(names)} columns")
        yield dict(zip(names, cells, strict=True))


def _json_lines(text: IO[str]) -> Iterator[Row]:
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError(f"line {number} is no JSON object")  # noqa: TRY004  the file is wrong, not a call
        yield row
