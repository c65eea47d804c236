"""The four use cases in this process, on a real database, archive and site."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from collector_assets import collect, discover, process, publish
from collector_assets.archive import Archive, LocalArchive
from collector_assets.contract import Budget, Source, replace, seconds
from collector_assets.database import Database
from collector_assets.demo import DemoSite
from collector_assets.demo.arrivals import Arrival
from collector_assets.fetch import Fetcher
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_assets.politeness import Politeness
from collector_assets.sources.shop import SHOP
from collector_assets.status import WindowStatus, window_row, window_status
from collector_assets.window import Window
from collector_assets.windows import WindowRow

USER_AGENT = "collector-tests/1 (+tests@example.org)"


def day(start: datetime) -> Window:
    """The daily window that starts then."""
    return Window(key=f"{start:%Y-%m-%d}", start=start, end=start + timedelta(days=1))


TODAY = day(datetime(2099, 1, 29, tzinfo=UTC))
"""Open whenever the tests run."""
TOMORROW = day(TODAY.end)
LONG_AGO = day(datetime(2020, 1, 29, tzinfo=UTC))

FAST = Budget(gap=seconds(0), slots=8)
QUICK = replace(SHOP, budget=FAST, in_flight=8)
"""The shop without a pause: three listings, sixty books."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """One worker's hands on any window."""

    database: Database
    site: DemoSite
    folder: Path

    @property
    def archive(self) -> Archive:
        return LocalArchive(self.folder)

    def fetcher(self) -> Fetcher:
        return HttpFetcher(user_agent=USER_AGENT, egress=DemoSiteOnly(self.site.address), connections=32)

    def know_robots(self, source: Source, origin: str = "http://shop.localhost:8765") -> None:
        """Have the origin's robots.txt fetched, so that a test counts nothing but what it is about."""

        async def learn() -> None:
            fetcher = self.fetcher()
            polite = Politeness(source=source, database=self.database, fetcher=fetcher, holder="test")
            await polite.learn(origin)
            await fetcher.close()

        asyncio.run(learn())

    def open(self, source: Source, window: Window = TODAY) -> discover.Opened:
        return discover.open_window(source, window, self.database)

    def discover(self, source: Source, window: Window = TODAY) -> discover.Discovered:
        """Pass 1."""
        return discover.run(
            source=source, window=window, database=self.database, archive=self.archive, fetcher=self.fetcher
        )

    def collect(
        self, source: Source, window: Window = TODAY, *, kinds: Sequence[str] | None = None
    ) -> collect.Collected:
        """Pass 2, on a window that is open."""
        return collect.run(
            source=source, window=self.row(source, window), kinds=kinds, database=self.database, archive=self.archive,
            fetcher=self.fetcher,
        )  # fmt: skip

    def read(self, source: Source, window: Window = TODAY) -> process.ReadingReport:
        return process.run(source=source, window=self.row(source, window), database=self.database, archive=self.archive)

    def publish(self, source: Source, window: Window = TODAY) -> publish.PublishReport:
        return publish.run(source=source, window=self.row(source, window), database=self.database)

    def whole(self, source: Source, window: Window = TODAY) -> WindowStatus:
        """Both passes and the reading."""
        self.discover(source, window)
        self.collect(source, window)
        self.read(source, window)
        return self.status(source, window)

    def row(self, source: Source, window: Window = TODAY) -> WindowRow:
        return window_row(self.database, source.name, window.key)

    def status(self, source: Source, window: Window = TODAY) -> WindowStatus:
        return window_status(self.database, source.name, window.key)

    def arrivals(self, host: str = "shop.localhost", *, robots: bool = False) -> list[Arrival]:
        return self.site.arrivals(host=host, robots=robots)

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Whatever a test wants to see."""
        with self.database.transaction() as connection:
            return connection.execute(query.encode(), values).fetchall()

    def column(self, query: str, *values: Any) -> list[Any]:
        """The first column of what a test wants to see."""
        return [row[0] for row in self.rows(query, *values)]

    def do(self, statement: str, *values: Any) -> None:
        """Whatever a test wants to happen."""
        with self.database.transaction() as connection:
            connection.execute(statement.encode(), values)

    @contextmanager
    def refusing(self, table: str, condition: str) -> Iterator[None]:
        """Postgres refuses new rows of a table for which the condition does not hold: a write that really fails."""
        self.do(f"ALTER TABLE {table} ADD CONSTRAINT refused_by_a_test CHECK ({condition}) NOT VALID")
        try:
            yield
        finally:
            self.do(f"ALTER TABLE {table} DROP CONSTRAINT refused_by_a_test")


@pytest.fixture
def hands(database: Database, site: DemoSite, tmp_path: Path) -> Hands:
    return Hands(database=database, site=site, folder=tmp_path / "archive")


def ends(status: WindowStatus) -> Mapping[str, int]:
    """How many requests ended how."""
    counts = status.counts
    return {"planned": counts.planned, "done": counts.done, "failed": counts.failed, "skipped": counts.skipped,
            "outstanding": counts.outstanding}  # fmt: skip
