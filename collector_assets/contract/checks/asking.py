"""How a site is asked: by whom, with what, and as whom."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from collector_assets import addresses, urls
from collector_assets.contract.browser import Click, Fill, Press, Scroll, View
from collector_assets.contract.headers import header_problem
from collector_assets.contract.refusing import wrong
from collector_assets.page import is_selector
from collector_assets.request import Link

if TYPE_CHECKING:
    from collector_assets.contract.source import Source

LEAST_RENDERING = timedelta(seconds=10)
"""Of `total_timeout`: a service must be done before we are (`fetch/rendering.py`)."""


def check_addresses(source: Source) -> None:
    """Networks inside are written as networks, and none is one that nothing may reach."""
    for text in source.allow_addresses:
        try:
            addresses.allowed_network(text)
        except ValueError as error:
            raise wrong(source, "allow_addresses", str(error)) from None


def check_keys(source: Source) -> None:
    """Parameters that do not count are names; fragments count only where a browser sees them."""
    for pattern in source.keys.drop:
        if not pattern or not pattern.isprintable():
            raise wrong(source, "keys", f"{pattern!r} is not the name of a query parameter")
    if source.keys.hash_routes and all(kind.fetcher == "http" for kind in source.kind_map.values()):
        raise wrong(source, "keys", "hash_routes needs a kind with a browser: what stands behind # is never sent")


def check_browser(source: Source) -> None:
    """What pages may load is named by domain; what is done with a page, only where a browser does it."""
    for domain in source.browser.allow_domains:
        if urls.domain(domain) != domain or urls.is_public_suffix(domain):
            raise wrong(
                source, "browser", f"allow_domains: {domain!r} is not a registrable domain, like 'shop.example'"
            )
    for name, kind in source.kinds.items():
        if kind.fetcher != "browser" and kind.view != View():
            raise wrong(source, "kinds", f'{name!r}: view is for a kind with fetcher="browser"')
        if kind.fetcher == "browser" and kind.method not in ("GET", "POST"):
            raise wrong(source, "kinds", f"{name!r}: a browser opens pages with GET or POST")
        for selector in _selectors(kind.view):
            if not is_selector(selector):
                raise wrong(source, "kinds", f"{name!r}: {selector!r} is not a CSS selector")


def _selectors(view: View) -> Iterator[str]:
    """Every selector that a page is looked through with."""
    if view.wait not in ("domcontentloaded", "networkidle"):
        yield view.wait
    for action in view.actions:
        match action:
            case Click(selector, wait_for):
                yield from (selector, *filter(None, (wait_for,)))
            case Fill(selector):
                yield selector
            case Press(_, selector):
                yield from filter(None, (selector,))
            case Scroll(items):
                yield items


def check_headers(source: Source) -> None:
    """No header, wherever it is said, is malformed or ours to say."""
    links = [item for item in source.start_urls if isinstance(item, Link)]
    for headers in (
        source.headers,
        *(kind.headers for kind in source.kind_map.values()),
        *(link.headers for link in links),
    ):
        if problem := header_problem(headers):
            raise wrong(source, "headers", problem)


def check_rendering(source: Source) -> None:
    """A rendering service has kinds to render, and is given addresses and nothing else."""
    kinds = {name: kind for name, kind in source.kind_map.items() if kind.fetcher == "rendering"}
    service = source.rendering
    if service is None:
        if kinds:
            raise wrong(source, "rendering", f'{", ".join(kinds)}: fetcher="rendering" needs a RenderingService here')
        return
    if not kinds:
        raise wrong(source, "rendering", 'no kind says fetcher="rendering"')
    if source.is_demo != urls.is_demo(urls.host(service.endpoint)):
        problem = "the demo site is rendered by itself, and renders nothing else"
        raise wrong(source, "rendering", f"{problem}; a service on this machine is written 127.0.0.1")
    if source.headers or source.session or any(kind.headers or kind.method != "GET" for kind in kinds.values()):
        problem = "a rendering service is given addresses and nothing else: no headers, no session, no other method"
        raise wrong(source, "rendering", f"{problem}; what needs them is fetched by http")
    if source.total_timeout < LEAST_RENDERING:
        raise wrong(source, "total_timeout", f"rendering takes time: at least {LEAST_RENDERING.total_seconds():g} s")


def check_session(source: Source) -> None:
    """There is one way in, for pages that are fetched by http."""
    session = source.session
    if session is None:
        return
    if sum(way is not None for way in (session.login, session.page, session.token)) != 1:
        raise wrong(source, "session", "give one of login, page and token")
    for url in session.addresses:
        if isinstance(urls.resolve(url, ""), urls.Rejected) or urls.has_user_info(url):
            raise wrong(source, "session", f"{urls.shown(url)!r} is not an absolute http(s) URL without a password")
    if (session.page is None) != (not session.fields):
        raise wrong(source, "session", "page and fields belong together: the form, and what is filled in")
    for name, selector in (("proof", session.proof), ("form", session.form)):
        if selector is not None and not is_selector(selector):
            raise wrong(source, "session", f"{name}: {selector!r} is not a CSS selector")
    if any(kind.fetcher == "browser" for kind in source.kind_map.values()):
        raise wrong(source, "session", "is for kinds that are fetched by http; a browser has Browser.storage_state")
    ways = (source.headers, *(kind.headers for kind in source.kind_map.values()))
    if session.token and any(name.lower() == "authorization" for headers in ways for name in headers):
        raise wrong(source, "session", "the token is the Authorization header: take the other one out of headers")
