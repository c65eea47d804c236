"""Commands that put requests of a window back: what failed in fetching, or what should be fetched again."""

from __future__ import annotations

import getpass
import socket
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from collector_assets.cli import exits, show
from collector_assets.cli.arguments import (
    AsJson,
    Entity,
    Id,
    Kind,
    Outcome,
    ReasonHas,
    SourceName,
    State,
    UrlHas,
    WindowKey,
    meant,
)
from collector_assets.cli.ground import owned

if TYPE_CHECKING:
    from collector_assets.put_back import PutBack

Reason = Annotated[str, typer.Option(help="Why; kept in the table interventions.")]
By = Annotated[str, typer.Option(metavar="NAME", help="Who decided it; you, when it is left out.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count and show; change nothing.")]

commands = typer.Typer()


@commands.command()
def replay(
    source: SourceName,
    window: WindowKey,
    reason: Reason,
    outcome: Outcome = None,
    reason_has: ReasonHas = "",
    kind: Kind = None,
    entity: Entity = None,
    url_has: UrlHas = "",
    request: Id = None,
    everything: Annotated[bool, typer.Option("--all", help="Every failed(fetch) request of the window.")] = False,
    by: By = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Put failed(fetch) requests back, with new attempts. Sends nothing: materialize raw_pages afterwards."""
    from collector_assets import replay as use_case
    from collector_assets.put_back import Wish

    selection = meant(
        ids=request, outcomes=outcome, reason_has=reason_has, kinds=kind, entities=entity, url_has=url_has
    )
    with owned(source) as (chosen, database):
        wish = Wish(
            source=chosen, window=window, selection=selection, everything=everything, reason=reason,
            by=by or _me(), dry_run=dry_run,
        )  # fmt: skip
        done = use_case.run(wish, database)
    _end(done, as_json=as_json)


@commands.command()
def recollect(
    source: SourceName,
    window: WindowKey,
    reason: Reason,
    state: State = None,
    outcome: Outcome = None,
    reason_has: ReasonHas = "",
    kind: Kind = None,
    entity: Entity = None,
    url_has: UrlHas = "",
    request: Id = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole window.")] = False,
    by: By = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Have pages fetched again that were fetched before. Sends nothing: materialize raw_pages afterwards."""
    from collector_assets import recollect as use_case
    from collector_assets.put_back import Wish

    selection = meant(
        ids=request, outcomes=outcome, reason_has=reason_has, kinds=kind, entities=entity, url_has=url_has, states=state
    )
    with owned(source) as (chosen, database):
        wish = Wish(
            source=chosen, window=window, selection=selection, everything=everything, reason=reason,
            by=by or _me(), dry_run=dry_run,
        )  # fmt: skip
        done = use_case.run(wish, database)
    _end(done, as_json=as_json)


def _me() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"


def _end(done: PutBack, *, as_json: bool) -> None:
    if as_json:
        show.in_json(asdict(done) | {"next_step": done.next_step})
    else:
        _show_put_back(done)
    if not done.requests:
        raise typer.Exit(exits.DISAPPOINTED)


def _show_put_back(done: PutBack) -> None:
    rows = [
        {"id": row.request_id, "kind": row.kind, "entity": row.entity, "was": row.outcome, "url": row.url}
        for row in done.examples
    ]
    if rows:
        show.table("Would be put back" if done.dry_run else "Put back", rows, ("id", "kind", "entity", "was", "url"))
    if done.left_alone:
        show.line(f"left alone: {show.tally(done.left_alone)}")
    show.line(done.summary)
    show.line(done.next_step)
