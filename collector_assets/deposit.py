"""Put a batch of answers where they are safe: bytes into the archive first, then rows and states in one transaction.

A crash between the two leaves an unreferenced record, never a row that points at missing bytes (rule 10).
"""

from __future__ import annotations

import random
import re
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from collector_assets import (
    conduct,
    decoding,
    frontier,
    html,
    links,
    pages,
    redirects,
    refusal,
    rejected_links,
    remember,
    revisits,
    sift,
    soft_gone,
    start_over,
    urls,
    windows,
)
from collector_assets.archive import Archive, ArchiveWriter, Exchange, Location
from collector_assets.asking import later_of
from collector_assets.closing import UNASKED
from collector_assets.contract import OnStatus, Source
from collector_assets.database import Connection, Database
from collector_assets.errors import BrokenRecord
from collector_assets.fetch import NoResponse, Response
from collector_assets.inspection import inspected
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.page import Page, at_hand, header_map
from collector_assets.politeness import Forbidden, Listed, Wait
from collector_assets.request import Earlier, Lease, NewRequest, RestartChain
from collector_assets.retry import Backoff
from collector_assets.retry_after import RetryAfter
from collector_assets.spool import whole
from collector_assets.storable import clean_text
from collector_assets.window import Window

REASON_LIMIT: Final = 500
_COOKIE_VALUE: Final = re.compile(rb"\A([^=;]*)(?:=[^;]*|(?=;|\Z))")
MAY_BE_A_REFUSAL: Final = frozenset({
    Outcome.OK, Outcome.REFUSED, Outcome.UNAVAILABLE, Outcome.CLIENT_ERROR, Outcome.UNEXPECTED_STATUS,
})  # fmt: skip
"""Answers that are looked at more closely: challenges come with 200, 202, 403, 405 and 503."""
SMALL_ENCODED: Final = 16 * 1024
"""Bytes of an encoded body that is decoded for that."""
MOST_SNOOZES: Final = 10
"""How often a site may say "later" to one request at no cost; from then on each time is an attempt."""
NOT_YET: Final = Backoff(first=timedelta(minutes=5), most=timedelta(hours=1))
"""Between two looks for what is not there yet."""
DECLARED: Final[Mapping[OnStatus, Outcome]] = {
    "gone": Outcome.GONE, "not_yet": Outcome.NOT_YET, "skip": Outcome.UNWANTED, "restart": Outcome.CHAIN_RESTARTED,
}  # fmt: skip
"""What a status means by its kind; with "fail" it keeps its own name."""

