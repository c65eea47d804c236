"""Postgres: connections, transactions, named statements and migrations. Sync psycopg 3 only.

Rules of the write layer, kept here so that no store has to think of them: sessions run in UTC, a naive datetime is
refused, and whatever goes into `jsonb` is cleaned by `storable` on its way.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from types import TracebackType
from typing import Any, Final, LiteralString, Self, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

import psycopg
from psycopg import adapt, conninfo
from psycopg.abc import Buffer, DumperKey
from psycopg.types.array import BaseListDumper, ListDumper
from psycopg.types.datetime import DatetimeBinaryDumper, DatetimeDumper
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import ConnectionPool, PoolTimeout

from collector_assets.errors import ConfigurationError, DatabaseTooNew, DatabaseTooOld, DatabaseUnreachable
from collector_assets.storable import clean_json

Connection: TypeAlias = psycopg.Connection[tuple[object, ...]]
Result = TypeVar("Result")

SQL_FOLDER: Final[Traversable] = resources.files("collector_assets") / "sql"
MIGRATIONS: Final[Traversable] = SQL_FOLDER / "migrations"
MIGRATION_LOCK: Final = 0x636F6C6C6563  # "collec"; any constant that no other user of the database locks
DSN_SETTING: Final = "COLLECTOR_DSN"

# A peer that vanished (host lost, NAT entry dropped) is noticed in about a minute instead of two hours.
CONNECTION_DEFAULTS: Final = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


# --- Connections ---------------------------------------------------------------------------------------------------


def connect(dsn: str, *, application_name: str = "collector", autocommit: bool = False) -> Connection:
    """A connection of its own; `DatabaseUnreachable` says in one line where it wanted to go and what it heard."""
    info = connection_info(dsn, application_name=application_name)
    try:
        return psycopg.connect(info, autocommit=autocommit, context=ADAPTERS)
    except psycopg.OperationalError as error:
        raise DatabaseUnreachable(_unreachable(info, _first_line(error))) from error


def connection_info(dsn: str, *, application_name: str = "collector") -> str:
    """The DSN with our defaults under it and the session's time zone over it."""
    try:
        given = conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:  # its message quotes the DSN, password included
        raise ConfigurationError(
            DSN_SETTING, "not a Postgres DSN", "Write postgresql://user:password@host:5432/database"
        ) from None
    options = f"{given.pop('options', None) or ''} -c TimeZone=UTC".strip()
    values = CONNECTION_DEFAULTS | {"application_name": application_name} | given | {"options": options}
    return conninfo.make_conninfo("", **values)


def describe(dsn: str) -> str:
    """Database and host for messages; never the password."""
    values = conninfo.conninfo_to_dict(dsn)
    host = values.get("host") or values.get("hostaddr") or "the local socket"
    port = f":{values['port']}" if values.get("port") else ""
    return f'database "{values.get("dbname") or values.get("user") or "(default)"}" at {host}{port}'


def _unreachable(info: str, reason: str) -> str:
    password = str(conninfo.conninfo_to_dict(info).get("password") or "")
    message = f"cannot reach {describe(info)}: {reason}"
    return message.replace(password, "***") if password else message


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


# --- What we write: guards on every connection ---------------------------------------------------------------------


