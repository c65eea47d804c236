"""What comes of a case's page, as its files say it: `python -m collector_tests.sources.reading SOURCE/CASE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from collector_assets import registry
from collector_assets.contract import Record, Source
from collector_assets.page import Page
from collector_assets.validation import Candidate, Judged, Origin, judge
from collector_tests.fixtures.pages import FETCHED_AT, page_of_case

HERE = Path(__file__).parent


def outcomes(source: Source, stored: Page) -> dict[str, Any]:
    """links, records and rejects of a page, as far as its kind yields them; or the error."""
    kind, found = source.kind_map[stored.kind], {}
    try:
        if kind.discover:
            found["links"] = [[link.url, link.kind, link.lane] for link in kind.discover(stored)]
        if kind.extract:
            rows = judged(source, stored)
            found["records"] = [json.loads(row.data) for row in rows.good]
            found["rejects"] = [[why.column, why.check] for row in rows.rejects for why in row.reasons]
    except Exception as error:  # noqa: BLE001  whatever a source file raises is what the case is about
        return {"error": {"raises": type(error).__name__, "says": str(error)}}
    return found


def judged(source: Source, stored: Page) -> Judged:
    """What extract yields, judged by the schema; for sources with one record type."""
    extract = source.kind_map[stored.kind].extract
    assert extract is not None
    (record_type,) = source.schemas
    origin = Origin(page_id=1, request_id=1, collected_at=FETCHED_AT)
    rows = (row.values if isinstance(row, Record) else row for row in extract(stored))
    return judge(source, record_type, [Candidate(origin=origin, ordinal=n, values=row) for n, row in enumerate(rows)])


def main(case: str) -> None:
    """Print each outcome under the name of its file."""
    source = registry.load(entry_points=False).get(case.partition("/")[0])
    for outcome, found in outcomes(source, page_of_case(HERE / case)).items():
        shown = json.dumps(found, indent=2, ensure_ascii=False)
        sys.stdout.write(f"{outcome}.json\n{shown}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
