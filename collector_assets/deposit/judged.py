"""An answer with everything decided about it before the transaction."""

from __future__ import annotations

from typing import Final

from collector_assets import links, redirects
from collector_assets.archive import Location
from collector_assets.deposit.answered import Answered, outcome_of
from collector_assets.facts import fact
from collector_assets.outcome import Outcome
from collector_assets.politeness import Forbidden, Listed, Wait

TELLING: Final = frozenset({
    Outcome.BLOCKED, Outcome.NO_SESSION, Outcome.REVISIT_LOST, Outcome.CHAIN_RESTARTED, Outcome.CURSOR_EXPIRED,
})  # fmt: skip
"""Ends of a request that say of its page, too, that it is none to be read."""


@fact
class Judged:
    """One answer with everything decided about it before the transaction."""

    answered: Answered
    outcome: Outcome
    reason: str
    chain: redirects.Chain | None
    """Where a redirect leads."""
    location: Location | None
    found: links.Found | None
    is_revisit: bool
    """The body is already with an earlier page."""

    @property
    def restarts(self) -> bool:
        """Its chain of listings starts over."""
        return self.outcome is Outcome.CHAIN_RESTARTED

    @property
    def was_asked(self) -> bool:
        """Whether the site was."""
        return not isinstance(self.answered.answer, Forbidden | Wait | Listed)

    @property
    def of_page(self) -> Outcome:
        """The page's own outcome: a good page whose discovery failed is still a good page."""
        if self.outcome in (Outcome.SOFT_GONE, Outcome.GONE_CONFIRMED):
            return Outcome.SOFT_GONE
        is_told = self.answered.declared is not None or self.outcome in TELLING
        return self.outcome if is_told else outcome_of(self.answered)
