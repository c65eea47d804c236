"""Commands about the archive: is it what it says it is; discard what is older than sources keep it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collector_assets.cli import exits, show
from collector_assets.cli.arguments import AsJson
from collector_assets.cli.ground import registry_of, running
from collector_assets.database import Database
from collector_assets.errors import BadSelection, Unavailable
from collector_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    from collector_assets.archive import Archive
    from collector_assets.audit import Audit

commands = typer.Typer()
archive = typer.Typer(no_args_is_help=True, help="The WARC files.")
commands.add_typer(archive, name="archive")

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PATH]...", help="Files or folders, also of other writers; the whole archive without any."),
]
Sources = Annotated[
    list[str] | None, typer.Argument(metavar="[SOURCE]...", help="Names of sources; all of them without any.")
]


@archive.command()
def check(
    paths: Paths = None,
    no_database: Annotated[bool, typer.Option("--no-database", help="Look at the files alone.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check WARC files strictly, and that every page row of the database has its record in them."""
    from collector_assets import audit
    from collector_assets.archive import open_archive

    settings = load_settings()
    home = open_archive(settings.archive_location)
    inside, outside = _sorted(home, paths or [home.location])
    found: list[Audit] = []
    if inside:
        with _database(settings, wanted=not no_database) as database:
            found.append(audit.run(home, inside, database=database))
    for place, file in outside:
        found.append(audit.run(open_archive(place), [file]))
    if as_json:
        show.in_json([_facts(each) for each in found])
    else:
        for each in found:
            _print(each)
    if any(each.problems for each in found):
        raise typer.Exit(exits.DISAPPOINTED)


@commands.command()
def retain(
    sources: Sources = None,
    delete: Annotated[bool, typer.Option("--delete", help="Do it; without this it is only counted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Discard pages, rejects and history that are older than the `retention` of their source says."""
    from collector_assets import retain as use_case
    from collector_assets.archive import open_archive

    settings = load_settings()
    found = registry_of(settings)
    chosen = [found.get(name) for name in sources] if sources else [each.source for each in found.loaded]
    with running(settings) as ground, Database(ground.dsn) as database:
        done = use_case.run(chosen, database, open_archive(settings.archive_location), is_dry=not delete)
    if as_json:
        show.in_json([asdict(each) for each in done])
        return
    for each in done:
        show.line(each.summary)
    if not delete:
        show.line("nothing was discarded: say --delete to do it")


def _sorted(home: Archive, paths: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The paths inside our archive, relative to it; the others as an archive and what to look at in it."""
    inside, outside = [], []
    for path in paths:
        place = path.rstrip("/") if "://" in path else str(Path(path).absolute())
        if "://" not in place and not Path(place).exists() and place != home.location:
            raise BadSelection(f"{path}: no such file or folder")
        if place == home.location or place.startswith(f"{home.location}/"):
            inside.append(place.removeprefix(home.location).lstrip("/"))
        else:
            outside.append(_split(place))
    return inside, outside


def _split(place: str) -> tuple[str, str]:
    """A file or folder as the archive that it may be looked at in, and its name there."""
    if "://" not in place and Path(place).is_dir():
        return place, ""
    folder, _, name = place.rpartition("/")
    return (folder or "/", name) if ".warc" in name or "://" not in place else (place, "")


@contextmanager
def _database(settings: Settings, *, wanted: bool) -> Iterator[Database | None]:
    """The database of the page rows; none, in words, when it cannot be reached."""
    if not wanted:
        yield None
        return
    with ExitStack() as opened:
        try:
            ground = opened.enter_context(running(settings))
            database = opened.enter_context(Database(ground.dsn))
        except Unavailable as error:
            show.err.print(f"only the files are checked: {error}", markup=False, soft_wrap=True)
            database = None
        yield database


def _facts(found: Audit) -> dict[str, Any]:
    return {
        "files": found.files, "bytes": found.bytes, "records": dict(found.types), "rows": found.rows,
        "unreferenced": found.unreferenced, "problems": [asdict(each) for each in found.problems],
        "torn": [asdict(each) for each in found.torn],
    }  # fmt: skip


def _print(found: Audit) -> None:
    for problem in found.problems:
        show.line(f"{problem.file} at {problem.offset}: {problem.message}")
    for problem in found.torn:
        show.line(f"{problem.file} at {problem.offset}: {problem.message} (harmless: no page row needs it)")
    records = ", ".join(f"{number:,} {kind}" for kind, number in sorted(found.types.items())) or "no records"
    rows = (
        ""
        if found.rows is None
        else f"; {found.rows:,} page rows compared, {found.unreferenced:,} responses unreferenced"
    )
    verdict = f"{len(found.problems)} problems" if found.problems else "all is well"
    show.line(f"{found.files:,} files, {found.bytes:,} bytes, {records}{rows}: {verdict}")
