"""Use case: the report card of one window: where its requests are, what its verdict says, what a person should do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg.rows import class_row

from collector_assets import budget, interventions, rejects, verdicts, windows
from collector_assets.contract import Source
from collector_assets.database import Connection, Database, statements
from collector_assets.errors import UnknownWindow
from collector_assets.interventions import Intervention
from collector_assets.status import WindowStatus, window_status
from collector_assets.verdicts import Verdict

SQL: Final = statements("report")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """How new what consumers see is."""

    entities: int
    collected_at: datetime | None
    """Newest fetch."""
    source_revised_at: datetime | None
    """Newest claim of a page about itself."""
    age_s: float | None
    """Since the newest fetch."""
    newest_window: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One window of a source, and the state of what it shares with others."""

    status: WindowStatus
    now: datetime
    """By the database's clock."""
    verdict: Verdict | None
    """The newest; none before `records` ran."""
    rejects: int
    unread: int
    """Requests whose newest good page was not read by the source's extractor version."""
    latest: Latest
    freshness: timedelta | None
    """The source's limit."""
    budget: Sequence[budget.Status]
    """Every source's part of the budget keys that this source uses."""
    interventions: Sequence[Intervention]
    """The newest ten."""

    @property
    def oldest_waiting(self) -> timedelta | None:
        """How long the oldest request has waited to be sent."""
        oldest = self.status.counts.oldest_waiting_at
        return self.now - oldest if oldest else None

    @property
    def reject_reasons(self) -> Sequence[Mapping[str, Any]]:
        """Failure cases of the newest verdict by check and column: at most ten, with a count and one value."""
        findings = self.verdict.findings if self.verdict else ()
        return [reason for finding in findings for reason in finding.details.get("reasons", ())]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What there is to do, or to know; nothing for a window that is as it should be."""
        return (*_of_requests(self.status), *self._of_records())

    def _of_records(self) -> Iterator[str]:
        row, verdict = self.status.row, self.verdict
        if self.unread:
            yield f"{self.unread} pages are not read yet, or were fetched again since: materialize records, then latest"
        if verdict is not None and not verdict.passed:
            said = "; ".join(f"{finding.check}: {finding.message}" for finding in verdict.objections)
            yield f"the verdict is not a pass ({said}): mend the cause, materialize records, then latest"
        elif verdict is not None and row.published_at is None:
            yield "the verdict is a pass and latest does not hold the window yet: materialize latest"
        if late := self.status.pages.late:
            yield f"{late} pages were fetched after the window closed: they show the site as it was then"


def run(source: Source, window: str | None, database: Database) -> Report:
    """The report of a window; without a key that of the newest one. Raises `UnknownWindow`."""
    key = window or _newest(source, database)
    status = window_status(database, source.name, key)
    place = (source.name, status.row.window.start)
    with database.transaction() as connection:
        return Report(
            status=status, now=windows.clock(connection), verdict=verdicts.newest(connection, *place),
            rejects=rejects.count(connection, *place), unread=_unread(connection, source, status),
            latest=_latest(connection, source), freshness=source.freshness, budget=_budget(connection, source),
            interventions=interventions.listed(connection, *place),
        )  # fmt: skip


def _newest(source: Source, database: Database) -> str:
    with database.transaction() as connection:
        row = windows.newest(connection, source.name)
    if row is None:
        raise UnknownWindow(
            source.name, "(newest)", "none was ever opened; materialize a partition of `frontier` first"
        )
    return row.window.key


def _unread(connection: Connection, source: Source, status: WindowStatus) -> int:
    values = {
        "source": source.name, "window_start": status.row.window.start, "kinds": list(source.with_extract),
        "version": source.extractor_version,
    }  # fmt: skip
    row: Any = connection.execute(SQL["unread_pages"], values).fetchone()
    return int(row[0])


def _latest(connection: Connection, source: Source) -> Latest:
    with connection.cursor(row_factory=class_row(Latest)) as cursor:
        found = cursor.execute(SQL["latest_of_source"], {"source": source.name}).fetchone()
    assert found is not None  # noqa: S101  an aggregate has one row
    return found


def _budget(connection: Connection, source: Source) -> list[budget.Status]:
    rows = budget.status(connection)
    mine = {row.budget_key for row in rows if row.source == source.name}
    return [row for row in rows if row.budget_key in mine]


def _of_requests(status: WindowStatus) -> Iterator[str]:
    counts, row = status.counts, status.row
    if row.superseded_at:
        yield f"superseded: a newer window opened and {counts.to_fetch} requests were left"
    elif counts.to_fetch:
        yield f"{counts.to_fetch} requests are still to be fetched: materialize raw_pages"
    if row.bound_reached:
        yield f"{row.bound_reached} stopped discovery: raise it in the source and materialize the window again"
    if counts.failed_fetch:
        yield f"{counts.failed_fetch} requests failed in fetching: `replay` gives them new attempts"
    if counts.failed_read:
        yield f"{counts.failed_read} pages gave no record: mend extract, raise extractor_version, materialize records"
    if row.late_results:
        yield f"{row.late_results} results came after their lease had ended: if it goes on, raise lease"
