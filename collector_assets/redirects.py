"""Redirects, followed by us, one hop at a time: where an answer leads, and what may travel along. Pure.

RFC 9110 §15.4 and the Fetch standard §4.4 ("HTTP-redirect fetch"). Each hop is a request like any other: in scope or
not, by the robots.txt of its origin, under the budget of its domain, and archived. What a chain must remember between
two hops is its `Chain`; the frontier keeps it with the request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from collector_assets import cookies, urls
from collector_assets.cookies import Cookie
from collector_assets.facts import fact
from collector_assets.outcome import Outcome
from collector_assets.request import Lease, NewRequest, secrets_of

DOWNGRADED: Final = "redirects_to_plain_http"
"""Flag of an answer that leads from https to http."""
SAFELISTED: Final = frozenset({"accept", "accept-language"})
"""Headers that may go to another origin: they ask for a form of the answer and say nothing about us (Fetch §2.2.2)."""
OF_THE_BODY: Final = frozenset({"content-encoding", "content-language", "content-location", "content-type"})
_NOT_IN_LOCATION: Final = {byte: f"%{byte:02X}" for byte in range(0x80, 0x100)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Where a request stands after at least one redirect."""

    url: str
    """The next address."""
    method: str
    keeps_body: bool
    """The body, and the headers about it, still go along."""
    keeps_headers: bool
    """Every hop so far stayed on the first origin: what the source configured still goes along."""
    cookies: tuple[Cookie, ...] = ()
    """Set by the answers of this chain; they end with it."""
    seen: tuple[str, ...] = ()
    """What was sent so far, as digests of (method, URL, cookies): the same again would be a loop."""

    @property
    def hops(self) -> int:
        """Redirects that were followed."""
        return len(self.seen)

    @property
    def cookie_header(self) -> str:
        """The chain's cookies for the next request."""
        return cookies.header(self.cookies, self.url)

    def headers(self, configured: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the headers that a source configured which go with the next request, as the frontier keeps them.

        Secrets, which it keeps by name, never leave their origin.
        """
        return {
            name: value
            for name, value in configured.items()
            if (self.keeps_headers or (name.lower() in SAFELISTED | OF_THE_BODY and isinstance(value, str)))
            and (self.keeps_body or name.lower() not in OF_THE_BODY)
        }

    def stored(self) -> dict[str, Any]:
        """As the frontier keeps it."""
        return asdict(self)


@fact
class Standing:
    """What is sent next for a request; headers as the frontier keeps them."""

    url: str
    method: str
    headers: Mapping[str, Any]
    body: bytes | None
    cookies: str = ""
    secrets: Sequence[str] = ()
    """Variables that are filled in; like headers they stay on their origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The answer leads nowhere."""

    outcome: Outcome
    reason: str
    url: str = ""
    """Where it would have led, if that is an address."""


def loaded(stored: Mapping[str, Any]) -> Chain:
    """The inverse of `Chain.stored`, whatever else stands beside it."""
    plain = {name: stored[name] for name in ("url", "method", "keeps_body", "keeps_headers")}
    return Chain(**plain, seen=tuple(stored["seen"]), cookies=tuple(Cookie(**each) for each in stored["cookies"]))


def chain_of(asked: Lease | NewRequest) -> Chain:
    """The chain of a request, also of one that was not redirected yet."""
    if asked.chain:
        return loaded(asked.chain)
    return Chain(url=asked.url, method=asked.method, keeps_body=True, keeps_headers=True)


def standing(asked: Lease | NewRequest) -> Standing:
    """What is sent for a request now: itself, or what redirects have made of it."""
    if asked.chain is None:
        return Standing(
            url=asked.url, method=asked.method, headers=asked.headers, body=asked.body, secrets=asked.secrets or ()
        )
    chain = loaded(asked.chain)
    return Standing(
        url=chain.url,
        method=chain.method,
        headers=chain.headers(asked.headers),
        body=asked.body if chain.keeps_body else None,
        cookies=chain.cookie_header,
        # Those of headers too: where a redirect repeats one, it was masked.
        secrets=(*(asked.secrets or ()), *secrets_of(asked.headers)) if chain.keeps_headers else (),
    )


def follow(
    chain: Chain, *, status: int, headers: Sequence[tuple[bytes, bytes]], now: datetime, most: int, target: str = ""
) -> Chain | Ended:
    """Where the answer to `chain`'s request leads: by its Location, or with a GET to `target` if that is given.

    `most`: redirects that one request may follow. `now`: when the answer came.
    """
    address = _address(target or _location(headers), chain.url)
    if isinstance(address, Ended):
        return address
    moved = _moved(chain, address, 303 if target else status, headers, now)
    if _digest(moved) in moved.seen:
        return Ended(outcome=Outcome.REDIRECT_LOOP, reason=f"{status} to {address}, where it was before")
    if moved.hops > most:
        return Ended(outcome=Outcome.TOO_MANY_REDIRECTS, reason=f"{status} to {address} after {most} redirects")
    return moved


def _moved(chain: Chain, address: str, status: int, headers: Iterable[tuple[bytes, bytes]], now: datetime) -> Chain:
    set_cookie = [value.decode("utf-8", "surrogateescape") for name, value in headers if name.lower() == b"set-cookie"]
    method = _method(status, chain.method)
    return replace(
        chain,
        url=address,
        method=method,
        keeps_body=chain.keeps_body and method == chain.method and status != 303,
        keeps_headers=chain.keeps_headers and urls.origin(address) == urls.origin(chain.url),
        cookies=cookies.updated(chain.cookies, set_cookie, chain.url, now),
        seen=(*chain.seen, _digest(chain)),
    )


def _method(status: int, method: str) -> str:
    """303 asks for a GET; 301 and 302 turn a POST into one, as every browser does; 307 and 308 change nothing."""
    is_changed = (status == 303 and method not in ("GET", "HEAD")) or (status in (301, 302) and method == "POST")
    return "GET" if is_changed else method


def _digest(chain: Chain) -> str:
    text = f"{chain.method}\x1f{chain.url}\x1f{chain.cookie_header}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def _location(headers: Iterable[tuple[bytes, bytes]]) -> str | Ended:
    """The one Location; bytes beyond ASCII become escapes, which is right whatever their charset."""
    found = {value.strip() for name, value in headers if name.lower() == b"location"}
    if len(found) != 1:
        problem = f"{len(found)} different Locations" if found else "no Location"
        return Ended(outcome=Outcome.REDIRECT_INVALID, reason=problem)
    location = found.pop().decode("latin-1").translate(_NOT_IN_LOCATION)
    return location or Ended(outcome=Outcome.REDIRECT_INVALID, reason="an empty Location")


def _address(location: str | Ended, base: str) -> str | Ended:
    if isinstance(location, Ended):
        return location
    address = urls.resolve(location, base)
    if isinstance(address, urls.Rejected):
        reason = f"a Location that is no web address ({address.reason}): {address.value}"
        return Ended(outcome=Outcome.REDIRECT_INVALID, reason=reason)
    return address.url
