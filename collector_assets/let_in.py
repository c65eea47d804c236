"""Part of collecting: what a request carries to be let in by a site, and what on an answer says that we are not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from collector_assets import cookies, media, redirects, refusal, urls
from collector_assets.contract import Page, Session, Source
from collector_assets.cookies import Cookie
from collector_assets.deposit import fresh_page
from collector_assets.fetch import FetchRequest, Response
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.page import header_map
from collector_assets.request import Lease, NewRequest
from collector_assets.window import Window

ANY_HOPS: Final = 10_000
"""How many redirects there may be is for others to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """We are in."""

    cookies: tuple[Cookie, ...] = ()
    token: str = ""
    lifetime: timedelta | None = None
    """Of the token, where its server says."""
    is_proven: bool = False
    """The page after the login showed the proof."""

    def __repr__(self) -> str:
        return f"Opened({len(self.cookies)} cookies, {'a' if self.token else 'no'} token)"


def carried(source: Source, opened: Opened, asked: Lease | NewRequest, request: FetchRequest) -> FetchRequest:
    """The request with what shows that we are in: cookies by their rules, the token where it may go."""
    own = cookies.header(opened.cookies, request.url) if opened.cookies else ""
    if own and request.cookies:
        own = cookies.joined(own, request.cookies)
    if own:
        request = replace(request, cookies=own)
    leaves = bool(asked.chain) and not asked.chain["keeps_headers"]
    if opened.token and not leaves and urls.host(request.url) in source.token_hosts:
        request = replace(request, authorization=f"Bearer {opened.token}")
    return request


def why_over(
    source: Source, window: Window, asked: Lease | NewRequest, answer: Response, blocked: str | None
) -> str | None:
    """What on an answer says that we are not, or no longer, logged in."""
    session = source.session
    if session is None:
        return None
    if answer.status == 401:
        return "answered 401"
    if blocked:
        return blocked if blocked.startswith(refusal.LOGIN) else None
    if answer.outcome is Outcome.REDIRECT:
        return _led_to_login(session, asked, answer)
    if session.proof and policy(answer.outcome) is Policy.KEEP and answer.status == 200 and answer.body:
        return _without_proof(source, window, asked, answer, session.proof)
    return None


def _led_to_login(session: Session, asked: Lease | NewRequest, answer: Response) -> str | None:
    target = redirects.follow(
        redirects.chain_of(asked), status=answer.status, headers=answer.headers, now=answer.fetched_at, most=ANY_HOPS
    )
    if not target.url:
        return None
    login = {_place(url) for url in session.addresses}
    if _place(target.url) in login and _place(asked.url) not in login:
        return f"led to a login: {urls.shown(target.url)}"
    found = refusal.of_address(asked.url, target.url)
    return found if found and found.startswith(refusal.LOGIN) else None


def _place(url: str) -> str:
    return urls.origin(url) + urls.path(url)


def _without_proof(
    source: Source, window: Window, asked: Lease | NewRequest, answer: Response, proof: str
) -> str | None:
    try:
        page = fresh_page(asked, answer, window, source)
        if not shows_html(answer, page) or page.tree.css_matches(proof):
            return None
    except Exception:  # noqa: BLE001  what cannot be read says nothing; reading meets it again, and tells
        return None
    return f"{proof!r} (proof) is not on the page"


def shows_html(answer: Response, page: Page) -> bool:
    """Whether it is a page that a browser would show."""
    content_type = header_map([(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers])
    head = page.open().read(1_024)
    return bool(head) and media.of(content_type.get("content-type", ""), head) == "html"
