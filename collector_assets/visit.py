"""One page outside any window, for `check` and `new`: robots.txt first, then the request, both under the budget.

It writes the slot that it holds, and what robots.txt and page say about the site where that concerns everybody.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import uvloop

from collector_assets import conduct, landing, origins, urls
from collector_assets.asking import later_of, request_of
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.deposit import blocked_of, follow, seen
from collector_assets.errand import Errand
from collector_assets.errors import LoginFailed, OriginHalted
from collector_assets.fetch import Fetcher, NoResponse, Response
from collector_assets.let_in import Opened, carried, why_over
from collector_assets.login import Clerk, Denied, Later, Login
from collector_assets.outcome import Outcome
from collector_assets.politeness import Forbidden, Permit, Politeness, Wait
from collector_assets.redirects import Ended
from collector_assets.request import NewRequest
from collector_assets.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How the one attempt ended, what the robots.txt said, and what the budget was like."""

    got: Response | NoResponse
    robots_rule: str
    waited_s: float
    """For the slot and its gap."""
    gap_s: float
    slots: int
    seconds: float
    """From the slot's readiness to the end of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """No slot came free within the source's patience; nothing was sent."""

    waited_s: float
    closed_for_s: float


def log_in(
    source: Source, window: Window, *, database: Database, fetcher: Callable[[], Fetcher]
) -> Opened | Wait | None:
    """A session of the source's own for a few pages, which nobody else uses; none where it needs none.

    Raises `LoginFailed`.
    """
    if source.session is None:
        return None
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        ended = runner.run(_log_in(source, window, database, fetcher))
    match ended:
        case Opened():
            return ended
        case Denied(problem=problem):
            raise LoginFailed(source.name, problem)
        case Later(problem=problem, least=least):
            return Wait(for_s=least.total_seconds(), outcome=Outcome.NO_SESSION, reason=problem)


async def _log_in(source: Source, window: Window, database: Database, make: Callable[[], Fetcher]) -> Login:
    fetcher, holder, patience_s = make(), _holder(), source.patience.total_seconds()
    politeness = Politeness(source=source, database=database, fetcher=fetcher, holder=holder, patience_s=patience_s)
    clerk = Clerk(
        source=source, window=window, database=database, fetcher=fetcher, politeness=politeness, holder=holder,
        patience_s=patience_s,
    )  # fmt: skip
    try:
        return await clerk.attempt()
    finally:
        await fetcher.close()


def run(
    source: Source,
    window: Window,
    request: NewRequest,
    *,
    database: Database,
    fetcher: Callable[[], Fetcher],
    session: Opened | None = None,
) -> Answer | Busy | Forbidden | Wait:
    """Send the request once, if its robots.txt allows it, in its turn among all who use the budget key.

    Redirects are followed as in a window, each hop a request of its own. `session`: of a source that has one, by
    `log_in`. Raises `OriginHalted`.
    """
    while True:
        _require_open(source, request, database)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            answer = runner.run(_go(source, request, database, fetcher, session))
        if not isinstance(answer, Answer) or not isinstance(answer.got, Response):
            return answer
        if over := session and why_over(source, window, request, answer.got, None):
            return replace(answer, got=replace(answer.got, outcome=Outcome.NO_SESSION, reason=over))
        got = seen(source, window, request, answer.got)
        if got.outcome is not Outcome.REDIRECT:
            return replace(answer, got=got)
        chain = follow(source, request, got)
        if isinstance(chain, Ended):
            return replace(answer, got=replace(got, outcome=chain.outcome, reason=chain.reason))
        request = replace(request, chain=chain.stored(), budget_key=source.budget_key(chain.url))


def _holder() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


async def _go(
    source: Source, request: NewRequest, database: Database, make: Callable[[], Fetcher], session: Opened | None
) -> Answer | Busy | Forbidden | Wait:
    fetcher, holder = make(), _holder()
    began, patience_s = time.monotonic(), source.patience.total_seconds()
    politeness = Politeness(source=source, database=database, fetcher=fetcher, holder=holder, patience_s=patience_s)
    try:
        match await politeness.ask(_address(request)):
            case Permit(rule=rule):
                errand = Errand(source, request.budget_key, holder=holder, database=database)
                return await _sent(source, request, rule, errand, fetcher, politeness, database, session)
            case Wait(is_busy=True, for_s=for_s):
                return Busy(waited_s=time.monotonic() - began, closed_for_s=for_s if for_s > 1 else 0.0)
            case Forbidden() | Wait() as no:
                return no
    finally:
        await fetcher.close()


def _require_open(source: Source, request: NewRequest, database: Database) -> None:
    """Nothing is sent to a halted origin, by nobody (rule 9)."""
    with database.transaction() as connection:
        halted = {row.origin: row for row in origins.listed(connection) if row.halted_at}
    if row := halted.get(urls.origin(_address(request))):
        said = f"{row.origin} refused us and is halted since {row.halted_at:%Y-%m-%d %H:%M %Z} ({row.halted_reason})"
        raise OriginHalted(source.name, said, [row.origin])


def _address(request: NewRequest) -> str:
    return request.chain["url"] if request.chain else request.url


async def _sent(
    source: Source,
    request: NewRequest,
    rule: str,
    errand: Errand,
    fetcher: Fetcher,
    politeness: Politeness,
    database: Database,
    session: Opened | None,
) -> Answer | Busy:
    """Wait for a slot, then send; again when the slot was lost before a byte left."""
    began, patience_s = time.monotonic(), source.patience.total_seconds()
    async with errand:
        while await errand.ready(patience_s=patience_s - (time.monotonic() - began)):
            ready = time.monotonic()
            asked = replace(
                request_of(source, request), may_load=lambda url: not isinstance(politeness.permit(url), Forbidden)
            )
            got = await errand.send(fetcher, carried(source, session, request, asked) if session else asked)
            if got is not None and errand.acquired is not None:
                got = landing.judged(politeness, got)
                got = await asyncio.to_thread(_noted, source, request, got, database)
                return Answer(
                    got=got, robots_rule=rule, waited_s=ready - began, gap_s=errand.acquired.gap_s,
                    slots=errand.acquired.slots, seconds=got.ended_at - ready,
                )  # fmt: skip
        return Busy(waited_s=time.monotonic() - began, closed_for_s=errand.closed_for_s)


def _noted(
    source: Source, request: NewRequest, got: Response | NoResponse, database: Database
) -> Response | NoResponse:
    """The answer, a challenge by its name; what it says about the site is told to everybody (rule 9)."""
    address, kind = _address(request), source.kind_map.get(request.kind)
    blocked = blocked_of(request.url, address, got) if isinstance(got, Response) else None
    if isinstance(got, Response) and blocked:
        got = replace(got, outcome=Outcome.BLOCKED, reason=blocked)
    later = later_of(got) if isinstance(got, Response) and got.outcome in conduct.CLOSING else None
    answer = conduct.Answer(
        origin=urls.origin(address), budget_key=request.budget_key, request_id=0, outcome=got.outcome,
        reason=got.reason, is_declared=isinstance(got, Response) and kind is not None and got.status in kind.on_status,
        sent_ago_s=0.0, received_ago_s=0.0, asked=later.wait if later else None,
    )  # fmt: skip
    with database.transaction() as connection:
        conduct.take_note(connection, source, [answer], random.Random())  # noqa: S311  jitter, not a secret
    return got
