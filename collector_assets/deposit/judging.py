"""An answer is judged before the transaction: its outcome, why, and what it leads on to (rule 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from collector_assets import decoding, links, redirects, refusal, revisits, soft_gone, start_over
from collector_assets.archive import Archive, Exchange, Location
from collector_assets.contract import OnStatus, Source
from collector_assets.deposit.answered import Answered, outcome_of
from collector_assets.deposit.judged import Judged
from collector_assets.deposit.looking import follow, fresh_page
from collector_assets.deposit.reasons import REASON_LIMIT, at_hop, explain
from collector_assets.errors import BrokenRecord
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.page import Page
from collector_assets.request import RestartChain
from collector_assets.storable import clean_text
from collector_assets.window import Window

DECLARED: Final[Mapping[OnStatus, Outcome]] = {
    "gone": Outcome.GONE, "not_yet": Outcome.NOT_YET, "skip": Outcome.UNWANTED, "restart": Outcome.CHAIN_RESTARTED,
}  # fmt: skip
"""What a status means by its kind; with "fail" it keeps its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Decides about the answers of one source's window, each by itself."""

    source: Source
    window: Window
    archive: Archive

    def judge(self, item: Answered, location: Location | None, exchange: Exchange | None) -> Judged:
        outcome, reason, found, chain = outcome_of(item), item.answer.reason, None, None
        if policy(outcome) is Policy.KEEP and self._says_gone(item):
            outcome, reason = Outcome.SOFT_GONE, "the page bears the source's soft_gone marker"
        kind = self.source.kind_map[item.lease.kind]
        if item.no_session:
            outcome, reason = Outcome.NO_SESSION, item.no_session
        elif item.declared == "restart":
            outcome, reason = start_over.judged(self.source, item.lease, reason)
        elif item.declared is not None:
            outcome = DECLARED.get(item.declared, outcome)
        elif item.blocked:
            outcome, reason = Outcome.BLOCKED, f"{reason}: {item.blocked}" if reason else item.blocked
        elif outcome is Outcome.REDIRECT:
            outcome, reason, chain = self._follow(item)
        elif policy(outcome) is Policy.KEEP and kind.discover:
            outcome, reason, found = self._led_on(item, outcome)
        elif item.later and item.later.warning:
            reason = f"{reason}; {item.later.warning}"
        return Judged(
            answered=item,
            outcome=outcome,
            reason=clean_text(at_hop(item.lease, reason))[:REASON_LIMIT],
            chain=chain,
            location=location,
            found=found,
            is_revisit=bool(exchange and exchange.revisit) and outcome is not Outcome.REVISIT_LOST,
        )

    def _led_on(self, item: Answered, outcome: Outcome) -> tuple[Outcome, str, links.Found | None]:
        """What a page to be followed leads to, and what becomes of its request."""
        try:
            found, reason = self._discover(item)
        except BrokenRecord as error:
            return Outcome.REVISIT_LOST, f"unchanged since an earlier fetch, but {error}", None
        except RestartChain as error:
            return *start_over.judged(self.source, item.lease, str(error)), None
        return Outcome.DISCOVERY_FAILED if found is None else outcome, reason, found

    def _says_gone(self, item: Answered) -> bool:
        """Whether the page says that its item is not there; one that cannot be read says nothing."""
        if self.source.soft_gone is None or self.source.kind_map[item.lease.kind].extract is None:
            return False
        try:
            page = self._page(item)
        except (decoding.DecodingError, BrokenRecord):
            return False
        return soft_gone.says_gone(self.source, page)

    def _page(self, item: Answered) -> Page:
        """The page that came, or that a 304 confirms; `DecodingError`, `BrokenRecord` where it cannot be read."""
        answer = item.answer
        assert isinstance(answer, Response)  # noqa: S101  only a page is read
        if outcome_of(item) is Outcome.NOT_MODIFIED:
            answer = revisits.confirmed(item.lease, answer, self.archive)
        return fresh_page(item.lease, answer, self.window, self.source)

    def _follow(self, item: Answered) -> tuple[Outcome, str, redirects.Chain | None]:
        """Outcome, reason and the next hop, if there is one."""
        assert isinstance(item.answer, Response)  # noqa: S101  it has a status
        chain = follow(self.source, item.lease, item.answer)
        if isinstance(chain, redirects.Ended):
            blocked = refusal.of_address(item.lease.url, chain.url) if chain.url else None
            outcome = Outcome.BLOCKED if blocked else chain.outcome
            return outcome, f"{chain.reason}: {blocked}" if blocked else chain.reason, None
        return Outcome.REDIRECT, item.answer.reason, chain

    def _discover(self, item: Answered) -> tuple[links.Found | None, str]:
        """The links of a fresh page, or nothing and why. The page is stored either way, and read again later.

        `BrokenRecord` when a 304 confirms a page that cannot be read; `RestartChain` when the page asks for that.
        """
        try:
            page, lease = self._page(item), item.lease
            return links.of_page(
                self.source, page, lease.depth, barren=lease.barren, above=lease.above, known_run=lease.known_run,
                restarts=lease.restarts, request_id=lease.request_id,
            ), ""  # fmt: skip
        except (BrokenRecord, RestartChain):
            raise
        except Exception as error:  # noqa: BLE001  a source's code or a page beyond its limits; one page, not the batch
            return None, explain(error)
