"""Store: items that were fetched in some window, and when; what `Kind.refetch` is decided by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from collector_assets.database import Connection, statements
from collector_assets.request import RequestId
from collector_assets.window import utc

SQL: Final = statements("known")


def note(connection: Connection, window_start: datetime, ids: Sequence[RequestId], fetched_at: datetime) -> None:
    """The pages of these requests have just been stored."""
    connection.execute(SQL["note_known"], {"window_start": window_start, "ids": list(ids), "fetched_at": fetched_at})


def find(connection: Connection, source: str, kinds: Sequence[str], keys: Iterable[bytes]) -> dict[bytes, datetime]:
    """When the items among these keys that are known were fetched last."""
    values = {"source": source, "kinds": list(kinds), "keys": sorted(keys)}
    rows: list[Any] = connection.execute(SQL["find_known"], values).fetchall()
    return {bytes(key): utc(fetched_at) for key, fetched_at in rows}