TELLING: Final = frozenset({
    Outcome.BLOCKED, Outcome.NO_SESSION, Outcome.REVISIT_LOST, Outcome.CHAIN_RESTARTED, Outcome.CURSOR_EXPIRED,
})  # fmt: skip
"""Ends of a request that say of its page, too, that it is none to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What one batch came to."""

    outcomes: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    """Results whose lease had moved on: not stored, counted."""
    found: int = 0
    """New requests found on the pages."""
    wire_bytes: int = 0
    late: int = 0
    halted: frozenset[str] = frozenset()
    """Origins that were halted by it."""
    closed_for_s: Mapping[str, float] = field(default_factory=dict)
    """Budget keys that have trouble, and for how long each is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


class Depositor:
    """Stores the answers of one source's window."""

    def __init__(
        self,
        *,
        source: Source,
        window: windows.WindowRow,
        database: Database,
        archive: Archive,
        writer: ArchiveWriter,
    ) -> None:
        self._source, self._window, self._database = source, window, database
        self._archive, self._writer = archive, writer
        self._backoff = Backoff(first=source.retry_wait)
        self._chance = random.Random()  # noqa: S311  jitter, not a secret

    def store(self, batch: Sequence[Answered]) -> Stored:
        """Archive, then commit; every write carries its fence. An error leaves the batch to its leases' expiry."""
        return self.commit(self.prepare(batch))

    def prepare(self, batch: Sequence[Answered]) -> list[Judged]:
        """Archive the answers and decide about each; nothing of it counts before `commit`.

        One batch at a time; another one may be committed meanwhile.
        """
        batch = [self._inspect(item) for item in batch]
        # Archive before completing: a crash in between costs one fetch, the other order costs a page.
        responses = [item for item in batch if isinstance(item.answer, Response)]
        hides_cookies = self._source.session is not None
        exchanges = [exchange_of(item.answer, item.lease, item.told, hides_cookies=hides_cookies) for item in responses]
        places = self._writer.append(exchanges) if responses else []
        located = {
            item.lease.request_id: (place, exchange)
            for item, place, exchange in zip(responses, places, exchanges, strict=True)
        }
        return [self._judge(item, *located.get(item.lease.request_id, (None, None))) for item in batch]

    def commit(self, judged: list[Judged]) -> Stored:
        """Rows and states of a prepared batch, in one transaction."""
        with self._database.transaction() as connection:
            return self._commit(connection, judged)

    def _inspect(self, item: Answered) -> Answered:
        """The answer, judged by its bytes too: before it is archived, because a cut one is archived with a mark."""
        if not isinstance(item.answer, Response):
            return item
        answer = seen(self._source, self._window.window, item.lease, item.answer)
        return item if answer is item.answer else replace(item, answer=answer)

    def _with_holders(self, connection: Connection, judged: list[Judged]) -> list[Judged]:
        """Keep the bytes that revisits point at; where they were removed meanwhile, ask again."""
        held = [item.answered.lease.earlier for item in judged if item.is_revisit]
        if not held:
            return judged
        there = pages.lock_holders(connection, [earlier for earlier in held if earlier])
        return [item if _has_bytes(item, there) else self._lost(item, "its page was removed") for item in judged]

    def _lost(self, item: Judged, why: str) -> Judged:
        reason = f"unchanged since an earlier fetch, but {why}"
        return replace(item, outcome=Outcome.REVISIT_LOST, reason=reason, found=None, is_revisit=False)

    def _confirmed(self, connection: Connection, judged: list[Judged]) -> list[Judged]:
        """What said "gone" on another day too, and nothing else in between, is gone."""
        saying = {item.answered.lease.url for item in judged if item.outcome is Outcome.SOFT_GONE}
        if not saying:
            return judged
        since = pages.soft_gone_since(connection, self._source.name, saying, soft_gone.ANOTHER_DAY)
        return [_told_twice(item, since) if item.outcome is Outcome.SOFT_GONE else item for item in judged]

    def _commit(self, connection: Connection, judged: list[Judged]) -> Stored:
        row, window_start = self._window, self._window.window.start
        judged = self._confirmed(connection, judged)
        found = [item.found for item in judged if item.found is not None]
        if found or any(item.restarts for item in judged):
            windows.lock(connection, row.source, window_start)
        judged = self._with_holders(connection, judged)
        # The monotonic reading first: `fetched_at` may then be late by a round trip, but never before the arrival.
        reading = time.monotonic()
        note = conduct.take_note(
            connection, self._source, [_as_conduct(item, reading) for item in judged if item.was_asked], self._chance
        )
        applied = frontier.finish(connection, window_start, [self._end(item, note) for item in judged])
        refused = len(judged) - len(applied)
        if refused:
            windows.count_late_results(connection, row.source, window_start, refused)
        kept = [item for item in judged if item.answered.lease.request_id in applied]
        rows = [self._page_row(item, item.location, note.now, reading) for item in kept if item.location is not None]
        pages.insert(connection, rows)
        remember.note(
            connection, self._source, window_start, [(item.answered.lease, item.outcome) for item in kept], note.now
        )
        over = start_over.starts(connection, window_start, [item.answered.lease for item in kept if item.restarts])
        found = [*(item.found for item in kept if item.found is not None), *over]
        new = self._add_found(connection, found) + start_over.reopen(connection, self._source, window_start, found)
        return Stored(
            outcomes=Counter(item.outcome.value for item in kept if not isinstance(item.answered.answer, Wait)),
            refused=refused,
            found=new,
            wire_bytes=sum(row.body_bytes for row in rows),
            late=sum(row.late for row in rows),
            halted=note.halted,
            closed_for_s={key: left.total_seconds() for key, left in note.closed.items()},
        )

    def _add_found(self, connection: Connection, found: list[links.Found]) -> int:
        if not found:
            return 0
        return add_found(connection, self._source, self._window, found)

    def _judge(self, item: Answered, location: Location | None, exchange: Exchange | None) -> Judged:
        outcome, reason, found, chain = outcome_of(item), item.answer.reason, None, None
        if policy(outcome) is Policy.KEEP and self._says_gone(item):
            outcome, reason = Outcome.SOFT_GONE, "the page bears the source's soft_gone marker"
        kind = self._source.kind_map[item.lease.kind]
        if item.no_session:
            outcome, reason = Outcome.NO_SESSION, item.no_session
        elif item.declared == "restart":
            outcome, reason = start_over.judged(self._source, item.lease, reason)
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
            reason=clean_text(_at_hop(item.lease, reason))[:REASON_LIMIT],
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
            return *start_over.judged(self._source, item.lease, str(error)), None
        return Outcome.DISCOVERY_FAILED if found is None else outcome, reason, found

    def _says_gone(self, item: Answered) -> bool:
        """Whether the page says that its item is not there; one that cannot be read says nothing."""
        if self._source.soft_gone is None or self._source.kind_map[item.lease.kind].extract is None:
            return False
        try:
            page = self._page(item)
        except (decoding.DecodingError, BrokenRecord):
            return False
        return soft_gone.says_gone(self._source, page)

    def _page(self, item: Answered) -> Page:
        """The page that came, or that a 304 confirms; `DecodingError`, `BrokenRecord` where it cannot be read."""
        answer = item.answer
        assert isinstance(answer, Response)  # noqa: S101  only a page is read
        if outcome_of(item) is Outcome.NOT_MODIFIED:
            answer = revisits.confirmed(item.lease, answer, self._archive)
        return fresh_page(item.lease, answer, self._window.window, self._source)

    def _follow(self, item: Answered) -> tuple[Outcome, str, redirects.Chain | None]:
        """Outcome, reason and the next hop, if there is one."""
        assert isinstance(item.answer, Response)  # noqa: S101  it has a status
        chain = follow(self._source, item.lease, item.answer)
        if isinstance(chain, redirects.Ended):
            blocked = refusal.of_address(item.lease.url, chain.url) if chain.url else None
            outcome = Outcome.BLOCKED if blocked else chain.outcome
            return outcome, f"{chain.reason}: {blocked}" if blocked else chain.reason, None
        return Outcome.REDIRECT, item.answer.reason, chain

    def _end(self, item: Judged, note: conduct.Note) -> frontier.Result:
        return self._result(item, note) if item.was_asked else self._withheld(item, note.now)

    def _result(self, item: Judged, note: conduct.Note) -> frontier.Result:
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
        kind = self._source.kind_map[lease.kind]
        match policy(outcome):
            # A page that was followed is done with that; reading may still make it failed(read) (rule 15).
            case Policy.KEEP if kind.extract and not kind.discover:
                return frontier.Fetched(**mine)
            case Policy.KEEP:
                return frontier.Done(**mine)
            case Policy.FOLLOW:
                assert item.chain is not None  # noqa: S101  a redirect that leads nowhere has another outcome
                key = self._source.budget_key(item.chain.url)
                return frontier.Moved(**mine, chain=item.chain.stored(), budget_key=key, reason=reason)
            case Policy.RETRY | Policy.SNOOZE:
                backoff = self._backoff.wait(_attempt_of_budget(lease, self._source.max_attempts), self._chance)
                least = max(wait or timedelta(0), _no_sooner(item.answered.answer))
                return frontier.Retry(**mine, wait=max(backoff, least), outcome=outcome, reason=reason)
            case Policy.SKIP:
                return frontier.Skipped(**mine, outcome=outcome, reason=reason, counts=not item.restarts)
            case Policy.FAIL | Policy.HALT:
                return frontier.Failed(**mine, phase="fetch", outcome=outcome, reason=reason)

    def _withheld(self, item: Judged, now: datetime) -> frontier.Result:
        """Nothing was sent. What waits for a robots.txt costs no attempt until the window should have ended."""
        lease, answer, how = item.answered.lease, item.answered.answer, policy(item.outcome)
        if isinstance(answer, Listed):
            return frontier.Done(request_id=lease.request_id, fence=lease.fence)
        mine = {"request_id": lease.request_id, "fence": lease.fence, "outcome": item.outcome, "reason": item.reason}
        if isinstance(answer, Wait):
            wait = timedelta(seconds=answer.for_s)
            if answer.charge == "never" or (answer.charge == "late" and now < self._window.closes_at):
                return frontier.Snoozed(**mine, wait=wait)
            if how in (Policy.RETRY, Policy.SNOOZE):
                return frontier.Retry(**mine, wait=wait)
        return frontier.Skipped(**mine, counts=False) if how is Policy.SKIP else frontier.Failed(**mine, phase="fetch")

    def _declared(self, item: Judged, means: OnStatus, now: datetime) -> frontier.Result:
        """What the kind says. "not_yet" is asked again now and then until the window has closed, and then skipped."""
        lease, left = item.answered.lease, self._window.closes_at - now
        mine = {"request_id": lease.request_id, "fence": lease.fence, "outcome": item.outcome, "reason": item.reason}
        if means == "fail" or item.outcome is Outcome.CURSOR_EXPIRED:
            return frontier.Failed(**mine, phase="fetch")
        if means != "not_yet" or left <= timedelta(0):
            return frontier.Skipped(**mine, counts=not item.restarts)
        return frontier.Snoozed(**mine, wait=min(NOT_YET.wait(lease.snoozes + 1, self._chance), left), was_sent=True)

    def _discover(self, item: Answered) -> tuple[links.Found | None, str]:
        """The links of a fresh page, or nothing and why. The page is stored either way, and read again later.

        `BrokenRecord` when a 304 confirms a page that cannot be read; `RestartChain` when the page asks for that.
        """
        try:
            page, lease = self._page(item), item.lease
            return links.of_page(
                self._source, page, lease.depth, barren=lease.barren, above=lease.above, known_run=lease.known_run,
                restarts=lease.restarts, request_id=lease.request_id,
            ), ""  # fmt: skip
        except (BrokenRecord, RestartChain):
            raise
        except Exception as error:  # noqa: BLE001  a source's code or a page beyond its limits; one page, not the batch
            return None, explain(error)

    def _page_row(self, item: Judged, location: Location, now: datetime, reading: float) -> pages.NewPage:
        lease, answer = item.answered.lease, item.answered.answer
        assert isinstance(answer, Response)  # noqa: S101  only responses have a location
        # The database's clock, brought back to when the response had arrived (rule 6).
        fetched_at = now - timedelta(seconds=max(0.0, reading - answer.ended_at))
        took = max(timedelta(0), answer.fetched_at - answer.requested_at)
        headers = header_map(texts(answer))
        earlier = lease.earlier if item.is_revisit else None
        if earlier:  # a 304 need not repeat what it confirms
            headers = _said_before(earlier) | headers
        return pages.NewPage(
            window_start=self._window.window.start,
            source=self._source.name,
            request_id=lease.request_id,
            attempt=lease.attempt,
            fence=lease.fence,
            kind=lease.kind,
            url=lease.url,
            final_url=answer.final_url,
            outcome=item.of_page.value,
            status=answer.status,
            content_type=headers.get("content-type", ""),
            content_encoding=headers.get("content-encoding", ""),
            etag=headers.get("etag"),
            last_modified=headers.get("last-modified"),
            requested_at=fetched_at - took,
            fetched_at=fetched_at,
            location=location,
            body_bytes=len(answer.body),
            truncated=answer.truncated,
            flags=(*answer.flags, redirects.DOWNGRADED) if _is_downgraded(item) else answer.flags,
            late=fetched_at >= self._window.closes_at and not self._window.names_window,
            warc_date=answer.requested_at,
            revisit_of=earlier.page_id if earlier else None,
            revisit_window=earlier.window_start if earlier else None,
            robots_rule=item.answered.robots_rule,
        )


