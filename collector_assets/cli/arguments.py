"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from collector_assets.selection import STATES, Selection

AsJson = Annotated[bool, typer.Option("--json", help="For machines: one JSON value on stdout.")]
SourceName = Annotated[str, typer.Argument(help="Name of a source.", metavar="SOURCE")]
WindowKey = Annotated[str, typer.Argument(help="Key of a window, for example 2026-11-29.", metavar="WINDOW")]
Limit = Annotated[int, typer.Option(help="Rows to list.", min=1, max=10_000)]

# --- Which requests --------------------------------------------------------------------------------------------------

Id = Annotated[list[int] | None, typer.Option("--id", help="A request, by its id. May be repeated.")]
Outcome = Annotated[list[str] | None, typer.Option(help="How attempts ended, for example timeout. May be repeated.")]
ReasonHas = Annotated[str, typer.Option(metavar="TEXT", help="Part of why the request failed, in any case.")]
Kind = Annotated[list[str] | None, typer.Option(help="A kind of pages. May be repeated.")]
Entity = Annotated[list[str] | None, typer.Option(help="What the page is about, as in latest. May be repeated.")]
UrlHas = Annotated[str, typer.Option(metavar="TEXT", help="Part of the URL, in any case.")]
State = Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(STATES)}. May be repeated.")]


def meant(
    *, ids: Sequence[int] | None, outcomes: Sequence[str] | None, reason_has: str, kinds: Sequence[str] | None,
    entities: Sequence[str] | None, url_has: str, states: Sequence[str] | None = None,
) -> Selection:  # fmt: skip
    """The requests that a command line names."""
    return Selection(
        ids=tuple(ids or ()), outcomes=tuple(outcomes or ()), reason_has=reason_has, kinds=tuple(kinds or ()),
        entities=tuple(entities or ()), url_has=url_has, states=tuple(states or ()),
    )  # fmt: skip
