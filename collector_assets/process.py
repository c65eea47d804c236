"""Use case: stored pages -> observations and rejects, and the window's verdict. Never fetches (rule 14).

Pages are read first, into temporary tables and without a transaction; then one transaction, the window's row locked,
makes the window's rows by this extractor version exactly what was read. The same pages again change nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from collector_assets import frontier, garbage, observations, pages, readings, rejects, staging, verdicts, windows
from collector_assets.archive import Archive
from collector_assets.contract import Expect, Source
from collector_assets.database import Connection, Database
from collector_assets.errors import PagesDiscarded
from collector_assets.extraction import Extraction
from collector_assets.extraction_pool import Discarded, Helpers, Job, read_all
from collector_assets.observations import Replaced
from collector_assets.outcome import Outcome
from collector_assets.pages import StoredPage
from collector_assets.rejects import RejectRow
from collector_assets.request import RequestId
from collector_assets.staging import Piece, Totals
from collector_assets.validation import Candidate, Reject
from collector_assets.verdicts import Finding, Verdict, verdict_of
from collector_assets.windows import WindowRow

if TYPE_CHECKING:
    from collector_assets import collect

PROCESS_FROM: Final = 500
"""Pages from which helpers are thought of."""
HELPERS_FROM_S: Final = 2.5
"""Processor seconds of reading left, at the pace so far, from which helpers are worth it: each costs about one to start
(pandas, pandera). Measured on two cores: books are read at 0.4 ms a page, so 3,000 of them are done before a helper
pays. Not by the clock on the wall: where the machine is busy, one more process does not help."""
STARTS_AHEAD_S: Final = 10.0
"""How long before the last page is expected helpers are started ahead."""
ROWS_COMBINED_AT_ONCE: Final = 1_000
EXAMPLES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingReport:
    """What `process` did: counts, and at most ten examples of anything."""

    extractor_version: str
    pages: int
    outcomes: Mapping[str, int]
    """Pages by outcome of reading."""
    records: Mapping[str, int]
    """By record type."""
    rejects: int
    new_observations: int
    changed: int
    gone: int
    """Observations of this version that are no longer read."""
    requests_moved: int
    """Requests whose state the reading changed."""
    verdict: Verdict
    preview: list[dict[str, Any]]
    reject_examples: list[RejectRow]
    seconds: float
    phases: Mapping[str, float]
    """Seconds: read (extract, validate, copy), combine, settle (the transaction)."""

    @property
    def records_total(self) -> int:
        """Of every record type."""
        return sum(self.records.values())


def run(
    *,
    source: Source,
    window: WindowRow,
    database: Database,
    archive: Archive,
    locator: str | None = None,
    processes: int | None = None,
    helpers: Helpers | None = None,
    chunk: int = 500,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ReadingReport:
    """Read every good page of the window, and judge the window's records.

    `locator` is how another process finds the source (`registry.Loaded.locator`); without it all reading stays here.
    `processes` counts this one; None means one per core, once the reading is long enough. `helpers` were started ahead
    (`Ahead`) and are ended here. `progress(pages, of pages)`.
    Raises `UnknownWindow`; `PagesDiscarded` when records of it could not be read again; `ContractError` for a schema
    that no row can answer; `Unavailable` when helpers keep dying.
    """
    extraction = Extraction(source=source, archive=archive, window=window.window)
    with garbage.collected_rarely(), closing(database.connect(autocommit=True)) as connection:
        _require_pages(connection, window)
        staging.create(connection)
        clock, phases = time.perf_counter, {}
        started = clock()
        counted = pages.count(connection, source.name, window.window.start).ok_by_kind
        expected = sum(number for kind, number in counted.items() if kind in source.with_extract)
        if locator and helpers is None:
            job = Job(locator=locator, archive=archive.location, window=window.window)
            helpers = Helpers(job, (processes or cores()) - 1)
        reading = _Reading(expected=expected, forced=processes is not None, progress=progress)
        for part in read_all(
            _batches(database, source, window, chunk, expected, readers=1 + (len(helpers.each) if helpers else 0)),
            here=extraction,
            helpers=helpers,
            is_worth_helpers=reading.is_worth_helpers,
        ):
            _stage(connection, part)
            reading.advance(part)
        staging.drop_failed(connection)
        staging.drop_repeated(connection, source=source.name, window_start=window.window.start)
        phases["read"] = clock() - started
        if source.combine:
            _combine(connection, extraction)
        phases["combine"] = clock() - started - phases["read"]
        report = _settle(connection, source, window)
        seconds = clock() - started
    phases["settle"] = seconds - phases["read"] - phases["combine"]
    return ReadingReport(**report, seconds=seconds, phases=phases)


class Ahead:
    """Helpers for `run` that start while the last pages of the window are still on their way.

    Collecting leaves most of the other cores idle; a helper that is ready when reading begins costs no waiting.
    """

    def __init__(self, *, source: Source, window: WindowRow, archive: Archive, locator: str | None) -> None:
        self._source = source
        job = Job(locator=locator, archive=archive.location, window=window.window) if locator else None
        self._helpers = Helpers(job, cores() - 1) if job and source.with_extract else None

    def consider(self, progress: collect.Progress) -> None:
        """Start them when there are pages enough and the last will soon be there."""
        if self._helpers is None or self._helpers.is_started or progress.to_fetch + progress.answered < PROCESS_FROM:
            return
        budget = self._source.budget
        a_page_s = 1 / progress.per_second if progress.per_second else budget.gap.total_seconds() / budget.slots
        if progress.to_fetch * a_page_s <= STARTS_AHEAD_S:
            self._helpers.start()

    def take(self) -> Helpers | None:
        """The helpers if they were started; whoever takes them ends them (`run` does)."""
        taken, self._helpers = self._helpers, None
        return taken if taken and taken.is_started else None

    def close(self) -> None:
        """End them, if nobody took them."""
        if helpers := self.take():
            helpers.stop()


@dataclass(slots=True, kw_only=True)
class _Reading:
    """How far the reading is, and how fast."""

    expected: int
    forced: bool
    progress: Callable[[int, int], None]
    done: int = 0
    warm: int = 0
    """Pages of the first part. It pays for what is made at first use (0.2 s) and says nothing about the pace."""
    warm_at_s: float = 0.0

    def advance(self, part: Piece | Discarded) -> None:
        """Count the pages of a part, one line each."""
        if isinstance(part, Piece) and part.pages:
            self.done += part.pages.count(b"\n")
            if not self.warm:
                self.warm, self.warm_at_s = self.done, time.process_time()
            self.progress(min(self.done, self.expected), self.expected)

    def is_worth_helpers(self) -> bool:
        if self.forced:
            return True
        if self.expected < PROCESS_FROM or self.done == self.warm:
            return False
        a_page_s = (time.process_time() - self.warm_at_s) / (self.done - self.warm)
        return (self.expected - self.done) * a_page_s > HELPERS_FROM_S


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _batches(
    database: Database, source: Source, window: WindowRow, chunk: int, expected: int, *, readers: int
) -> Iterator[Sequence[StoredPage]]:
    """The window's pages by request id, each batch in a short transaction of its own.

    Batches shrink towards the end, so that no reader is left alone with a large one.
    """
    after, left = 0, expected
    while True:
        limit = chunk if readers == 1 else min(chunk, max(chunk // 10, left // (2 * readers), 1))
        with database.transaction() as connection:
            batch = pages.for_reading(
                connection, source=source.name, window_start=window.window.start, kinds=source.with_extract,
                after_request_id=after, limit=limit,
            )  # fmt: skip
        if not batch:
            return
        yield batch
        after, left = batch[-1].request_id, left - len(batch)


def _stage(connection: Connection, part: Piece | Discarded) -> None:
    match part:
        case Piece():
            staging.copy(connection, part)
        case Discarded():
            staging.discard(connection, part.page_ids)


def _combine(connection: Connection, extraction: Extraction) -> None:
    """Join the rows of each entity, judge what comes out, and stage it."""
    waiting: dict[str, list[Candidate]] = {}
    lines: list[str] = []

    def flush() -> None:
        for record_type, candidates in waiting.items():
            lines.extend(extraction.judged_lines(record_type, candidates, combined=True))
        staging.copy(connection, Piece(rows="".join(lines).encode()))
        waiting.clear()
        lines.clear()

    for number, group in enumerate(staging.groups(connection), start=1):
        match extraction.combine(group):
            case Candidate() as row:
                waiting.setdefault(group.record_type, []).append(row)
            case Reject() as row:
                lines.append(staging.reject_line(row, combined=True))
        if number % ROWS_COMBINED_AT_ONCE == 0:
            flush()
    flush()


# --- The transaction -------------------------------------------------------------------------------------------------


def _settle(connection: Connection, source: Source, window: WindowRow) -> dict[str, Any]:
    """Everything that changes rows, in one transaction, the window's row locked first."""
    start, version = window.window.start, source.extractor_version
    place = {"source": source.name, "window_start": start}
    staging.settle(connection)
    with connection.transaction():
        row = windows.lock(connection, source.name, start)
        _require_pages(connection, row)  # some may have gone while the others were read
        totals = staging.totals(connection, **place, kinds=source.with_extract)
        readings.replace(connection, **place, version=version)
        replaced = observations.replace(connection, **place, version=version)
        rejects.replace(connection, **place, version=version)
        moved = _move_requests(connection, window)
        verdict = verdict_of(version, findings(totals, source.expect), _counts(totals))
        verdicts.add(connection, **place, verdict=verdict)
        _count(connection, row, verdict)
        return _facts(connection, source, window, totals, replaced, verdict) | {"requests_moved": moved}


