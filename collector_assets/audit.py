"""Use case: check the archive's files strictly, and against the page rows that point into them. Changes nothing.

The rows of a folder are read before its files: bytes come first, so what a row points at was there by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import PurePosixPath

from collector_assets import pages, windows
from collector_assets.archive import Archive
from collector_assets.archive.check import Checked, Problem, Record, check, repeated
from collector_assets.archive.names import folder_of
from collector_assets.archive.warc import names
from collector_assets.database import Database
from collector_assets.errors import BrokenRecord
from collector_assets.page import Location
from collector_assets.pages import Place
from collector_assets.windows import WindowRow


@dataclass(slots=True, kw_only=True)
class Audit:
    """What was looked at, and what is wrong."""

    files: int = 0
    bytes: int = 0
    types: Counter[str] = field(default_factory=Counter)
    """Records by type."""
    rows: int | None = None
    """Page rows that were compared; nothing without a database."""
    unreferenced: int = 0
    """Archived responses that no row points at: what a killed worker leaves. Harmless."""
    problems: list[Problem] = field(default_factory=list)
    torn: list[Problem] = field(default_factory=list)
    """Ends of files that no row needs: a worker was killed while it wrote. Harmless."""


def run(
    archive: Archive,
    under: Sequence[str] = ("",),
    *,
    database: Database | None = None,
    progress: Callable[[str], None] = lambda _file: None,
) -> Audit:
    """Check the files under these folders, or these files; with a database also that every row has its record."""
    audit, seen = Audit(rows=0 if database else None), set[bytes]()
    opened = _windows(database)
    files = sorted({file for each in under for file in archive.files(each)})
    for folder, group in groupby(files, key=lambda file: str(PurePosixPath(file).parent)):
        rows = _rows(database, opened.pop(folder, ()), under)
        for file in group:
            progress(file)
            checked = _checked(archive, file)
            audit.problems += repeated([checked], seen)
            _add(audit, checked, rows.pop(file, None) if database else None)
        _missing(audit, rows)
    for folder in [folder for folder in opened if any(_is_under(folder, each) for each in under)]:
        _missing(audit, _rows(database, opened[folder], under))
    return audit


def _windows(database: Database | None) -> dict[str, Sequence[WindowRow]]:
    """The windows by the folder that their files are in."""
    if database is None:
        return {}
    with database.transaction() as connection:
        rows = windows.all_windows(connection)
    found: dict[str, list[WindowRow]] = {}
    for row in rows:
        found.setdefault(str(folder_of(row.source, row.window.key)), []).append(row)
    return dict(found)


def _is_under(file: str, folder: str) -> bool:
    return folder in {"", file} or file.startswith(f"{folder}/")


def _rows(database: Database | None, opened: Iterable[WindowRow], under: Sequence[str]) -> dict[str, list[Place]]:
    """What the page rows of these windows point at, by file."""
    found: dict[str, list[Place]] = {}
    for row in opened:
        assert database is not None  # noqa: S101  windows come from it
        with database.transaction() as connection:
            for place in pages.places(connection, row.source, row.window.start):
                if any(_is_under(place.location.file, each) for each in under):
                    found.setdefault(place.location.file, []).append(place)
    return found


def _checked(archive: Archive, file: str) -> Checked:
    try:
        with archive.stream(file) as stream:
            return check(file, stream)
    except (BrokenRecord, OSError) as error:
        return Checked(file=file, problems=[Problem(file=file, offset=0, message=str(error))])


def _add(audit: Audit, checked: Checked, places: Sequence[Place] | None) -> None:
    audit.files += 1
    audit.bytes += checked.size
    audit.types += checked.types
    if audit.rows is None:
        audit.problems += checked.problems
        return
    places = places or ()
    audit.rows += len(places)
    needed_to = max((at.offset + at.length for _, at, _ in _expected(places)), default=0)
    for problem in checked.problems:
        is_torn = problem.offset == checked.stopped_at and problem.offset >= needed_to
        (audit.torn if is_torn else audit.problems).append(problem)
    records = {record.offset: record for record in checked.records}
    audit.problems += _unlike(checked.file, places, records)
    pointed = {each.location.offset for place in places for each in (place, *place.location.parts)}
    audit.unreferenced += sum(
        record.type in {"response", "revisit", "resource"} and record.offset not in pointed
        for record in checked.records
    )


def _expected(places: Iterable[Place]) -> Iterator[tuple[int, Location, str]]:
    """Page, place and type of each record that a row points at."""
    for place in places:
        yield place.page_id, place.location, "revisit" if place.is_revisit else "response"
        for part in place.location.parts:
            yield place.page_id, part.location, "response" if part.role == "captured" else "resource"


def _unlike(file: str, places: Iterable[Place], records: Mapping[int, Record]) -> Iterator[Problem]:
    """Rows whose place does not hold what they say."""
    for page_id, location, kind in _expected(places):
        record = records.get(location.offset)
        if record is None:
            wrong = "no sound record begins there"
        elif record.length != location.length:
            wrong = f"the record is {record.length} bytes long, not {location.length}"
        elif record.type not in (("revisit",) if kind == "revisit" else ("response", "resource")):
            wrong = f"a {record.type} record is there"
        elif not names(record.url, location.url):
            wrong = f"the record is of {record.url}"
        elif record.payload_digest != location.payload_digest:
            wrong = "the record has another payload digest"
        else:
            continue
        yield Problem(file=file, offset=location.offset, message=f"page {page_id} ({location.url}): {wrong}")


def _missing(audit: Audit, rows: Mapping[str, Sequence[Place]]) -> None:
    """Rows of files that are not there."""
    for file, places in sorted(rows.items()):
        audit.rows = (audit.rows or 0) + len(places)
        message = f"the file is not there, and {len(places)} page rows point into it"
        audit.problems.append(Problem(file=file, offset=places[0].location.offset, message=message))
