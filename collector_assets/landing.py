"""Where a fetcher that follows redirects by itself ended up, and whether we may have been there.

Our own HTTP follows nothing. A rendering service (a browser alike) says afterwards which address its page is from. On
the same origin that address must be one that the robots.txt allows; on another one its page is let go unseen, and the
address is a redirect: a request of its own, under that origin's robots.txt, budget and halts, if it is in scope at all.
"""

from __future__ import annotations

from dataclasses import replace

from collector_assets import urls
from collector_assets.fetch import NoResponse, Response
from collector_assets.outcome import Outcome
from collector_assets.politeness import Forbidden, Permit, Politeness


def judged(politeness: Politeness, answer: Response | NoResponse) -> Response | NoResponse:
    """The answer, if the place it is from is one where we may be."""
    if not isinstance(answer, Response) or answer.final_url == answer.url:
        return answer
    permit = politeness.permit(answer.final_url) if urls.origin(answer.final_url) == urls.origin(answer.url) else None
    match permit:
        case Permit():
            return answer
        case Forbidden(outcome=outcome, reason=reason):
            said = f"it led to {answer.final_url}: {reason}"
            return NoResponse(outcome=outcome, reason=said, ended_at=answer.ended_at, sent=True)
        case _:
            return _redirect(answer)


def _redirect(answer: Response) -> Response:
    """Nothing of the other page is kept: it was not asked for."""
    return replace(
        answer,
        outcome=Outcome.REDIRECT,
        reason=f"it led to {answer.final_url}",
        refresh=answer.final_url,
        final_url=answer.url,
        headers=(),
        body=b"",
        truncated=None,
    )
