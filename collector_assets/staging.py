"""What one run of `process` has read so far: temporary tables on its own connection, filled by COPY.

Lines are made where pages are read (also in child processes) and travel as bytes, so that a row is turned into text
once and never parsed again on its way into the database. The tables go when the connection closes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from typing import Any, Final, LiteralString

from psycopg.rows import dict_row

from collector_assets.database import Connection, statements
from collector_assets.facts import fact
from collector_assets.outcome import Outcome
from collector_assets.record import Record
from collector_assets.storable import clean_text
from collector_assets.validation import Candidate, Good, Origin, Reject

SQL: Final = statements("staging")
RAW_ROWS_AT_ONCE: Final = 2_000


@fact
class Piece:
    """A part of what was read: lines of COPY text for each table."""

    rows: bytes = b""
    raw: bytes = b""
    pages: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows of one entity that wait for `combine`, as they were yielded, in the order of requests and rows."""

    record_type: str
    entity: str
    rows: list[Any]
    origin: Origin
    """The newest page (the entity was last collected then), the smallest request id, late if any page was."""
    ordinal: int
    """Of the newest page's first row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What the staged rows come to."""

    pages: int
    unread: int
    """Good pages of extracting kinds that are in the window and were not read: they came in meanwhile."""
    yielded: int
    accounted: int
    """Rows that are a record, a reject, or part of a combined one; equal to `yielded`, or something was lost."""
    rejects: int
    duplicates: int
    cleaned: int
    """Records whose text had characters that cannot be stored."""
    records: Mapping[str, int]
    """By record type."""
    outcomes: Mapping[str, int]
    """Pages by outcome."""
    flags: Mapping[str, int]
    """Pages by what is doubtful about their bytes or text."""
    reasons: Sequence[Mapping[str, Any]]
    """Up to ten kinds of reasons, most frequent first: check, column, count and one value."""
    problems: Sequence[Mapping[str, Any]]
    """Up to ten reasons why pages could not be read, most frequent first: outcome, reason, pages and the URL of one."""

    @property
    def unreadable(self) -> int:
        """Pages that gave nothing to judge: the extractor failed, or found nothing where something must be."""
        return sum(number for outcome, number in self.outcomes.items() if outcome not in {"ok", "all_rejected"})


# --- Filling -------------------------------------------------------------------------------------------------------


def create(connection: Connection) -> None:
    """The empty tables."""
    for name in ("create_rows", "create_raw", "create_pages"):
        connection.execute(SQL[name])


def copy(connection: Connection, piece: Piece) -> None:
    """Add a piece."""
    _copy(connection, SQL["copy_rows"], piece.rows)
    _copy(connection, SQL["copy_raw"], piece.raw)
    _copy(connection, SQL["copy_pages"], piece.pages)


def discard(connection: Connection, page_ids: Sequence[int]) -> None:
    """Take back what was staged of these pages: whoever read them died on the way."""
    for name in ("discard_rows", "discard_raw", "discard_pages"):
        connection.execute(SQL[name], {"page_ids": list(page_ids)})


def good_line(row: Good, record_type: str, *, combined: bool = False) -> str:
    """A record."""
    origin = row.origin
    return _line(
        origin.page_id, origin.request_id, row.ordinal, record_type, row.entity, row.data, row.digest,
        row.source_revised_at, origin.collected_at, origin.late, combined, row.cleaned, None,
    )  # fmt: skip


def reject_line(row: Reject, *, combined: bool = False) -> str:
    """A reject."""
    origin = row.origin
    reasons = "[" + ",".join(reason.json() for reason in row.reasons) + "]"
    return _line(
        origin.page_id, origin.request_id, row.ordinal, row.record_type, row.entity, row.data, None,
        None, origin.collected_at, origin.late, combined, False, reasons,
    )  # fmt: skip


def raw_line(row: Candidate, record_type: str, entity: str) -> str:
    """A row that waits for `combine`; raises TypeError or ValueError when it cannot be kept as it is."""
    origin = row.origin
    data = json.dumps(_tagged(row.values))
    return _line(
        origin.page_id, origin.request_id, row.ordinal, record_type, entity, origin.collected_at, origin.late,
        origin.suspect, data,
    )  # fmt: skip


def page_line(
    *,
    page_id: int,
    request_id: int,
    may_be_empty: bool,
    moves: bool,
    yielded: int,
    flags: Iterable[str] = (),
    outcome: Outcome | None = None,
    reason: str | None = None,
) -> str:
    """A page that was read; `outcome` only when it could not be, `moves` when the verdict is its request's."""
    words = "{" + ",".join(sorted(flags)) + "}"
    return _line(page_id, request_id, may_be_empty, moves, yielded, words, outcome, reason and clean_text(reason)[:500])


