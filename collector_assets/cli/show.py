"""What commands print: tables for people on a terminal, JSON for machines on stdout, words on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collector_assets.collect import Collected
    from collector_assets.collect import Progress as Standing
    from collector_assets.graph.runs import RunSummary
    from collector_assets.selected import RequestRow
    from collector_assets.status import WindowStatus

# Rich takes 80 columns for a pipe, in which nothing can be read.
out = Console(width=None if sys.stdout.isatty() else 150)
err = Console(stderr=True)


@contextmanager
def bar(title: str, *, quiet: bool) -> Iterator[tuple[Callable[[Standing], None], Callable[[int, int], None]]]:
    """A progress bar, moved by a worker's progress or by (answered, planned)."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=err, transient=True, disable=quiet) as progress:
        task = progress.add_task(title, total=None, note="")

        def advance(standing: Standing) -> None:
            total = standing.answered + standing.to_fetch
            progress.update(task, completed=standing.answered, total=total, note=standing.waiting_for)

        def move(answered: int, planned: int) -> None:
            progress.update(task, completed=answered, total=planned or None)

        yield advance, move


SHORT_STATUS = (
    "source", "window", "planned", "to fetch", "to read", "done", "failed", "attempts", "oldest", "remarks",
)  # fmt: skip


def short(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `status` that fits a terminal; `--json` has everything."""
    remarks = [
        "complete" if row["complete"] else "",
        "superseded" if row["superseded"] else "",
        f"{row['bound']} reached" if row["bound"] else "",
        f"{row['late results']} late results" if row["late results"] else "",
        f"{row['skipped']} skipped" if row["skipped"] else "",
    ]
    oldest = row["oldest waiting s"]
    return {
        **row,
        "to fetch": row["candidate"] + row["queued"] + row["leased"],
        "to read": row["fetched"],
        "oldest": None if oldest is None else f"{oldest} s",
        "remarks": ", ".join(filter(None, remarks)),
    }


def status_row(found: WindowStatus) -> dict[str, Any]:
    """A window with everything that `status` knows."""
    counts, row = found.counts, found.row
    oldest = counts.oldest_waiting_at
    return {
        "source": row.source, "window": row.window.key, "planned": counts.planned, "candidate": counts.candidate,
        "queued": counts.queued, "leased": counts.leased, "fetched": counts.fetched, "done": counts.done,
        "failed": counts.failed, "skipped": counts.skipped, "attempts": counts.attempts,
        "oldest waiting s": round((datetime.now(UTC) - oldest).total_seconds()) if oldest else None,
        "complete": found.is_complete, "superseded": row.superseded_at is not None, "bound": row.bound_reached,
        "late results": row.late_results,
        "spent": "; ".join(f"{each.service} {each.amount:f}" for each in found.spent),
    }  # fmt: skip


def request_row(row: RequestRow) -> dict[str, Any]:
    """A request, as a row of a table."""
    return {
        "id": row.request_id, "kind": row.kind, "entity": row.entity, "state": row.place, "outcome": row.outcome,
        "attempts": f"{row.attempts}/{row.max_attempts}", "reason": row.reason, "url": row.url,
    }  # fmt: skip


def worked(done: Collected, *, as_json: bool) -> None:
    """What a worker did."""
    values = {
        "ending": done.ending.value, "sent": done.sent, "outcomes": dict(done.outcomes), "found": done.found,
        "refused": done.refused, "bytes": done.wire_bytes, "seconds": round(done.seconds, 3),
        "next_due_in_s": done.next_due_in_s, **({"loads": dict(done.loads)} if done.loads else {}),
    }  # fmt: skip
    if as_json:
        in_json(values)
    else:
        table("Worked", [values], tuple(values))


def run(done: RunSummary, *, as_json: bool) -> None:
    """How a recorded run ended."""
    if as_json:
        in_json({
            "run_id": done.run_id, "succeeded": done.succeeded, "materialized": list(done.materialized),
            "error": done.error, "checks": [asdict(check) for check in done.checks],
        })  # fmt: skip
        return
    out.print(
        f"run {done.run_id}: {'succeeded' if done.succeeded else 'failed'}; "
        f"materialized: {', '.join(done.materialized) or 'nothing'}"
    )
    checks(done)
    if done.error:
        err.print(done.error, style="red", markup=False, soft_wrap=True)


def checks(done: RunSummary) -> None:
    """The asset checks of a run."""
    verdicts = {(True, True): "passed", (True, False): "passed", (False, True): "FAILED", (False, False): "warned"}
    rows = [
        {"asset": c.stage, "check": c.name, "result": verdicts[c.passed, c.is_error], "message": c.message}
        for c in done.checks
    ]
    table("Asset checks", rows, ("asset", "check", "result", "message"))


def table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Rows for people; what a site said is printed as it is, never as markup."""
    shown = Table(title=title, title_justify="left")
    for column in columns:
        shown.add_column(column)
    for row in rows:
        shown.add_row(*("" if row[column] is None else Text(_plain(str(row[column]))) for column in columns))
    out.print(shown)


def line(text: str) -> None:
    """A sentence on stdout, as it is."""
    out.print(_plain(text), markup=False, highlight=False, soft_wrap=True)


def _plain(text: str) -> str:
    """Without what could move a terminal's cursor or turn its text around: a site may have written it."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def tally(places: Mapping[str, int]) -> str:
    """Requests by place, in one line."""
    return ", ".join(f"{number} {place}" for place, number in places.items()) or "none"


def in_json(value: Any) -> None:
    """One JSON value on stdout; times and decimals as text."""
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")
