"""Cookies as a user agent keeps them for a moment (RFC 6265 §5): a chain of redirects, or a session. Pure.

Lifetimes are not counted: a chain lasts seconds, and of a session the site says itself when it is over. A cookie is
there or was deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from collector_assets import urls

MOST: Final = 50
"""Cookies kept; the oldest go first."""
LONGEST: Final = 4_096
"""Characters of a name and its value (RFC 6265 §6.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """One cookie; domain, path and name identify it."""

    name: str
    value: str
    domain: str
    is_host_only: bool
    path: str
    is_secure: bool

    def goes_to(self, url: str) -> bool:
        """Whether it is sent with a request to `url`."""
        return (
            _domain_matches(urls.host(url), self.domain, exactly=self.is_host_only)
            and _path_matches(urls.path(url), self.path)
            and (not self.is_secure or url.startswith("https:"))
        )


def updated(cookies: Sequence[Cookie], set_cookie: Iterable[str], url: str, now: datetime) -> tuple[Cookie, ...]:
    """The cookies after an answer of `url` with these Set-Cookie lines."""
    kept = {_key(cookie): cookie for cookie in cookies}
    for line in set_cookie:
        name, value, attributes = _parsed(line)
        cookie = _cookie(name, value, attributes, url)
        if cookie is None:
            continue
        kept.pop(key := _key(cookie), None)
        if not _is_deletion(attributes, now):
            kept[key] = cookie
    return tuple(kept.values())[-MOST:]


def merged(base: Sequence[Cookie], ours: Sequence[Cookie], theirs: Sequence[Cookie]) -> tuple[Cookie, ...]:
    """Theirs, with what we have changed since `base`; where both changed a cookie, ours."""
    before, after, found = ({_key(each): each for each in some} for some in (base, ours, theirs))
    for key in before.keys() - after.keys():
        found.pop(key, None)
    found |= {key: each for key, each in after.items() if before.get(key) != each}
    return tuple(found.values())[-MOST:]


def header(cookies: Sequence[Cookie], url: str) -> str:
    """The value of the Cookie header of a request to `url`; longer paths first, then older ones."""
    sent = sorted((cookie for cookie in cookies if cookie.goes_to(url)), key=lambda cookie: -len(cookie.path))
    return "; ".join(f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in sent)


def joined(configured: str, chain: str) -> str:
    """A Cookie header that a source configured, with the cookies of a chain, which replace those of the same name."""
    names = {_name(pair) for pair in chain.split(";")}
    own = [pair.strip() for pair in configured.split(";") if pair.strip() and _name(pair) not in names]
    return "; ".join([*own, chain])


def _key(cookie: Cookie) -> tuple[str, str, str]:
    return cookie.domain, cookie.path, cookie.name


def _name(pair: str) -> str:
    return pair.partition("=")[0].strip()


def _parsed(line: str) -> tuple[str, str, dict[str, str]]:
    """Name, value and attributes of a Set-Cookie line (RFC 6265 §5.2); of a repeated attribute the last counts."""
    pair, *rest = line.split(";")
    name, equals, value = pair.partition("=")
    if not equals:
        name, value = "", pair
    attributes = {
        key.strip().lower(): value.strip() for key, _, value in (attribute.partition("=") for attribute in rest)
    }
    return name.strip(), value.strip(), attributes


def _cookie(name: str, value: str, attributes: dict[str, str], url: str) -> Cookie | None:
    """The cookie, or nothing when it must be ignored (RFC 6265 §5.3, RFC 6265bis §5.7 on prefixes)."""
    if not (name or value) or len(name) + len(value) > LONGEST or not (name + value).isprintable():
        return None
    host, domain = urls.host(url), attributes.get("domain", "").lstrip(".").lower()
    is_host_only = not domain or domain == host
    if domain and not _domain_matches(host, domain, exactly=False):
        return None
    if not is_host_only and urls.is_public_suffix(domain):
        return None
    is_secure = "secure" in attributes
    path = attributes.get("path", "")
    if is_secure and not url.startswith("https:"):
        return None
    if name.startswith("__Secure-") and not is_secure:
        return None
    if name.startswith("__Host-") and not (is_secure and not attributes.get("domain") and path == "/"):
        return None
    return Cookie(
        name=name, value=value, domain=domain or host, is_host_only=not attributes.get("domain"),
        path=path if path.startswith("/") else _default_path(url), is_secure=is_secure,
    )  # fmt: skip


def _default_path(url: str) -> str:
    """The folder of the URL's path (RFC 6265 §5.1.4)."""
    return urls.path(url).rpartition("/")[0] or "/"


def _is_deletion(attributes: dict[str, str], now: datetime) -> bool:
    """Whether the cookie has expired already; Max-Age goes before Expires."""
    max_age = attributes.get("max-age", "")
    if max_age.removeprefix("-").isdecimal():
        return max_age.startswith("-") or int(max_age) == 0
    try:
        expires = parsedate_to_datetime(attributes["expires"].replace("-", " "))
    except (KeyError, ValueError, IndexError):
        return False
    return (expires if expires.tzinfo else expires.replace(tzinfo=UTC)) <= now


def _domain_matches(host: str, domain: str, *, exactly: bool) -> bool:
    """RFC 6265 §5.1.3."""
    return host == domain or (not exactly and host.endswith("." + domain) and not urls.is_address(host))


def _path_matches(path: str, prefix: str) -> bool:
    """RFC 6265 §5.1.4."""
    return path == prefix or (path.startswith(prefix) and (prefix.endswith("/") or path[len(prefix)] == "/"))
