"""What was collected, for Python: `read.latest("books")` is a pandas frame.

    from collector_assets import read

    books = read.latest("books")                                  # one row per entity, the newest that counts
    prices = read.history("books")                                # one row per entity and window
    filings = read.latest("registry", record_type="filing")       # of a source with several record types

A front door like the command line: it reads the settings (`COLLECTOR_DSN`, or the embedded database under
`COLLECTOR_STATE`; `COLLECTOR_SOURCES`), and changes nothing. Columns are typed by the source's schema, also when the
frame is empty: `Decimal` stays exact, whole numbers are `Int64`, text is `str` (`00123` and `NA` stay what they are),
times have a zone; a missing value is missing. Ours follow the record's own, as in the view `latest_<source>`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from collector_assets import registry, stack, tables
from collector_assets.database import Database
from collector_assets.errors import ConfigurationError
from collector_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    import pandas as pd

LOG = logging.getLogger(__name__)


def latest(source: str, *, record_type: str | None = None) -> pd.DataFrame:
    """The newest observation that counts of every entity, by entity.

    Raises `UnknownSource`, `BadSelection` (which record type?), `ConfigurationError`, `DatabaseUnreachable`.
    """
    return _frame(source, record_type, history=False)


def history(source: str, *, record_type: str | None = None) -> pd.DataFrame:
    """Every observation that counts, by window and entity; raises what `latest` does."""
    return _frame(source, record_type, history=True)


def _frame(source: str, record_type: str | None, *, history: bool) -> pd.DataFrame:
    settings = load_settings()
    chosen = registry.load(settings.source_folders, demo=settings.demo_sources).get(source)
    with _database(settings) as database:
        with tables.opened(chosen, database, record_type=record_type, history=history) as table:
            frame = table.frame()
        for column, number in table.misfits.items():
            LOG.warning("%s: %d values of %r were stored in another form and are missing", source, number, column)
    return frame


@contextmanager
def _database(settings: Settings) -> Iterator[Database]:
    dsn = settings.dsn.get_secret_value() if settings.dsn else None
    if dsn is None and not (settings.state / "postgres").is_dir():
        # Starting one here would answer from an empty database that nobody asked for.
        problem = f"is not set, and there is no embedded database in {settings.state.absolute()}"
        raise ConfigurationError("COLLECTOR_DSN", problem, "Set it, or run in the project's folder")
    with stack.running(state=settings.state, dsn=dsn, dagster_url=None) as ground, Database(ground.dsn) as database:
        yield database
