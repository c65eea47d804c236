"""Connections, the pool and the guards of the write layer, on a real server."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest
from psycopg import conninfo
from psycopg.types.json import Jsonb

from collector_assets import database as db
from collector_assets import embedded
from collector_assets.database import Database
from collector_assets.errors import ConfigurationError, DatabaseUnreachable

NAIVE = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001  the point of the test


@pytest.fixture
def table(database: Database) -> Iterator[Database]:
    """A database with one table of its own."""
    with database.transaction() as connection:
        connection.execute("CREATE TABLE scratch (id int PRIMARY KEY, at timestamptz, name text, data jsonb)")
    yield database
    with database.transaction() as connection:
        connection.execute("DROP TABLE scratch")


def rows(database: Database) -> list[tuple[object, ...]]:
    with database.transaction() as connection:
        return connection.execute("SELECT * FROM scratch ORDER BY id").fetchall()


def end_sessions(dsn: str) -> None:
    with db.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


# --- Connecting ----------------------------------------------------------------------------------------------------


def test_a_session_runs_in_utc_and_says_who_it_is(dsn: str) -> None:
    with db.connect(dsn, application_name="collector-x") as connection:
        row = connection.execute("SELECT current_setting('TimeZone'), current_setting('application_name')").fetchone()
        assert row == ("UTC", "collector-x")


def test_options_of_the_dsn_are_kept(dsn: str) -> None:
    given = conninfo.make_conninfo(dsn, options="-c work_mem=5MB -c TimeZone=Europe/Berlin")
    with db.connect(given) as connection:
        row = connection.execute("SELECT current_setting('work_mem'), current_setting('TimeZone')").fetchone()
        assert row == ("5MB", "UTC")


def test_an_unreachable_server_is_one_line_without_the_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    dsn = f"postgresql://alice:hush-hush@127.0.0.1:{port}/prices"
    for attempt in (lambda: db.connect(dsn), lambda: Database(dsn).transaction().__enter__()):
        with pytest.raises(DatabaseUnreachable) as caught:
            attempt()
        message = str(caught.value)
        assert message.startswith(f'cannot reach database "prices" at 127.0.0.1:{port}: ')
        assert "\n" not in message
        assert "hush" not in message


@pytest.mark.parametrize("dsn", ["nonsense hush-hush", "postgresql+psycopg2://alice:hush-hush@host/prices"])
def test_what_is_no_dsn_is_refused_without_quoting_it(dsn: str) -> None:
    with pytest.raises(ConfigurationError, match="COLLECTOR_DSN: not a Postgres DSN") as caught:
        db.connect(dsn)
    assert "hush" not in str(caught.value)


# --- Transactions and the pool -------------------------------------------------------------------------------------


def test_a_transaction_is_all_or_nothing(table: Database) -> None:
    with pytest.raises(ZeroDivisionError), table.transaction() as connection:
        connection.execute("INSERT INTO scratch (id) VALUES (1)")
        _ = 1 / 0
    assert rows(table) == []


def test_a_statement_that_failed_in_a_savepoint_costs_nothing_else(table: Database) -> None:
    """DBQ-18."""
    with table.transaction() as connection:
        connection.execute("INSERT INTO scratch (id) VALUES (1)")
        with pytest.raises(psycopg.errors.UniqueViolation), connection.transaction():
            connection.execute("INSERT INTO scratch (id) VALUES (1)")
        assert connection.execute("SELECT count(*) FROM scratch").fetchone() == (1,)
    assert len(rows(table)) == 1


def test_idle_connections_that_were_ended_are_replaced_unnoticed(database: Database, dsn: str) -> None:
    """DBQ-22, rule 12."""
    # Mutation: drop `check=self._check`.
    for _ in range(3):
        with database.transaction() as one, database.transaction() as other:
            assert one.info.backend_pid != other.info.backend_pid
        end_sessions(dsn)
    with database.transaction() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_connections_that_were_idle_for_long_are_asked(
    database: Database, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 12: a server that went without a word has nothing to say on the socket."""
    # Mutation: `is_fresh = True`.
    monkeypatch.setattr(db, "_has_something_to_say", lambda _: False)
    monkeypatch.setattr(db, "FRESH_S", 0.0)
    with database.transaction():
        pass
    end_sessions(dsn)
    with database.transaction() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_unit_whose_connection_was_lost_runs_again_from_its_start(table: Database, dsn: str) -> None:
    """DBQ-22."""
    # Mutation: run() with attempts=1.
    calls: list[int] = []

    def unit(connection: db.Connection) -> str:
        connection.execute("INSERT INTO scratch (id) VALUES (1)")
        calls.append(connection.info.backend_pid)
        if len(calls) == 1:
            end_sessions(dsn)
        connection.execute("INSERT INTO scratch (id) VALUES (2)")
        return "done"

    assert table.run(unit) == "done"
    assert len(calls) == 2
    assert len(rows(table)) == 2


