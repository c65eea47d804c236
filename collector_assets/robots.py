"""robots.txt after RFC 9309: bytes and our product token in, what we may fetch out. Pure; never raises on content.

Read leniently where that forbids more (misspelt names, a missing colon, a path without its slash), and by the letter
everywhere else. `Crawl-delay`, `Request-rate` and `Sitemap` are not in the RFC; it says that they must not interfere
with grouping (§2.2.4), so they never end the list of agents of a group.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from collector_assets import urls

MOST_BYTES: Final = 500 * 1024
"""What is read of a file; the rest is left out from the last whole line on (RFC 9309 §2.5 asks for 500 KiB)."""
MOST_SHOWN: Final = 200
"""Characters of a rule that are kept for people."""

_AGENT: Final = re.compile(rb"[A-Za-z0-9_.-]+")
"""A product token is letters, `-` and `_` (§2.2.1); `5eme` and `bot2.0` are names of others, not of nobody."""
_ORIGIN: Final = re.compile(rb"(?i)https?://[^/?#]*")
_OTHERS: Final = rb"!#&'()+,/:;=?@\[\]$*A-Za-z0-9._~-"
_ODD: Final = re.compile(rb"%[0-9A-Fa-f]{2}|[^" + _OTHERS + rb"]")
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_IN_QUERY: Final = re.compile(rb"[:/?#\[\]@]")
_STARS: Final = re.compile(rb"\*+")
_RATE: Final = re.compile(rb"(\d{1,6})\s*/\s*(\d{1,6})\s*([smh]?)")

_NAMES: Final = {
    b"user-agent": "agent", b"useragent": "agent", b"user agent": "agent", b"user_agent": "agent",
    b"allow": "allow",
    b"disallow": "disallow", b"dissallow": "disallow", b"dissalow": "disallow", b"disalow": "disallow",
    b"diasllow": "disallow", b"disallaw": "disallow",
    b"crawl-delay": "delay", b"crawldelay": "delay", b"crawl delay": "delay",
    b"request-rate": "rate",
    b"sitemap": "sitemap", b"site-map": "sitemap",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a URL may be fetched, and the rule that says so; without one nothing forbids it."""

    allowed: bool
    rule: str = ""
    """As in the file: "Disallow: /p"."""


_FREE: Final = Verdict(allowed=True)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One spelling of a rule's path: the pieces between its wildcards."""

    pieces: tuple[bytes, ...]
    is_anchored: bool
    weight: tuple[int, bool]
    """Octets of the path, and whether it allows: the greatest of the matching decides (§2.2.2)."""
    verdict: Verdict

    def matches(self, target: bytes) -> bool:
        """Piece after piece, each as early as it can be: nothing is ever tried again."""
        first, *rest = self.pieces
        if not rest:
            return target == first if self.is_anchored else target.startswith(first)
        if not target.startswith(first):
            return False
        at = len(first)
        for piece in rest[:-1]:
            at = target.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        if self.is_anchored:
            return target.endswith(rest[-1], at)
        return target.find(rest[-1], at) >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one file says to one product token."""

    crawl_delay_s: float | None = None
    """Seconds between requests: the longest of what our group asks for."""
    notes: tuple[str, ...] = ()
    """What is odd about the file, in words for an operator."""
    listed: tuple[str, ...] = ()
    """Values of the Sitemap lines as they stand there."""
    plain: dict[bytes, _Pattern] = field(default_factory=dict)
    """Paths that are beginnings of others."""
    lengths: tuple[int, ...] = ()
    """Of the plain paths, the longest first."""
    wild: tuple[_Pattern, ...] = ()
    """Paths with `*` or `$`, the weightiest first."""

    def allows(self, url: str) -> Verdict:
        """Whether a URL of the file's origin may be fetched (§2.2.2): the longest match decides, a tie allows."""
        if not (self.plain or self.wild):
            return _FREE
        target = _target(url)
        if target == b"/robots.txt":
            return _FREE
        if b"?" not in target:
            best = self._best(target)
        else:
            best = max((found for form in _forms(target) if (found := self._best(form))), default=None, key=_weight)
        return best.verdict if best else _FREE

    def _best(self, target: bytes) -> _Pattern | None:
        best = None
        for length in self.lengths:
            if best := self.plain.get(target[:length]):
                break
        for pattern in self.wild:
            if best and best.weight >= pattern.weight:
                break
            if pattern.matches(target):
                return pattern
        return best

    def sitemaps(self, base: str) -> tuple[str, ...]:
        """The http(s) addresses of the Sitemap lines, each once, resolved at the file's URL, which is none of them."""
        found: dict[str, None] = {}
        for value in self.listed:
            address = urls.resolve(value, base)
            if isinstance(address, urls.WebAddress) and not _is_robots(address.url, base):
                found[address.url] = None
        return tuple(found)


