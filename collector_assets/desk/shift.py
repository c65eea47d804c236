"""What the desks of one worker share."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.errors import CollectorError
from collector_assets.fetch import Fetcher
from collector_assets.holdings import Holdings
from collector_assets.membership import Membership
from collector_assets.outbox import Outbox
from collector_assets.politeness import Politeness
from collector_assets.request import RequestId
from collector_assets.revisits import EarlierPages
from collector_assets.stops import Stops

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Shift:
    """What the desks of one worker share."""

    worker: str
    source: Source
    window_start: datetime
    kinds: Sequence[str] | None
    database: Database
    fetcher: Fetcher
    politeness: Politeness
    holdings: Holdings
    outbox: Outbox
    earlier: EarlierPages
    stops: Stops
    membership: Membership | None = None
    """Of a source with a session."""
    unavailable: dict[str, set[RequestId]] = field(default_factory=dict)
    """By budget key, the requests in a row that found the site down: a desk may close between two of them."""
    sent: int = 0
    loads: Counter[str] = field(default_factory=Counter)
    """What pages in a browser wanted besides, by what became of it."""
    is_stopping: bool = False
    """Nothing more is claimed or sent."""
    stopped_by: CollectorError | None = None
    """What the worker ends with, once what is under way is in."""

    def stop(self, error: CollectorError) -> None:
        """Claim and send nothing more, because a fetcher cannot."""
        self.is_stopping, self.stopped_by = True, self.stopped_by or error

    async def transact(self, unit: Callable[[Connection], T]) -> T:
        """One transaction, on a thread."""

        def work() -> T:
            with self.database.transaction() as connection:
                return unit(connection)

        return await asyncio.to_thread(work)
