"""How the attempt at a leased request ended, with what the answer says about us and about when to come back."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from collector_assets import conduct, decoding, refusal, revisits, urls
from collector_assets.asking import later_of
from collector_assets.closing import UNASKED
from collector_assets.contract import OnStatus, Source
from collector_assets.facts import fact
from collector_assets.fetch import NoResponse, Response
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.politeness import Forbidden, Listed, Wait
from collector_assets.request import Lease
from collector_assets.retry_after import RetryAfter
from collector_assets.spool import whole

MAY_BE_A_REFUSAL: Final = frozenset({
    Outcome.OK, Outcome.REFUSED, Outcome.UNAVAILABLE, Outcome.CLIENT_ERROR, Outcome.UNEXPECTED_STATUS,
})  # fmt: skip
"""Answers that are looked at more closely: challenges come with 200, 202, 403, 405 and 503."""
SMALL_ENCODED: Final = 16 * 1024
"""Bytes of an encoded body that is decoded for that."""


@fact
class Answered:
    """A leased request and how its attempt ended, or why there was none."""

    lease: Lease
    answer: Response | NoResponse | Forbidden | Wait | Listed
    later: RetryAfter | None = None
    """What a site that is throttling or unavailable asks for."""
    declared: OnStatus | None = None
    """What the kind says that the status means."""
    blocked: str | None = None
    """What the answer is instead of the page: a challenge, a block page, a login wall."""
    robots_rule: str | None = None
    """What in the robots.txt allowed it."""
    no_session: str | None = None
    """What it says of the session that it was sent under: that we are not logged in any more."""

    @property
    def origin(self) -> str:
        """Who answered."""
        return urls.origin(self.lease.address)

    @property
    def is_refusal(self) -> bool:
        """The site says no, to us and not to this one request."""
        if self.no_session is not None:
            return False
        return self.blocked is not None or (self.answer.outcome is Outcome.REFUSED and self.declared is None)

    @property
    def told(self) -> str:
        """What the record in the archive says of it, where it is no good page."""
        outcome = Outcome.NO_SESSION if self.no_session else Outcome.BLOCKED if self.blocked else outcome_of(self)
        return "" if policy(outcome) is Policy.KEEP else outcome.value

    @property
    def closes_for(self) -> timedelta | None:
        """How long at least its budget key is closed now, if this answer alone closes it."""
        if self.later and self.later.wait is not None:
            return self.later.wait
        return UNASKED.first if self.answer.outcome is Outcome.THROTTLED else None


def outcome_of(item: Answered) -> Outcome:
    """How the attempt ended, in the light of what was asked."""
    return revisits.outcome_of(item.lease, item.answer) if isinstance(item.answer, Response) else item.answer.outcome


def answered_of(
    source: Source, lease: Lease, answer: Response | NoResponse, robots_rule: str | None = None
) -> Answered:
    """The answer, with what it says about us and about when to come back."""
    if not isinstance(answer, Response):
        return Answered(lease=lease, answer=answer, robots_rule=robots_rule)
    declared = source.kind_map[lease.kind].on_status.get(answer.status)
    return Answered(
        lease=lease,
        answer=answer,
        later=later_of(answer) if answer.outcome in conduct.CLOSING else None,
        declared=declared,
        blocked=None if declared else blocked_of(lease.url, lease.address, answer),
        robots_rule=robots_rule,
    )


def blocked_of(asked: str, address: str, answer: Response) -> str | None:
    """What the answer from `address` is instead of the page `asked` for: a challenge, a block page, a login wall."""
    if answer.outcome not in MAY_BE_A_REFUSAL:
        return None
    return (
        refusal.of_headers(answer.headers)
        or refusal.of_address(asked, address)
        or refusal.of_page(asked, _small(answer))
    )


def _small(answer: Response) -> bytes:
    """The decoded body, if it is so small that it may be a refusal; else nothing."""
    coding = next((value for name, value in answer.headers if name.lower() == b"content-encoding"), b"")
    if len(answer.body) > (SMALL_ENCODED if coding else refusal.LARGEST):
        return b""
    try:
        return whole(decoding.decode(answer.body, coding.decode("latin-1"), limit=refusal.LARGEST).body)
    except decoding.DecodingError:
        return b""
