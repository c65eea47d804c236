"""Use case: discard what is older than its source keeps it, and nothing that something newer needs.

Rows first, in a transaction per window, then the files that no row points at any more: killed in between, a file is
left that nothing needs, and the next run removes it. A row never points at bytes that are gone (rule 10). A file goes
as a whole, when its window has ended and its newest page was fetched that long ago; as long as a page that is kept is
unchanged since one in it, rows and file stay. Records that were read stand: a window whose pages are gone is not read
again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import PurePosixPath

from collector_assets import frontier, latest, observations, pages, rejects, windows
from collector_assets.archive import Archive
from collector_assets.archive.names import created_at, folder_of, safe_name
from collector_assets.contract import FOREVER, Source
from collector_assets.database import Database
from collector_assets.windows import WindowRow


@dataclass(slots=True, kw_only=True)
class Retained:
    """What was discarded of one source, or would be."""

    source: str
    is_dry: bool
    windows: int = 0
    """Windows that lost pages."""
    pages: int = 0
    """Rows of pages."""
    bytes: int = 0
    """Of their records."""
    files: int = 0
    """WARC files, also those that no row pointed at."""
    needed: int = 0
    """Files that are old enough, but pages that are kept are unchanged since some in them."""
    waiting: dict[str, str] = field(default_factory=dict)
    """Windows that are old enough, and why nothing of them was discarded."""
    rejects: int = 0
    observations: int = 0

    @property
    def summary(self) -> str:
        """One line for a person."""
        said = (
            f"{self.pages:,} pages in {self.files:,} files ({self.bytes:,} bytes) of {self.windows:,} windows, "
            f"{self.observations:,} observations, {self.rejects:,} rejects"
        )
        kept = f"; {self.needed:,} older files are needed by pages that did not change since" if self.needed else ""
        waiting = "".join(f"; {key} waits: {why}" for key, why in sorted(self.waiting.items())[:3])
        return f"{self.source}: {'would discard' if self.is_dry else 'discarded'} {said}{kept}{waiting}"


def run(
    sources: Sequence[Source], database: Database, archive: Archive, *, is_dry: bool, now: datetime | None = None
) -> list[Retained]:
    """Discard what the sources' `retention` says, or only count it; twice discards nothing more."""
    if now is None:
        with database.transaction() as connection:
            now = windows.clock(connection)
    return [_of_source(source, database, archive, is_dry=is_dry, now=now) for source in sources]


def _of_source(source: Source, database: Database, archive: Archive, *, is_dry: bool, now: datetime) -> Retained:
    done, keeps = Retained(source=source.name, is_dry=is_dry), source.retention
    if before := _before(now, keeps.raw_pages):
        gone = _discard_rows(source, database, before, done)
        _sweep(source, database, archive, before, gone, done)
    with database.transaction() as connection:
        if before := _before(now, keeps.rejects):
            done.rejects = rejects.delete(connection, source.name, before=before, is_dry=is_dry)
        if before := _before(now, keeps.history):
            latest.lock(connection, source.name)
            done.observations = observations.delete_history(connection, source.name, before=before, is_dry=is_dry)
    return done


def _before(now: datetime, kept_for: timedelta) -> datetime | None:
    return None if kept_for == FOREVER else now - kept_for


# --- Rows ------------------------------------------------------------------------------------------------------------


def _discard_rows(source: Source, database: Database, before: datetime, done: Retained) -> set[str]:
    """Discard the rows of every file that may go; those files. Again, as long as that sets others free."""
    gone: set[str] = set()
    lost: set[str] = set()
    while True:
        done.needed, found = 0, set[str]()
        with database.transaction() as connection:
            ended = windows.ended(connection, source.name, before=before)
        for row in ended:
            of_window = _discard_rows_of(row, database, before, done)
            found |= of_window
            lost |= {row.window.key} if of_window else set()
        gone |= found
        if done.is_dry or not found:
            done.windows = len(lost)
            return gone


def _discard_rows_of(row: WindowRow, database: Database, before: datetime, done: Retained) -> set[str]:
    """The same of one window, in one transaction."""
    gone: set[str] = set()
    with database.transaction() as connection:
        windows.lock(connection, row.source, row.window.start)
        if why := frontier.in_use(connection, row.source, row.window.start):
            done.waiting[row.window.key] = why
            return gone
        for each in pages.files(connection, row.source, row.window.start, before=before):
            if each.newest_at >= before:
                continue
            may_go = not each.is_needed and (
                done.is_dry or pages.discard(connection, row.source, row.window.start, each.file) is not None
            )
            if not may_go:
                done.needed += 1
                continue
            gone.add(each.file)
            done.pages, done.bytes = done.pages + each.pages, done.bytes + each.bytes
        if gone and not done.is_dry:
            windows.mark_discarded(connection, row.source, row.window.start)
    return gone


# --- Files -----------------------------------------------------------------------------------------------------------


def _sweep(
    source: Source, database: Database, archive: Archive, before: datetime, gone: Collection[str], done: Retained
) -> None:
    """Remove the files of windows that ended long ago at which no row points, also those of a run that was killed.

    The names are listed before the rows are asked, and only files that were begun long ago are meant: what a worker has
    just written is in neither. A file that is not called as ours are is somebody else's.
    """
    old = [file for file in archive.files(safe_name(source.name)) if _is_before(created_at(file), before)]
    folders = _ended_folders(source, database, before)
    for folder, files in groupby(old, key=lambda file: str(PurePosixPath(file).parent)):
        if folder in folders:
            needed = _pointed_at(folders[folder], database, before) - set(gone if done.is_dry else ())
            for file in sorted(set(files) - needed):
                if not done.is_dry:
                    archive.discard(file)
                done.files += 1


def _is_before(moment: datetime | None, before: datetime) -> bool:
    return moment is not None and moment < before


def _ended_folders(source: Source, database: Database, before: datetime) -> dict[str, list[WindowRow]]:
    """The folders all of whose windows ended long ago and that no worker writes to; two keys may share one."""
    folders: dict[str, list[WindowRow]] = {}
    with database.transaction() as connection:
        for row in windows.all_windows(connection, source.name):
            folders.setdefault(str(folder_of(row.source, row.window.key)), []).append(row)
    return {folder: rows for folder, rows in folders.items() if all(row.window.end < before for row in rows)}


def _pointed_at(rows: Iterable[WindowRow], database: Database, before: datetime) -> set[str]:
    with database.transaction() as connection:
        return {
            each.file
            for row in rows
            for each in pages.files(connection, row.source, row.window.start, before=before)
        }  # fmt: skip