def _copy(connection: Connection, statement: LiteralString, lines: bytes) -> None:
    if lines:
        with connection.cursor() as cursor, cursor.copy(statement) as copying:
            copying.write(lines)


def _line(*values: object) -> str:
    return "\t".join([_field(value) for value in values]) + "\n"


def _field(value: object) -> str:
    """COPY's text format (Postgres manual, COPY, "Text Format")."""
    match value:
        case None:
            return r"\N"
        case bool():
            return "t" if value else "f"
        case str():
            text = str(value)
            if "\\" in text:
                text = text.replace("\\", "\\\\")
            if text.isprintable():
                return text
            return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        case bytes():
            return r"\\x" + value.hex()
        case datetime():
            return value.isoformat()
        case _:
            return str(value)


# --- Rows that wait for `combine` ------------------------------------------------------------------------------------


def groups(connection: Connection) -> Iterator[Group]:
    """The rows of each entity; other statements may run on the connection between two of them."""
    cursor = connection.cursor("raw_rows", withhold=True)
    cursor.itersize = RAW_ROWS_AT_ONCE
    with cursor:
        cursor.execute(SQL["raw_rows_by_entity"])
        for (record_type, entity), rows in groupby(cursor, key=lambda row: (row[0], row[1])):
            yield _group(str(record_type), str(entity), list(rows))


def _group(record_type: str, entity: str, rows: list[Any]) -> Group:
    newest = max(rows, key=lambda row: (row[5], row[2]))
    return Group(
        record_type=record_type,
        entity=entity,
        rows=[_untagged(json.loads(row[8])) for row in rows],
        origin=Origin(
            page_id=newest[2],
            request_id=min(row[3] for row in rows),
            collected_at=newest[5],
            late=any(row[6] for row in rows),
            suspect=any(row[7] for row in rows),
        ),
        ordinal=min(row[4] for row in rows if row[2] == newest[2]),
    )


def _tagged(value: Any) -> Any:
    """The value as JSON from which exactly it comes back: `combine` gets what was yielded, decimals and times too."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"time": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case Record():
            return {"record": value.type, "values": _tagged(value.values)}
        case Mapping():
            return {"object": [[str(key), _tagged(item)] for key, item in value.items()]}
        case list() | tuple():
            return [_tagged(item) for item in value]
        case _:
            raise TypeError(
                f"{type(value).__name__} cannot wait for combine: yield text, numbers, times, lists or mappings"
            )


def _untagged(value: Any) -> Any:
    match value:
        case {"decimal": text}:
            return Decimal(text)
        case {"time": text}:
            return datetime.fromisoformat(text)
        case {"date": text}:
            return date.fromisoformat(text)
        case {"record": record_type, "values": values}:
            return Record(record_type, _untagged(values))
        case {"object": items}:
            return {key: _untagged(item) for key, item in items}
        case list():
            return [_untagged(item) for item in value]
        case _:
            return value


# --- Settling ------------------------------------------------------------------------------------------------------


def drop_failed(connection: Connection) -> None:
    """Rows of pages whose extraction failed do not count: half a page is no page."""
    for name in ("drop_rows_of_failed_pages", "drop_raw_of_failed_pages"):
        connection.execute(SQL[name])


def drop_repeated(connection: Connection, *, source: str, window_start: datetime) -> None:
    """What listings show again because their chain has started over is neither a record nor a duplicate."""
    values = {"source": source, "window_start": window_start}
    restarted: Any = connection.execute(SQL["has_restarted"], values).fetchone()
    if restarted[0]:
        connection.execute(SQL["drop_repeated_rows"], values)
        connection.execute(SQL["drop_repeated_raw"], values)


def settle(connection: Connection) -> None:
    """Judge what needs all rows: one record per entity (the smallest request id wins), and each page's outcome."""
    for name in ("index_raw", "index_records", "index_rejects", "analyze_rows", "mark_duplicates", "settle_pages"):
        connection.execute(SQL[name])


def totals(connection: Connection, *, source: str, window_start: datetime, kinds: Sequence[str]) -> Totals:
    """What the staged rows come to, once they are settled."""
    values = {"source": source, "window_start": window_start, "kinds": list(kinds)}
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(SQL["totals"], values).fetchone()
    assert row is not None  # noqa: S101  an aggregate has one row
    return Totals(**row)
