"""What becomes of a request by what was judged of its answer, or by why nothing was sent (rules 3, 9 and 15)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from collector_assets import conduct, frontier, windows
from collector_assets.contract import OnStatus, Source
from collector_assets.deposit.judged import Judged
from collector_assets.fetch import NoResponse, Response
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.politeness import Forbidden, Listed, Wait
from collector_assets.request import Lease
from collector_assets.retry import Backoff

MOST_SNOOZES: Final = 10
"""How often a site may say "later" to one request at no cost; from then on each time is an attempt."""
NOT_YET: Final = Backoff(first=timedelta(minutes=5), most=timedelta(hours=1))
"""Between two looks for what is not there yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endings:
    """How the requests of one source's window end."""

    source: Source
    window: windows.WindowRow
    backoff: Backoff
    """Between two attempts at a request."""
    chance: random.Random

    def of_answer(self, item: Judged, note: conduct.Note) -> frontier.Result:
        lease, outcome, reason = item.answered.lease, item.outcome, item.reason
        mine = {"request_id": lease.request_id, "fence": lease.fence}
        if item.answered.declared is not None:
            return self._declared(item, item.answered.declared, note.now)
        if outcome is Outcome.DISCOVERY_FAILED:
            return frontier.Failed(**mine, phase="read", outcome=outcome, reason=reason)
        is_logged_out = outcome is Outcome.NO_SESSION  # again at once, from its own address: it waits for the login
        wait = timedelta(0) if is_logged_out else note.wait.get(lease.request_id)
        if wait is not None and lease.snoozes < MOST_SNOOZES:
            said = {"outcome": outcome, "reason": reason, "forgets_redirects": is_logged_out}
            return frontier.Snoozed(**mine, **said, wait=wait, was_sent=True)
        kind = self.source.kind_map[lease.kind]
        match policy(outcome):
            # A page that was followed is done with that; reading may still make it failed(read) (rule 15).
            case Policy.KEEP if kind.extract and not kind.discover:
                return frontier.Fetched(**mine)
            case Policy.KEEP:
                return frontier.Done(**mine)
            case Policy.FOLLOW:
                assert item.chain is not None  # noqa: S101  a redirect that leads nowhere has another outcome
                key = self.source.budget_key(item.chain.url)
                return frontier.Moved(**mine, chain=item.chain.stored(), budget_key=key, reason=reason)
            case Policy.RETRY | Policy.SNOOZE:
                backoff = self.backoff.wait(_attempt_of_budget(lease, self.source.max_attempts), self.chance)
                least = max(wait or timedelta(0), _no_sooner(item.answered.answer))
                return frontier.Retry(**mine, wait=max(backoff, least), outcome=outcome, reason=reason)
            case Policy.SKIP:
                return frontier.Skipped(**mine, outcome=outcome, reason=reason, counts=not item.restarts)
            case Policy.FAIL | Policy.HALT:
                return frontier.Failed(**mine, phase="fetch", outcome=outcome, reason=reason)

    def of_withheld(self, item: Judged, now: datetime) -> frontier.Result:
        """Nothing was sent. What waits for a robots.txt costs no attempt until the window should have ended."""
        lease, answer, how = item.answered.lease, item.answered.answer, policy(item.outcome)
        if isinstance(answer, Listed):
            return frontier.Done(request_id=lease.request_id, fence=lease.fence)
        mine = {"request_id": lease.request_id, "fence": lease.fence, "outcome": item.outcome, "reason": item.reason}
        if isinstance(answer, Wait):
            wait = timedelta(seconds=answer.for_s)
            if answer.charge == "never" or (answer.charge == "late" and now < self.window.closes_at):
                return frontier.Snoozed(**mine, wait=wait)
            if how in (Policy.RETRY, Policy.SNOOZE):
                return frontier.Retry(**mine, wait=wait)
        return frontier.Skipped(**mine, counts=False) if how is Policy.SKIP else frontier.Failed(**mine, phase="fetch")

    def _declared(self, item: Judged, means: OnStatus, now: datetime) -> frontier.Result:
        """What the kind says. "not_yet" is asked again now and then until the window has closed, and then skipped."""
        lease, left = item.answered.lease, self.window.closes_at - now
        mine = {"request_id": lease.request_id, "fence": lease.fence, "outcome": item.outcome, "reason": item.reason}
        if means == "fail" or item.outcome is Outcome.CURSOR_EXPIRED:
            return frontier.Failed(**mine, phase="fetch")
        if means != "not_yet" or left <= timedelta(0):
            return frontier.Skipped(**mine, counts=not item.restarts)
        return frontier.Snoozed(**mine, wait=min(NOT_YET.wait(lease.snoozes + 1, self.chance), left), was_sent=True)


def _no_sooner(answer: Response | NoResponse | Forbidden | Wait | Listed) -> timedelta:
    """Another attempt waits until it can end otherwise."""
    return timedelta(seconds=answer.wait_s) if isinstance(answer, NoResponse) else timedelta(0)


def _attempt_of_budget(lease: Lease, max_attempts: int) -> int:
    """1 for the first attempt since the request was put back, if it was: a new budget begins with short waits."""
    spent_before = max(0, lease.max_attempts - max_attempts)
    return max(1, lease.attempt - spent_before)
