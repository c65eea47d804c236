"""Commands of the person who writes a source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collector_assets.cli import exits, show
from collector_assets.cli.arguments import AsJson, SourceName
from collector_assets.cli.ground import installation_of, registry_of, running
from collector_assets.errors import ConfigurationError
from collector_assets.settings import load_settings

if TYPE_CHECKING:
    from collector_assets.contract import Source
    from collector_assets.registry import Loaded
    from collector_assets.trial import PageTrial
    from collector_assets.window import Window

commands = typer.Typer()


@commands.command()
def check(
    source: SourceName,
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="The page; the first start without it.")] = None,
    kind: Annotated[str | None, typer.Option(help="The kind that the page is of.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="A stored page: sends nothing.")] = False,
    cut: Annotated[bool, typer.Option("--cut", help="With --archived: a page whose body is not whole.")] = False,
    cases: Annotated[bool, typer.Option("--cases", help="The source's cases instead: sends nothing.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="With --cases: what comes now is what must come.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try a page: budget, fetch, discover, extract, schema, checks, each with its verdict. Keeps nothing."""
    from collector_assets import trial

    settings = load_settings()
    if cases or accept:
        _run_cases(registry_of(settings).loaded_as(source), accept=accept, as_json=as_json)
        return
    chosen = registry_of(settings).get(source)
    with running(settings) as ground:
        installation = installation_of(settings, ground)
        if archived:
            done = trial.of_archive(
                chosen, url=url, kind=kind, database=installation.database, archive=installation.archive, cut=cut
            )
        else:
            window = _running_window(chosen)
            done = trial.of_site(
                chosen, window, url=url, kind=kind, database=installation.database,
                fetcher=installation.fetcher(chosen, window),
            )  # fmt: skip
        installation.close()
    if as_json:
        show.in_json({"passed": all(page.passed for page in done), "pages": [asdict(page) for page in done]})
    else:
        for page in done:
            _show_page(page)
    if not all(page.passed for page in done):
        raise typer.Exit(exits.DISAPPOINTED)


@commands.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the source to be.", metavar="NAME")],
    url: Annotated[str, typer.Argument(help="A page that its windows could start with.", metavar="URL")],
    as_json: AsJson = False,
) -> None:
    """Begin a source: fetch and archive one page, write a draft of the source and a case that holds."""
    from collector_assets import begin

    settings = load_settings()
    folder = next(iter(settings.source_folders), Path("sources"))
    known = registry_of(settings)
    with running(settings) as ground:
        installation = installation_of(settings, ground)
        done = begin.run(
            name, url, folder=folder, known=known, window=_running_window, database=installation.database,
            archive=installation.archive, fetcher=installation.fetcher,
        )  # fmt: skip
        installation.close()
    if as_json:
        show.in_json(asdict(done))
        return
    show.line(f"{done.file}: the page was taken for {done.shape}; {done.to_decide} places wait for you (DECIDE)")
    show.line(f"{done.case}: {done.records} records, {done.links} links; compare them with the page once, by eye")
    if not settings.source_folders:
        show.line(f"export COLLECTOR_SOURCES={folder.absolute()}    # so that the source is found")
    show.line(f"collector check {name} --cases; collector check {name}")


def _running_window(source: Source) -> Window:
    from collector_assets.graph.runs import running_window  # Dagster, which most refusals need not wait for

    return running_window(source)


def _run_cases(loaded: Loaded, *, accept: bool, as_json: bool) -> None:
    from collector_assets import cases

    folder = cases.folder_of(loaded.source, Path(loaded.file))
    found = cases.find(folder)
    if not found:
        raise ConfigurationError(str(folder), "holds no case", "A case is a folder with page.json in it")
    if accept:
        for case in found:
            cases.accept(loaded.source, case)
    differences = {case.name: cases.differences(loaded.source, case) for case in found}
    if as_json:
        show.in_json({"folder": str(folder), "passed": not any(differences.values()), "differences": differences})
    else:
        _show_cases(folder, differences)
    if any(differences.values()):
        raise typer.Exit(exits.DISAPPOINTED)


def _show_cases(folder: Path, differences: Mapping[str, Mapping[str, Any]]) -> None:
    rows = [
        {"case": name, "result": "DIFFERS" if wrong else "holds", "what": ", ".join(wrong)}
        for name, wrong in differences.items()
    ]
    show.line(str(folder))
    show.table("Cases", rows, ("case", "result", "what"))
    for name, wrong in differences.items():
        for what, sides in wrong.items():
            for side, value in sides.items():
                show.line(f"{name} {what}, {side}: {json.dumps(value, ensure_ascii=False)}")


def _show_page(page: PageTrial) -> None:
    show.line(f"{page.kind} {page.url} (from {page.origin})")
    rows: list[dict[str, Any]] = []
    for stage in page.stages:
        rows.append({"stage": stage.name, "verdict": stage.verdict, "message": stage.message})
        rows.extend({"stage": "", "verdict": "", "message": f"  {example}"} for example in stage.examples)
    show.table("Stages", rows, ("stage", "verdict", "message"))
    for record in page.records:
        show.line(json.dumps(record, ensure_ascii=False))
