"""Whether a URL may be fetched now, as far as its origin's robots.txt goes (RFC 9309).

A worker knows the origins that it met, in memory, until their answers are due again; what it does not know it learns
from the database, and what nobody knows it fetches: a request like any other, in a slot of the origin's budget key,
with its gap, through the same fetcher and egress (rule 7). One worker fetches a file, all of them read it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, Literal, TypeAlias, TypeVar

from collector_assets import budget, closing, decoding, robots, robots_files, urls, windows
from collector_assets.asking import later_of, to_its_end
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.errand import Errand
from collector_assets.errors import ContractError
from collector_assets.fetch import Fetcher, FetchRequest, NoResponse, Response
from collector_assets.outcome import Outcome
from collector_assets.page import header_map
from collector_assets.robots_files import Claimed, Due, File, Found, Missing, Unreachable, Usable
from collector_assets.spool import whole
from collector_assets.storable import clean_text

T = TypeVar("T")

MOST_REDIRECTS: Final = 5
"""RFC 9309 §2.3.1.2: five at least; a file behind more of them counts as absent."""
MOST_BYTES: Final = 16 * 2**20
"""On the wire and decoded; `robots.MOST_BYTES` of it are read."""
TOTAL_S: Final = 30.0
CLAIM: Final = timedelta(seconds=TOTAL_S + 15)
"""Longer than a file may take once its slot is there."""
LOOK_AGAIN_S: Final = 0.2
PATIENCE_S: Final = 60.0
"""How long a slot is waited for, or a key that is closed, before others are let in front."""
REFUSED_FOR_S: Final = 60.0
"""How long a destination that the egress rule refused is not asked about again."""
_SITE_IS_AWAY: Final = frozenset({Outcome.HOST_UNRESOLVED, Outcome.CONNECT_ERROR, Outcome.TLS_ERROR})
"""Nothing answers there, robots.txt or page: such an end is the page's own too."""
AWAY_AFTER: Final = 3
"""Tries of the file, after which every one of them counts as an attempt of the pages: the site is not coming back."""
FIRST_WAIT_AWAY: Final = timedelta(seconds=2)


Charge: TypeAlias = Literal["never", "late", "always"]
"""`late`: once the window is closed."""


