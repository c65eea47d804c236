"""Commands about sites that refused us, or want to be left alone: see them, and let requests go to one again."""

from __future__ import annotations

import getpass
import socket
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collector_assets.cli import show
from collector_assets.cli.arguments import AsJson
from collector_assets.cli.ground import running
from collector_assets.database import Database
from collector_assets.settings import load_settings

if TYPE_CHECKING:
    from collector_assets.listing import Trouble

Reason = Annotated[str, typer.Option(help="Why it is right to go on; kept in the table interventions.")]
By = Annotated[str, typer.Option(metavar="NAME", help="Who decided it; you, when it is left out.")]
COLUMNS = ("origin", "state", "since", "open in s", "refusals", "why", "by", "robots.txt")

commands = typer.Typer()


@commands.command()
def origins(
    everything: Annotated[bool, typer.Option("--all", help="Every origin whose robots.txt is known.")] = False,
    as_json: AsJson = False,
) -> None:
    """Sites that refused us and are halted, domains closed for a while, robots.txt that cannot be had: and why."""
    from collector_assets import listing

    with running(load_settings()) as ground, Database(ground.dsn) as database:
        found = listing.troubles(database, is_all=everything)
    if as_json:
        show.in_json([asdict(each) for each in found])
        return
    show.table("Origins", [_row(each) for each in found], COLUMNS)
    if any(each.state == "halted" for each in found):
        show.line("nothing is sent to a halted origin by anybody until `collector resume ORIGIN --reason …`")
    if not found:
        show.line("no site has refused us")


@commands.command()
def resume(
    origin: Annotated[
        str, typer.Argument(metavar="ORIGIN", help="As `collector origins` shows it: https://shop.example.")
    ],
    reason: Reason,
    by: By = "",
    as_json: AsJson = False,
) -> None:
    """Let requests go to a halted origin again. Sends nothing by itself."""
    from collector_assets import resume_origin

    with running(load_settings()) as ground, Database(ground.dsn) as database:
        done = resume_origin.run(origin, reason=reason, by=by or _me(), database=database)
    if as_json:
        show.in_json(asdict(done) | {"next_step": done.next_step})
        return
    show.line(f"{done.origin} may be asked again; it was halted because of {done.was}")
    show.line(done.next_step)


def _row(each: Trouble) -> dict[str, Any]:
    return {
        "origin": each.name, "state": each.state.upper() if each.state == "halted" else each.state,
        "since": f"{each.since:%Y-%m-%d %H:%M %Z}" if each.since else None,
        "open in s": None if each.for_s is None else round(each.for_s), "refusals": each.refusals, "why": each.why,
        "by": each.by, "robots.txt": each.robots,
    }  # fmt: skip


def _me() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"
