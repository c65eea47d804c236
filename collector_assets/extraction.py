"""Stored pages -> staged rows, in one process. Pure but for reading the archive: no clock, no network, no database.

The same pages and the same extractor version give the same rows (rule 14), however the pages are cut into batches.
"""

from __future__ import annotations

import json
import traceback
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import PurePath
from typing import Any, Final

from collector_assets import charset, pages, staging
from collector_assets.archive import Archive
from collector_assets.columns import Unfit
from collector_assets.contract import Source
from collector_assets.decoding import DecodingError
from collector_assets.errors import BrokenRecord, Unavailable
from collector_assets.outcome import Outcome
from collector_assets.page import Location, Page, PartPlace
from collector_assets.pages import StoredPage
from collector_assets.record import Record, Unreadable
from collector_assets.staging import Group, Piece
from collector_assets.validation import (
    Candidate,
    Judge,
    Origin,
    Reason,
    Reject,
    entity_of,
    reason_of,
    reject,
    unreadable_in,
)
from collector_assets.window import Window

ROWS_AT_ONCE: Final = 2_000
"""Rows in memory before they are judged and leave: what bounds a page that holds a million."""


@dataclass(slots=True, kw_only=True)
class _Waiting:
    """Rows not judged yet, and lines not handed on yet."""

    candidates: dict[str, list[Candidate]]
    number: int
    rows: list[str]
    raw: list[str]
    pages: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """Why a page could not be read to its end."""

    outcome: Outcome
    reason: str


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What came of one page so far."""

    yielded: int = 0
    failed: _Failed | None = None
    flags: frozenset[str] = frozenset()


class Extraction:
    """Reads pages of one window by one source."""

    def __init__(self, *, source: Source, archive: Archive, window: Window) -> None:
        self._source, self._archive, self._window = source, archive, window
        self._judges = {record_type: Judge(source, record_type) for record_type in source.schemas}
        self._only_type = next(iter(source.schemas)) if len(source.schemas) == 1 else None

    def warm(self) -> None:
        """Load now what the first record would have to wait for: pandera makes much at its first use."""
        for judge in self._judges.values():
            judge.warm()

    def read(self, batch: Sequence[StoredPage]) -> Iterator[Piece]:
        """Read every page of the batch; one that cannot be read is an outcome, never an exception."""
        waiting = _Waiting(candidates=defaultdict(list), number=0, rows=[], raw=[], pages=[])
        for stored in batch:
            yield from self._read_page(stored, waiting)
        yield self._piece(waiting)

    def _read_page(self, stored: StoredPage, waiting: _Waiting) -> Iterator[Piece]:
        tally = _Tally()
        for candidate in self._candidates(stored, tally):
            self._take(candidate, waiting)
            tally.yielded += 1
            if waiting.number >= ROWS_AT_ONCE:
                yield self._piece(waiting)
        failed = tally.failed
        waiting.pages.append(
            staging.page_line(
                page_id=stored.page_id,
                request_id=stored.request_id,
                may_be_empty=self._source.kind_map[stored.kind].may_be_empty,
                moves=self._moves(stored),
                yielded=tally.yielded,
                flags=tally.flags,
                outcome=failed and failed.outcome,
                reason=failed and failed.reason,
            )
        )

    def _candidates(self, stored: StoredPage, tally: _Tally) -> Iterator[Candidate]:
        """What the extractor yields; in the end the tally says how it failed, if it came to that."""
        page = None
        try:
            page = self._open(stored)
            origin = _origin(stored, tally.flags)
            for ordinal, values in enumerate(self._extract(page)):
                if page.flags_seen != tally.flags:  # the text is decoded when it is first asked for
                    tally.flags = page.flags_seen
                    origin = _origin(stored, tally.flags)
                yield Candidate(origin=origin, ordinal=ordinal, values=values)
        except Unavailable:  # the archive does not answer: that says nothing of the page
            raise
        except DecodingError as error:
            tally.failed = _Failed(outcome=error.outcome, reason=error.reason)
        except BrokenRecord as error:
            tally.failed = _Failed(outcome=Outcome.EXTRACTION_FAILED, reason=f"broken record: {error}")
        except Exception as error:  # noqa: BLE001  the source's code: whatever it does costs one page
            tally.failed = _Failed(outcome=Outcome.EXTRACTION_FAILED, reason=explain(error))
        tally.flags = page.flags_seen if page else tally.flags

    def _open(self, stored: StoredPage) -> Page:
        response = pages.response_of(stored, self._archive.read)
        return pages.page_of(stored, response, self._window, self._source, read=self._archive.read)

    def _extract(self, page: Page) -> Iterator[Any]:
        extract = self._source.kind_map[page.kind].extract
        assert extract is not None  # noqa: S101  only extracting kinds are read
        return iter(extract(page))

    def _moves(self, stored: StoredPage) -> bool:
        """Whether the verdict is the request's: not while a discovering page still waits for its links (rule 15)."""
        discovers = self._source.kind_map[stored.kind].discover is not None
        return not (discovers and (stored.state == "fetched" or stored.request_outcome == Outcome.DISCOVERY_FAILED))

    # --- one row -----------------------------------------------------------------------------------------------------

    def _take(self, row: Candidate, waiting: _Waiting) -> None:
        """Put a row where it belongs: with those of its type, with those that wait for `combine`, or aside."""
        item = row.values
        record_type = item.type if isinstance(item, Record) else self._only_type
        if record_type not in self._judges:
            said = Reason(column=None, check="record_type_is_declared", value=record_type and str(record_type)[:200])
            if isinstance(item, Unreadable):  # of which type it would have been, nobody knows
                said = reason_of(item, column=None)
            waiting.rows.append(staging.reject_line(reject(_bare(row), str(record_type or ""), said)))
        elif self._source.combine is None:
            waiting.candidates[record_type].append(_bare(row))
        else:
            self._keep_raw(row, record_type, waiting)
        waiting.number += 1

    def _keep_raw(self, row: Candidate, record_type: str, waiting: _Waiting) -> None:
        field = self._judges[record_type].entity_field
        bare = _bare(row)
        if unreadable := unreadable_in(bare.values):
            waiting.rows.append(staging.reject_line(reject(bare, record_type, *unreadable)))
            return
        try:
            if not isinstance(bare.values, Mapping):
                raise Unfit("is_a_mapping")  # noqa: TRY301
            entity = entity_of(bare.values.get(field))
            waiting.raw.append(staging.raw_line(row, record_type, entity))
        except Unfit as unfit:
            said = Reason(column=field if isinstance(bare.values, Mapping) else None, check=str(unfit))
            waiting.rows.append(staging.reject_line(reject(bare, record_type, said)))
        except (TypeError, ValueError, RecursionError) as error:
            said = Reason(column=None, check="can_wait_for_combine", value=str(error)[:200])
            waiting.rows.append(staging.reject_line(reject(bare, record_type, said)))

    def combine(self, group: Group) -> Candidate | Reject:
        """The rows of one entity as one row, or why that did not work."""
        assert self._source.combine is not None  # noqa: S101
        row = Candidate(origin=group.origin, ordinal=group.ordinal, values=group.rows)
        try:
            joined: Any = self._source.combine(group.entity, group.rows)
            values = joined.values if isinstance(joined, Record) else joined
            entity = entity_of(values.get(self._judges[group.record_type].entity_field))
        except Exception as error:  # noqa: BLE001  the source's code: whatever it does costs one entity
            return reject(
                row, group.record_type, Reason(column=None, check="combine", value=explain(error)), entity=group.entity
            )
        if entity != group.entity:
            said = Reason(
                column=self._judges[group.record_type].entity_field, check="combine_keeps_the_entity", value=entity
            )
            return reject(row, group.record_type, said, entity=group.entity)
        return Candidate(origin=group.origin, ordinal=group.ordinal, values=values)

    # --- handing on --------------------------------------------------------------------------------------------------

    def _piece(self, waiting: _Waiting) -> Piece:
        for record_type, candidates in waiting.candidates.items():
            waiting.rows.extend(self.judged_lines(record_type, candidates))
        piece = Piece(rows=_bytes(waiting.rows), raw=_bytes(waiting.raw), pages=_bytes(waiting.pages))
        waiting.candidates.clear()
        waiting.rows, waiting.raw, waiting.pages, waiting.number = [], [], [], 0
        return piece

    def judged_lines(
        self, record_type: str, candidates: Sequence[Candidate], *, combined: bool = False
    ) -> Iterator[str]:
        """Lines of the records and the rejects that the candidates come to."""
        judged = self._judges[record_type].judge(candidates)
        for row in judged.good:
            yield staging.good_line(row, record_type, combined=combined)
        for reject_ in judged.rejects:
            yield staging.reject_line(reject_, combined=combined)


