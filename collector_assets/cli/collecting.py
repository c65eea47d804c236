"""Commands that collect, and say how far it is."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from collector_assets.cli import exits, show, watching
from collector_assets.cli.arguments import AsJson, SourceName, WindowKey
from collector_assets.cli.ground import installation_of, registry_of, running
from collector_assets.database import Database
from collector_assets.errors import CollectorError, UnknownWindow
from collector_assets.settings import load_settings

if TYPE_CHECKING:
    from collector_assets.status import WindowStatus

commands = typer.Typer()


@commands.command()
def work(
    source: SourceName,
    window: WindowKey,
    wait: Annotated[float, typer.Option(help="Seconds to wait for the window to be opened.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """One more pair of hands on an open window, in this process; stops when nothing is left to fetch."""
    from collector_assets import collect, discover

    settings = load_settings()
    chosen = registry_of(settings).get(source)
    with running(settings) as ground:
        installation = installation_of(settings, ground)
        installation.require_usable(chosen, window)
        status = _opened(installation.database, chosen.name, window, wait)
        discover.require_in_time(chosen, status.row, installation.database)
        with show.bar(f"{source} {window}", quiet=as_json) as (advance, _):
            done = collect.run(
                source=chosen, window=status.row, kinds=None, database=installation.database,
                archive=installation.archive, fetcher=installation.fetcher(chosen, status.row.window),
                progress=advance,
            )  # fmt: skip
        show.worked(done, as_json=as_json)
    if done.ending is not collect.Ending.DRAINED:
        raise typer.Exit(exits.DISAPPOINTED)


@commands.command(name="collect")
def collect_command(source: SourceName, window: WindowKey, as_json: AsJson = False) -> None:
    """Collect one window: its four assets as one recorded Dagster run, in this process."""
    settings = load_settings()
    chosen = registry_of(settings).get(source)
    with running(settings) as ground:
        os.environ.update(ground.environment())
        from collector_assets.definitions import build
        from collector_assets.graph import runs

        defs, installation, _ = build(load_settings(), only=(source,))
        runs.require_window(chosen, window)
        installation.require_usable(chosen, window)
        with (
            show.bar(f"{source} {window}", quiet=as_json) as (_, total),
            _watched(installation.database, chosen.name, window, total),
        ):
            done = runs.collect_window(defs, chosen, window)
    show.run(done, as_json=as_json)
    if done.was_interrupted:
        raise typer.Exit(exits.INTERRUPTED)
    if not done.is_complete or any(not check.passed and check.is_error for check in done.checks):
        raise typer.Exit(exits.DISAPPOINTED)


@commands.command()
def status(source: Annotated[str | None, typer.Argument(metavar="[SOURCE]")] = None, as_json: AsJson = False) -> None:
    """Windows and queues: depth by state, oldest waiting, attempts."""
    from collector_assets import status as use_case

    settings = load_settings()
    if source is not None:
        registry_of(settings).get(source)
    with running(settings) as ground, Database(ground.dsn) as database:
        found = [
            use_case.window_status(database, row.source, row.window.key)
            for row in use_case.all_windows(database, source)
        ]
        judged = watching.known(database, source)
    rows = [show.status_row(each) for each in found]
    if as_json:
        show.in_json(rows)
    else:
        show.table("Windows", [show.short(row) for row in rows], show.SHORT_STATUS)
        watching.print_freshness(judged)


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
