"""Rows that a window starts from."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from collector_assets.contract.refusing import STRICT, Refusing
from collector_assets.request import Secret

FILE_SYSTEMS = frozenset({"abfs", "abfss", "az", "file", "gcs", "gs", "hdfs", "memory", "oci", "s3"})
"""Where a file of `FromFile` may be besides a plain path; fsspec knows them."""


@dataclass(frozen=True, config=STRICT)
class FromSource(Refusing):
    """Start from what is known of another source: the values of each of its entities in `latest`."""

    source: str
    """Its name."""
    record: str | None = None
    """One record type of it; by default all."""


@dataclass(frozen=True, config=STRICT)
class FromQuery(Refusing):
    """Start from the rows of a query to a Postgres database, by column name."""

    sql: str
    """May use %(window_start)s, %(window_end)s and %(window_key)s; then another % is written %%."""
    dsn: Secret
    """Where to ask; the variable holds the DSN."""
    asset: str | None = None
    """The Dagster asset that the rows come from, such as "dbt/watchlist": its edge to `frontier`."""


@dataclass(frozen=True, config=STRICT)
class FromFile(Refusing):
    """Start from the rows of a file: .csv or .tsv with a line of names, or .jsonl; gzipped or not."""

    url: str
    """A path (from the folder that the collector runs in), or s3://… and the like; may name the window."""
    asset: str | None = None
    """The Dagster asset that the file is; by default named by its path."""