@dataclass(frozen=True, slots=True)
class Permit:
    """It may be fetched."""

    rule: str
    """Why, for its page row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """It is not fetched."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Not now."""

    for_s: float
    outcome: Outcome
    reason: str
    charge: Charge = "never"
    """When it counts as an attempt: the window must end, also where a file never comes."""
    is_busy: bool = False
    """Nothing was asked: no slot of the budget key came free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A robots.txt that is wanted for the sitemaps that it names: the file is known, so nothing is sent."""

    named: tuple[str, ...]
    outcome: Outcome = Outcome.OK
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody has looked: `learn` the origin first."""

    origin: str


@dataclass(frozen=True, slots=True)
class _Moved:
    """The file is elsewhere."""

    url: str


Answer: TypeAlias = Permit | Forbidden | Wait | Unknown


@dataclass(slots=True)
class _Known:
    """What a worker remembers of one origin."""

    until: float
    """`time.monotonic()` at which it is looked at again."""
    every: Permit | Forbidden | Wait | None = None
    """The answer for all its URLs; None: the rules say."""
    rules: robots.Rules = field(default_factory=robots.Rules)
    url: str = ""


class Politeness:
    """The origins of one worker. `permit` is a look into memory; `learn` talks to the database and to the site."""

    def __init__(
        self,
        *,
        source: Source,
        database: Database,
        fetcher: Fetcher,
        holder: str,
        patience_s: float = PATIENCE_S,
        is_stopped: Callable[[str], bool] = lambda _: False,
        on_closed: Callable[[str, float], None] = lambda _key, _for_s: None,
    ) -> None:
        """`is_stopped` says of a URL that nothing may be sent there now, whatever its robots.txt says.

        `on_closed` hears of a budget key that the answer to a robots.txt has closed, and for how many seconds.
        """
        self._on_closed, self._chance = on_closed, random.Random()  # noqa: S311  jitter, not a secret
        self._source, self._database, self._fetcher = source, database, fetcher
        self._holder, self._patience_s, self._is_stopped = f"{holder}-robots", patience_s, is_stopped
        self._token = robots.product_token(fetcher.user_agent)
        self._known: dict[str, _Known] = {}

    def permit(self, url: str) -> Answer:
        """What the robots.txt of the URL's origin says about it."""
        origin = _origin(url)
        known = self._known.get(origin)
        if known is None or (now := time.monotonic()) >= known.until:
            return Unknown(origin)
        if isinstance(known.every, Wait):
            return replace(known.every, for_s=known.until - now)
        return known.every or _verdict(known.rules.allows(url), origin)

    async def ask(self, url: str) -> Permit | Forbidden | Wait:
        """What the robots.txt of the URL's origin says about it, which is learned first where nobody knows it."""
        while isinstance(answer := self.permit(url), Unknown):
            await self.learn(answer.origin)
        return answer

    def has_delay(self, origin: str) -> bool:
        """Whether its robots.txt asks for a time between requests, so that slots granted before may be too fast."""
        known = self._known.get(origin)
        return bool(known and known.rules.crawl_delay_s)

    def sitemaps(self, url: str) -> Listed:
        """The sitemaps that a robots.txt names, which is learned and permitted."""
        known = self._known[_origin(url)]
        return Listed(named=known.rules.sitemaps(known.url) if known.url else ())

    def troubles(self) -> Iterator[str]:
        """Whose robots.txt cannot be had, and why, a line each."""
        for origin, known in self._known.items():
            if isinstance(known.every, Wait) and time.monotonic() < known.until:
                yield f"{origin}: {known.every.reason}"

    async def learn(self, origin: str, on_fetch: Callable[[], None] = lambda: None) -> None:
        """Know what the origin's robots.txt says: from memory, from the database, or from the site.

        `on_fetch` is told that it takes a slot of the origin's budget key, before one is asked for. Raises
        `ContractError` where the file asks for a longer gap than the source accepts.
        """
        while isinstance(self.permit(f"{origin}/robots.txt"), Unknown):
            file = await self._on_thread(lambda connection: robots_files.read(connection, origin))
            match robots_files.standing(file, self._holder):
                case Usable() as usable:
                    self._remember(origin, self._of_file(usable))
                case Unreachable() as unreachable:
                    self._remember(origin, _Known(until=_in(unreachable.for_s), every=_wait(unreachable)))
                case Claimed(for_s=for_s):
                    await asyncio.sleep(min(for_s, LOOK_AGAIN_S))
                case Due():
                    on_fetch()
                    await self._fetch(origin, file)

    def _remember(self, origin: str, known: _Known) -> None:
        delay, most = known.rules.crawl_delay_s or 0.0, self._source.budget.longest_gap.total_seconds()
        if delay > most:
            raise ContractError(
                "budget.longest_gap",
                f"{origin}/robots.txt asks for {delay:g} s between requests (Crawl-delay), more than the {most:g} s "
                "that the source accepts; raise longest_gap, or leave the site alone",
                source=self._source.name,
            )
        self._known[origin] = known

    def _of_file(self, usable: Usable) -> _Known:
        file, until = usable.file, _in(usable.for_s)
        rules = robots.parse(file.body or b"", self._token) if usable.answer == "rules" else robots.Rules()
        url = file.url or f"{file.origin}/robots.txt"
        match usable.answer:
            case "rules":
                return _Known(until=until, rules=rules, url=url)
            case "absent":
                return _Known(until=until, every=Permit(f"no robots.txt ({file.status or 'unreachable for long'})"))
            case "refused" if self._source.robots_refused == "allow":
                return _Known(until=until, every=Permit(f"robots.txt is refused ({file.status}), the source allows it"))
            case "refused":
                reason = f'{url} answered {file.status}; robots_refused="allow" would follow RFC 9309'
                return _Known(until=until, every=Forbidden(outcome=Outcome.ROBOTS_DISALLOWED, reason=reason))

    # --- Fetching ----------------------------------------------------------------------------------------------------

    async def _fetch(self, origin: str, seen: File | None) -> None:
        """Fetch the file and store how that ended; what was stored is read by whoever asks next."""
        url: str | None = f"{origin}/robots.txt"
        hops_left = MOST_REDIRECTS
        while url is not None:
            try:
                url = await self._hop(origin, url, seen, hops_left)
            except ContractError as error:  # another source counts that host's requests in another way
                if hops_left == MOST_REDIRECTS:
                    raise
                problem = f"{url}: {error.problem}"
                url = await self._store(origin, Missing(outcome=Outcome.ROBOTS_UNREACHABLE, problem=problem))
            hops_left -= 1

    async def _hop(self, origin: str, url: str, seen: File | None, hops_left: int) -> str | None:
        """One request of the chain, in a slot of its own; the next URL, if it leads on.

        The row is written before the slot goes back: whoever gets it next keeps the gap that the file asks for.
        """
        key = self._source.budget_key(url)
        async with Errand(self._source, key, holder=self._holder, database=self._database) as errand:
            if not await errand.ready(patience_s=self._patience_s):
                self._remember(origin, _not_now(key, errand.closed_for_s))
                return await self._let_go(origin)
            if not await self._on_thread(
                lambda connection: robots_files.claim(connection, origin, seen, holder=self._holder, lasts=CLAIM)
            ):
                return None
            got = await errand.send(self._fetcher, self._request(url), unless=lambda: self._is_stopped(url))
            if got is None:
                if self._is_stopped(url):
                    self._remember(origin, _not_now(key, errand.closed_for_s))
                return await self._let_go(origin)
            if isinstance(got, Response):
                await self._heed(key, url, got)
            match self._read(got, url, hops_left):
                case _Moved(url=elsewhere):
                    return elsewhere
                case Forbidden() as refused:
                    self._remember(origin, _Known(until=_in(REFUSED_FOR_S), every=refused))
                    return await self._let_go(origin)
                case Found() | Missing() as end:
                    return await self._store(origin, end)

    async def _heed(self, key: str, url: str, got: Response) -> None:
        """Close the budget key as any other answer would: 429, or one that says how long it is not available (rule 9).

        Before the slot goes back, so that nobody who gets it next is too early.
        """
        later = later_of(got) if got.outcome in (Outcome.THROTTLED, Outcome.UNAVAILABLE) else None
        asked = later.wait if later else None
        if got.outcome is not Outcome.THROTTLED and asked is None:
            return
        self._on_closed(key, (asked or closing.UNASKED.first).total_seconds())

        def close(connection: Connection) -> float:
            now, before = windows.clock(connection), budget.locked_closings(connection, {key})[key]
            received_at = now - timedelta(seconds=max(0.0, time.monotonic() - got.ended_at))
            sign = closing.Sign(
                request_id=0, outcome=got.outcome, sent_at=received_at - (got.fetched_at - got.requested_at),
                received_at=received_at, asked=asked, reason=clean_text(f"{url} answered {got.status}")[:500],
            )  # fmt: skip
            state, _ = closing.after(replace(before, unavailable=0), sign, self._chance)
            budget.write_closing(connection, key, replace(state, unavailable=before.unavailable))
            return state.remaining(now).total_seconds()

        self._on_closed(key, await self._on_thread(close))

    def _request(self, url: str) -> FetchRequest:
        """Nothing of the source's headers: whoever asks for the rules has no secrets."""
        limits = self._source
        return FetchRequest(
            url=url,
            connect_s=limits.connect_timeout.total_seconds(),
            read_s=limits.read_timeout.total_seconds(),
            total_s=min(limits.total_timeout.total_seconds(), TOTAL_S),
            max_bytes=MOST_BYTES,
        )

    def _read(self, got: Response | NoResponse, url: str, hops_left: int) -> Found | Missing | Forbidden | _Moved:
        if isinstance(got, NoResponse):
            return _no_response(got, url, is_first=hops_left == MOST_REDIRECTS)
        match robots.meaning(got.status):
            case "moved":
                return _moved(got, url, hops_left)
            case "absent":
                return Found(answer="absent", status=got.status, url=url)
            case "refused":
                return Found(answer="refused", status=got.status, url=url)
            case "unreachable":
                later = later_of(got)
                least = (later and later.wait) or timedelta(0)
                problem = f"{url} answered {got.status}"
                return Missing(outcome=Outcome.ROBOTS_UNREACHABLE, problem=problem, least=least)
            case "rules":
                return self._rules(got, url)

    def _rules(self, got: Response, url: str) -> Found | Missing:
        if got.truncated in ("time", "disconnect"):
            return Missing(outcome=Outcome.ROBOTS_UNREACHABLE, problem=f"{url} is cut: {got.reason}")
        coding = header_map(_texts(got)).get("content-encoding", "")
        try:
            body = whole(decoding.decode(got.body, coding, limit=MOST_BYTES).body)
        except decoding.DecodingError as error:
            return Missing(outcome=Outcome.ROBOTS_UNREACHABLE, problem=f"{url} cannot be decoded: {error}")
        rules = robots.parse(body, self._token)
        return Found(
            answer="rules", status=got.status, url=url, body=body[: 4 * robots.MOST_BYTES],
            crawl_delay_s=rules.crawl_delay_s, notes=rules.notes,
        )  # fmt: skip

    async def _store(self, origin: str, end: Found | Missing) -> None:
        await self._on_thread(lambda connection: robots_files.store(connection, origin, end, holder=self._holder))

    async def _let_go(self, origin: str) -> None:
        await self._on_thread(lambda connection: robots_files.let_go(connection, origin, holder=self._holder))

    async def _on_thread(self, unit: Callable[[Connection], T]) -> T:
        """One transaction; what it began it ends, whoever cancels."""

        def work() -> T:
            with self._database.transaction() as connection:
                return unit(connection)

        return await to_its_end(asyncio.to_thread(work))


