"""What `replay` and `recollect` share: chosen requests become candidates again; who did it, when and why is kept.

Nothing is sent here. The next materialization of the window's `raw_pages` sends what was put back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NoReturn

from collector_assets import frontier, interventions, selected, windows
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.errors import BadSelection, LateRefused, ReasonMissing
from collector_assets.selected import Group, RequestRow
from collector_assets.selection import Selection
from collector_assets.storable import clean_text
from collector_assets.windows import WindowRow

EXAMPLES: Final = 10
LONGEST_REASON: Final = 500
LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PutBack:
    """What was put back, or would be."""

    verb: Literal["replay", "recollect"]
    source: str
    window: str
    dry_run: bool
    requests: int
    """Put back; of a dry run, what would be."""
    attempts: int
    """That each may have from now on."""
    were: Mapping[str, int]
    """Where they were, with their outcomes."""
    left_alone: Mapping[str, int]
    """Selected as well, but not for this verb: where they are."""
    also_to_fetch: int
    """Other requests of the window that are still to be fetched, and go out with these."""
    is_late: bool
    """What is fetched now shows the site as it is now, and is marked late (rule 22)."""
    intervention: int | None
    """Where the reason is kept; none when nothing was changed."""
    examples: Sequence[RequestRow]
    """At most ten, as they were."""

    @property
    def summary(self) -> str:
        """What was done, in one line."""
        were = ", ".join(f"{number} {place}" for place, number in self.were.items())
        verb = "would be put back" if self.dry_run else "put back"
        late = "; the window has closed: what is fetched now is marked late" if self.is_late else ""
        also = f"; {self.also_to_fetch} others of the window go out with them" if self.also_to_fetch else ""
        return f"{self.requests} requests {verb} ({were or 'none fits'}), {self.attempts} attempts each{also}{late}"

    @property
    def next_step(self) -> str:
        """What a person does now."""
        if self.dry_run:
            return f"nothing was changed: this was a dry run, {self.requests} would be put back"
        if not self.requests:
            return "nothing was changed: no request fits"
        partition = f"partition {self.window} of {self.source}"
        return f"materialize raw_pages, records and latest of {partition}: raw_pages sends what was put back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asks for."""

    source: Source
    window: str
    selection: Selection
    everything: bool
    """Said on purpose; a selection without a criterion is a mistake otherwise."""
    reason: str
    by: str
    dry_run: bool


def run(
    verb: Literal["replay", "recollect"],
    wish: Wish,
    database: Database,
    *,
    takes: Callable[[Group], bool],
    object_to: Callable[[Sequence[Group]], NoReturn] | None = None,
) -> PutBack:
    """Put back what the verb takes of what is selected, in one transaction, the window's row locked first.

    `object_to` raises about requests that were named by id and are not for this verb. Raises `UnknownWindow`,
    `BadSelection`, `ReasonMissing`; `LateRefused` for a closed window of a source that says late="refuse".
    """
    source, selection = wish.source, _meant(wish)
    reason, by = said(wish.reason, "why: a reason", LONGEST_REASON), said(wish.by, "who decides it", LONGEST_NAME)
    with database.transaction() as connection:
        row = windows.require(connection, source.name, wish.window)
        if not wish.dry_run:
            row = windows.lock(connection, source.name, row.window.start)
        place = (connection, source.name, row.window.start)
        found = selected.groups(*place, selection)
        chosen = [group for group in found if takes(group) and group.kind in source.kind_map]
        others = [group for group in found if group not in chosen]
        _require_named(selection, found)
        if selection.ids and others and object_to:
            object_to(others)
        ids = sorted(request_id for group in chosen for request_id in group.ids)
        report = PutBack(
            verb=verb, source=source.name, window=wish.window, dry_run=wish.dry_run, requests=len(ids),
            attempts=source.max_attempts, were=selected.places(chosen), left_alone=selected.places(others),
            also_to_fetch=frontier.counts(*place).to_fetch, is_late=_is_late(connection, source, row),
            intervention=None,
            examples=selected.listed(*place, Selection(ids=tuple(ids[:EXAMPLES]))) if ids else [],
        )  # fmt: skip
        if wish.dry_run or not ids:
            return report
        kept = interventions.add(
            connection, verb=verb, source=source.name, window_start=row.window.start, selection=selection.said(),
            requests=len(ids), were=report.were, reason=reason, by_whom=by,
        )  # fmt: skip
        selected.put_back(connection, row.window.start, ids, attempts=source.max_attempts, intervention=kept)
        windows.take_up(connection, source.name, row.window.start)
    return replace(report, intervention=kept)


def _meant(wish: Wish) -> Selection:
    """The selection, once it is sure that it is meant as it stands."""
    selection = wish.selection.checked(wish.source.kind_map)
    if selection.is_everything and not wish.everything:
        raise BadSelection(
            "nothing is selected; give an outcome, a reason, a kind, an entity, a URL or ids, or say all"
        )
    if wish.everything and not selection.is_everything:
        raise BadSelection(f"everything, and also {', '.join(selection.said())}: say which of the two")
    return selection


def said(text: str, what: str, longest: int) -> str:
    """What a person has to say about a decision; `ReasonMissing` when it is nothing, or too much."""
    found = clean_text(text).strip()
    if not found:
        raise ReasonMissing(f"say {what}; it is kept in `interventions`")
    if len(found) > longest:
        raise ReasonMissing(f"say {what} in at most {longest} characters")
    return found


def _require_named(selection: Selection, found: Sequence[Group]) -> None:
    there = {request_id for group in found for request_id in group.ids}
    if strange := [each for each in selection.ids if each not in there]:
        also = ", with these criteria" if len(selection.said()) > 1 else ""
        raise BadSelection(f"the window has no request {strange[0]}{also}; `collector requests` lists them")


def _is_late(connection: Connection, source: Source, row: WindowRow) -> bool:
    is_late = windows.is_late(connection, source.name, row.window.start)
    if is_late and source.late == "refuse":
        raise LateRefused(
            f"{source.name} {row.window.key}: the window closed at {row.closes_at:%Y-%m-%d %H:%M} UTC and the source "
            f'says late="refuse"; nothing is fetched for it any more'
        )
    return is_late
