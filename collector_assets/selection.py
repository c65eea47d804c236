"""Which requests of a window a person means. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, Final

from collector_assets.errors import BadSelection
from collector_assets.outcome import Outcome
from collector_assets.storable import clean_text

STATES: Final = (
    "candidate", "queued", "leased", "fetched", "done", "failed", "failed(fetch)", "failed(read)", "skipped",
)  # fmt: skip
MOST_IDS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Requests that fit every criterion that is given; several values of one criterion are alternatives."""

    ids: tuple[int, ...] = ()
    states: tuple[str, ...] = ()
    """As tables show them: `failed` is both `failed(fetch)` and `failed(read)`."""
    outcomes: tuple[str, ...] = ()
    reason_has: str = ""
    """Part of the reason, in any case."""
    kinds: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    """Of the request, or of a record or reject that was read from it in this window."""
    url_has: str = ""
    """Part of the URL, in any case."""

    @property
    def is_everything(self) -> bool:
        """No criterion: the whole window."""
        return not self.said()

    def said(self) -> dict[str, Any]:
        """The criteria that were given, for the record and for people."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}

    def arguments(self) -> dict[str, Any]:
        """The criteria as parameters of a statement; one that was not given is NULL."""
        return {each.name: None for each in fields(self)} | self.said()

    def checked(self, kinds: Collection[str]) -> Selection:
        """The same, with text that can be stored; BadSelection when it names what cannot be."""
        _known("outcome", self.outcomes, [outcome.value for outcome in Outcome])
        _known("kind", self.kinds, kinds)
        _known("state", self.states, STATES)
        if len(self.ids) > MOST_IDS:
            raise BadSelection(f"{len(self.ids)} ids; name at most {MOST_IDS}, or select by outcome, kind or entity")
        return Selection(
            ids=tuple(sorted(set(self.ids))),
            states=self.states,
            outcomes=self.outcomes,
            reason_has=clean_text(self.reason_has),
            kinds=self.kinds,
            entities=tuple(map(clean_text, self.entities)),
            url_has=clean_text(self.url_has),
        )


def _known(what: str, given: Collection[str], known: Collection[str]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise BadSelection(f"no {what} is called {unknown[0]!r}; there are: {', '.join(known)}")