def _moved(got: Response, url: str, hops_left: int) -> Found | Missing | _Moved:
    """Rules that moved still belong to the origin that was asked, whatever host they moved to (§2.3.1.2)."""
    if not hops_left:
        note = f"behind more than {MOST_REDIRECTS} redirects: as if there were none"
        return Found(answer="absent", status=got.status, url=url, notes=(note,))
    location = header_map(_texts(got)).get("location", "").strip()
    address = urls.resolve(location, url)
    if not location or isinstance(address, urls.Rejected):
        problem = f"{url} answered {got.status} and leads nowhere ({location[:200]!r})"
        return Missing(outcome=Outcome.ROBOTS_UNREACHABLE, problem=problem)
    return _Moved(address.url)


def _verdict(verdict: robots.Verdict, origin: str) -> Permit | Forbidden:
    if verdict.allowed:
        return Permit(verdict.rule or "no rule forbids it")
    return Forbidden(outcome=Outcome.ROBOTS_DISALLOWED, reason=f"{origin}/robots.txt: {verdict.rule}")


def _wait(unreachable: Unreachable) -> Wait:
    charge: Charge = "late"
    if unreachable.outcome in _SITE_IS_AWAY:
        charge = "always" if unreachable.failures >= AWAY_AFTER else "never"
    return Wait(for_s=0.0, outcome=unreachable.outcome, reason=f"robots.txt: {unreachable.problem}", charge=charge)