def outcome_of(item: Answered) -> Outcome:
    """How the attempt ended, in the light of what was asked."""
    return revisits.outcome_of(item.lease, item.answer) if isinstance(item.answer, Response) else item.answer.outcome


def _told_twice(item: Judged, since: Mapping[str, datetime]) -> Judged:
    """Gone, if its address said so on another day."""
    if (first := since.get(item.answered.lease.url)) is None:
        return item
    return replace(item, outcome=Outcome.GONE_CONFIRMED, reason=f"said so on {first:%Y-%m-%d %H:%M} UTC too")


def _has_bytes(item: Judged, there: set[int]) -> bool:
    earlier = item.answered.lease.earlier
    return not item.is_revisit or (earlier is not None and earlier.page_id in there)


def _said_before(earlier: Earlier) -> dict[str, str]:
    said = {
        "content-type": earlier.content_type,
        "content-encoding": earlier.content_encoding,
        "etag": earlier.etag,
        "last-modified": earlier.last_modified,
    }
    return {name: value for name, value in said.items() if value}


def _no_sooner(answer: Response | NoResponse | Forbidden | Wait | Listed) -> timedelta:
    """Another attempt waits until it can end otherwise."""
    return timedelta(seconds=answer.wait_s) if isinstance(answer, NoResponse) else timedelta(0)


