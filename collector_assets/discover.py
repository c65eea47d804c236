"""Use case: open a window and run pass 1, the kinds that lead to other pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from collector_assets import collect, frontier, inputs, links, pages, window_inputs, windows
from collector_assets.archive import Archive
from collector_assets.contract import Link, Source
from collector_assets.database import Connection, Database
from collector_assets.deposit import add_found, explain
from collector_assets.errors import LateRefused
from collector_assets.fetch import Fetcher
from collector_assets.outcome import Outcome
from collector_assets.pages import StoredPage
from collector_assets.unfold import unfold
from collector_assets.window import Window
from collector_assets.windows import WindowRow

MENDED_AT_ONCE = 100
AT_ONCE = 1_000
"""Starts that enter in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A window that is ready to be worked on."""

    row: WindowRow
    is_new: bool
    added: int
    """Start requests that were new."""
    superseded: list[str]
    """Older windows of the source that ended as incomplete because this one opened (rule 22)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What pass 1 did."""

    opened: Opened
    mended: int
    """Listing pages whose links were read from stored bytes, without a request."""
    collected: collect.Collected


def open_window(source: Source, window: Window, database: Database) -> Opened:
    """Open the window, or find it open, and put the starts into its frontier; asks no site for anything.

    Rows that the starts come from are read first, once per window and edition. Raises LateRefused for a window that
    closed, where the source says late="refuse" and there is work left in it; `InputUnreadable`, `InputUnavailable`.
    """
    with _inputs(source, window, database) as given:
        parts = _parts(source.starts(window, given))
        with database.transaction() as connection:
            row, is_new = windows.open_window(
                connection,
                source=source.name,
                window=window,
                capacity=source.capacity,
                max_requests=source.max_requests,
                names_window=source.is_window_named,
                closes_at=window.closes_at(source.grace),
                reach=source.reach,
            )
            windows.lock(connection, source.name, window.start)
            added = add_found(connection, source, row, [links.of_starts(source, next(parts, []))])
            _refuse_late(connection, source, row, is_new=is_new)
            superseded = windows.supersede_older(connection, source.name, window.start)
        for part in parts:
            with database.transaction() as connection:
                windows.lock(connection, source.name, window.start)
                added += add_found(connection, source, row, [links.of_starts(source, part)])
        _note(source, window, database, given or {})
    return Opened(row=row, is_new=is_new, added=added, superseded=superseded)


@contextmanager
def _inputs(source: Source, window: Window, database: Database) -> Iterator[Mapping[str, inputs.Rows] | None]:
    """The source's inputs; nothing when all that they led to is in the window already."""
    with database.transaction() as connection:
        read = window_inputs.listed(connection, source.name, window.start)
    if {each.input for each in read if each.edition == source.edition} >= set(source.inputs):
        yield None
        return
    with inputs.opened(source, window, database) as given:
        yield given


def _note(source: Source, window: Window, database: Database, given: Mapping[str, inputs.Rows]) -> None:
    """Say that all starts are in; until then another opening reads the inputs again."""
    with database.transaction() as connection:
        for name, rows in sorted(given.items()):
            window_inputs.note(
                connection, source.name, window.start, name,
                edition=source.edition, rows=len(rows), digest=rows.digest,
            )  # fmt: skip


def _parts(starts: Iterator[Link]) -> Iterator[list[Link]]:
    while part := list(islice(starts, AT_ONCE)):
        yield part


def run(
    *,
    source: Source,
    window: Window,
    database: Database,
    archive: Archive,
    fetcher: Callable[[], Fetcher],
    progress: Callable[[collect.Progress], None] = lambda _: None,
) -> Discovered:
    """Open the window and fetch the discovering kinds until nothing leads further."""
    archive.writer(source.name, window.key).close()  # nothing is half done when there is no place for bytes
    opened = open_window(source, window, database)
    mended = mend(source, opened.row, database, archive)
    collected = collect.run(
        source=source,
        window=opened.row,
        kinds=source.discovering,
        database=database,
        archive=archive,
        fetcher=fetcher,
        progress=progress,
    )
    return Discovered(opened=opened, mended=mended, collected=collected)


def require_in_time(source: Source, row: WindowRow, database: Database) -> None:
    """LateRefused as in `open_window`: for a pass over a window that somebody else opened."""
    with database.transaction() as connection:
        _refuse_late(connection, source, row, is_new=False)


def mend(source: Source, window: WindowRow, database: Database, archive: Archive) -> int:
    """Read the links of stored pages whose discovery failed earlier; no request is sent (rule 15)."""
    mended, after = 0, 0
    while True:
        with database.transaction() as connection:
            stored = pages.for_reading(
                connection, source=source.name, window_start=window.window.start, kinds=source.with_discover,
                after_request_id=after, limit=MENDED_AT_ONCE,
            )  # fmt: skip
        if not stored:
            return mended
        after = stored[-1].request_id
        for page in stored:
            is_sitemap = source.is_sitemap(page.kind)
            # A sitemap that is still `fetched` lost its worker before all its links were in.
            if page.request_outcome == Outcome.DISCOVERY_FAILED or (is_sitemap and page.state == "fetched"):
                if is_sitemap:
                    mended += unfold(source, window, database, archive, page) > 0
                else:
                    mended += _mend_one(source, window, database, archive, page)


def _mend_one(source: Source, window: WindowRow, database: Database, archive: Archive, stored: StoredPage) -> bool:
    try:
        page = pages.page_of(stored, pages.response_of(stored, archive.read), window.window, source, read=archive.read)
        found = links.of_page(source, page, stored.depth, restarts=stored.restarts, request_id=stored.request_id)
    except Exception as error:  # noqa: BLE001  the source's code again; the page stays failed(read)
        verdict = frontier.Read(
            request_id=stored.request_id, state="failed", outcome=Outcome.DISCOVERY_FAILED, reason=explain(error)
        )
        with database.transaction() as connection:
            frontier.mark_read(connection, window.window.start, [verdict])
        return False
    verdict = frontier.Read(request_id=stored.request_id, state="done", outcome=Outcome.OK, reason="")
    with database.transaction() as connection:
        windows.lock(connection, source.name, window.window.start)
        add_found(connection, source, window, [found])
        frontier.mark_read(connection, window.window.start, [verdict])
    return True


def _refuse_late(connection: Connection, source: Source, row: WindowRow, *, is_new: bool) -> None:
    if source.late == "allow" or not windows.is_late(connection, source.name, row.window.start):
        return
    if is_new or frontier.due(connection, source.name, row.window.start, None).to_fetch:
        raise LateRefused(
            f"{source.name} {row.window.key}: the window closed at {row.closes_at:%Y-%m-%d %H:%M} UTC and the source "
            f'says late="refuse"; collect the current window instead'
        )
