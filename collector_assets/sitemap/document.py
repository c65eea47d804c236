"""A sitemap in XML, entry by entry, as far as it can be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from html.entities import html5
from typing import Final
from xml.parsers import expat

from collector_assets.sitemap.entries import CUT, DAMAGED, REPAIRED, TRAILING, Entry, Lost, NotASitemap
from collector_assets.sitemap.lastmod import last_modified

LONGEST_TEXT: Final = 10_000
"""Characters of a loc that are kept: more than `urls.resolve` accepts."""
LONGEST_TOKEN: Final = 1 << 20
"""Bytes of one tag, one comment or one broken entry: more is no sitemap, and costs quadratic time (CVE-2023-52425)."""
BLANKS: Final = " \t\r\n\f\v\u00a0\u200b\u2060\ufeff"
"""What stands around addresses that were copied from somewhere."""
DEEPEST: Final = 50
MOST_REPAIRS: Final = 50_000
"""Entries of a file that may break: each costs a tenth of a millisecond and more."""

_LOC: Final = {"url": "loc", "sitemap": "loc", "item": "link", "entry": "link"}
_LASTMOD: Final = {"url": ("lastmod",), "sitemap": ("lastmod",), "item": ("pubdate", "date"), "entry": ("updated",)}
_ROOTS: Final = frozenset({"urlset", "sitemapindex", "rss", "rdf", "feed"})
_ENTRY_TAG: Final = re.compile(rb"<(?:[\w.-]+:)?(?:url|sitemap|item|entry)(?=[\s/>])", re.IGNORECASE)
# A bare ampersand, or a character that XML 1.0 does not have; CDATA sections stay as they are.
_TO_REPAIR: Final = re.compile(
    rb"(?P<cdata><!\[CDATA\[.*?\]\]>)|&(?!#[0-9]+;|#[xX][0-9a-fA-F]+;|[A-Za-z][A-Za-z0-9]*;)"
    rb"|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf])",
    re.DOTALL,
)
_JUNK_AFTER: Final = expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]


class Document:
    """An XML file, parsed until it breaks, and then on from the next entry."""

    def __init__(self, flags: Counter[str], now: datetime) -> None:
        self._flags, self._now = flags, now
        self._parser = _Parser(now)
        self._broken = bytearray()
        """What was not parsed, from the entry that broke on; empty while nothing is broken."""
        self._is_over, self._errors = False, 0

    @property
    def root(self) -> str:
        return self._parser.root

    def read(self, pieces: Iterable[str]) -> Iterator[Entry | Lost]:
        """Its entries; raises `NotASitemap`."""
        for piece in pieces:
            yield from self._parsed(piece.encode("utf-8", "replace"))
            if self._is_over:
                return
        if self._broken:
            yield from self._repaired(bytes(self._broken))
            if b"</" + self._parser.root_tag.encode() not in self._broken:
                self._flags[CUT] = 1
            return
        yield from self._ended()

    def _parsed(self, data: bytes) -> Iterator[Entry | Lost]:
        while data:
            if self._broken:
                self._broken += data
                data = yield from self._resumed()
                if not data:
                    return
            try:
                self._parser.feed(data)
                data = b""
            except expat.ExpatError as error:
                self._give_up_on(error)
                data = b""
                if self._broken:
                    yield from self._parser.taken()
                    data = yield from self._resumed()
            yield from self._parser.taken()

    def _give_up_on(self, error: expat.ExpatError) -> None:
        if not self._parser.root:
            raise NotASitemap(f"not XML: {error}")
        self._errors += 1
        if self._errors > MOST_REPAIRS:
            self._flags[DAMAGED] = 1
            self._is_over = True
            return
        if error.code == _JUNK_AFTER:
            has_entries = _ENTRY_TAG.search(self._parser.unfinished())
            self._flags[DAMAGED if has_entries else TRAILING] = 1
            self._is_over = True
        else:
            self._broken += self._parser.unfinished()

    def _resumed(self) -> Generator[Entry | Lost, None, bytes]:
        """Bytes for a new parser, from the next entry on; none while it is not there yet."""
        following = _ENTRY_TAG.search(self._broken, 1)
        if following is None:
            if len(self._broken) > LONGEST_TOKEN:
                self._flags[DAMAGED] = 1
                self._is_over = True
            return b""
        broken, rest = bytes(self._broken[: following.start()]), bytes(self._broken[following.start() :])
        self._broken.clear()
        yield from self._repaired(broken)
        self._parser = self._parser.successor()
        return rest

    def _repaired(self, broken: bytes) -> Iterator[Entry | Lost]:
        """The entry that broke, with its bare ampersands escaped; else it is lost."""
        parser = self._parser.successor()
        with suppress(expat.ExpatError):
            parser.feed(_TO_REPAIR.sub(_repair, broken))
        found = parser.taken(unfinished=True)
        if found:
            self._flags[REPAIRED] += 1
        yield from found or [Lost(reason="sitemap_entry_broken", value=broken[:200].decode("utf-8", "replace"))]

    def _ended(self) -> Iterator[Entry | Lost]:
        try:
            self._parser.finish()
        except expat.ExpatError as error:
            if not self._parser.root:
                raise NotASitemap(f"not XML: {error}") from None
            self._flags[CUT] = 1
        yield from self._parser.taken(unfinished=True)
        if not self._parser.has_entries and self._parser.root not in _ROOTS:
            raise NotASitemap(f"its root element is {self._parser.root[:40]!r}")


def _repair(match: re.Match[bytes]) -> bytes:
    if match["cdata"]:
        return match["cdata"]
    return b"" if match["control"] else b"&amp;"


@dataclass(slots=True)
class _OpenEntry:
    """An entry whose end has not come."""

    name: str
    locs: list[str] = field(default_factory=list)
    lastmod: str = ""
    unknown: str = ""
    """An entity of no meaning inside a loc."""


class _Parser:
    """Expat with what it found so far. Namespaces are not looked at: too often they are missing, unbound or wrong."""

    def __init__(self, now: datetime, root_tag: str = "") -> None:
        self.root_tag, self.has_entries = root_tag, False
        self._now, self._found = now, list[Entry | Lost]()
        self._names: list[str] = []
        self._entry: _OpenEntry | None = None
        self._room = 0
        self._text: list[str] | None = None
        """Of the loc or lastmod that is open."""
        self._kept, self._kept_at = bytearray(), 0
        """What was fed, from the open entry on, and where that is; for a repair."""
        self._entry_at = self._seen_at = 0
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        # Entities of HTML are "skipped", not errors, where a DTD might have declared them. None is ever loaded.
        self._expat.UseForeignDTD(True)
        self._expat.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._expat.EntityDeclHandler = self._on_declaration
        self._expat.StartElementHandler, self._expat.EndElementHandler = self._on_start, self._on_end
        self._expat.CharacterDataHandler, self._expat.SkippedEntityHandler = self._on_text, self._on_entity
        self._expat.CommentHandler, self._expat.ProcessingInstructionHandler = self._on_other, self._on_other
        if root_tag:
            self.feed(f"<{root_tag}>".encode())

    @property
    def root(self) -> str:
        """Local name of the root element, in lower case."""
        return _local(self.root_tag)

    def successor(self) -> _Parser:
        """A parser inside the same root element, for what comes after something broken."""
        return _Parser(self._now, self.root_tag)

    def feed(self, data: bytes) -> None:
        """Parse; raises `ExpatError`, and `NotASitemap` for what no sitemap does."""
        self._kept += data
        self._expat.Parse(data, False)
        if self._kept_at + len(self._kept) - self._seen_at > LONGEST_TOKEN:
            raise NotASitemap(f"one tag or comment is longer than {LONGEST_TOKEN} bytes")
        self._trim()

    def finish(self) -> None:
        """Nothing more comes."""
        self._expat.Parse(b"", True)

    def unfinished(self) -> bytes:
        """After an error: what gave no entry, from the open one on."""
        if self._entry is None:
            self._entry_at = max(self._seen_at, self._expat.ErrorByteIndex)
        return bytes(self._kept[max(0, self._entry_at - self._kept_at) :])

    def taken(self, *, unfinished: bool = False) -> list[Entry | Lost]:
        """What was found since the last time; also what an entry without an end has already."""
        if unfinished and self._entry and self._entry.locs:
            self._close(self._entry)
        found, self._found = self._found, []
        return found

    def _trim(self) -> None:
        """Forget what is parsed; of an entry of more than a megabyte too, which then cannot be repaired."""
        at = self._entry_at if self._entry and len(self._kept) <= LONGEST_TOKEN else self._seen_at
        del self._kept[: at - self._kept_at]
        self._kept_at = max(at, self._kept_at)

    # --- What expat calls --------------------------------------------------------------------------------------------

    def _on_declaration(self, *_: object) -> None:
        raise NotASitemap("it declares entities")

    def _on_other(self, *_: object) -> None:
        self._seen_at = self._expat.CurrentByteIndex

    def _on_start(self, tag: str, attributes: dict[str, str]) -> None:
        self._seen_at, name = self._expat.CurrentByteIndex, _local(tag)
        if not self._names:
            self._begin(tag)
        parent = self._names[-1] if self._names else ""
        self._names.append(name)
        if len(self._names) > DEEPEST:
            raise NotASitemap(f"elements are nested more than {DEEPEST} deep")
        if name in _LOC and len(self._names) > 1:
            if self._entry:  # its end is missing
                self._close(self._entry)
            self._entry, self._entry_at = _OpenEntry(name), self._seen_at
        elif self._entry and parent == self._entry.name and (name == _LOC[parent] or name in _LASTMOD[parent]):
            self._text, self._room = [], 0
            if "href" in attributes and attributes.get("rel", "alternate") == "alternate":  # Atom (RFC 4287 §4.2.7)
                self._text.append(attributes["href"])

    def _begin(self, tag: str) -> None:
        self.root_tag = self.root_tag or tag
        if self.root in ("html", "body"):
            raise NotASitemap("it is an HTML page")

    def _on_end(self, tag: str) -> None:
        self._seen_at, name = self._expat.CurrentByteIndex, _local(tag)
        self._names.pop()
        if self._entry is None:
            return
        if name == self._entry.name:
            self._close(self._entry)
        elif self._text is not None and self._names[-1] == self._entry.name:
            text, self._text = "".join(self._text).strip(BLANKS), None
            if name == _LOC[self._entry.name]:
                self._entry.locs += [text] if text or name == "loc" else []
            else:
                self._entry.lastmod = self._entry.lastmod or text[:100]

    def _on_text(self, text: str) -> None:
        self._seen_at = self._expat.CurrentByteIndex
        if self._text is not None and self._entry and self._names[-2] == self._entry.name:
            self._room -= len(text)
            if self._room > -LONGEST_TEXT:  # longer than any address, so that it is refused as too long
                self._text.append(text)

    def _on_entity(self, name: str, is_parameter: bool) -> None:  # noqa: FBT001  expat calls it so
        if self._text is None or self._entry is None or is_parameter:
            return
        if known := html5.get(f"{name};"):
            self._text.append(known)
        else:
            self._entry.unknown = name

    def _close(self, entry: _OpenEntry) -> None:
        self.has_entries |= bool(entry.locs)
        self._entry = self._text = None
        is_sitemap = entry.name == "sitemap" or self.root == "sitemapindex"
        for loc in entry.locs:
            if entry.unknown:
                self._found.append(Lost(reason="sitemap_unknown_entity", value=f"&{entry.unknown[:40]}; in {loc}"))
            elif not loc:
                self._found.append(Lost(reason="sitemap_empty_loc", value=""))
            else:
                lastmod = last_modified(entry.lastmod, now=self._now)
                self._found.append(Entry(loc=loc, lastmod=lastmod, is_sitemap=is_sitemap))
        if not entry.locs:
            self._found.append(Lost(reason="sitemap_entry_without_loc", value=""))


def _local(tag: str) -> str:
    return tag.rpartition(":")[2].lower()