def seen(source: Source, window: Window, asked: Lease | NewRequest, answer: Response) -> Response:
    """The answer, judged by its bytes too; a page that leads on by itself is a redirect."""
    found = inspected(answer, source.kind_map[asked.kind], limit=source.max_decoded_bytes)
    return _refreshing(source, window, asked, found.answer) if found.may_refresh else found.answer


def _refreshing(source: Source, window: Window, asked: Lease | NewRequest, answer: Response) -> Response:
    """The page as a redirect, where a refresh leads on; one that cannot be followed leaves it the page it is."""
    if answer.outcome is not Outcome.OK:
        return answer
    try:
        target = html.refresh_target(fresh_page(asked, answer, window, source))
    except Exception:  # noqa: BLE001  a page that no parser should be let loose on is one when it is read, too
        return answer
    moved = target and replace(answer, outcome=Outcome.REDIRECT, reason=f"refresh to {target}", refresh=target)
    return moved if moved and isinstance(follow(source, asked, moved), redirects.Chain) else answer


def follow(source: Source, asked: Lease | NewRequest, answer: Response) -> redirects.Chain | redirects.Ended:
    """Where a redirect leads, within the source's scope and its limit."""
    chain = redirects.follow(
        redirects.chain_of(asked),
        status=answer.status,
        headers=answer.headers,
        now=answer.fetched_at,
        most=source.max_redirects,
        target=answer.refresh,
    )
    if isinstance(chain, redirects.Chain) and not source.in_scope(urls.host(chain.url)):
        said = f"{answer.status} to {chain.url}, outside the scope"
        return redirects.Ended(outcome=Outcome.OUT_OF_SCOPE, reason=said, url=chain.url)
    return chain


