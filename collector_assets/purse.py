"""The purse of one window for one rendering service: in Postgres, so that all its workers spend from the same one.

A call is counted before it is sent. What a kill leaves counted was perhaps not spent, never the other way round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from collector_assets import spending
from collector_assets.asking import to_its_end
from collector_assets.contract import RenderingService
from collector_assets.database import Connection, Database
from collector_assets.spending import Account

T = TypeVar("T")


class WindowPurse:
    """Made for a service whose calls have a price."""

    def __init__(self, service: RenderingService, *, source: str, window_start: datetime, database: Database) -> None:
        self._database = database
        self._account = Account(
            source=source,
            window_start=window_start,
            service=service.name,
            price=Decimal(str(service.price)),
            cap=Decimal(str(service.cap)),
        )

    async def take(self) -> bool:
        """The price of one call; False where it would pass the cap."""
        return await self._on_thread(lambda connection: spending.spend(connection, self._account))

    async def give_back(self) -> None:
        """The price of a call that was not made."""
        await self._on_thread(lambda connection: spending.give_back(connection, self._account))

    async def _on_thread(self, unit: Callable[[Connection], T]) -> T:
        """One transaction; what it began it ends, whoever cancels."""

        def work() -> T:
            with self._database.transaction() as connection:
                return unit(connection)

        return await to_its_end(asyncio.to_thread(work))
