"""What one page yields, judged: for people who write a source. Pure; `process` does the same to whole windows.

What a window decides (how many records there must be, which of two records of an entity stays) is left out.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from collector_assets import charset
from collector_assets.contract import Source
from collector_assets.page import Page
from collector_assets.record import Record
from collector_assets.validation import Candidate, Good, Judge, Origin, Reason, Reject, entity_of, reject, unreadable_in

MOST_ROWS: Final = 10_000
"""Rows of a page that are looked at."""


@dataclass(slots=True, kw_only=True)
class Sample:
    """The records of one page."""

    yielded: int = 0
    is_cut: bool = False
    """The page yields more rows than are looked at."""
    records: list[tuple[str, Good]] = field(default_factory=list)
    """Record type and record."""
    rejects: list[Reject] = field(default_factory=list)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The records as they would be stored."""
        return [json.loads(good.data) for _, good in self.records]

    @property
    def lacks_values_alone(self) -> bool:
        """Nothing is wrong with what was rejected but that something is missing."""
        return bool(self.rejects) and {why.check for row in self.rejects for why in row.reasons} == {"not_nullable"}

    @property
    def repeated(self) -> list[str]:
        """Entities that the page holds more than once."""
        seen: set[tuple[str, str]] = set()
        return [
            good.entity
            for record_type, good in self.records
            if (key := (record_type, good.entity)) in seen or seen.add(key)
        ]


def take(source: Source, page: Page) -> Sample:
    """What `extract` yields on the page, sorted by the schemas; what the source's code raises comes through."""
    extract = source.kind_map[page.kind].extract
    sample = Sample()
    if extract is None:
        return sample
    items = list(islice(iter(extract(page)), MOST_ROWS + 1))
    sample.is_cut = len(items) > MOST_ROWS
    sample.yielded = min(len(items), MOST_ROWS)
    for record_type, rows in _by_type(source, page, items[:MOST_ROWS], sample).items():
        judged = Judge(source, record_type).judge(rows)
        sample.records.extend((record_type, good) for good in judged.good)
        sample.rejects.extend(judged.rejects)
    return sample


def _by_type(source: Source, page: Page, items: Iterable[Any], sample: Sample) -> dict[str, list[Candidate]]:
    origin = Origin(page_id=0, request_id=0, collected_at=page.fetched_at, suspect=charset.SUSPECT in page.flags_seen)
    only = next(iter(source.schemas)) if len(source.schemas) == 1 else ""
    found: dict[str, list[Candidate]] = defaultdict(list)
    for ordinal, item in enumerate(items):
        record_type, values = (item.type, item.values) if isinstance(item, Record) else (only, item)
        row = Candidate(origin=origin, ordinal=ordinal, values=values)
        unreadable = unreadable_in(values) if source.combine or not record_type else []
        if unreadable:
            sample.rejects.append(reject(row, record_type, *unreadable))
        elif record_type in source.schemas:
            found[record_type].append(row)
        else:
            said = Reason(column=None, check="record_type_is_declared", value=str(record_type)[:200])
            sample.rejects.append(reject(row, str(record_type), said))
    if source.combine is None:
        return found
    return {record_type: list(_combined(source, record_type, rows)) for record_type, rows in found.items()}


def _combined(source: Source, record_type: str, rows: Iterable[Candidate]) -> Iterator[Candidate]:
    """The rows of each entity as one, from this page alone."""
    assert source.combine is not None  # noqa: S101
    groups: dict[str, list[Candidate]] = defaultdict(list)
    for row in rows:
        groups[entity_of(row.values.get(source.entity_field(record_type)))].append(row)
    for entity, group in groups.items():
        joined: Mapping[str, Any] | Record = source.combine(entity, [row.values for row in group])
        values = joined.values if isinstance(joined, Record) else joined
        yield Candidate(origin=group[0].origin, ordinal=group[0].ordinal, values=values)
