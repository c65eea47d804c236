"""Rules 6 and 12 where they are facts of the schema and of every connection."""

from __future__ import annotations

import psycopg
import pytest

from collector_assets.database import Database

BIG = ("requests", "pages", "readings", "observations", "rejects", "verdicts")


@pytest.mark.parametrize("table", BIG)
def test_window_start_is_in_the_primary_key_of_every_big_table(database: Database, table: str) -> None:
    """Rule 6: retention is a dropped partition one day, and Postgres partitions only by columns of the key."""
    with database.transaction() as connection:
        rows = connection.execute(
            "SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a"
            " ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)"
            " WHERE i.indrelid = %s::regclass AND i.indisprimary",
            [table],
        ).fetchall()
    assert "window_start" in {name for (name,) in rows}


def test_dead_peer_is_an_error_in_seconds_on_every_connection(dsn: str) -> None:
    """Rule 12: whether from the pool or of its own; the defaults of libpq are two hours."""
    with Database(dsn) as database, database.transaction() as pooled, database.connect() as own:
        for connection in (pooled, own):
            assert isinstance(connection, psycopg.Connection)
            said = {name: int(value) for name, value in connection.info.get_parameters().items() if value.isdigit()}
            assert said["connect_timeout"] <= 10
            assert said["tcp_user_timeout"] <= 60_000
            assert said["keepalives"] == 1
            assert said["keepalives_idle"] + said["keepalives_interval"] * said["keepalives_count"] <= 60
