"""Use case: observations -> `latest`, for the entities that one window holds or held. Never rows through Python."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from collector_assets import latest, removals, verdicts, views, windows
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.errors import VerdictRefused
from collector_assets.links import TRAP
from collector_assets.removals import Look, Marked
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
    removed: int
    """Marked as removed now: whole windows do not show them, or their own page says so (rule 18)."""
    returned: int
    """Not removed after all, or there again."""
    held_back: int
    """Would be marked as removed, but they are more than the source allows at once."""
    there: int
    """Rows of the source that are not marked as removed."""
    partial: str
    """Why what this window does not show is not missing; empty when it shows everything."""
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
        marked, partial = _mark_removed(connection, source, row)
        extent = latest.extent(connection, source.name, row.window.start)
        names, problem = views.refresh(connection, source=source.name, columns=columns)
        windows.set_published(connection, source.name, row.window.start)
        preview = latest.preview(connection, source.name, limit=EXAMPLES)
    return PublishReport(
        **asdict(done), **asdict(extent), removed=marked.removed, returned=marked.returned, held_back=marked.held_back,
        there=marked.there, partial=partial, views=names, view_problem=problem, preview=preview,
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


def _mark_removed(connection: Connection, source: Source, row: WindowRow) -> tuple[Marked, str]:
    """Note what the window says about what it does not hold, then mark the entities of the source by all that is noted.

    Also why the window does not show everything, if so.
    """
    start = row.window.start
    if row.discarded_at:  # what it said when all of its pages were there stands
        return _mark(connection, source), "its pages are discarded"
    seen = removals.look(connection, source.name, start, listings=source.with_discover, trap=TRAP)
    unsettled = _unsettled(source, row, seen)
    removals.note_doubts(connection, source.name, start, is_settled=not unsettled)
    partial = unsettled or _partial(source) or seen.partial()
    windows.set_whole(connection, source.name, start, None if partial else seen.began_at)
    return _mark(connection, source), partial


def _mark(connection: Connection, source: Source) -> Marked:
    return removals.mark(
        connection, source.name, is_full=source.coverage == "full", windows=source.removed_after,
        most=source.expect.max_removed_rate,
    )  # fmt: skip


def _unsettled(source: Source, row: WindowRow, seen: Look) -> str:
    """Why not even a page that says "gone" is heard."""
    if source.coverage == "incremental":
        return 'coverage="incremental"'
    if row.superseded_at:
        return "the window is superseded"
    if row.bound_reached:
        return f"{row.bound_reached} stopped discovery"
    return seen.unsettled(source.expect.max_error_rate)


def _partial(source: Source) -> str:
    """Why no window of the source shows everything."""
    if source.shows_everything:
        return ""
    return "it starts from rows that it was given" if source.inputs else "its starts name the window: it shows a part"