def _aware(moment: datetime) -> datetime:
    """The moment; a naive one is refused, because Postgres would read it in whatever zone the session has."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        problem = f"naive datetime {moment.isoformat()}: give it a time zone"
        raise ValueError(problem)
    return moment


class AwareDatetimeDumper(DatetimeDumper):
    """`timestamptz` as text; refuses naive values."""

    def upgrade(self, obj: datetime, format: adapt.PyFormat) -> Self:  # noqa: A002, ARG002  psycopg's parameter names
        return self

    def dump(self, obj: datetime) -> Buffer | None:
        return super().dump(_aware(obj))


class AwareDatetimeBinaryDumper(DatetimeBinaryDumper):
    """`timestamptz` in binary; refuses naive values."""

    def upgrade(self, obj: datetime, format: adapt.PyFormat) -> Self:  # noqa: A002, ARG002  psycopg's parameter names
        return self

    def dump(self, obj: datetime) -> Buffer | None:
        return super().dump(_aware(obj))


class ArrayDumper(ListDumper):
    """Flat lists of plain values as array literals; anything else as psycopg does it.

    Stores send batches as one array per column. psycopg dumps each element by itself in Python; at 256 rows of 24
    columns that was a ninth of a collecting worker's time, this is a fifth of it. Statements cast (`::bigint[]`).
    """

    def get_key(self, obj: list[Any], format: adapt.PyFormat) -> DumperKey:  # noqa: A002  psycopg's parameter name
        return self.cls if _writer_of(obj) else super().get_key(obj, format)

    def upgrade(self, obj: list[Any], format: adapt.PyFormat) -> BaseListDumper:  # noqa: A002
        return self if _writer_of(obj) else super().upgrade(obj, format)

    def dump(self, obj: list[Any]) -> Buffer | None:
        write = _writer_of(obj)
        if write is None:
            return super().dump(obj)
        return ("{" + ",".join(["NULL" if value is None else write(value) for value in obj]) + "}").encode()


def _writer_of(values: list[Any]) -> Callable[[Any], str] | None:
    """How to write every element, when all are of one plain type or missing."""
    kinds = set(map(type, values))
    kinds.discard(type(None))
    return PLAIN.get(kinds.pop()) if len(kinds) == 1 else None


def _write_text(text: str) -> str:
    if "\0" in text:  # the protocol would end the value there
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


PLAIN: Final[Mapping[type, Callable[[Any], str]]] = {
    int: str,
    bool: lambda value: "t" if value else "f",
    str: _write_text,
    bytes: lambda value: f'"\\\\x{value.hex()}"',
    datetime: lambda value: f'"{_aware(value).isoformat()}"',
}


def _json_dumps(value: object) -> str:
    return json.dumps(clean_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _json_loads(data: str | bytes) -> object:
    """Most JSON that we read is an empty object; the rest is UTF-8, and need not be asked what it is."""
    return {} if data == b"{}" else json.loads(data.decode() if isinstance(data, bytes) else data)


def _guarded_adapters() -> adapt.AdaptersMap:
    adapters = adapt.AdaptersMap(psycopg.adapters)
    adapters.register_dumper(datetime, AwareDatetimeBinaryDumper)
    adapters.register_dumper(datetime, AwareDatetimeDumper)
    adapters.register_dumper(list, ArrayDumper)
    set_json_dumps(_json_dumps, adapters)
    set_json_loads(_json_loads, adapters)
    return adapters


ADAPTERS: Final = _guarded_adapters()


# --- The pool ------------------------------------------------------------------------------------------------------

FRESH_S: Final = 1.0
"""After its last use a connection is taken without a round trip for so long, if nothing waits on its socket."""


def _has_something_to_say(connection: Connection) -> bool:
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


class Database:
    """A lazily opened pool of connections to one database; safe to share between threads.

    Idle connections are checked before use, so a restarted server or a reaped session costs a reconnect, not an error.
    """

    def __init__(
        self, dsn: str, *, max_connections: int = 8, application_name: str = "collector", patience_s: float = 30.0
    ) -> None:
        self.dsn = dsn
        self._application_name = application_name
        self._patience_s = patience_s
        self._opening = threading.Lock()
        self._used_at: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()
        self._info = connection_info(dsn, application_name=application_name)
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            self._info,
            kwargs={"context": ADAPTERS},
            min_size=0,
            max_size=max_connections,
            timeout=patience_s,
            check=self._check,
            open=False,
            name="collector",
        )

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection in one transaction: committed at the end, rolled back when an exception leaves the block.

        A connection lost inside the block raises `psycopg.OperationalError`: repeat the whole unit (`run` does).
        """
        connection = self._borrow()
        try:
            with connection.transaction():
                yield connection
        finally:
            self._used_at[connection] = time.monotonic()
            self._pool.putconn(connection)

    def run(self, unit: Callable[[Connection], Result], *, attempts: int = 5) -> Result:
        """The unit in one transaction, again from its start after a lost connection, a deadlock or a lock timeout.

        The unit must be idempotent: a connection lost during COMMIT leaves open whether it happened.
        """
        for attempt in range(1, attempts):
            try:
                with self.transaction() as connection:
                    return unit(connection)
            except psycopg.OperationalError:  # lost connections; deadlock, serialization and lock errors are subclasses
                time.sleep(random.uniform(0, min(2.0, 0.05 * 2**attempt)))  # noqa: S311  jitter, not a secret
        with self.transaction() as connection:
            return unit(connection)

    def connect(self, *, autocommit: bool = False) -> Connection:
        """A connection outside the pool (heartbeat, LISTEN); the caller closes it."""
        return connect(self.dsn, application_name=self._application_name, autocommit=autocommit)

    def close(self) -> None:
        """Close every connection of the pool; twice is fine."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _borrow(self) -> Connection:
        self._open()
        try:
            return self._pool.getconn()
        except PoolTimeout as error:
            reason = f"no connection within {self._patience_s:g} s, {self._pool.max_size} allowed"
            raise DatabaseUnreachable(_unreachable(self._info, reason)) from error

    def _check(self, connection: Connection) -> None:
        """Raise where the session has ended: then another connection is taken.

        A server that ends a session says so, or closes it: that waits on the socket, and a look costs no round trip.
        One that went without a word is asked, after a while.
        """
        is_fresh = time.monotonic() - self._used_at.get(connection, -math.inf) < FRESH_S
        if not is_fresh or _has_something_to_say(connection):
            ConnectionPool.check_connection(connection)

    def _open(self) -> None:
        if not self._pool.closed:
            return
        with self._opening:
            if self._pool.closed:
                # The pool itself would retry for its whole patience and then say only "timeout": ask once, directly.
                self.connect().close()
                self._pool.open()


def stream(
    connection: Connection, statement: LiteralString, values: Mapping[str, object], *, at_once: int
) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a query, so many at a time, however many there are: by a cursor of the open transaction."""
    with connection.cursor(name="stream") as cursor:
        cursor.execute(statement, values)
        while rows := cursor.fetchmany(at_once):
            yield cast("list[tuple[Any, ...]]", rows)