def test_a_deadlocked_unit_runs_again_and_nothing_is_lost(table: Database) -> None:
    """DBQ-08."""
    with table.transaction() as connection:
        connection.execute("INSERT INTO scratch (id, name) VALUES (1, ''), (2, '')")
    meet = threading.Barrier(2)
    first_tries: set[str] = set()

    def add(name: str, ids: tuple[int, int]) -> None:
        def unit(connection: db.Connection) -> None:
            connection.execute("SET LOCAL deadlock_timeout = '50ms'")
            for place, row in enumerate(ids):
                connection.execute("UPDATE scratch SET name = name || %s WHERE id = %s", [name, row])
                if place == 0 and name not in first_tries:
                    first_tries.add(name)
                    meet.wait(10)

        table.run(unit)

    threads = [threading.Thread(target=add, args=("a", (1, 2))), threading.Thread(target=add, args=("b", (2, 1)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {"".join(sorted(str(row[2]))) for row in rows(table)} == {"ab"}


def test_an_error_of_the_unit_itself_is_not_repeated(table: Database) -> None:
    calls: list[int] = []

    def unit(connection: db.Connection) -> None:
        calls.append(1)
        connection.execute("INSERT INTO scratch (id) VALUES (1), (1)")

    with pytest.raises(psycopg.errors.UniqueViolation):
        table.run(unit)
    assert len(calls) == 1


def test_an_exhausted_pool_says_so_instead_of_waiting_for_ever(dsn: str) -> None:
    with (
        Database(dsn, max_connections=1, patience_s=0.2) as pool,
        pool.transaction(),
        pytest.raises(DatabaseUnreachable, match=r"no connection within 0.2 s, 1 allowed"),
        pool.transaction(),
    ):
        pass


def test_nothing_is_connected_before_it_is_needed_nor_after_close(dsn: str) -> None:
    def sessions() -> int:
        with db.connect(dsn) as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lazy'").fetchone()
            return int(str(row and row[0]))

    with Database(dsn, application_name="lazy") as pool:
        assert sessions() == 0
        with pool.transaction():
            assert sessions() == 1
    with db.connect(dsn) as connection:
        connection.execute("SELECT pg_sleep(0.1)")
    assert sessions() == 0


def test_a_restarted_server_is_survived() -> None:
    """DBQ-22, the whole server."""
    with tempfile.TemporaryDirectory(prefix="collector-test-restart-") as folder:
        state = Path(folder)
        server = embedded.start(state, durable=False)
        try:
            with Database(server.dsn) as pool:
                with pool.transaction() as connection:
                    connection.execute("CREATE TABLE kept (id int)")
                embedded.stop(state)
                embedded.start(state, durable=False)
                with pool.transaction() as connection:
                    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
        finally:
            embedded.stop(state)


# --- Guards of the write layer -------------------------------------------------------------------------------------


def test_a_naive_datetime_is_refused_wherever_it_is_bound(table: Database) -> None:
    """DBQ-20."""
    # Mutation: drop either register_dumper line in _guarded_adapters().
    aware = datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    for parameter in (NAIVE, [aware, NAIVE]):
        for placeholder in ("%s", "%t", "%b"):
            with (
                pytest.raises(ValueError, match="naive datetime 2026-03-29T02:30:00"),
                table.transaction() as connection,
            ):
                connection.execute(f"SELECT {placeholder}".encode(), [parameter])
    with (
        pytest.raises(ValueError, match="naive datetime"),
        table.transaction() as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY scratch (id, at) FROM STDIN") as copy,
    ):
        copy.write_row((1, NAIVE))
    assert rows(table) == []


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=30)), ZoneInfo("Europe/Berlin")])
def test_an_aware_datetime_keeps_its_instant(table: Database, zone: timezone | ZoneInfo) -> None:
    moment = datetime(2026, 10, 25, 2, 30, tzinfo=zone)
    with table.transaction() as connection:
        connection.execute("INSERT INTO scratch (id, at) VALUES (1, %s)", [moment])
    stored = rows(table)[0][1]
    assert isinstance(stored, datetime)
    assert stored == moment.astimezone(UTC)
    assert stored.utcoffset() == timedelta(0)


def test_json_is_made_storable_on_its_way_in(table: Database) -> None:
    """DBQ-01, DBQ-03, DBQ-05: keys too, at any depth."""
    # Mutation: drop set_json_dumps in _guarded_adapters().
    dirty = {"a\0": {"b": ["x\0", "\ud83d", "\ud83d\ude00"]}, "v": float("nan"), "w": float("inf"), "n": 12.50}
    with table.transaction() as connection:
        connection.execute("INSERT INTO scratch (id, data) VALUES (1, %s)", [Jsonb(dirty)])
    assert rows(table)[0][3] == {"a": {"b": ["x", "\ufffd", "😀"]}, "v": None, "w": None, "n": 12.5}


@pytest.mark.parametrize("text", ["a\0b", "x\ud83d"])
def test_text_that_nobody_cleaned_is_refused_not_mangled(table: Database, text: str) -> None:
    with pytest.raises((psycopg.DataError, UnicodeEncodeError)), table.transaction() as connection:
        connection.execute("INSERT INTO scratch (id, name) VALUES (1, %s)", [text])
