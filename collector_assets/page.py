"""Pages: where a response is kept (`Location`), what is read there (`StoredResponse`), what is extracted from (`Page`).

Everything of a page is made on first use; it never fetches and never looks at a clock.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from collector_assets import charset, nesting, queries, urls
from collector_assets.facts import fact
from collector_assets.spool import Body, Spool, whole
from collector_assets.window import Window

if TYPE_CHECKING:
    from parsel import Selector
    from selectolax.lexbor import LexborHTMLParser

NOT_MODIFIED = 304
_BASE = re.compile(r"<base\b", re.IGNORECASE)
_OF_BODY = re.compile(
    r"(?:x-archive-orig-)?(?:content-(?:encoding|length|md5|range|type)|transfer-encoding)\Z", re.IGNORECASE
)
"""Headers that say what the stored body is."""


@fact
class Location:
    """Where a response is in the archive, and what must be found there."""

    file: str
    """Relative to the archive."""
    offset: int
    length: int
    """Bytes of the record as stored, that is of one gzip member."""
    payload_digest: bytes
    """SHA-256 of the body as received."""
    url: str
    """What was asked for."""
    parts: tuple[PartPlace, ...] = ()
    """Of a page from a browser: what belongs to it, in the same file."""


Role = Literal["rendered", "frame", "captured", "view"]
"""The DOM of a page; that of a frame in it; a response to a request of its own; a picture of it."""
RENDERED_TYPE = "text/html; charset=utf-8"
PREFIXES: Mapping[str, str] = {"rendered": "urn:rendered:", "frame": "urn:rendered:", "view": "urn:view:"}
"""Of the URL, in the target URI of a part's record; a captured response is at its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a browser made of a page, besides the response."""

    role: Role
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    """Decoded: a browser hands out nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """A part as a page has it: read when it is asked for."""

    role: Role
    url: str
    read: Callable[[], Part]


def at_hand(parts: Iterable[Part]) -> tuple[PagePart, ...]:
    """Parts that are in memory."""
    return tuple(PagePart(role=part.role, url=part.url, read=partial(_itself, part)) for part in parts)


def _itself(part: Part) -> Part:
    return part


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPlace:
    """Where a part is in the archive."""

    role: Role
    url: str
    location: Location


@fact
class StoredResponse:
    """A response as it came, read back from the archive."""

    status: int
    headers: tuple[tuple[str, str], ...]
    """As received, bytes as Latin-1; `Transfer-Encoding` and an untrue `Content-Length` under X-Archive-Orig-*."""
    body: Body
    """Still content-encoded."""
    url: str
    truncated: str | None
    """length, time, disconnect or unspecified: the body is not whole."""
    fetched_at: datetime
    """By the clock of the machine that fetched it; the page's row has the database's."""
    is_revisit: bool = False
    """Without a body of its own: it says that what an earlier record holds is still what is there."""


def revisited(revisit: StoredResponse, held: StoredResponse) -> StoredResponse:
    """The response that a revisit stands for: the body that is held, under what the newer answer said.

    An answer 200 repeats every header. A 304 updates those of the stored response, except what describes the body that
    it did not bring (RFC 9111 §3.2).
    """
    if revisit.status != NOT_MODIFIED:
        return replace(revisit, body=held.body, truncated=held.truncated, is_revisit=False)
    news = [(name, value) for name, value in revisit.headers if not _OF_BODY.match(name)]
    told = {name.lower() for name, _ in news}
    kept = [(name, value) for name, value in held.headers if name.lower() not in told]
    return replace(held, headers=(*kept, *news), fetched_at=revisit.fetched_at)


def header_map(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by lower-case name; repeated ones joined by ", " (RFC 9110 §5.3)."""
    found: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