# --- Named statements ----------------------------------------------------------------------------------------------

NAME: Final = re.compile(r"^-- name: *(?P<name>\w+)[ \t]*$", re.MULTILINE)
COMMENT_LINE: Final = re.compile(r"^\s*--.*\n?", re.MULTILINE)


class Statements(dict[str, LiteralString]):
    """The statements of one store by name."""

    def __init__(self, store: str, found: dict[str, LiteralString]) -> None:
        super().__init__(found)
        self.store = store

    def __missing__(self, name: str) -> LiteralString:
        problem = f"sql/{self.store}.sql has no statement {name!r}; it has: {', '.join(sorted(self))}"
        raise KeyError(problem)


@cache
def statements(store: str) -> Statements:
    """The named statements of `sql/<store>.sql`.

    A statement starts at `-- name: x`; comment lines after it say what it does and are not sent (psycopg would read
    a percent sign in them as a placeholder). Each is led by `/* store.name */`, which shows in `pg_stat_activity`.
    """
    return parse_statements(store, (SQL_FOLDER / f"{store}.sql").read_text("utf-8"))


def parse_statements(store: str, text: str) -> Statements:
    """Split the text of a statement file; a name used twice or an empty statement is an error."""
    found: dict[str, LiteralString] = {}
    headers = list(NAME.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=True):
        name = header["name"]
        body = COMMENT_LINE.sub("", text[header.end() : end]).strip().removesuffix(";").rstrip()
        if not body or name in found:
            problem = f"sql/{store}.sql: statement {name!r} is {'there twice' if name in found else 'empty'}"
            raise ValueError(problem)
        # The one place where text becomes a literal: it comes from a file of this package, never from a value.
        found[name] = cast("LiteralString", f"/* {store}.{name} */ {body}")
    return Statements(store, found)