def _require_pages(connection: Connection, row: WindowRow) -> None:
    if row.discarded_at and observations.has_lost_pages(connection, row.source, row.window.start):
        raise PagesDiscarded(
            f"{row.source} {row.window.key}: pages were discarded on {row.discarded_at:%Y-%m-%d}, as the source's "
            f"retention says; the records of extractor version {row.counted_version} stand, and cannot be read again"
        )


def _move_requests(connection: Connection, window: WindowRow) -> int:
    """Fetched requests are done or failed(read) now; re-extraction moves them between these two (rule 15)."""
    return sum(
        frontier.mark_read(connection, window.window.start, [_read(each) for each in part])
        for part in readings.outcomes(connection)
    )


def _read(reading: readings.Outcome) -> frontier.Read:
    state: Literal["done", "failed"] = "done" if reading.outcome == Outcome.OK else "failed"
    return frontier.Read(
        request_id=RequestId(reading.request_id), state=state, outcome=Outcome(reading.outcome), reason=reading.reason
    )


def _count(connection: Connection, row: WindowRow, verdict: Verdict) -> None:
    """Say which version's observations count (rule 17).

    A pass makes this version count. A fail of the version that counted withdraws it: its rows have just been replaced
    by ones that did not pass. A fail of another version leaves the one that counts alone; `publish` refuses meanwhile.
    """
    version, counts_now = verdict.extractor_version, row.counted_version
    if verdict.passed and counts_now != version:
        windows.set_counted_version(connection, row.source, row.window.start, version)
    elif not verdict.passed and counts_now == version:
        windows.set_counted_version(connection, row.source, row.window.start, None)


