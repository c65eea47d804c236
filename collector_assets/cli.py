"""The command line.

Exit codes: 0 done; 1 it ran, and the result is not what you want; 2 something must be changed first; 3 unavailable, try
again; 4 refused; 130 interrupted.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import psycopg
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from collector_assets import stack
from collector_assets.contract import Source
from collector_assets.database import Database, migrate
from collector_assets.errors import CollectorError, Refused, Unavailable, UnknownWindow
from collector_assets.settings import DEMO_PORT, Settings, load_settings

if TYPE_CHECKING:
    from collector_assets.collect import Collected
    from collector_assets.collect import Progress as Standing
    from collector_assets.graph.resources import Installation
    from collector_assets.graph.runs import RunSummary
    from collector_assets.registry import Registry
    from collector_assets.status import WindowStatus

DISAPPOINTED, MUST_CHANGE, UNAVAILABLE, REFUSED, INTERRUPTED = 1, 2, 3, 4, 130
UI_PORT = 3000

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Recurring web collection as Dagster assets.",
)
# Rich takes 80 columns for a pipe, in which nothing can be read.
out = Console(width=None if sys.stdout.isatty() else 150)
err = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="For machines: one JSON value on stdout.")]
SourceName = Annotated[str, typer.Argument(help="Name of a source.", metavar="SOURCE")]
WindowKey = Annotated[str, typer.Argument(help="Key of a window, for example 2026-11-29.", metavar="WINDOW")]


def main() -> None:
    """Run a command; every expected error is one line on stderr and an exit code that means something."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        app()
    except CollectorError as error:
        err.print(f"collector: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(
            REFUSED if isinstance(error, Refused) else UNAVAILABLE if isinstance(error, Unavailable) else MUST_CHANGE
        )
    except psycopg.OperationalError as error:
        # Lost in the middle of a transaction: leases and slots run out by themselves, the work is collected again.
        line = next(iter(str(error).splitlines()), type(error).__name__)
        err.print(f"collector: the database went away: {line}", style="red", markup=False, soft_wrap=True)
        sys.exit(UNAVAILABLE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


@app.command()
def demo() -> None:
    """Collect the demo's lab and shop as real Dagster runs, the shop twice, and print what happened."""
    from collector_assets import tour
    from collector_assets.demo import DemoSite

    settings = load_settings()
    with _running(settings) as ground:
        folder = ground.state / "demo"
        folder.mkdir(parents=True, exist_ok=True)
        with DemoSite(port=0, log=folder / "arrivals.jsonl") as site:
            os.environ.update(ground.environment(), COLLECTOR_DEMO_SITE=site.address)
            from collector_assets.definitions import build

            defs, installation, registry = build(load_settings())
            done = tour.take(
                defs=defs, lab=registry.get("lab"), shop=registry.get("shop"), database=installation.database,
                site=site, folder=folder, say=lambda text: out.print(f"[bold]>[/] {text}"),
            )  # fmt: skip
    _show_tour(done)
    out.print(f"\nSummary: {folder / 'summary.json'}   ·   the same data in the Dagster UI: [bold]make dev[/]")
    if not done.succeeded:
        raise typer.Exit(DISAPPOINTED)


@app.command()
def dev(port: Annotated[int, typer.Option(help="Port of the Dagster UI on 127.0.0.1.")] = UI_PORT) -> None:
    """The Dagster UI, its daemon and the demo site on the local Postgres; Ctrl-C stops all of it."""
    from collector_assets.demo import DemoSite

    _stop_on_signals()
    settings = load_settings()
    with _running(settings) as ground:
        chosen, site_port = stack.free_port(port), stack.free_port(DEMO_PORT)
        with DemoSite(port=site_port, log=ground.state / "dev-arrivals.jsonl") as site:
            environment = {**ground.environment(), "COLLECTOR_DEMO_SITE": site.address}
            log = ground.state / "dagster-dev.log"
            dagster = stack.DagsterDev(home=stack.dagster_home(), port=chosen, environment=environment, log=log)
            try:
                with err.status("starting Dagster"):
                    dagster.wait_until_up()
                if chosen != port:
                    out.print(f"port {port} is taken, using {chosen}")
                out.print(
                    f"Dagster UI: [bold]{dagster.url}[/]   demo site: http://{site.address}   log: {log}\n"
                    "Ctrl-C stops everything."
                )
                dagster.wait()
            except KeyboardInterrupt:
                out.print("stopping; running windows finish what is under way")
            finally:
                dagster.stop()


@app.command(name="migrate")
def migrate_command() -> None:
    """Bring the database up to this release."""
    settings = load_settings()
    if settings.dsn is not None:
        applied = migrate(settings.dsn.get_secret_value())
        out.print(f"applied {', '.join(map(str, applied))}" if applied else "the database is current")
        return
    with _running(settings):
        out.print("the embedded database is current")


@app.command()
def sources(
    check: Annotated[bool, typer.Option("--check", help="Fail when a source file is broken.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the sources, and what is wrong with broken ones."""
    from collector_assets.registry import check as problems_of

    found = _registry(load_settings())
    problems = list(problems_of(found))
    rows = [_source_row(loaded.source, loaded.file) for loaded in found.loaded]
    if as_json:
        _print_json({"sources": rows, "problems": problems})
    else:
        _print_table("Sources", rows, ("name", "domain", "window", "record types", "schedule", "file"))
        for problem in problems:
            err.print(problem, style="red", markup=False, soft_wrap=True)
    if check and problems:
        raise typer.Exit(MUST_CHANGE)


@app.command()
def work(
    source: SourceName,
    window: WindowKey,
    wait: Annotated[float, typer.Option(help="Seconds to wait for the window to be opened.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """One more pair of hands on an open window, in this process; stops when nothing is left to fetch."""
    from collector_assets import collect

    settings = load_settings()
    chosen = _registry(settings).get(source)
    with _running(settings) as ground:
        installation = _installation(settings, ground)
        installation.require_usable(chosen, window)
        status = _opened(installation.database, chosen.name, window, wait)
        with _bar(f"{source} {window}", quiet=as_json) as (advance, _):
            done = collect.run(
                source=chosen, window=status.row, kinds=None, database=installation.database,
                archive=installation.archive, fetcher=installation.fetcher(chosen), progress=advance,
            )  # fmt: skip
        _print_worked(done, as_json=as_json)
    if done.ending is not collect.Ending.DRAINED:
        raise typer.Exit(DISAPPOINTED)


@app.command(name="collect")
def collect_command(source: SourceName, window: WindowKey, as_json: AsJson = False) -> None:
    """Collect one window: its four assets as one recorded Dagster run, in this process."""
    settings = load_settings()
    chosen = _registry(settings).get(source)
    with _running(settings) as ground:
        os.environ.update(ground.environment())
        from collector_assets.definitions import build
        from collector_assets.graph import runs

        defs, installation, _ = build(load_settings())
        runs.require_window(chosen, window)
        installation.require_usable(chosen, window)
        with (
            _bar(f"{source} {window}", quiet=as_json) as (_, total),
            _watched(installation.database, chosen.name, window, total),
        ):
            done = runs.collect_window(defs, chosen, window)
    _print_run(done, as_json=as_json)
    if not done.is_complete or any(not check.passed and check.is_error for check in done.checks):
        raise typer.Exit(DISAPPOINTED)


@app.command()
def status(source: Annotated[str | None, typer.Argument(metavar="[SOURCE]")] = None, as_json: AsJson = False) -> None:
    """Windows and queues: depth by state, oldest waiting, attempts."""
    from collector_assets import status as use_case

    settings = load_settings()
    if source is not None:
        _registry(settings).get(source)
    with _running(settings) as ground, Database(ground.dsn) as database:
        found = [
            use_case.window_status(database, row.source, row.window.key)
            for row in use_case.all_windows(database, source)
        ]
    rows = [_status_row(each) for each in found]
    if as_json:
        _print_json(rows)
    else:
        _print_table("Windows", [_short(row) for row in rows], SHORT_STATUS)


def _stop_on_signals() -> None:
    """SIGTERM stops like Ctrl-C; and SIGINT works too where a shell started us in the background with it ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


# --- What commands stand on ----------------------------------------------------------------------------------------


@contextmanager
def _running(settings: Settings) -> Iterator[stack.Stack]:
    dsn = settings.dsn.get_secret_value() if settings.dsn else None
    url = settings.dagster_url.get_secret_value() if settings.dagster_url else None
    with stack.running(state=settings.state, dsn=dsn, dagster_url=url) as ground:
        yield ground


def _registry(settings: Settings) -> Registry:
    from collector_assets import registry

    return registry.load([Path(folder) for folder in settings.sources.split(":") if folder], demo=settings.demo_sources)


def _installation(settings: Settings, ground: stack.Stack) -> Installation:
    from collector_assets.graph.resources import Installation

    return Installation(
        dsn=lambda: ground.dsn, archive_folder=settings.archive_folder.absolute(), user_agent=settings.user_agent,
        demo_site=settings.demo_site, require_contact=settings.require_contact,
    )  # fmt: skip


def _opened(database: Database, source: str, window: str, wait_s: float) -> WindowStatus:
    from collector_assets.status import window_status

    deadline = time.monotonic() + wait_s
    while True:
        try:
            return window_status(database, source, window)
        except UnknownWindow:
            if time.monotonic() >= deadline:
                raise
        time.sleep(0.2)


# --- What commands print -------------------------------------------------------------------------------------------


@contextmanager
def _bar(title: str, *, quiet: bool) -> Iterator[tuple[Callable[[Standing], None], Callable[[int, int], None]]]:
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


@contextmanager
def _watched(database: Database, source: str, window: str, move: Callable[[int, int], None]) -> Iterator[None]:
    """Move the bar from the frontier's counts while the run works."""
    from collector_assets.status import window_status

    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(1.0):
            try:
                counts = window_status(database, source, window).counts
            except CollectorError:
                continue
            move(counts.planned - counts.to_fetch, counts.planned)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _source_row(source: Source, file: str) -> dict[str, Any]:
    window = source.window
    return {
        "name": source.name, "domain": source.domain, "window": f"{window.cron} {window.timezone} from {window.start}",
        "record types": ", ".join(source.schemas), "schedule": source.schedule, "file": file,
    }  # fmt: skip


SHORT_STATUS = (
    "source", "window", "planned", "to fetch", "to read", "done", "failed", "attempts", "oldest", "remarks",
)  # fmt: skip


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
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


def _status_row(found: WindowStatus) -> dict[str, Any]:
    counts, row = found.counts, found.row
    oldest = counts.oldest_waiting_at
    return {
        "source": row.source, "window": row.window.key, "planned": counts.planned, "candidate": counts.candidate,
        "queued": counts.queued, "leased": counts.leased, "fetched": counts.fetched, "done": counts.done,
        "failed": counts.failed, "skipped": counts.skipped, "attempts": counts.attempts,
        "oldest waiting s": round((datetime.now(UTC) - oldest).total_seconds()) if oldest else None,
        "complete": found.is_complete, "superseded": row.superseded_at is not None, "bound": row.bound_reached,
        "late results": row.late_results,
    }  # fmt: skip


def _print_worked(done: Collected, *, as_json: bool) -> None:
    values = {
        "ending": done.ending.value, "sent": done.sent, "outcomes": dict(done.outcomes), "found": done.found,
        "refused": done.refused, "bytes": done.wire_bytes, "seconds": round(done.seconds, 3),
        "next_due_in_s": done.next_due_in_s,
    }  # fmt: skip
    if as_json:
        _print_json(values)
    else:
        _print_table("Worked", [values], tuple(values))


def _print_run(done: RunSummary, *, as_json: bool) -> None:
    if as_json:
        _print_json({
            "run_id": done.run_id, "succeeded": done.succeeded, "materialized": list(done.materialized),
            "error": done.error, "checks": [asdict(check) for check in done.checks],
        })  # fmt: skip
        return
    out.print(
        f"run {done.run_id}: {'succeeded' if done.succeeded else 'failed'}; "
        f"materialized: {', '.join(done.materialized) or 'nothing'}"
    )
    _print_checks(done)
    if done.error:
        err.print(done.error, style="red", markup=False, soft_wrap=True)


def _print_checks(done: RunSummary) -> None:
    verdicts = {(True, True): "passed", (True, False): "passed", (False, True): "FAILED", (False, False): "warned"}
    rows = [
        {"asset": c.stage, "check": c.name, "result": verdicts[c.passed, c.is_error], "message": c.message}
        for c in done.checks
    ]
    _print_table("Asset checks", rows, ("asset", "check", "result", "message"))


def _show_tour(done: Any) -> None:
    summary = done.summary
    lab = [
        {"candidate": name, "ended": state, "attempts": attempts}
        for name, (state, attempts) in summary["lab"]["outcomes"].items()
    ]
    _print_table("The lab, request by request", lab, ("candidate", "ended", "attempts"))
    facts = [
        {"part": part, "fact": name, "value": value}
        for part in ("lab", "shop", "rerun")
        for name, value in summary[part].items()
        if name != "outcomes"
    ]
    _print_table("What the databases and the site's own log say", facts, ("part", "fact", "value"))
    for title, run in done.runs:
        out.print(f"\n[bold]{title}[/]: run {run.run_id}")
        _print_checks(run)
        if run.error:
            err.print(run.error, style="red", markup=False, soft_wrap=True)


def _print_table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*("" if row[column] is None else str(row[column]) for column in columns))
    out.print(table)


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")


if __name__ == "__main__":
    main()
