"""The command line.

Exit codes: 0 done; 1 it ran, and the result is not what you want; 2 something must be changed first; 3 unavailable, try
again; 4 refused; 130 interrupted.
"""

from __future__ import annotations

import logging
import sys

import psycopg
import typer

from collector_assets.cli import (
    archiving,
    authoring,
    browsing,
    collecting,
    exits,
    exporting,
    halting,
    installing,
    looking,
    owning,
    show,
    watching,
)
from collector_assets.errors import CollectorError, Refused, Unavailable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Recurring web collection as Dagster assets.",
)
for part in (installing, collecting, looking, owning, halting, watching, exporting, authoring, archiving, browsing):
    app.add_typer(part.commands)


def main() -> None:
    """Run a command; every expected error is one line on stderr and an exit code that means something."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        app()
    except CollectorError as error:
        show.err.print(f"collector: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(
            exits.REFUSED
            if isinstance(error, Refused)
            else exits.UNAVAILABLE
            if isinstance(error, Unavailable)
            else exits.MUST_CHANGE
        )
    except psycopg.OperationalError as error:
        # Lost in the middle of a transaction: leases and slots run out by themselves, the work is collected again.
        line = next(iter(str(error).splitlines()), type(error).__name__)
        show.err.print(f"collector: the database went away: {line}", style="red", markup=False, soft_wrap=True)
        sys.exit(exits.UNAVAILABLE)
    except KeyboardInterrupt:
        sys.exit(exits.INTERRUPTED)
