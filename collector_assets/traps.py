"""Signs that a site leads on and on: addresses that grow by themselves, listings that show nothing new. Pure.

Nothing here is proof, so only *new ways on* are left out, never an item, and each is counted as `trap_suspected` with
its pattern. What a window must remember for this is one `Trail` per pattern of addresses, and a number per request.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Final
from urllib.parse import unquote

REPETITIONS: Final = 3
"""Equal runs in a row, and layers of escapes, that no address has by accident when the page before had one fewer."""
LONGEST_RUN: Final = 8
"""Segments of a run that is looked for."""
REMEMBERED: Final = 32
"""Sets of items that a trail remembers; a listing that shows one of them again shows nothing new."""
LONGEST_PATTERN: Final = 200
_PARTS: Final = 64
"""Segments of a path that are looked at."""

_DIGIT: Final = re.compile(r"\d")
_MONTH_NAMES: Final = """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    januar februar märz mai juni juli oktober dezember
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
"""
_MONTHS: Final = frozenset(_MONTH_NAMES.split())
"""They count on like numbers. English in full and in short; German, French, Spanish, Italian."""
_TOKENS: Final = re.compile("[&;?]")


def growth(link: str, page: str) -> str:
    """How a link only makes the address of its page longer, in words; empty if it does not.

    Both are parsed URLs. Only growth counts: an address that is odd in itself is fetched once.
    """
    if link == page or len(link) <= len(page):
        return ""
    for part, split in ((_path, "/"), (_query, None))[: 1 + ("?" in link)]:
        again = _repeated(part(link), split)
        if again.times >= REPETITIONS and again.times > _repeated(part(page), split).times >= REPETITIONS - 1:
            return f"repeats {again.run}"[:LONGEST_PATTERN]
    layers = _layers(link)
    if layers >= REPETITIONS and layers > _layers(page) >= REPETITIONS - 1:
        return f"escaped again and again: {pattern(link.partition('?')[0])}"[:LONGEST_PATTERN]
    return ""


def is_deeper(url: str, than: str) -> bool:
    """Whether an address lies in a folder under the folder of another, on the same origin."""
    folder, other = url.partition("?")[0].rpartition("/")[0], than.partition("?")[0].rpartition("/")[0]
    return folder.startswith(other + "/")


def pattern(url: str, restarts: int = 0) -> str:
    """What addresses of one sort share: host, path with `*` for numbers and months, names of the parameters.

    What stands several times in a row stands once, so that `/page/2/`, `/page/2/page/3/` … are of one sort. A chain
    that has started over shows what it showed before, so it is a sort of its own.
    """
    address, _, query = url.partition("?")
    host, *segments = address.partition("://")[2].split("/")
    path = "/".join(_once([_sort(segment) for segment in segments[:_PARTS]]))
    names = "&".join(sorted({pair.partition("=")[0] for pair in query.split("&")})) if query else ""
    found = f"{host}/{path}{names and '?' + names}"[:LONGEST_PATTERN]
    return f"{found} (restart {restarts})" if restarts else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """What the listings of one pattern showed, in a window so far."""

    barren: int = 0
    """How many of them in a row showed nothing new."""
    recent: Sequence[bytes] = ()
    """Digests of what they showed, the newest last."""

    def after(self, items: bytes | None) -> Trail:
        """After one more of them; `items` is the digest of what it showed, None for nothing."""
        if items is None or items in self.recent:
            return replace(self, barren=self.barren + 1)
        return Trail(recent=(*self.recent, items)[-REMEMBERED:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page that was followed, as far as it matters here."""

    url: str
    """After redirects."""
    body: bytes
    """Digest of its bytes."""
    barren: int
    """Listings in a row before it, on the way to it, that showed nothing new."""
    above: bytes | None
    """Digest of the listing that it was found on, where it lies in a folder below."""
    rows: bytes = b""
    """Digest of the records on it, where its kind has any."""
    restarts: int = 0
    """How often its chain had started over."""
    pattern: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", pattern(self.url, self.restarts))


def digest(body: bytes) -> bytes:
    """Enough to tell listings of one site apart."""
    return hashlib.blake2b(body, digest_size=12).digest()


def digest_of_stream(body: BinaryIO) -> bytes:
    """The same of a body that may be too large for memory."""
    running = hashlib.blake2b(digest_size=12)
    while piece := body.read(2**20):
        running.update(piece)
    return running.digest()


def digest_of(items: Iterable[bytes]) -> bytes | None:
    """One digest of a set, None of an empty one."""
    ordered = sorted(set(items))
    return digest(b"".join(ordered)) if ordered else None


def leads_nowhere(chain: int, trail: Trail, most: int) -> bool:
    """Whether it is time to stop: `chain` barren listings on the way here, or very many of this pattern all around."""
    return chain >= most or (4 * chain >= most and trail.barren >= 10 * most)


# --- Growth ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Again:
    times: int
    run: str


_ONCE: Final = _Again(1, "")


def _sort(segment: str) -> str:
    """A segment, or `*` for one that counts: with a digit, or a month."""
    if _DIGIT.search(segment) or unquote(segment).lower() in _MONTHS:
        return "*"
    return segment


def _once(parts: Sequence[str]) -> list[str]:
    """The parts without runs that repeat the one before."""
    kept: list[str] = []
    for part in parts:
        kept.append(part)
        for period in range(1, min(LONGEST_RUN, len(kept) // 2) + 1):
            if kept[-period:] == kept[-2 * period : -period]:
                del kept[-period:]
                break
    return kept


def _path(url: str) -> str:
    return url.partition("?")[0].partition("://")[2].partition("/")[2]


def _query(url: str) -> str:
    return url.partition("?")[2]


def _repeated(text: str, separator: str | None) -> _Again:
    """The run of parts that stands most often in a row, numbers aside: /2026/11/11/11/ is a date and its third item."""
    parts = (text.split(separator) if separator else _TOKENS.split(text))[-_PARTS:]
    if len(parts) < REPETITIONS - 1 or len(set(parts)) == len(parts):
        return _ONCE
    best = _ONCE
    for period in range(1, min(LONGEST_RUN, len(parts) // 2) + 1):
        same = 0
        for at in range(period, len(parts)):
            same = same + 1 if parts[at] == parts[at - period] else 0
            times = same // period + 1
            if times > best.times and not "".join(run := parts[at - period + 1 : at + 1]).isdigit():
                best = _Again(times, (separator or "&").join(run))
    return best


def _layers(url: str) -> int:
    """How often the address has been escaped, in per cents or as HTML."""
    if "%25" not in url and "amp" not in url:
        return 1
    text, layers = url, 0
    while layers < 2 * REPETITIONS and (plain := html.unescape(unquote(text))) != text:
        text, layers = plain, layers + 1
    return layers
