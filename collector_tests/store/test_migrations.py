"""Migrations: in order, once, whole, by one process at a time, and never onto a database from the future."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from collector_assets import database as db
from collector_assets.errors import ConfigurationError, DatabaseTooNew, DatabaseTooOld

FIRST = "CREATE TABLE apples (id int); CREATE TABLE pears (id int);"
SECOND = "ALTER TABLE apples ADD COLUMN share text DEFAULT '50 %';"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two migrations of a small schema."""
    write(tmp_path, "0001_fruit.sql", FIRST)
    write(tmp_path, "0002_share.sql", SECOND)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, "utf-8")


def history(dsn: str) -> list[tuple[object, ...]]:
    with db.connect(dsn) as connection:
        return connection.execute("SELECT version, name FROM schema_migrations ORDER BY version").fetchall()


def test_migrations_are_applied_in_order_and_once(fresh_dsn: str, folder: Path) -> None:
    assert db.migrate(fresh_dsn, folder=folder) == [1, 2]
    assert db.migrate(fresh_dsn, folder=folder) == []
    assert history(fresh_dsn) == [(1, "fruit"), (2, "share")]


def test_only_missing_migrations_are_applied(fresh_dsn: str, folder: Path) -> None:
    db.migrate(fresh_dsn, folder=folder)
    write(folder, "0003_plums.sql", "CREATE TABLE plums (id int)")
    assert db.migrate(fresh_dsn, folder=folder) == [3]


def test_a_failing_migration_leaves_nothing_of_itself(fresh_dsn: str, folder: Path) -> None:
    write(folder, "0003_broken.sql", "CREATE TABLE plums (id int); SELECT no_such_column;")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        db.migrate(fresh_dsn, folder=folder)
    assert history(fresh_dsn) == [(1, "fruit"), (2, "share")]
    with db.connect(fresh_dsn) as connection:
        assert connection.execute("SELECT to_regclass('plums')").fetchone() == (None,)


def test_concurrent_calls_apply_each_migration_once(fresh_dsn: str, folder: Path) -> None:
    # Mutation: drop the line `SELECT pg_advisory_lock` in migrate().
    write(folder, "0001_fruit.sql", f"{FIRST} SELECT pg_sleep(0.2);")
    applied: list[list[int]] = []
    threads = [threading.Thread(target=lambda: applied.append(db.migrate(fresh_dsn, folder=folder))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(applied) == [[], [], [], [], [], [1, 2]]


def test_a_changed_migration_is_refused(fresh_dsn: str, folder: Path) -> None:
    # Mutation: drop the comparison of checksums in _refuse_foreign_history().
    db.migrate(fresh_dsn, folder=folder)
    write(folder, "0001_fruit.sql", FIRST + " -- edited later")
    with pytest.raises(ConfigurationError, match="0001_fruit.sql.*not the text that was applied"):
        db.migrate(fresh_dsn, folder=folder)


def test_line_ends_of_the_checkout_do_not_count_as_a_change(fresh_dsn: str, folder: Path) -> None:
    write(folder, "0001_fruit.sql", "CREATE TABLE apples\n(id int);\n")
    db.migrate(fresh_dsn, folder=folder)
    (folder / "0001_fruit.sql").write_bytes(b"CREATE TABLE apples\r\n(id int);\r\n")
    assert db.migrate(fresh_dsn, folder=folder) == []


def test_a_newer_database_is_refused_and_left_alone(fresh_dsn: str, folder: Path) -> None:
    # Mutation: drop `if database > len(known)` in _refuse_foreign_history().
    db.migrate(fresh_dsn, folder=folder)
    (folder / "0002_share.sql").unlink()
    write(folder, "0001_fruit.sql", FIRST)
    for refused in (db.migrate, db.require_current):
        with pytest.raises(DatabaseTooNew) as caught:
            refused(fresh_dsn, folder=folder)
        assert (caught.value.database, caught.value.code) == (2, 1)
    assert history(fresh_dsn) == [(1, "fruit"), (2, "share")]


def test_an_older_database_is_refused_with_the_command_that_helps(fresh_dsn: str, folder: Path) -> None:
    with pytest.raises(DatabaseTooOld, match="at migration 0, this release needs 2: run `collector migrate`"):
        db.require_current(fresh_dsn, folder=folder)
    db.migrate(fresh_dsn, folder=folder)
    db.require_current(fresh_dsn, folder=folder)


@pytest.mark.parametrize("name", ["0002_again.sql", "0004_gap.sql", "3_short.sql", "0003.sql"])
def test_a_wrongly_numbered_file_is_named(folder: Path, name: str) -> None:
    write(folder, name, "SELECT 1")
    with pytest.raises(ConfigurationError, match="Restore the file"):
        db.load_migrations(folder)


def test_our_own_migrations_bring_an_empty_database_up_to_date(fresh_dsn: str) -> None:
    versions = [migration.version for migration in db.load_migrations()]
    assert versions
    assert db.migrate(fresh_dsn) == versions
    db.require_current(fresh_dsn)
    with db.connect(fresh_dsn) as connection:
        assert db.schema_version(connection) == versions[-1]


def test_every_instant_is_stored_with_its_zone(fresh_dsn: str) -> None:
    """DBQ-20: no column reads a time in the zone of whoever is connected."""
    db.migrate(fresh_dsn)
    with db.connect(fresh_dsn) as connection:
        found = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND data_type = 'timestamp without time zone'"
        ).fetchall()
    assert found == []


def test_every_generated_key_is_a_bigint(fresh_dsn: str) -> None:
    """DBQ-09: neither a column nor its sequence runs out."""
    db.migrate(fresh_dsn)
    with db.connect(fresh_dsn) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND data_type <> 'bigint'"
            " AND (is_identity = 'YES' OR column_default LIKE 'nextval(%')"
        ).fetchall()
        sequences = connection.execute("SELECT sequencename FROM pg_sequences WHERE data_type <> 'bigint'::regtype")
        assert (columns, sequences.fetchall()) == ([], [])
