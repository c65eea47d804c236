"""A typed view over `latest` for each record type: what people query.

`latest_<source>` for a source with one record type, `latest_<source>__<type>` for one with several. Made when the
definition changed. A value that an older extractor version stored in another form is null, never an error: one old row
must not take the whole view away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString

from psycopg import errors, sql

from collector_assets.columns import Column
from collector_assets.database import Connection, statements
from collector_assets.errors import ContractError

SQL: Final = statements("views")
MAX_NAME: Final = 63
"""Bytes of a Postgres identifier; longer ones would be cut without a word, and meet."""

OURS: Final = (
    "entity", "collected_at", "source_revised_at", "first_seen_at", "last_seen_at", "changed_at", "removed_at",
    "window_start", "page_id", "extractor_version",
)  # fmt: skip
"""Columns of `latest` that follow the record's own; where a record has one of that name, ours gets a leading _."""

CASTS: Final[Mapping[str, LiteralString]] = {
    "text": "data ->> {name}",
    "jsonb": "data -> {name}",
    "boolean": "CASE WHEN jsonb_typeof(data -> {name}) = 'boolean' THEN (data ->> {name})::boolean END",
    "numeric": "CASE WHEN jsonb_typeof(data -> {name}) = 'number' THEN (data ->> {name})::numeric END",
    "double precision": (
        "CASE WHEN jsonb_typeof(data -> {name}) = 'number' THEN (data ->> {name})::double precision END"
    ),
    "bigint": (
        "CASE WHEN jsonb_typeof(data -> {name}) = 'number' AND (data ->> {name}) ~ '^-?[0-9]{{1,19}}$'"
        " AND (data ->> {name})::numeric BETWEEN -9223372036854775808 AND 9223372036854775807"
        " THEN (data ->> {name})::bigint END"
    ),
    "timestamptz": (
        "CASE WHEN jsonb_typeof(data -> {name}) = 'string'"
        " AND (data ->> {name}) ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9:.]+[+]00:00$'"
        " THEN (data ->> {name})::timestamptz END"
    ),
    "date": (
        "CASE WHEN jsonb_typeof(data -> {name}) = 'string'"
        " AND (data ->> {name}) ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$' THEN (data ->> {name})::date END"
    ),
}


def name_of(source: str, record_type: str, *, is_only_type: bool) -> str:
    """The view's name; a long one is cut and made unique again."""
    return bounded(f"latest_{source}" if is_only_type else f"latest_{source}__{record_type}")


def beside(ours: Sequence[str], columns: Sequence[Column]) -> dict[str, str]:
    """What our columns are called beside a record's own."""
    taken = {column.name for column in columns}
    return {name: f"_{name}" if name in taken else name for name in ours}


def refresh(
    connection: Connection, *, source: str, columns: Mapping[str, Sequence[Column]]
) -> tuple[tuple[str, ...], str | None]:
    """Make the views of a source's record types what they should be: their names, and what is in the way of one.

    Something that was built on a view (another view) keeps it from changing; then the old one stays, and says so.
    """
    names, problem = [], None
    for record_type, of_type in columns.items():
        name = name_of(source, record_type, is_only_type=len(columns) == 1)
        problem = _refresh_one(connection, name, source, record_type, of_type) or problem
        names.append(name)
    return tuple(names), problem


def bounded(name: str) -> str:
    """An identifier that fits, and is still its own."""
    if len(name.encode()) <= MAX_NAME:
        return name
    return (
        name.encode()[: MAX_NAME - 9].decode(errors="ignore")
        + "_"
        + hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    )


def _refresh_one(
    connection: Connection, name: str, source: str, record_type: str, columns: Sequence[Column]
) -> str | None:
    select = _select(source, record_type, columns)
    text = select.as_string(connection)
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    owner = f"collector: {source}.{record_type}"
    comment = f"{owner}, newest observation of each entity [{digest}]"
    found: Any = connection.execute(SQL["find_view"], {"name": name}).fetchone()
    if found and found[0] == comment:
        return None
    if found and not str(found[0]).startswith(owner + ","):
        raise ContractError(
            "name", f"the view {name} is already there and is not of {owner.removeprefix('collector: ')}", source=source
        )
    try:
        with connection.transaction():  # a savepoint: what is in the way must not end the caller's transaction
            connection.execute(sql.SQL("DROP VIEW IF EXISTS {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("CREATE VIEW {} AS {}").format(sql.Identifier(name), select))
            connection.execute(sql.SQL("COMMENT ON VIEW {} IS {}").format(sql.Identifier(name), sql.Literal(comment)))
    except errors.DependentObjectsStillExist as error:
        return f"view {name} stays as it was: {error.diag.message_detail or error}"
    return None


def _select(source: str, record_type: str, columns: Sequence[Column]) -> sql.Composed:
    own = [
        sql.SQL("{} AS {}").format(
            sql.SQL(CASTS[column.type.sql]).format(name=sql.Literal(column.name)),
            sql.Identifier(bounded(column.name)),
        )
        for column in columns
    ]
    named = beside(OURS, columns)
    ours = [sql.SQL("{} AS {}").format(sql.Identifier(name), sql.Identifier(named[name])) for name in OURS]
    return sql.SQL("SELECT {} FROM latest WHERE source = {} AND record_type = {}").format(
        sql.SQL(", ").join(own + ours), sql.Literal(source), sql.Literal(record_type)
    )
