"""The command that takes data out: a table as a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from collector_assets.cli import show
from collector_assets.cli.arguments import AsJson, SourceName
from collector_assets.cli.ground import owned

commands = typer.Typer()


@commands.command()
def export(
    source: SourceName,
    to: Annotated[Path, typer.Option(metavar="FILE", help="The file: .csv, .jsonl or .parquet.")],
    record_type: Annotated[str | None, typer.Option(help="Which, where the source has several.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Every observation that counts, not the newest.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write what a source collected to a file; an older file of that name is replaced when the new one is whole."""
    from collector_assets import export as use_case
    from collector_assets import tables

    target = use_case.target(to)
    with (
        owned(source) as (chosen, database),
        tables.opened(chosen, database, record_type=record_type, history=history) as table,
    ):
        done = use_case.write(table, target)
    if as_json:
        show.in_json(asdict(done))
        return
    show.line(f"{done.rows} rows, {len(done.columns)} columns, {done.size} bytes: {done.path}")
    for column, number in done.misfits.items():
        show.line(f"{number} values of {column} were stored in another form and are missing")
