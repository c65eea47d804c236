"""URLs after the WHATWG standard (ada, the parser of Node.js): parse, join, key, origin, domain.

The URL that is sent is the URL that was found, parsed; the *key* that recognises the same work again is coarser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import ada_url
from publicsuffixlist import PublicSuffixList

MAX_URL = 8_192
"""Characters; longer ones are traps or rubbish (RFC 9110 §4.1 asks for 8,000 at least)."""

_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """A link that may enter the frontier: `url` is sent as it stands here."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A link that may not; `reason` is from a small closed set, `value` is cut to 200 characters."""

    reason: str
    value: str


def resolve(href: str, base: str) -> WebAddress | Rejected:
    """The link as a browser at `base` would follow it, without fragment and user info; only http(s), only usable hosts."""
    try:
        parsed = ada_url.URL(href, base=base) if base else ada_url.URL(href)
    except (ValueError, UnicodeError):
        return Rejected(reason="unparsable", value=href[:200])
    if parsed.protocol not in ("http:", "https:"):
        return Rejected(reason="not_a_web_address", value=href[:200])
    if not _is_usable_host(parsed.hostname):
        return Rejected(reason="impossible_host", value=href[:200])
    parsed.hash = ""
    parsed.username = parsed.password = ""
    if len(parsed.href) > MAX_URL:
        return Rejected(reason="too_long", value=href[:200])
    return WebAddress(url=parsed.href)


def key(url: str) -> str:
    """What makes two URLs the same work: parsed, no fragment or user info, unreserved characters unescaped, hex in capitals.

    Idempotent; path case, order of the query and every parameter are kept (RFC 3986 §6.2.2 is all that is safe in general).
    """
    parsed = ada_url.URL(url)
    parsed.hash = ""
    parsed.username = parsed.password = ""
    return _ESCAPE.sub(_normal_escape, parsed.href)


def origin(url: str) -> str:
    """scheme://host[:port], the unit of robots.txt and of a halt."""
    return ada_url.URL(url).origin


def host(url: str) -> str:
    """The host name in ASCII, without port; brackets of IPv6 stay."""
    return ada_url.URL(url).hostname


@lru_cache(maxsize=4_096)
def domain(name: str) -> str:
    """The registrable domain of a host by the public suffix list that is bundled with `publicsuffixlist`; an address is itself."""
    if name.startswith("[") or name.replace(".", "").isdigit():
        return name
    return _suffixes().privatesuffix(name) or name


def is_demo(name: str) -> bool:
    """Whether the host belongs to the demo site: `.localhost` never leaves the machine (RFC 6761 §6.3)."""
    return name == "localhost" or name.endswith(".localhost")


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


def _is_usable_host(name: str) -> bool:
    if not name:
        return False
    if name.startswith("["):
        return True
    labels = name.rstrip(".").split(".")
    return len(name) <= 253 and all(0 < len(label) <= 63 for label in labels)


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()
