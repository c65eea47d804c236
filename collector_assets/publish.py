"""Use case: observations -> `latest`, for the entities that one window holds or held. Never rows through Python."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from collector_assets import latest, verdicts, views, windows
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.errors import VerdictRefused
from collector_assets.validation import Judge
from collector_assets.windows import WindowRow

EXAMPLES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishReport:
    """What `publish` did."""

    total: int
    """Rows of the source in `latest`."""
    from_window: int
    """Of these, whose newest observation is of this window."""
    missing: int
    """Entities with an observation of the window that counts, and no row: always 0."""
    inserted: int
    updated: int
    """Their values changed."""
    unchanged: int
    """Same values, perhaps seen again."""
    moved_back: int
    """Of the updated and unchanged: a newer observation stopped counting."""
    withdrawn: int
    """No observation of them counts any more."""
    views: tuple[str, ...]
    view_problem: str | None
    """Why a view could not follow the schema."""
    preview: list[dict[str, Any]]
    seconds: float


def run(*, source: Source, window: WindowRow, database: Database) -> PublishReport:
    """Bring `latest` up to the window's observations, in one transaction.

    Raises `VerdictRefused` when the window's newest verdict is not a pass, however this was started (rule 16).
    """
    started = time.perf_counter()
    columns = {record_type: Judge(source, record_type).columns for record_type in source.schemas}
    with database.transaction() as connection:
        row = windows.lock(connection, source.name, window.window.start)
        _require_pass(connection, row)
        latest.lock(connection, source.name)
        done = latest.recompute(connection, source.name, row.window.start)
        extent = latest.extent(connection, source.name, row.window.start)
        names, problem = views.refresh(connection, source=source.name, columns=columns)
        windows.set_published(connection, source.name, row.window.start)
        preview = latest.preview(connection, source.name, limit=EXAMPLES)
    return PublishReport(
        **asdict(done), **asdict(extent), views=names, view_problem=problem, preview=preview,
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _require_pass(connection: Connection, row: WindowRow) -> None:
    verdict = verdicts.newest(connection, row.source, row.window.start)
    if verdict is None:
        raise VerdictRefused(f"{row.source} {row.window.key}: its records were never read; run `records` first")
    if not verdict.passed:
        said = "; ".join(f"{finding.check}: {finding.message}" for finding in verdict.objections)
        version = f"extractor version {verdict.extractor_version}"
        raise VerdictRefused(f"{row.source} {row.window.key}: the verdict on {version} is not a pass ({said})")