def _is_downgraded(item: Judged) -> bool:
    """Whether TLS is left behind: followed, because the site says so, and noted on the page."""
    return bool(item.chain) and item.answered.lease.address.startswith("https:") and item.chain.url.startswith("http:")


def _at_hop(lease: Lease, reason: str) -> str:
    """The reason, and where in a chain of redirects it happened."""
    return f"{reason} (redirected, at {lease.address[:200]})" if reason and lease.chain else reason


def add_found(connection: Connection, source: Source, window: windows.WindowRow, found: Sequence[links.Found]) -> int:
    """Put found requests into the frontier and count what stayed out; the number of new requests.

    The caller holds the window's row. A bound that was reached is marked on the window and stops nothing else.
    """
    start = window.window.start
    found = remember.leave_out(connection, source, window, sift.sift(connection, source, start, found))
    added = frontier.add(
        connection,
        source=source.name,
        window_start=start,
        requests=[request for item in found for request in item.requests],
        edition=source.edition,
        max_attempts=source.max_attempts,
        max_requests=source.max_requests,
    )
    if added.over_bound:
        windows.mark_bound(connection, source.name, start, "max_requests")
    elif any(item.too_deep for item in found):
        windows.mark_bound(connection, source.name, start, "max_depth")
    out = [link for item in found for link in item.rejected]
    for number, first in links.by_reason(out):
        rejected_links.count(
            connection, source.name, start, reason=first.reason, detail=first.detail, number=number,
            example=first.value, referrer=first.referrer,
        )  # fmt: skip
    return added.new