Meaning = Literal["rules", "absent", "refused", "moved", "unreachable"]

_MEANINGS: Final[dict[int, Meaning]] = {
    301: "moved", 302: "moved", 303: "moved", 307: "moved", 308: "moved",
    401: "refused", 403: "refused", 407: "refused", 451: "refused",
    408: "unreachable", 425: "unreachable", 429: "unreachable",
}  # fmt: skip
_MEANINGS_BY_CLASS: Final[dict[int, Meaning]] = {2: "rules", 4: "absent"}


def meaning(status: int) -> Meaning:
    """What the status of a robots.txt says (§2.3.1).

    Where the RFC allows everything we are more careful: a site that refuses its rules (401, 403, 407, 451) did not
    invite us, and one that says "not now" (408, 425, 429) has not answered yet. Unknown means no.
    """
    return _MEANINGS.get(status) or _MEANINGS_BY_CLASS.get(status // 100, "unreachable")


def product_token(user_agent: str) -> str:
    """The name by which a file may address us: the first product of what we send (§2.2.1)."""
    return re.split(r"[/\s(]", user_agent.strip(), maxsplit=1)[0]


def parse(body: bytes, token: str) -> Rules:
    """The rules of the group that names `token`, of all such groups together, or else of the `*` group (§2.2.1)."""
    octets = _octets(body)
    notes = []
    if octets.lstrip()[:1] == b"<":
        notes.append("it looks like HTML, not like rules")
    if len(octets) > MOST_BYTES:
        octets = _whole_lines(octets[:MOST_BYTES])
        notes.append(f"only its first {MOST_BYTES // 1024} KiB are read")
    reading = _Reading(token.lower().encode("utf-8", "replace"))
    for name, value in _records(octets):
        reading.take(name, value)
    return reading.rules(notes)


class _Reading:
    """Groups as they come."""

    def __init__(self, token: bytes) -> None:
        self._token = token
        self._agents: set[bytes] = set()
        """Those that the group under way is for."""
        self._is_named = False
        """Whether the group has rules already, so that the next agent begins another."""
        self._rules: dict[bytes, list[tuple[bool, bytes]]] = {}
        self._delays: dict[bytes, float] = {}
        self._sitemaps: list[str] = []
        self._notes: list[str] = []

    def take(self, name: str, value: bytes) -> None:
        """One line."""
        match name:
            case "agent":
                if self._is_named:
                    self._agents, self._is_named = set(), False
                self._agents.add(agent := _agent(value))
                if agent in (self._token, b"*"):
                    self._rules.setdefault(agent, [])
            case "allow" | "disallow":
                self._is_named = True
                for agent in self._agents & self._rules.keys():
                    self._rules[agent].append((name == "allow", value))
            case "sitemap":
                self._sitemaps.append(value.decode("utf-8", "replace"))
            case _:
                self._slow_down(name, value)

    def _slow_down(self, name: str, value: bytes) -> None:
        """For the agents named so far, whatever the group will say besides."""
        asked = _seconds(value) if name == "delay" else _seconds_of_rate(value)
        for agent in self._agents & self._rules.keys():
            if asked is None:
                self._notes.append(f"{name} {_shown(value)!r} is no number of seconds")
            else:
                self._delays[agent] = max(asked, self._delays.get(agent, 0.0))

    def rules(self, notes: Iterable[str]) -> Rules:
        """What it comes to for our token."""
        group = self._token if self._token in self._rules else b"*"
        patterns = [each for allows, path in self._rules.get(group, ()) for each in _patterns(path, allows=allows)]
        plain: dict[bytes, _Pattern] = {}
        for each in sorted(patterns, key=_weight):
            if len(each.pieces) == 1 and not each.is_anchored:
                plain[each.pieces[0]] = each
        wild = [each for each in patterns if len(each.pieces) > 1 or each.is_anchored]
        return Rules(
            crawl_delay_s=self._delays.get(group),
            notes=(*notes, *dict.fromkeys(self._notes)),
            listed=tuple(self._sitemaps),
            plain=plain,
            lengths=tuple(sorted({len(path) for path in plain}, reverse=True)),
            wild=tuple(sorted(wild, key=_weight, reverse=True)),
        )


# --- Bytes to lines --------------------------------------------------------------------------------------------------


def _octets(body: bytes) -> bytes:
    """The file as UTF-8: a byte order mark in front is no part of it; UTF-16 is a mistake that is easily undone."""
    if body.startswith(codecs.BOM_UTF8):
        return body[len(codecs.BOM_UTF8) :].replace(b"\0", b"")
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if body.startswith(mark):
            return body[2 : 4 * MOST_BYTES].decode(encoding, "replace").encode("utf-8", "replace").replace(b"\0", b"")
    return body.replace(b"\0", b"")  # ASCII in UTF-16 without a mark is every other byte


def _whole_lines(octets: bytes) -> bytes:
    """Without a last line that may be cut: half of a path is another path."""
    return octets[: max(octets.rfind(b"\n"), octets.rfind(b"\r")) + 1]


def _records(octets: bytes) -> Iterator[tuple[str, bytes]]:
    for line in octets.splitlines():
        text = line.partition(b"#")[0]
        name, colon, value = text.partition(b":")
        if not colon:  # "Disallow /private" is meant as it looks
            words = text.split()
            if len(words) != 2:
                continue
            name, value = words
        known = _NAMES.get(name.strip().lower())
        if known:
            yield known, value.strip()


def _agent(value: bytes) -> bytes:
    """The name that a User-agent line gives, in lower case; a version or a comment after it is not part of it."""
    if value.split()[:1] == [b"*"]:
        return b"*"
    found = _AGENT.match(value)
    return found[0].lower() if found else b""


def _seconds(value: bytes) -> float | None:
    try:
        found = float(value)
    except ValueError:
        return None
    return found if found >= 0 and math.isfinite(found) else None


def _seconds_of_rate(value: bytes) -> float | None:
    """`1/5` is a page each five seconds; hours of the day behind it are not looked at, so it always holds."""
    found = _RATE.match(value)
    if found is None or not int(found[1]):
        return None
    return int(found[2]) * {b"": 1, b"s": 1, b"m": 60, b"h": 3600}[found[3]] / int(found[1])


# --- Paths -----------------------------------------------------------------------------------------------------------


def _patterns(value: bytes, *, allows: bool) -> Iterator[_Pattern]:
    """The spellings under which a rule's path is looked for; nothing for an empty path, which matches nothing."""
    path = _ORIGIN.sub(b"", value, count=1) if _ORIGIN.match(value) else value
    if not path:
        return
    if not path.startswith((b"/", b"*")):
        path = b"/" + path
    is_anchored = path.endswith(b"$")
    path = _STARS.sub(b"*", path.removesuffix(b"$"))
    verdict = Verdict(allowed=allows, rule=f"{'Allow' if allows else 'Disallow'}: {_shown(value)}")
    pieces = [_normal(piece).replace(b"$", b"%24") for piece in path.split(b"*")]
    weight = sum(map(len, pieces)) + len(pieces) - 1 + is_anchored
    for form in _forms(b"*".join(pieces)):
        yield _Pattern(tuple(form.split(b"*")), is_anchored, (weight, allows), verdict)


def _target(url: str) -> bytes:
    """Path and query of a URL, in normal form: what a pattern writes as %2A and %24 stands for itself (§2.2.3)."""
    _, _, rest = url.partition("#")[0].partition("://")
    place, mark, query = rest.partition("?")
    slash = place.find("/")
    path = ((place[slash:] if slash >= 0 else "") + mark + query).encode("utf-8", "surrogatepass")
    path = _normal(path if path.startswith(b"/") else b"/" + path)
    return path.replace(b"*", b"%2A").replace(b"$", b"%24") if b"*" in path or b"$" in path else path


def _normal(octets: bytes) -> bytes:
    """Escapes in capitals, none where none is needed, one wherever it is needed (§2.2.2); reserved ones as they are."""
    return _ODD.sub(_escape, octets)


def _escape(match: re.Match[bytes]) -> bytes:
    found = match[0]
    if len(found) == 1:
        return b"%%%02X" % found[0]
    code = int(found[1:], 16)
    return bytes((code,)) if code in _UNRESERVED else found.upper()


def _forms(path: bytes) -> Sequence[bytes]:
    """The path, and its other spelling: in a query `:` and `/` may stand escaped or not (the table of §2.2.2)."""
    before, mark, query = path.partition(b"?")
    if not mark or _IN_QUERY.search(query) is None:
        return (path,)
    return (path, before + mark + _IN_QUERY.sub(lambda match: b"%%%02X" % match[0][0], query))


def _weight(pattern: _Pattern) -> tuple[int, bool]:
    return pattern.weight


def _is_robots(url: str, base: str) -> bool:
    return url == base or url == f"{urls.origin(base)}/robots.txt"


def _shown(value: bytes) -> str:
    return value[:MOST_SHOWN].decode("utf-8", "replace")
