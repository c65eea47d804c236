"""URLs after the WHATWG standard (ada, the parser of Node.js): parse, join, key, origin, domain.

The URL that is sent is the URL that was found, parsed; the *key* that recognises the same work again is coarser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import ada_url
from publicsuffixlist import PublicSuffixList

from collector_assets.facts import fact

MAX_URL = 8_192
"""Characters; longer ones are traps or rubbish (RFC 9110 §4.1 asks for 8,000 at least)."""

# Not after a stray "%" or "%7": decoding there would make a new escape, and a key of a key another key.
_ESCAPE: Final = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])%([0-9A-Fa-f]{2})")
_USER_INFO: Final = re.compile(r"(?:(?<=[/\\])|(?<=[sp]:))[^/\\?#]*@", re.IGNORECASE)
"""After a slash of either kind, or right behind `http:` and `https:`, which need none."""
_WEB: Final = re.compile(r"\Ahttps?://(?P<host>\[[^\]/]*\]|[^/:]*)(?::(?P<port>\d+))?/")
"""The beginning of a web address as the parser writes it, without user info."""
_DOT_BEHIND_HOST: Final = re.compile(r"\A(https?://[^/]*?)\.(?=[:/])")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@fact
class WebAddress:
    """A link that may enter the frontier: `url` is sent as it stands here."""

    url: str
    fragment: str = ""
    """What stood behind "#": never sent, but a browser may show another page by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A link that may not enter the frontier."""

    reason: Literal["unparsable", "not_a_web_address", "impossible_host", "impossible_port", "too_long"]
    value: str
    """The link as found, without user info, cut to 200 characters."""
    scheme: str = ""
    """Of what is not a web address, cut to 20 characters: `mailto`, `javascript` …"""


def resolve(href: str, base: str) -> WebAddress | Rejected:
    """The link as a browser at `base` would follow it, less fragment and user info: only http(s) and usable hosts."""
    try:
        parsed = ada_url.URL(href, base=base) if base else ada_url.URL(href)
    except (ValueError, UnicodeError):
        return Rejected(reason="unparsable", value=shown(href))
    url = parsed.href
    if not url.startswith(("http://", "https://")):
        return Rejected(reason="not_a_web_address", value=shown(href), scheme=parsed.protocol[:-1][:20])
    fragment = parsed.hash[1:] if "#" in href else ""
    url = _bare(parsed, url)
    web = _WEB.match(url)
    if web is None:
        return Rejected(reason="impossible_host", value=shown(href))
    if not _is_usable_host(web["host"]):
        return Rejected(reason="impossible_host", value=shown(href))
    if web["port"] == "0":
        return Rejected(reason="impossible_port", value=shown(href))
    if len(url) > MAX_URL:
        return Rejected(reason="too_long", value=shown(href))
    _kept(url, _Parts(url, url[: web.end() - 1], web["host"]))
    return WebAddress(url=url, fragment=fragment)


def key(url: str) -> str:
    """What makes two URLs the same work: no fragment or user info, unreserved characters plain, escapes in capitals.

    Idempotent. The path's case, the order of the query and every parameter stay: more would not be safe in general
    (RFC 3986 §6.2.2); a source may say more (`keys.py`). A dot behind the host names the same host, and the question
    mark of an empty query is not sent (yarl leaves it out).
    """
    plain = _parts(url).bare
    if "%" in plain:
        plain = _ESCAPE.sub(_normal_escape, plain)
    if "./" in plain or ".:" in plain:
        plain = _DOT_BEHIND_HOST.sub(r"\1", plain)
    return plain[:-1] if plain[-1] == "?" and plain.find("?") == len(plain) - 1 else plain


def origin(url: str) -> str:
    """scheme://host[:port], the unit of robots.txt and of a halt."""
    return _parts(url).origin


def has_user_info(url: str) -> bool:
    """Whether a URL that can be parsed carries a user or a password."""
    parsed = ada_url.URL(url)
    return bool(parsed.username or parsed.password)


def host(url: str) -> str:
    """The host name in ASCII, without port; brackets of IPv6 stay."""
    return _parts(url).host


@lru_cache(maxsize=4_096)
def domain(name: str) -> str:
    """The registrable domain of a host, by the public suffix list in `publicsuffixlist`; an address is itself."""
    name = name.rstrip(".")
    if is_address(name):
        return name
    return _suffixes().privatesuffix(name) or name


def is_public_suffix(name: str) -> bool:
    """Whether names directly under this one belong to different owners, as under `com` or `co.uk`."""
    return _suffixes().publicsuffix(name) == name


def is_address(name: str) -> bool:
    """Whether the host is an IP address, as a parsed URL shows it."""
    return name.startswith("[") or name.replace(".", "").isdigit()


def path(url: str) -> str:
    """The path, beginning with a slash."""
    return ada_url.URL(url).pathname


def is_demo(name: str) -> bool:
    """Whether the host belongs to the demo site: `.localhost` never leaves the machine (RFC 6761 §6.3)."""
    return f".{name.removesuffix('.')}".endswith(".localhost")


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


class _Parts(NamedTuple):
    bare: str
    origin: str
    host: str


_KNOWN: Final[dict[str, _Parts]] = {}
_MOST_KNOWN: Final = 8_192


def _parts(url: str) -> _Parts:
    """What is asked of a URL again and again, from one parse: on its way in, when it is claimed, when it is sent."""
    if (known := _KNOWN.get(url)) is not None:
        return known
    parsed = ada_url.URL(url)
    return _kept(url, _Parts(_bare(parsed, parsed.href), parsed.origin, parsed.hostname))


def _kept(url: str, parts: _Parts) -> _Parts:
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[url] = parts
    return parts


@lru_cache(maxsize=4_096)
def _is_usable_host(name: str) -> bool:
    if not name:
        return False
    if name.startswith("["):
        return True
    name = name.removesuffix(".")
    return len(name) <= 253 and all(0 < len(label) <= 63 for label in name.split("."))


def _bare(parsed: ada_url.URL, url: str) -> str:
    """The address `url` without fragment and user info. Each attribute is a call into C, so only where there is one."""
    if "#" in url or "@" in url:
        parsed.hash = parsed.username = parsed.password = ""
        url = parsed.href
    return url


def shown(href: str) -> str:
    """A link for the records, whatever it is: short, and without a password."""
    return (_USER_INFO.sub("", href) if "@" in href else href)[:200]


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()
