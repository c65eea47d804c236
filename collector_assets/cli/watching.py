"""Commands about what goes wrong: is it fresh, what was told, and keeping quiet about a source for a while."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collector_assets.cli import exits, show
from collector_assets.cli.arguments import AsJson, Limit, SourceName
from collector_assets.cli.ground import owned, registry_of, running
from collector_assets.database import Database
from collector_assets.settings import load_settings

if TYPE_CHECKING:
    from collector_assets.channels import Routes
    from collector_assets.standings import Known

OLD_AFTER = timedelta(minutes=10)
"""The sensor judges each minute; a judgement older than this says that it does not run."""
COLUMNS = ("source", "fresh", "cause", "window", "since", "message", "what to do")

OneSource = Annotated[str | None, typer.Argument(metavar="[SOURCE]", help="Name of a source; all without it.")]
Reason = Annotated[str, typer.Option(help="Why; shown wherever the mute is.")]
By = Annotated[str, typer.Option(metavar="NAME", help="Who decided it; you, when it is left out.")]

commands = typer.Typer()


@commands.command()
def freshness(source: OneSource = None, as_json: AsJson = False) -> None:
    """Whether each source is fresh, and if not, why: as the sensor found it last."""
    with _database(source) as database:
        found = known(database, source)
    if as_json:
        show.in_json([asdict(each) for each in found])
    else:
        print_freshness(found)
    if any(not each.is_fresh for each in found):
        raise typer.Exit(exits.DISAPPOINTED)


@commands.command()
def alerts(
    source: OneSource = None,
    limit: Limit = 50,
    test: Annotated[bool, typer.Option("--test", help="Send one test message through every channel.")] = False,
    as_json: AsJson = False,
) -> None:
    """What went wrong lately, how often, and whether it was told."""
    from collector_assets import alerts as store
    from collector_assets import channels, mutes

    routes = channels.load(load_settings().alerts)
    if test:
        _test(routes, as_json=as_json)
        return
    with _database(source) as database, database.transaction() as connection:
        found = store.listed(connection, source, limit=limit)
        quiet = [mute for name, mute in mutes.active(connection).items() if source in {None, name}]
    if as_json:
        show.in_json({"alerts": [asdict(each) for each in found], "mutes": [asdict(each) for each in quiet]})
        return
    rows = [
        {"source": each.source, "cause": each.cause, "times": each.count, "first": _shown(each.first_at),
         "last": _shown(each.last_at), "told": _shown(each.sent_at), "problem": each.problem}
        for each in found
    ]  # fmt: skip
    show.table("Alerts", rows, ("source", "cause", "times", "first", "last", "told", "problem"))
    for mute in quiet:
        what = "paused" if mute.pauses else "muted"
        show.line(f"{mute.source} is {what} until {_shown(mute.until)} by {mute.by_whom}: {mute.reason}")


@commands.command()
def mute(
    source: SourceName,
    until: Annotated[str, typer.Option(metavar="DATE", help="2026-12-24, or with a time: 2026-12-24T08:00+01:00.")],
    reason: Reason,
    pause: Annotated[bool, typer.Option("--pause", help="Start nothing by itself either: schedule, resume.")] = False,
    by: By = "",
) -> None:
    """Keep the alerts of a source back until a date; with --pause it is not collected by itself either."""
    from collector_assets import mutes

    end = _moment(until)
    with owned(source) as (chosen, database), database.transaction() as connection:
        mutes.put(connection, source=chosen.name, until=end, pauses=pause, reason=reason, by_whom=by or _me())
    show.line(f"{source} is {'paused' if pause else 'muted'} until {_shown(end)}; `collector unmute {source}` ends it")


@commands.command()
def unmute(source: SourceName) -> None:
    """End a mute or a pause now."""
    from collector_assets import mutes

    with owned(source) as (chosen, database), database.transaction() as connection:
        held = mutes.end(connection, chosen.name)
    show.line(f"{source} is heard again" if held else f"{source} was neither muted nor paused")


def known(database: Database, source: str | None = None) -> list[Known]:
    """What the sensor found last."""
    from collector_assets import freshness as use_case

    return use_case.known(database, source)


def print_freshness(found: Sequence[Known]) -> None:
    """A table, and a word where it is old."""
    show.table("Freshness", [_row(each) for each in found], COLUMNS)
    if not found:
        show.line("nothing was judged yet: turn on the sensor `freshness`, and see that the daemon runs")
        return
    newest = max(each.judged_at for each in found)
    if datetime.now(UTC) - newest > OLD_AFTER:
        show.line(f"this was found {_shown(newest)}: since then the sensor `freshness` or the Dagster daemon is down")


def _row(each: Known) -> dict[str, Any]:
    return {
        "source": each.source, "fresh": "yes" if each.is_fresh else "NO", "cause": each.cause,
        "window": each.window_key, "since": None if each.is_fresh else _shown(each.stale_at), "message": each.message,
        "what to do": each.fix,
    }  # fmt: skip


def _test(routes: Routes, *, as_json: bool) -> None:
    from collector_assets import notify

    ended = notify.try_channels(routes)
    if as_json:
        show.in_json(ended)
    else:
        rows = [{"channel": name, "arrived": "no" if why else "yes", "problem": why} for name, why in ended.items()]
        show.table("Channels", rows, ("channel", "arrived", "problem"))
    if any(ended.values()):
        raise typer.Exit(exits.DISAPPOINTED)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no date like 2026-12-24", param_hint="--until") from None
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    if aware <= datetime.now(UTC):
        raise typer.BadParameter(f"{_shown(aware)} is over", param_hint="--until")
    return aware


@contextmanager
def _database(source: str | None) -> Iterator[Database]:
    """The database; a name that no source has is refused first."""
    settings = load_settings()
    if source is not None:
        registry_of(settings).get(source)
    with running(settings) as ground, Database(ground.dsn) as database:
        yield database


def _me() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"


def _shown(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment else "never"
