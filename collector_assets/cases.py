"""Cases of a source: stored pages, and what must come of them. To add a case is to add a folder.

    <case>/page.html or body.*      the bytes as received (body.json, body.csv …)
           page.json                url, kind and whatever else is known of it (headers, hints, fetched_at, window …)
           links.json               what discover yields: [url, kind, lane]
           records.json             the rows that pass, as they are stored ([type, row] where there are several types)
           rejects.json             [column, check] of each reason for which rows do not pass
           error.json               {"raises": …, "says": …}: the error of the source's code, and a part of what it says

A source file's cases are in `cases/<source>/` beside it. `collector check SOURCE --cases` runs them; so does pytest:

    @pytest.mark.parametrize("case", cases.find(FOLDER), ids=str)
    def test_page_yields_what_its_case_says(case: Path) -> None:
        assert cases.differences(SOURCE, case) == {}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from collector_assets import sample
from collector_assets.contract import Source
from collector_assets.errors import ConfigurationError
from collector_assets.page import Page
from collector_assets.spool import Body
from collector_assets.window import Window

DAY: Final = Window(key="2026-03-01", start=datetime(2026, 3, 1, tzinfo=UTC), end=datetime(2026, 3, 2, tzinfo=UTC))
FETCHED_AT: Final = DAY.start + timedelta(hours=9)
"""The window and the time of a page whose case does not say them."""
FACTS: Final = "page.json"
EXPECTED: Final = ("links", "records", "rejects", "error")
HTML: Final = {"content-type": "text/html; charset=utf-8"}
FOLDER: Final = "cases"


def folder_of(source: Source, file: Path) -> Path:
    """Where the cases of a source are: beside its file, or with the tests of this repository."""
    beside = file.parent / FOLDER / source.name
    ours = Path(__file__).parents[1] / "collector_tests" / "sources" / source.name
    return ours if not beside.is_dir() and ours.is_dir() else beside


def find(folder: Path) -> list[Path]:
    """The cases of a folder, by name."""
    return sorted(path.parent for path in folder.glob(f"*/{FACTS}"))


def page_of(case: Path, source: Source) -> Page:
    """The stored page of a case of a source; `ConfigurationError` when the folder is none."""
    try:
        facts = json.loads((case / FACTS).read_text("utf-8"))
        (body,) = [*case.glob("page.html"), *case.glob("body.*")]
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            str(case), f"is no case: {error}", "It needs page.json, and page.html or body.*"
        ) from error
    if "fetched_at" in facts:
        facts["fetched_at"] = datetime.fromisoformat(facts["fetched_at"])
    if "window" in facts:
        facts["window"] = _window(facts["window"])
    kind = facts.get("kind", "detail")
    return page(body.read_bytes(), encoding=source.encoding_of(kind) if kind in source.kind_map else None, **facts)


def page(
    body: Body | str = b"",
    *,
    url: str = "https://shop.example/l/",
    final_url: str | None = None,
    kind: str = "detail",
    headers: Mapping[str, str] | None = None,
    **facts: Any,
) -> Page:
    """A page made by hand."""
    return Page(
        url=url,
        final_url=final_url or url,
        headers=HTML if headers is None else headers,
        body=body.encode() if isinstance(body, str) else body,
        kind=kind,
        **({"status": 200, "fetched_at": FETCHED_AT, "window": DAY} | facts),
    )


def outcomes(source: Source, stored: Page) -> dict[str, Any]:
    """links, records and rejects of a page, as far as its kind yields them; or the error."""
    kind, found = source.kind_map[stored.kind], {}
    try:
        if kind.discover:
            found["links"] = [[link.url, link.kind, link.lane] for link in kind.discover(stored)]
        if kind.extract:
            taken = sample.take(source, stored)
            rows = [json.loads(good.data) for _, good in taken.records]
            types = [record_type for record_type, _ in taken.records]
            found["records"] = (
                rows if len(source.schemas) == 1 else [list(pair) for pair in zip(types, rows, strict=True)]
            )
            found["rejects"] = [[why.column, why.check] for row in taken.rejects for why in row.reasons]
    except Exception as error:  # noqa: BLE001  whatever a source file raises is what the case is about
        return {"error": {"raises": type(error).__name__, "says": str(error)}}
    return found


def differences(source: Source, case: Path) -> dict[str, dict[str, Any]]:
    """Where what comes of a case's page is not what its files say: {"records": {"expected": …, "found": …}}."""
    found, expected = outcomes(source, page_of(case, source)), _expected(case)
    if "error" in expected and expected["error"]["says"] in found.get("error", {}).get("says", ""):
        found["error"]["says"] = expected["error"]["says"]
    if "error" in found and "error" not in expected:
        expected = {**expected, "error": None}
    wrong = {
        name: {"expected": value, "found": found.get(name)}
        for name, value in expected.items()
        if found.get(name) != value
    }
    return wrong if expected else {"expected": {"expected": "links, records, rejects or error", "found": found}}


def accept(source: Source, case: Path) -> tuple[str, ...]:
    """Write down what comes of the page now as what must come of it; the names of the files."""
    return expect(case, outcomes(source, page_of(case, source)))


def expect(case: Path, found: Mapping[str, Any]) -> tuple[str, ...]:
    """Write down what must come of a case's page."""
    kept = {name: value for name, value in found.items() if value or name in ("records", "links")}
    for name in EXPECTED:
        (case / f"{name}.json").unlink(missing_ok=True)
    for name, value in kept.items():
        (case / f"{name}.json").write_text(_shown(value), "utf-8")
    return tuple(f"{name}.json" for name in kept)


def write(case: Path, stored: Page) -> None:
    """Make a case of a page; what must come of it is still to be said (`accept`)."""
    case.mkdir(parents=True)
    (case / _file(stored)).write_bytes(stored.body)
    window = stored.window
    facts = {
        "url": stored.url, "final_url": stored.final_url, "kind": stored.kind,
        "headers": {"content-type": stored.headers.get("content-type", "")},
        "fetched_at": stored.fetched_at.isoformat(),
        "window": {"key": window.key, "start": window.start.isoformat(), "end": window.end.isoformat()},
    }  # fmt: skip
    (case / FACTS).write_text(_shown(facts), "utf-8")


def _file(stored: Page) -> str:
    """What a page's bytes are called, so that an editor knows what they are."""
    said = stored.headers.get("content-type", "")
    return next((f"body.{name}" for name in ("json", "csv") if name in said), "page.html")


def _expected(case: Path) -> dict[str, Any]:
    paths = {name: case / f"{name}.json" for name in EXPECTED}
    return {name: json.loads(path.read_text("utf-8")) for name, path in paths.items() if path.exists()}


def _window(said: Mapping[str, str]) -> Window:
    start, end = (datetime.fromisoformat(said[name]) for name in ("start", "end"))
    return Window(key=said["key"], start=start, end=end)


def _shown(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