def _as_conduct(item: Judged, reading: float) -> conduct.Answer:
    """The answer as it tells about the site; a declared status keeps its own outcome there, but is no refusal."""
    lease, answer = item.answered.lease, item.answered.answer
    assert isinstance(answer, Response | NoResponse)  # noqa: S101  the site was asked
    received_ago_s, took_s = max(0.0, reading - answer.ended_at), 0.0
    if isinstance(answer, Response):
        took_s = max(0.0, (answer.fetched_at - answer.requested_at).total_seconds())
    return conduct.Answer(
        origin=item.answered.origin,
        budget_key=lease.budget_key,
        request_id=lease.request_id,
        outcome=item.outcome if item.outcome in (Outcome.BLOCKED, Outcome.NO_SESSION) else outcome_of(item.answered),
        reason=item.reason,
        is_declared=item.answered.declared is not None,
        sent_ago_s=received_ago_s + took_s,
        received_ago_s=received_ago_s,
        asked=item.answered.later.wait if item.answered.later else None,
    )


def _attempt_of_budget(lease: Lease, max_attempts: int) -> int:
    """1 for the first attempt since the request was put back, if it was: a new budget begins with short waits."""
    spent_before = max(0, lease.max_attempts - max_attempts)
    return max(1, lease.attempt - spent_before)


def exchange_of(
    answer: Response | NoResponse | Forbidden | Wait | Listed,
    asked: Lease | NewRequest,
    outcome: str = "",
    *,
    hides_cookies: bool = False,
) -> Exchange:
    """What the archive keeps of an answer; `outcome`: of one that is no good page.

    `hides_cookies`: those that it sets are a session's, which is nobody's business (the exception to rule 11).
    """
    assert isinstance(answer, Response)  # noqa: S101
    sent = redirects.standing(asked)
    return Exchange(
        url=answer.final_url,
        method=sent.method,
        request_headers=answer.request_headers,
        request_body=sent.body,
        http_version=answer.http_version,
        status=answer.status,
        reason=answer.status_text,
        headers=_without_cookies(answer.headers) if hides_cookies else answer.headers,
        body=answer.body,
        requested_at=answer.requested_at,
        fetched_at=answer.fetched_at,
        ip=answer.ip,
        truncated=answer.truncated,
        revisit=revisits.revisit_of(asked, answer) if isinstance(asked, Lease) else None,
        outcome=outcome,
        rendered_by=answer.rendered_by,
        parts=answer.parts,
    )


def _without_cookies(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[bytes, bytes], ...]:
    """The headers; of cookies that are set, all but the value."""
    return tuple(
        (name, _COOKIE_VALUE.sub(rb"\1={cookie}", value, count=1) if name.lower() == b"set-cookie" else value)
        for name, value in headers
    )


def explain(error: BaseException) -> str:
    """One bounded line: what was raised, and where in the source file."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    return clean_text(f"{type(error).__name__}: {error}"[: REASON_LIMIT - 80] + where)


def texts(answer: Response) -> list[tuple[str, str]]:
    """Headers as text that may be stored."""
    return [(name.decode("latin-1"), clean_text(value.decode("latin-1"))) for name, value in answer.headers]


def fresh_page(asked: Lease | NewRequest, answer: Response, window: Window, source: Source) -> Page:
    """An answer as a source's code sees it, before it is stored; `DecodingError` when it cannot be decoded."""
    headers = header_map(texts(answer))
    decoded = decoding.decode(answer.body, headers.get("content-encoding", ""), limit=source.max_decoded_bytes)
    return Page(
        url=asked.url, final_url=answer.final_url, status=answer.status, headers=headers, body=decoded.body,
        fetched_at=answer.fetched_at, window=window, kind=asked.kind, entity=asked.entity, lane=asked.lane,
        referrer=asked.referrer, hints=asked.hints, flags=decoded.flags,
        encoding=source.encoding_of(asked.kind), parts=at_hand(answer.parts),
        shows_rendered=source.kind_map[asked.kind].view.text == "rendered",
    )  # fmt: skip