def _facts(
    connection: Connection, source: Source, window: WindowRow, totals: Totals, replaced: Replaced, verdict: Verdict
) -> dict[str, Any]:
    place = (source.name, window.window.start, source.extractor_version)
    return {
        "extractor_version": source.extractor_version,
        "pages": totals.pages,
        "outcomes": totals.outcomes,
        "records": {record_type: totals.records.get(record_type, 0) for record_type in source.schemas},
        "rejects": totals.rejects,
        "new_observations": replaced.new,
        "changed": replaced.changed,
        "gone": replaced.gone,
        "verdict": verdict,
        "preview": observations.preview(connection, *place, limit=EXAMPLES),
        "reject_examples": rejects.list_rejects(connection, *place, limit=EXAMPLES),
    }


# --- The verdict -----------------------------------------------------------------------------------------------------


def findings(totals: Totals, expect: Expect) -> tuple[Finding, ...]:
    """What must hold of a window's records, and whether it does. Pure."""
    records = sum(totals.records.values())
    rate = totals.rejects / (records + totals.rejects) if totals.rejects else 0.0
    too_many = rate > expect.max_reject_rate
    at_most = "any number of" if expect.max_records is None else f"at most {expect.max_records}"
    missing = totals.yielded - totals.accounted
    broken = totals.rejects - totals.duplicates
    unreadable = totals.unreadable / totals.pages if totals.pages else 0.0
    return (
        Finding(
            check="pages_readable",
            passed=not totals.unreadable,
            severity="ERROR" if unreadable > expect.max_error_rate else "WARN",
            message=f"{totals.unreadable} of {totals.pages} pages could not be read ({unreadable:.1%}; "
            f"{expect.max_error_rate:.1%} is allowed)"
            if totals.unreadable
            else f"{totals.pages} pages were read{_doubts(totals)}",
            details={
                "unreadable": totals.unreadable,
                "pages": totals.pages,
                "flags": dict(totals.flags),
                "max_error_rate": expect.max_error_rate,
                "problems": [dict(problem) for problem in totals.problems],
            },
        ),
        Finding(
            check="schema_holds",
            passed=broken == 0,
            severity="ERROR" if too_many else "WARN",
            message=f"{broken} of {records + totals.rejects} records were rejected"
            if broken
            else f"{records} records hold",
            details={"rejects": broken, "reasons": [dict(reason) for reason in totals.reasons]},
        ),
        Finding(
            check="reject_rate_within_limit",
            passed=not too_many,
            severity="ERROR",
            message=f"{rate:.1%} rejected; {expect.max_reject_rate:.1%} is allowed",
            details={
                "reject_rate": round(rate, 6),
                "max_reject_rate": expect.max_reject_rate,
                "rejects": totals.rejects,
            },
        ),
        Finding(
            check="record_count_expected",
            passed=expect.min_records <= records <= (records if expect.max_records is None else expect.max_records),
            severity="ERROR",
            message=f"{records} records; expected at least {expect.min_records} and {at_most}",
            details={"records": records, "min_records": expect.min_records, "max_records": expect.max_records},
        ),
        Finding(
            check="entities_unique",
            passed=totals.duplicates == 0,
            severity="WARN",
            message=f"{totals.duplicates} records of an entity that an earlier request has already"
            if totals.duplicates
            else f"{records} entities",
            details={"duplicates": totals.duplicates},
        ),
        Finding(
            check="stages_agree",
            passed=totals.unread == 0 and missing == 0,
            severity="ERROR",
            message=f"{totals.pages} pages read and {totals.unread} not; "
            f"{totals.yielded} rows yielded and {totals.accounted} accounted for",
            details={
                "pages": totals.pages,
                "unread": totals.unread,
                "yielded": totals.yielded,
                "accounted": totals.accounted,
            },
        ),
    )


def _doubts(totals: Totals) -> str:
    return "".join(f"; {number} with {flag}" for flag, number in sorted(totals.flags.items()))


def _counts(totals: Totals) -> dict[str, Any]:
    return {name: value for name, value in asdict(totals).items() if name not in {"reasons", "problems"}}
