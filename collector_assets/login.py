"""Part of collecting: log in once, as a source's `session` says.

A login is requests like any other: by the robots.txt of their origins, each in a slot of its budget key, through the
same fetcher and egress, redirects hop by hop. They are not archived: they are about an account, not about the source's
pages. What the answers say about how the site fares is told to everybody (rule 9).
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeAlias, TypeGuard
from urllib.parse import quote_plus

from collector_assets import conduct, cookies, html, links, redirects, urls
from collector_assets.asking import later_of, request_of
from collector_assets.contract import ClientCredentials, Link, Page, Session, Source
from collector_assets.cookies import Cookie
from collector_assets.database import Database
from collector_assets.decoding import DecodingError
from collector_assets.deposit import fresh_page
from collector_assets.errand import Errand
from collector_assets.fetch import Fetcher, FetchRequest, NoResponse, Response
from collector_assets.let_in import Opened, shows_html
from collector_assets.outcome import Outcome
from collector_assets.placeholders import Veil
from collector_assets.politeness import PATIENCE_S, Forbidden, Permit, Politeness, Wait
from collector_assets.record import Unreadable
from collector_assets.request import NewRequest, Secret, secrets_of, stored_headers
from collector_assets.window import Window

MOST_HOPS: Final = 10
LET_IN: Final = frozenset((200, 201, 202, 204))
LONGEST_TOKEN: Final = 8_192
LONGEST_LIFE_S: Final = 10 * 365 * 86_400
_OURS_TO_MEND: Final = frozenset((Outcome.SECRET_MISSING, Outcome.DESTINATION_REFUSED, Outcome.TLS_ERROR))
_LATER: Final = frozenset((
    Outcome.THROTTLED, Outcome.UNAVAILABLE, Outcome.SERVER_ERROR, Outcome.TRUNCATED, Outcome.TIMEOUT,
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Denied:
    """The site does not let us in, and will not next time: which URL, and what to check."""

    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """It did not work yet."""

    problem: str
    least: timedelta = timedelta(0)
    """Until the next try."""
    is_asked: bool = True
    """Otherwise nothing was sent: no slot came free, robots.txt is not known …"""


Login: TypeAlias = Opened | Denied | Later


class _Ended(Exception):
    """A login ends here."""

    def __init__(self, how: Denied | Later) -> None:
        super().__init__(how)
        self.how = how


@dataclass(frozen=True, slots=True, kw_only=True)
class Clerk:
    """Logs in for one source; `attempt` is one login."""

    source: Source
    window: Window
    database: Database
    fetcher: Fetcher
    politeness: Politeness
    holder: str
    patience_s: float = PATIENCE_S
    is_stopped: Callable[[str], bool] = lambda _: False
    """Whether nothing may be sent to a URL now, whatever its robots.txt says."""
    may_go_on: Callable[[], Awaitable[bool]] | None = None
    """Asked in the slot, before each request: whether it is still for us to log in."""

    async def attempt(self) -> Login:
        """Log in, once."""
        session = self.source.session
        assert session is not None  # noqa: S101  nobody asks for a source without one
        try:
            return await (self._token(session.token) if session.token else self._login(session))
        except _Ended as ended:
            return ended.how

    # --- By a form or a request --------------------------------------------------------------------------------------

    async def _login(self, session: Session) -> Login:
        link, jar = session.login, ()
        if session.page is not None:
            page, _, jar = await self._page(_link(session.page), jar)
            link = self._filled(page, session)
        assert link is not None  # noqa: S101  one of the two
        page, answer, jar = await self._page(link, jar)
        if answer.status not in LET_IN:
            raise self._denied(answer.final_url, f"answered {answer.status} {answer.status_text}".rstrip())
        is_html = shows_html(answer, page)
        if session.proof and is_html and not page.tree.css_matches(session.proof):
            title = page.tree.css_first("title")
            shown = f", {title.text(strip=True)[:80]!r}" if title else ""
            raise self._denied(answer.final_url, f"{session.proof!r} (proof) is not on the page after it{shown}")
        return Opened(cookies=jar, is_proven=bool(session.proof) and is_html)

    def _filled(self, page: Page, session: Session) -> Link:
        try:
            return html.form(page, session.form, session.fields)
        except Unreadable as error:
            raise self._denied(page.final_url, f"{session.form!r} (form): {error}") from None

    def _denied(self, url: str, why: str) -> _Ended:
        session = self.source.session
        given = [*secrets_of(stored_headers(session.fields)), *_named(session.login)] if session else []
        check = f"check {' and '.join(dict.fromkeys(given))} in the environment" if given else "check what is sent"
        proof = ", and that the proof is on every page of who is logged in" if session and session.proof else ""
        return _Ended(Denied(f"not logged in at {urls.shown(url)}: {why}; {check}{proof}"))

    async def _page(self, link: Link, jar: tuple[Cookie, ...]) -> tuple[Page, Response, tuple[Cookie, ...]]:
        """Where a link ends, after all redirects, with the cookies by then."""
        asked = self._asked(link, jar)
        for _ in range(MOST_HOPS + 1):
            answer = await self._answer(request_of(self.source, asked))
            chain = redirects.chain_of(asked)
            jar = cookies.updated(chain.cookies, _set_cookies(answer), chain.url, answer.fetched_at)
            page = self._read(asked, answer)
            target = self._refresh(page, answer)
            if answer.outcome is not Outcome.REDIRECT and not target:
                return page, answer, jar
            moved = self._moved(chain, answer, target)
            asked = replace(asked, chain=moved.stored(), budget_key=self.source.budget_key(moved.url))
        raise self._denied(link.url, f"more than {MOST_HOPS} redirects")

    def _read(self, asked: NewRequest, answer: Response) -> Page:
        try:
            return fresh_page(asked, answer, self.window, self.source)
        except DecodingError as error:
            raise self._denied(answer.final_url, f"its answer cannot be read: {error}") from None

    def _refresh(self, page: Page, answer: Response) -> str:
        """Where a page leads by itself, that says nothing else."""
        session = self.source.session
        if session is None or not shows_html(answer, page) or (session.proof and page.tree.css_matches(session.proof)):
            return ""
        return html.refresh_target(page) or ""

    def _moved(self, chain: redirects.Chain, answer: Response, target: str) -> redirects.Chain:
        moved = redirects.follow(
            chain, status=answer.status, headers=answer.headers, now=answer.fetched_at, most=MOST_HOPS, target=target
        )
        if isinstance(moved, redirects.Ended):
            raise self._denied(chain.url, moved.reason)
        own = self.source.session
        host, own_hosts = urls.host(moved.url), {urls.host(url) for url in (own.addresses if own else ())}
        if not self.source.in_scope(host) and host not in own_hosts:
            raise self._denied(chain.url, f"led to {urls.shown(moved.url)}, outside the scope")
        return moved

    def _asked(self, link: Link, jar: tuple[Cookie, ...]) -> NewRequest:
        sent = links.sent_of(link, link.url)
        method = "POST" if sent.is_form and link.method == "GET" else link.method.upper()
        first = redirects.Chain(url=sent.url, method=method, keeps_body=True, keeps_headers=True, cookies=jar)
        return NewRequest(
            unique_key=b"", kind=self.source.first_kind, lane="*", url=sent.url, method=method, body=sent.body,
            budget_key=self.source.budget_key(sent.url), secrets=sent.secrets or None, chain=first.stored(),
            headers=stored_headers({**self.source.headers, **sent.headers, **link.headers}),
        )  # fmt: skip

    # --- By a token --------------------------------------------------------------------------------------------------

    async def _token(self, wanted: ClientCredentials) -> Login:
        answer = await self._answer(self._token_request(wanted))
        page = self._read(self._asked(Link(wanted.url), ()), answer)
        try:
            said = page.json()
        except ValueError:
            said = None
        said = said if isinstance(said, dict) else {}
        token, kind = said.get("access_token"), str(said.get("token_type", "bearer"))
        if answer.status != 200 or not _is_token(token):
            why = " ".join(str(said[name]) for name in ("error", "error_description") if said.get(name))[:300]
            raise self._no_token(wanted, f"answered {answer.status}: {why or 'no access_token'}")
        if kind.lower() != "bearer":
            raise self._no_token(wanted, f"gave a token of type {kind[:40]!r}, not Bearer")
        return Opened(token=token, lifetime=_lifetime(said.get("expires_in")))

    def _token_request(self, wanted: ClientCredentials) -> FetchRequest:
        form: dict[str, str | Secret] = {"grant_type": "client_credentials"}
        form |= ({"scope": wanted.scope} if wanted.scope else {}) | dict(wanted.more)
        if wanted.auth == "body":
            form |= {"client_id": wanted.client_id, "client_secret": wanted.client_secret}
        asked = self._asked(Link(wanted.url, body=form, headers={"Accept": "application/json"}), ())
        request = request_of(self.source, asked)
        if wanted.auth == "body":
            return request
        parts = (self._value(wanted, wanted.client_id), self._value(wanted, wanted.client_secret))
        basic = ":".join(map(quote_plus, parts)).encode()  # RFC 6749 §2.3.1
        return replace(request, authorization=f"Basic {base64.b64encode(basic).decode()}")

    def _value(self, wanted: ClientCredentials, given: str | Secret) -> str:
        if isinstance(given, str):
            return given
        if (value := given.read()) is None:
            raise self._no_token(wanted, f"{given.name} is not set in the environment")
        return value

    def _no_token(self, wanted: ClientCredentials, why: str) -> _Ended:
        """Why there is none; what the server says of it may repeat what it was sent."""
        given = [each for each in (wanted.client_id, wanted.client_secret) if isinstance(each, Secret)]
        why = Veil([(value, "") for each in given if (value := each.read())]).text(why)
        check = f"check {' and '.join(each.name for each in given)} in the environment"
        return _Ended(Denied(f"no token from {urls.shown(wanted.url)}: {why}; {check}"))

    # --- Each request ------------------------------------------------------------------------------------------------

    async def _answer(self, request: FetchRequest) -> Response:
        """The answer, in its turn; what cannot be used now ends the login."""
        match await self.politeness.ask(request.url):
            case Permit():
                pass
            case Wait(reason=reason, for_s=for_s):
                raise _Ended(Later(problem=reason, least=timedelta(seconds=for_s), is_asked=False))
            case Forbidden(reason=reason):
                raise self._denied(request.url, reason)
        got = await self._sent(request)
        await asyncio.to_thread(self._note, request, got)
        if got.outcome in _OURS_TO_MEND:
            raise self._denied(request.url, got.reason)
        if isinstance(got, NoResponse) or got.outcome in _LATER:
            later = later_of(got) if isinstance(got, Response) else None
            problem = f"login at {urls.shown(request.url)}: {got.reason or got.outcome}"
            raise _Ended(Later(problem=problem, least=(later and later.wait) or timedelta(0)))
        return got

    async def _sent(self, request: FetchRequest) -> Response | NoResponse:
        key = self.source.budget_key(request.url)
        async with Errand(self.source, key, holder=f"{self.holder}-login", database=self.database) as errand:
            while await errand.ready(patience_s=self.patience_s):
                if self.may_go_on and not await self.may_go_on():
                    raise _Ended(Later(problem="another worker logs in", is_asked=False))
                got = await errand.send(self.fetcher, request, unless=lambda: self.is_stopped(request.url))
                if got is not None:
                    return got
                if self.is_stopped(request.url):
                    break
            why = f"login: {key} is closed, or no slot of it came free"
            raise _Ended(Later(problem=why, least=timedelta(seconds=max(errand.closed_for_s, 1)), is_asked=False))

    def _note(self, request: FetchRequest, got: Response | NoResponse) -> None:
        """What it says about the site; a 401 is about what we sent."""
        later = later_of(got) if isinstance(got, Response) and got.outcome in conduct.CLOSING else None
        answer = conduct.Answer(
            origin=urls.origin(request.url), budget_key=self.source.budget_key(request.url), request_id=0,
            outcome=got.outcome, reason=got.reason, is_declared=isinstance(got, Response) and got.status == 401,
            sent_ago_s=0.0, received_ago_s=0.0, asked=later.wait if later else None,
        )  # fmt: skip
        with self.database.transaction() as connection:
            conduct.take_note(connection, self.source, [answer], random.Random())  # noqa: S311  jitter, not a secret


def _link(item: str | Link) -> Link:
    return item if isinstance(item, Link) else Link(item)


def _named(link: Link | None) -> Sequence[str]:
    """The variables that a link's query, body and headers name."""
    if link is None:
        return ()
    return (*links.sent_of(link, link.url).secrets, *secrets_of(stored_headers(link.headers)))


def _set_cookies(answer: Response) -> list[str]:
    return [value.decode("utf-8", "surrogateescape") for name, value in answer.headers if name.lower() == b"set-cookie"]


def _lifetime(said: object) -> timedelta | None:
    """`expires_in`, in seconds; some servers say it as a text. What is no positive number says nothing."""
    text = str(said)
    seconds = int(text) if text.isascii() and text.isdecimal() else 0
    return timedelta(seconds=min(seconds, LONGEST_LIFE_S)) if seconds else None


def _is_token(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_TOKEN and value.isascii() and value.isprintable()