def _not_now(budget_key: str, closed_for_s: float) -> _Known:
    """No slot for it: the key is closed, or others are in front for longer than the source's patience."""
    why = f"{budget_key} is closed for {closed_for_s:.0f} s" if closed_for_s else f"no slot of {budget_key} came free"
    wait = Wait(for_s=0.0, outcome=Outcome.ROBOTS_UNREACHABLE, reason=f"robots.txt: {why}", is_busy=True)
    return _Known(until=_in(max(closed_for_s, 1.0)), every=wait)


def _no_response(got: NoResponse, url: str, *, is_first: bool) -> Missing | Forbidden:
    """No way to the origin is no way to its pages either; where it redirected to is another matter."""
    if is_first and got.outcome is Outcome.DESTINATION_REFUSED:
        return Forbidden(outcome=got.outcome, reason=got.reason)
    problem = f"{url}: {got.reason or got.outcome}"
    if is_first and got.outcome in _SITE_IS_AWAY:
        return Missing(outcome=got.outcome, problem=problem, first=FIRST_WAIT_AWAY, least=timedelta(seconds=got.wait_s))
    return Missing(outcome=Outcome.ROBOTS_UNREACHABLE, problem=problem)


def _in(seconds: float) -> float:
    return time.monotonic() + seconds


def _origin(url: str) -> str:
    """As `urls.origin`, of a URL that is in the frontier: parsed, so plainly cut."""
    end = url.find("/", 8)
    return url if end < 0 else url[:end]


def _texts(got: Response) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in got.headers]
