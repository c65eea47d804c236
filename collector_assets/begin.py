"""Use case: begin a source. One page is fetched and archived; a draft of the source and a case that holds are written.

Nothing is overwritten, and nothing is written unless the draft, loaded like any source file, reads the page without an
error and without a reject.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector_assets import cases, draft, guess, links, registry, visit
from collector_assets.archive import Archive
from collector_assets.contract import Budget, Source, replace
from collector_assets.database import Database
from collector_assets.deposit import exchange_of, fresh_page
from collector_assets.errors import ConfigurationError, ContractError, DestinationRefused, RobotsRefused, Unavailable
from collector_assets.fetch import Fetcher, Response
from collector_assets.guess import Bare, Cards, Grid, Shape
from collector_assets.outcome import Outcome
from collector_assets.page import Page
from collector_assets.politeness import Forbidden, Wait
from collector_assets.registry import Registry
from collector_assets.request import Link, NewRequest
from collector_assets.window import Daily, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What was written."""

    name: str
    file: Path
    case: Path
    shape: str
    """What the page was taken for: cards, detail, grid, objects, bare."""
    records: int
    links: int
    to_decide: int
    """Places in the file that wait for a person."""
    warc: str
    """Where the page is in the archive."""


def run(
    name: str,
    url: str,
    *,
    folder: Path,
    known: Registry,
    window: Callable[[Source], Window],
    database: Database,
    archive: Archive,
    fetcher: Callable[[Source, Window], Callable[[], Fetcher]],
) -> Begun:
    """Fetch the page and write the files.

    Raises `ContractError` for a name or a URL that cannot be, `ConfigurationError` for files that are there and for a
    page that is not, `DestinationRefused`, `RobotsRefused`, `Unavailable` when the budget has no slot.
    """
    probe = _probe(name, url, known)
    file, case_folder = folder / f"{name}.py", folder / cases.FOLDER / name
    _refuse_what_is_there(file, case_folder)
    today = window(probe)
    make, request = fetcher(probe, today), _request(probe)
    answer = _fetched(probe, today, request, database, make)
    place = archive.writer(name, today.key)
    try:
        (location,) = place.append([exchange_of(answer, request)])
    finally:
        place.close()
    page = fresh_page(request, answer, today, probe)
    code, shape, stored, found = _draft(page, probe, start=today.key)
    case = case_folder / stored.kind
    _write(file, code, case, stored, found)
    return Begun(
        name=name, file=file, case=case, shape=type(shape).__name__.lower(), records=len(found["records"]),
        links=len(found.get("links", ())), to_decide=code.count(f"# {draft.MARK}"),
        warc=f"{location.file}:{location.offset}",
    )  # fmt: skip


# --- Before ----------------------------------------------------------------------------------------------------------


def _probe(name: str, url: str, known: Registry) -> Source:
    """The least source with this name and start: what the contract thinks of them, and what the errand is sent for."""
    import pandera.pandas as pa  # noqa: PLC0415

    if other := known.sources.get(name):
        raise ContractError("name", f"already taken by {other.file}; names are unique over all files", source=name)
    least = Source(
        name=name, start_urls=(url,), extract=_nothing, schema=pa.DataFrameSchema({"url": pa.Column(str)}),
        entity="url", extractor_version="1", window=Daily(start="2026-01-01"),
    )  # fmt: skip
    others = [each.source for each in known.loaded if each.source.domain == least.domain]
    return replace(least, budget=Budget(per=others[0].budget.per)) if others else least


def _nothing(_page: Page) -> Iterator[dict[str, Any]]:
    return iter(())


def _refuse_what_is_there(file: Path, case_folder: Path) -> None:
    for path in (file, case_folder):
        if path.exists():
            raise ConfigurationError(str(path), "is already there", "Choose another name, or remove it")


def _request(probe: Source) -> NewRequest:
    return links.of_starts(probe, [Link(str(probe.start_urls[0]))]).requests[0]


def _fetched(
    probe: Source, window: Window, request: NewRequest, database: Database, make: Callable[[], Fetcher]
) -> Response:
    answer = visit.run(probe, window, request, database=database, fetcher=make)
    if isinstance(answer, visit.Busy):
        raise Unavailable(f"no slot of {request.budget_key} came free within {answer.waited_s:.0f} s")
    if isinstance(answer, Forbidden | Wait):
        raise RobotsRefused(answer.reason)
    got = answer.got
    if got.outcome is Outcome.DESTINATION_REFUSED:
        raise DestinationRefused(got.reason)
    if not isinstance(got, Response) or got.outcome is not Outcome.OK:
        raise ConfigurationError("URL", f"{got.outcome}: {got.reason}", "Name a page that answers with 200")
    return got


# --- The draft -------------------------------------------------------------------------------------------------------


def _draft(page: Page, probe: Source, *, start: str) -> tuple[str, Shape, Page, dict[str, Any]]:
    """The best draft that reads the page: its text, what the page was taken for, the page, what comes of it."""
    problem: Any = None
    for shape in (guess.shape_of(page), Bare(title="title"), Bare(title=None)):
        stored = cases.page(
            page.body, url=page.url, final_url=page.final_url, headers=page.headers, fetched_at=page.fetched_at,
            window=page.window, kind="listing" if isinstance(shape, Cards | Grid) else "detail",
        )  # fmt: skip
        facts = {"name": probe.name, "url": str(probe.start_urls[0]), "start": start, "per": probe.budget.per}
        found = _outcomes(draft.source_file(shape, **facts, records=1), probe.name, stored)
        problem = found.get("error") or found.get("rejects") or (not found["records"] and "no records")
        if not problem:
            return draft.source_file(shape, **facts, records=len(found["records"])), shape, stored, found
    raise ConfigurationError("URL", f"no draft reads this page ({problem})", "Write the source by hand")


def _outcomes(code: str, name: str, stored: Page) -> dict[str, Any]:
    """What the draft makes of the page, loaded as any source file is."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder).resolve() / f"{name}.py"
        file.write_text(code, "utf-8")
        return cases.outcomes(registry.load_one(f"{file}::{name}"), stored)


def _write(file: Path, code: str, case: Path, stored: Page, found: dict[str, Any]) -> None:
    try:
        cases.write(case, stored)
        cases.expect(case, found)
        with file.open("x", encoding="utf-8") as writing:
            writing.write(code)
    except OSError as error:
        raise ConfigurationError(str(file.parent), f"cannot be written ({error.strerror})", "Name a folder") from error
