"""Use case: how a window stands, for the metadata of its assets and for `collector status`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from collector_assets import frontier, pages, rejected_links, spending, window_inputs, windows
from collector_assets.database import Database
from collector_assets.frontier import Counts, Due
from collector_assets.links import TRAP
from collector_assets.pages import PageCounts
from collector_assets.rejected_links import RejectedLinks
from collector_assets.spending import Spent
from collector_assets.window_inputs import WindowInput
from collector_assets.windows import WindowRow


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStatus:
    """One window: its row, its requests, its pages and the links that stayed out."""

    row: WindowRow
    counts: Counts
    pages: PageCounts
    due: Due
    rejected_links: list[RejectedLinks]
    inputs: list[WindowInput]
    """What its starts came from, where that is data."""
    shared_pages: list[tuple[str, int]]
    """Addresses at which several requests for other ones ended, and how many."""
    spent: list[Spent]
    """On rendering services."""

    @property
    def error_rate(self) -> float:
        """Failed requests, and those that a superseded window leaves undone, per planned one."""
        counts = self.counts
        undone = counts.outstanding if self.row.superseded_at else 0
        return (counts.failed + undone) / counts.planned if counts.planned else 0.0

    @property
    def suspected_traps(self) -> list[RejectedLinks]:
        """Links that were not followed because they led on and on, by pattern."""
        return [link for link in self.rejected_links if link.reason == TRAP]

    @property
    def is_complete(self) -> bool:
        """Nothing outstanding in fetching, nothing failed, no bound reached, not superseded."""
        counts = self.counts
        return not (counts.to_fetch or counts.failed or self.row.bound_reached or self.row.superseded_at)


def window_row(database: Database, source: str, key: str) -> WindowRow:
    """The row of one window; UnknownWindow when it was never opened."""
    with database.transaction() as connection:
        return windows.require(connection, source, key)


def window_status(database: Database, source: str, key: str) -> WindowStatus:
    """One window; UnknownWindow when it was never opened."""
    with database.transaction() as connection:
        row = windows.require(connection, source, key)
        start = row.window.start
        return WindowStatus(
            row=row,
            counts=frontier.counts(connection, source, start),
            pages=pages.count(connection, source, start),
            due=frontier.due(connection, source, start, None),
            rejected_links=rejected_links.listed(connection, source, start),
            inputs=window_inputs.listed(connection, source, start),
            shared_pages=pages.shared(connection, source, start),
            spent=spending.of_window(connection, source, start),
        )


def all_windows(database: Database, source: str | None = None) -> list[WindowRow]:
    """The windows of one source or of all, oldest first."""
    with database.transaction() as connection:
        return windows.all_windows(connection, source)


def opened_keys(database: Database, source: str, keys: Iterable[str]) -> set[str]:
    """Which of these windows were ever opened."""
    with database.transaction() as connection:
        return {key for key in keys if windows.find(connection, source, key) is not None}