# --- Migrations ----------------------------------------------------------------------------------------------------

MIGRATION_FILE: Final = re.compile(r"(?P<version>\d{4})_(?P<name>\w+)\.sql")

CREATE_TABLE: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer PRIMARY KEY CHECK (version > 0),
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered SQL file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text as read, that is with universal line ends: a Windows checkout has the same."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations(folder: Traversable = MIGRATIONS) -> list[Migration]:
    """The migrations in order; a gap, a double number or a strange file name is an error."""
    found: list[Migration] = []
    for file in folder.iterdir():
        if not file.name.endswith(".sql"):
            continue
        match = MIGRATION_FILE.fullmatch(file.name)
        if match is None:
            raise _migration_problem(file.name, "is not named NNNN_name.sql")
        found.append(Migration(version=int(match["version"]), name=match["name"], sql=file.read_text("utf-8")))
    found.sort(key=lambda migration: migration.version)
    for expected, migration in enumerate(found, start=1):
        if migration.version != expected:
            raise _migration_problem(f"{migration.version:04}_{migration.name}.sql", f"should be number {expected:04}")
    return found


def migrate(dsn: str, *, folder: Traversable = MIGRATIONS) -> list[int]:
    """Bring the database up to this release; the versions applied now (none when it was current).

    Safe to call from many processes at once: the others wait at the advisory lock and then find nothing to do.
    A pooler in transaction mode cannot hold that lock: use a direct connection.
    """
    known = load_migrations(folder)
    with connect(dsn, application_name="collector-migrate", autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        connection.execute(CREATE_TABLE)
        _refuse_foreign_history(connection, known)
        missing = known[schema_version(connection) :]
        for migration in missing:
            _apply(connection, migration)
    return [migration.version for migration in missing]


def schema_version(connection: psycopg.Connection) -> int:
    """The newest migration applied; 0 for a database that never saw one."""
    if connection.execute("SELECT to_regclass('schema_migrations') IS NULL").fetchone() == (True,):
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_migrations").fetchone()
    return cast("tuple[int]", row)[0]


def require_current(dsn: str, *, folder: Traversable = MIGRATIONS) -> None:
    """Refuse a database that is not at exactly this release's version."""
    code = len(load_migrations(folder))
    with connect(dsn) as connection:
        database = schema_version(connection)
    if database > code:
        raise DatabaseTooNew(database=database, code=code)
    if database < code:
        raise DatabaseTooOld(database=database, code=code)


def _refuse_foreign_history(connection: psycopg.Connection, known: Sequence[Migration]) -> None:
    """What was applied must be what this release would have applied."""
    database = schema_version(connection)
    if database > len(known):
        raise DatabaseTooNew(database=database, code=len(known))
    applied = dict(connection.execute("SELECT version, checksum FROM schema_migrations").fetchall())
    for migration in known[:database]:
        if applied.get(migration.version) != migration.checksum:
            raise _migration_problem(
                f"{migration.version:04}_{migration.name}.sql", "is not the text that was applied to this database"
            )


def _apply(connection: psycopg.Connection, migration: Migration) -> None:
    with connection.transaction():
        connection.execute(migration.sql.encode())  # bytes and no parameters: several statements, `%` untouched
        connection.execute(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
            [migration.version, migration.name, migration.checksum],
        )


def _migration_problem(file: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"sql/migrations/{file}", problem, "Restore the file, and add a new one for a change")
