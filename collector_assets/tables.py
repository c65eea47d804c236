"""Use case: what was collected, as typed rows: `latest`, or history. For data frames and files; changes nothing.

The columns are the record's own, typed by its schema, then ours, called what the typed view calls them. Numbers stay
exact, ids stay text, times are instants with a zone. A value that an older extractor version stored in another form is
missing, as in the view, and counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from collector_assets import columns, latest, observations, views
from collector_assets.columns import Column, Type, Unfit
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.errors import BadSelection
from collector_assets.validation import Judge, series

if TYPE_CHECKING:
    import pandas as pd

AT_ONCE: Final = 5_000
Row = tuple[Any, ...]

OURS: Final[Mapping[str, Type]] = {
    "entity": columns.TEXT,
    "window_start": columns.TIME,
    "window_key": columns.TEXT,
    "collected_at": columns.TIME,
    "source_revised_at": columns.TIME,
    "first_seen_at": columns.TIME,
    "last_seen_at": columns.TIME,
    "changed_at": columns.TIME,
    "removed_at": columns.TIME,
    "late": columns.BOOL,
    "page_id": columns.integer(64, signed=True),
    "extractor_version": columns.TEXT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of one record type, as they were when it was opened; read as often as one likes while it is open."""

    columns: tuple[Column, ...]
    own: int
    """How many of the columns are the record's own; ours follow."""
    read: Callable[[], Iterator[list[Row]]]
    misfits: Counter[str] = field(default_factory=Counter)
    """Values that were stored in another form, by column, of the newest reading."""

    def batches(self) -> Iterator[list[Row]]:
        """Every row, some at a time, its values in the order of the columns."""
        self.misfits.clear()
        readers = [(column.name, self._reader(column)) for column in self.columns[: self.own]]
        for batch in self.read():
            yield [_row(readers, text, ours) for text, *ours in batch]

    def frame(self) -> pd.DataFrame:
        """All of it as a pandas frame, typed also when it is empty."""
        import pandas as pd  # noqa: PLC0415  half a second, which files without it need not pay

        found: list[list[Any]] = [[] for _ in self.columns]
        for batch in self.batches():
            for values, more in zip(found, zip(*batch, strict=True), strict=True):
                values.extend(more)
        named = zip(self.columns, found, strict=True)
        return pd.DataFrame({column.name: series(column, values) for column, values in named})

    def _reader(self, column: Column) -> Callable[[Any], Any]:
        """What makes a stored value one of the column's type."""
        if column.type is columns.JSON:
            return _with_floats
        read, is_text = column.type.read, column.type in (columns.TEXT, columns.TIME, columns.DATE)

        def reader(stored: Any) -> Any:
            if stored is None:
                return None
            try:
                return read(stored, coerce=is_text)  # of any other type a stored text is no value
            except Unfit:
                self.misfits[column.name] += 1
                return None

        return reader


@contextmanager
def opened(
    source: Source, database: Database, *, record_type: str | None = None, history: bool = False
) -> Iterator[Table]:
    """`latest` of a record type, or its observations that count; one moment's state, whatever is written meanwhile.

    Raises `BadSelection` for a record type that is not there, or is not named where there are several.
    """
    chosen = _chosen(source, record_type)
    own = Judge(source, chosen).columns
    store, names = (observations, observations.OURS) if history else (latest, views.OURS)
    ours = [_our(shown, OURS[name]) for name, shown in views.beside(names, own).items()]
    with database.transaction() as connection:
        _stand_still(connection)
        yield Table(
            columns=(*map(_zoned, own), *ours),
            own=len(own),
            read=lambda: store.rows(connection, source.name, chosen, at_once=AT_ONCE),
        )


def _row(readers: Sequence[tuple[str, Callable[[Any], Any]]], text: str, ours: Sequence[Any]) -> Row:
    stored = json.loads(text, parse_float=Decimal)
    return (*(read(stored.get(name)) for name, read in readers), *ours)


def _chosen(source: Source, record_type: str | None) -> str:
    known = ", ".join(source.schemas)
    if record_type is None and len(source.schemas) > 1:
        raise BadSelection(f"{source.name} has several record types: name one of {known}")
    chosen = record_type or next(iter(source.schemas))
    if chosen not in source.schemas:
        raise BadSelection(f"{source.name} has no record type {chosen!r}; it has {known}")
    return chosen


def _stand_still(connection: Connection) -> None:
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


def _zoned(column: Column) -> Column:
    """An instant without a zone would be read in whatever zone the reader is in."""
    return replace(column, time_zone=column.time_zone or UTC)


def _our(name: str, type_: Type) -> Column:
    return Column(name=name, type=type_, nullable=True, required=True, default=None, coerce=False, time_zone=UTC)


def _with_floats(stored: Any) -> Any:
    """Lists and objects as `json.loads` gives them."""
    match stored:
        case Decimal():
            return float(stored)
        case list():
            return [_with_floats(item) for item in stored]
        case dict():
            return {name: _with_floats(item) for name, item in stored.items()}
        case _:
            return stored
