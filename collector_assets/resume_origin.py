"""Use case: a person lets requests go to an origin again that refused us. Sends nothing."""

from __future__ import annotations

from dataclasses import dataclass

from collector_assets import interventions, origins, urls
from collector_assets.database import Database
from collector_assets.errors import BadSelection
from collector_assets.put_back import LONGEST_NAME, LONGEST_REASON, said


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A halt that ended."""

    origin: str
    was: str
    """Why it was halted."""
    halted_by: str | None
    """The source whose refusal was one too many."""
    intervention: int
    """Where the reason is kept."""

    @property
    def next_step(self) -> str:
        """What a person does now."""
        failed = "`collector replay` (the job `replay`) brings back what was refused"
        return f"materialize raw_pages of the windows that waited, or let the sensor `resume` do it; {failed}"


def run(origin: str, *, reason: str, by: str, database: Database) -> Resumed:
    """End the halt of an origin, and keep who decided it and why.

    Raises `BadSelection` for what is not halted, `ReasonMissing`.
    """
    why, who = said(reason, "why: a reason", LONGEST_REASON), said(by, "who decides it", LONGEST_NAME)
    address = urls.resolve(origin, "")
    if isinstance(address, urls.Rejected):
        raise BadSelection(f"{origin!r} is no origin, which looks like https://shop.example")
    name = urls.origin(address.url)
    with database.transaction() as connection:
        row = next((row for row in origins.listed(connection) if row.origin == name and row.halted_at), None)
        if row is None or not origins.resume(connection, name, reason=why, by_whom=who):
            halted = ", ".join(sorted(origins.halted(connection))) or "none is"
            raise BadSelection(f"{name} is not halted; halted: {halted}")
        kept = interventions.add(
            connection, verb="resume", source=row.halted_by or "", window_start=None, selection={"origin": name},
            requests=0, were={}, reason=why, by_whom=who,
        )  # fmt: skip
    return Resumed(origin=name, was=row.halted_reason or "", halted_by=row.halted_by, intervention=kept)
