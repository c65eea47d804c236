"""Use case: forget a demo source, so that the demo begins afresh. Real sources are not forgotten by a command."""

from __future__ import annotations

from collector_assets.contract import Source
from collector_assets.database import Database, statements
from collector_assets.errors import Refused

SQL = statements("forget")


def run(source: Source, database: Database) -> None:
    """Delete every row of a demo source, in one transaction; its WARC files stay. Refused for any other source."""
    if not source.is_demo:
        raise Refused(f"{source.name} is not a demo source: its history is not deleted by a command")
    with database.transaction() as connection:
        for statement in SQL.values():
            connection.execute(statement, {"source": source.name})