def is_selector(css: str) -> bool:
    """Whether lexbor can read it."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # noqa: PLC0415  made on first use

    try:
        LexborHTMLParser("").css_first(css)
    except SelectolaxError:
        return False
    return True


class Page:
    """One archived response, ready to read."""

    def __init__(
        self,
        *,
        url: str,
        final_url: str,
        status: int,
        headers: Mapping[str, str],
        body: Body,
        fetched_at: datetime,
        window: Window,
        kind: str,
        entity: str | None = None,
        lane: str = "*",
        referrer: str | None = None,
        hints: Mapping[str, Any] | None = None,
        flags: Iterable[str] = (),
        encoding: str | None = None,
        parts: Sequence[PagePart] = (),
        shows_rendered: bool = True,
    ) -> None:
        self.url = url
        """As asked for."""
        self.final_url = final_url
        """After redirects; relative links resolve against it (or against `<base href>`)."""
        self.status = status
        """200; only good pages are read."""
        self.headers = headers
        """Response headers, names in lower case; repeated ones joined by ", "."""
        self._body = body
        self.fetched_at = fetched_at
        """When the response had arrived, UTC; the only notion of "now" an extractor may use."""
        self.window = window
        """The collection window that asked for it."""
        self.kind = kind
        """As its link said, like entity and lane."""
        self.entity = entity
        """What the link said that the page is about."""
        self.lane = lane
        """The scheduling class; "*" where none was named."""
        self.referrer = referrer
        """The page that the link was found on."""
        self.hints: Mapping[str, Any] = hints or {}
        """Values seen where the link was found."""
        self._flags = frozenset(flags)
        self.known_encoding = encoding
        """What the source knows of the encoding, whatever the page declares."""
        self._parts, self._shows_rendered = parts, shows_rendered

    @cached_property
    def body(self) -> bytes:
        """Content-decoded bytes, all in memory."""
        return whole(self._body)

    def open(self) -> BinaryIO:
        """The decoded bytes as a stream: the way to read what is too large for memory."""
        return self._body.open() if isinstance(self._body, Spool) else io.BytesIO(self._body)

    @property
    def flags(self) -> frozenset[str]:
        """What is doubtful about the bytes.

        `content_encoding_mislabelled`, `content_type_mislabelled`, `trailing_bytes`, `encoding_suspect`.
        """
        return self._flags | self._decoded.flags

    @property
    def flags_seen(self) -> frozenset[str]:
        """`flags` as far as the page was read: text that nobody asked for is not decoded to know them."""
        return self.flags if "_decoded" in self.__dict__ else self._flags

    @cached_property
    def text(self) -> str:
        """The body as text, by BOM, the source's `encoding`, header, meta and evidence, in this order. Without NULs.

        Of a page from a browser it is `rendered`, where the kind's view does not say `text="response"`.
        """
        return self._decoded.text.replace("\0", "")

    @cached_property
    def rendered(self) -> str:
        """The DOM as the browser had it in the end; ValueError where no browser was shown the page."""
        return self._rendered_bytes.decode("utf-8")

    @cached_property
    def _rendered_bytes(self) -> bytes:
        for part in self._parts:
            if part.role == "rendered":
                return part.read().body
        raise ValueError(f"no browser was shown this page ({self.headers.get('content-type', 'of no type')})")

    def captured(self, pattern: str = "*") -> list[Page]:
        """Responses to the page's own requests (`View.capture`) whose URL fits (`*` is anything), as pages."""
        return [self._inner(part) for part in self._parts if part.role == "captured" and fnmatchcase(part.url, pattern)]

    def frames(self, pattern: str = "*") -> list[Page]:
        """Frames in a page from a browser whose address fits, each as a page; their DOM is the text."""
        return [self._inner(part) for part in self._parts if part.role == "frame" and fnmatchcase(part.url, pattern)]

    def frame(self, pattern: str) -> Page:
        """The one frame whose address fits; LookupError when there is none, or more than one."""
        found = self.frames(pattern)
        if len(found) != 1:
            raise LookupError(f"{len(found)} frames fit {pattern!r}, not one")
        return found[0]

    @property
    def view(self) -> bytes | None:
        """The picture of a page from a browser (PNG), if the kind's view keeps one."""
        return next((part.read().body for part in self._parts if part.role == "view"), None)

    def _inner(self, part: PagePart) -> Page:
        """A part as a page of its own."""
        found = part.read()
        return Page(
            url=part.url, final_url=part.url, status=found.status, headers=header_map(found.headers), body=found.body,
            fetched_at=self.fetched_at, window=self.window, kind=self.kind, entity=self.entity, lane=self.lane,
            referrer=self.final_url, hints=self.hints,
        )  # fmt: skip

    @cached_property
    def _decoded(self) -> charset.Text:
        if self._shows_rendered and any(part.role == "rendered" for part in self._parts):
            return charset.Text(text=self.rendered, encoding="utf-8", flags=frozenset())
        return charset.decode(self.body, self.headers.get("content-type", ""), encoding=self.known_encoding)

    @property
    def encoding(self) -> str:
        """The encoding of `text`, by its name in the Encoding Standard."""
        return self._decoded.encoding

    def json(self) -> Any:
        """The body as JSON; ValueError when it is not."""
        if self.known_encoding:
            return json.loads(self.text)
        try:
            return json.loads(self.body)
        except UnicodeDecodeError:  # not in UTF-8, against RFC 8259, but perhaps as its header says
            return json.loads(self.text)

    @cached_property
    def base_url(self) -> str:
        """What relative links stand on: the first `<base href>`, wherever it is, if usable; else `final_url`."""
        # Markup inside JSON or a table of values is no markup of the page.
        if not charset.may_have_meta(self.headers.get("content-type", "")) or not _BASE.search(self.text):
            return self.final_url
        first = self.tree.css_first("base[href]")
        base = urls.resolve((first.attributes["href"] or "") if first else "", self.final_url)
        return base.url if isinstance(base, urls.WebAddress) else self.final_url

    def resolve(self, href: str) -> urls.WebAddress | urls.Rejected:
        """A link as a browser at this page would follow it, or why none would."""
        if href in self._resolved:  # most links come here twice: an extractor makes them absolute, discovery asks again
            return urls.WebAddress(url=href)
        address = urls.resolve(href if href.isascii() else queries.in_encoding(href, self.encoding), self.base_url)
        if isinstance(address, urls.WebAddress):
            self._resolved.add(address.url)
        return address

    @cached_property
    def _resolved(self) -> set[str]:
        """What `resolve` has given already."""
        return set()

    @cached_property
    def tree(self) -> LexborHTMLParser:
        """The page as a lexbor tree (selectolax): fast, CSS only."""
        from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415  made on first use

        self._refuse_bombs()
        return LexborHTMLParser(self.text)

    @cached_property
    def selector(self) -> Selector:
        """The page as a parsel selector: CSS and XPath, about four times slower than `tree`."""
        from parsel import Selector  # noqa: PLC0415

        self._refuse_bombs()
        return Selector(text=self.text, base_url=self.final_url)

    def _refuse_bombs(self) -> None:
        if nesting.is_too_deep(self.text):
            raise ValueError(f"more than {nesting.DEEPEST:,} elements inside each other: not parsed")

    def __repr__(self) -> str:
        return f"Page({self.kind} {self.url} {self.status} {len(self._body)} bytes)"
