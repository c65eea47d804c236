"""Commands about the installation: the demo, the UI, the database, the sources."""

from __future__ import annotations

import os
import signal
from typing import Annotated, Any

import typer

from collector_assets import stack
from collector_assets.cli import exits, show
from collector_assets.cli.arguments import AsJson
from collector_assets.cli.ground import registry_of, running
from collector_assets.contract import Source
from collector_assets.database import migrate
from collector_assets.settings import DEMO_PORT, load_settings

UI_PORT = 3000

commands = typer.Typer()


@commands.command()
def demo() -> None:
    """Collect the demo's lab and shop as real Dagster runs, the shop twice, and print what happened."""
    from collector_assets import tour
    from collector_assets.demo import DemoSite

    settings = load_settings()
    with running(settings) as ground:
        folder = ground.state / "demo"
        folder.mkdir(parents=True, exist_ok=True)
        with DemoSite(port=0, log=folder / "arrivals.jsonl") as site:
            os.environ.update(ground.environment(), COLLECTOR_DEMO_SITE=site.address)
            from collector_assets.definitions import build

            defs, installation, registry = build(load_settings())
            done = tour.take(
                defs=defs, lab=registry.get("lab"), shop=registry.get("shop"), database=installation.database,
                site=site, folder=folder, say=lambda text: show.out.print(f"[bold]>[/] {text}"),
            )  # fmt: skip
    _show_tour(done)
    show.out.print(f"\nSummary: {folder / 'summary.json'}   ·   the same data in the Dagster UI: [bold]make dev[/]")
    if not done.succeeded:
        raise typer.Exit(exits.DISAPPOINTED)


@commands.command()
def dev(port: Annotated[int, typer.Option(help="Port of the Dagster UI on 127.0.0.1.")] = UI_PORT) -> None:
    """The Dagster UI, its daemon and the demo site on the local Postgres; Ctrl-C stops all of it."""
    from collector_assets.demo import DemoSite

    _stop_on_signals()
    settings = load_settings()
    with running(settings) as ground:
        chosen, site_port = stack.free_port(port), stack.free_port(DEMO_PORT)
        with DemoSite(port=site_port, log=ground.state / "dev-arrivals.jsonl") as site:
            environment = {**ground.environment(), "COLLECTOR_DEMO_SITE": site.address}
            log = ground.state / "dagster-dev.log"
            dagster = stack.DagsterDev(home=stack.dagster_home(), port=chosen, environment=environment, log=log)
            try:
                with show.err.status("starting Dagster"):
                    dagster.wait_until_up()
                if chosen != port:
                    show.out.print(f"port {port} is taken, using {chosen}")
                show.out.print(
                    f"Dagster UI: [bold]{dagster.url}[/]   demo site: http://{site.address}   log: {log}\n"
                    "Ctrl-C stops everything."
                )
                dagster.wait()
            except KeyboardInterrupt:
                show.out.print("stopping; running windows finish what is under way")
            finally:
                dagster.stop()


@commands.command(name="migrate")
def migrate_command() -> None:
    """Bring the database up to this release."""
    settings = load_settings()
    if settings.dsn is not None:
        applied = migrate(settings.dsn.get_secret_value())
        show.out.print(f"applied {', '.join(map(str, applied))}" if applied else "the database is current")
        return
    with running(settings):
        show.out.print("the embedded database is current")


@commands.command()
def sources(
    check: Annotated[bool, typer.Option("--check", help="Fail when a source file is broken.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the sources, and what is wrong with broken ones."""
    from collector_assets.registry import check as problems_of

    found = registry_of(load_settings())
    problems = list(problems_of(found))
    rows = [_source_row(loaded.source, loaded.file) for loaded in found.loaded]
    if as_json:
        show.in_json({"sources": rows, "problems": problems})
    else:
        show.table("Sources", rows, ("name", "domain", "window", "record types", "schedule", "file"))
        for problem in problems:
            show.err.print(problem, style="red", markup=False, soft_wrap=True)
    if check and problems:
        raise typer.Exit(exits.MUST_CHANGE)


def _stop_on_signals() -> None:
    """SIGTERM stops like Ctrl-C; and SIGINT works too where a shell started us in the background with it ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def _source_row(source: Source, file: str) -> dict[str, Any]:
    window = source.window
    return {
        "name": source.name, "domain": source.domain, "window": f"{window.cron} {window.timezone} from {window.start}",
        "record types": ", ".join(source.schemas), "schedule": source.schedule, "file": file,
    }  # fmt: skip


def _show_tour(done: Any) -> None:
    summary = done.summary
    lab = [
        {"candidate": name, "ended": state, "attempts": attempts}
        for name, (state, attempts) in summary["lab"]["outcomes"].items()
    ]
    show.table("The lab, request by request", lab, ("candidate", "ended", "attempts"))
    facts = [
        {"part": part, "fact": name, "value": value}
        for part in ("lab", "shop", "rerun")
        for name, value in summary[part].items()
        if name != "outcomes"
    ]
    show.table("What the databases and the site's own log say", facts, ("part", "fact", "value"))
    for title, run in done.runs:
        show.out.print(f"\n[bold]{title}[/]: run {run.run_id}")
        show.checks(run)
        if run.error:
            show.err.print(run.error, style="red", markup=False, soft_wrap=True)