def _origin(stored: StoredPage, flags: frozenset[str]) -> Origin:
    return Origin(
        page_id=stored.page_id,
        request_id=stored.request_id,
        collected_at=stored.fetched_at,
        late=stored.late,
        suspect=charset.SUSPECT in flags,
    )


def explain(error: BaseException) -> str:
    """What was raised, and where: one bounded line."""
    said = " ".join(str(error).split())[:300]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {said}{where}"


def _bare(row: Candidate) -> Candidate:
    """The row without the name of its type."""
    if not isinstance(row.values, Record):
        return row
    return Candidate(origin=row.origin, ordinal=row.ordinal, values=row.values.values)


def _bytes(lines: list[str]) -> bytes:
    return "".join(lines).encode()


# --- Pages on their way to another process: JSON, no pickled objects -------------------------------------------------


def pages_to_json(batch: Sequence[StoredPage]) -> bytes:
    """Facts about pages."""
    return json.dumps([_facts(stored) for stored in batch]).encode()


def pages_from_json(sent: bytes) -> list[StoredPage]:
    """The inverse of `pages_to_json`."""
    return [_stored(facts) for facts in json.loads(sent)]


def _facts(stored: StoredPage) -> dict[str, Any]:
    facts = {field.name: getattr(stored, field.name) for field in fields(StoredPage)}
    facts |= {"location": _place(stored.location), "held": stored.held and _place(stored.held)}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in facts.items()}


def _place(location: Location) -> dict[str, Any]:
    place = {field.name: getattr(location, field.name) for field in fields(Location)}
    parts = [{"role": each.role, "url": each.url, "location": _place(each.location)} for each in location.parts]
    return place | {"payload_digest": location.payload_digest.hex(), "parts": parts}


def _location(place: dict[str, Any]) -> Location:
    digest, parts = bytes.fromhex(place.pop("payload_digest")), place.pop("parts")
    inner = tuple(PartPlace(location=_location(each.pop("location")), **each) for each in parts)
    return Location(payload_digest=digest, parts=inner, **place)


def _stored(facts: dict[str, Any]) -> StoredPage:
    location, held = _location(facts.pop("location")), facts.pop("held")
    times = {name: datetime.fromisoformat(facts.pop(name)) for name in ("requested_at", "fetched_at")}
    flags = tuple(facts.pop("flags"))
    return StoredPage(location=location, held=held and _location(held), flags=flags, **times, **facts)
