"""Commands of the person who writes a source."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collector_assets.cli import exits, show
from collector_assets.cli.arguments import AsJson, SourceName
from collector_assets.cli.ground import installation_of, registry_of, running
from collector_assets.settings import load_settings

if TYPE_CHECKING:
    from collector_assets.trial import PageTrial

commands = typer.Typer()


@commands.command()
def check(
    source: SourceName,
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="The page; the first start without it.")] = None,
    kind: Annotated[str | None, typer.Option(help="The kind that the page is of.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="A stored page: sends nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try a page: budget, fetch, discover, extract, schema, checks, each with its verdict. Keeps nothing."""
    from collector_assets import trial

    settings = load_settings()
    chosen = registry_of(settings).get(source)
    with running(settings) as ground:
        installation = installation_of(settings, ground)
        if archived:
            done = trial.of_archive(
                chosen, url=url, kind=kind, database=installation.database, archive=installation.archive
            )
        else:
            from collector_assets.graph.runs import running_window

            done = trial.of_site(
                chosen, running_window(chosen), url=url, kind=kind, database=installation.database,
                fetcher=installation.fetcher(chosen),
            )  # fmt: skip
        installation.close()
    if as_json:
        show.in_json({"passed": all(page.passed for page in done), "pages": [asdict(page) for page in done]})
    else:
        for page in done:
            _show_page(page)
    if not all(page.passed for page in done):
        raise typer.Exit(exits.DISAPPOINTED)


def _show_page(page: PageTrial) -> None:
    show.line(f"{page.kind} {page.url} (from {page.origin})")
    rows: list[dict[str, Any]] = []
    for stage in page.stages:
        rows.append({"stage": stage.name, "verdict": stage.verdict, "message": stage.message})
        rows.extend({"stage": "", "verdict": "", "message": f"  {example}"} for example in stage.examples)
    show.table("Stages", rows, ("stage", "verdict", "message"))
    for record in page.records:
        show.line(json.dumps(record, ensure_ascii=False))
