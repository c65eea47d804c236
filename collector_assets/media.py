"""What a body is: as its header says, and as its first bytes show (WHATWG MIME Sniffing §6, §7). Pure.

Few families, told apart by what reads them; a header is believed where the bytes show nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final, Literal

Media = Literal["html", "xml", "json", "text", "pdf", "image", "zip", "gzip", "binary"]
"""`zip` also stands for XLSX, DOCX, EPUB …; `text` for CSV, plain text, scripts; `binary` for everything else."""

HEAD: Final = 1_024
"""First bytes that are looked at."""
MARKUP: Final = frozenset({"html", "xml", "json"})
SEALED: Final = frozenset({"pdf", "image", "zip", "binary"})

_SAID: Final[dict[str, Media]] = {
    "text/html": "html", "application/xhtml+xml": "html", "text/xml": "xml", "application/xml": "xml",
    "application/json": "json", "text/json": "json", "application/x-ndjson": "json", "application/jsonl": "json",
    "application/javascript": "text", "application/csv": "text", "application/pdf": "pdf", "application/zip": "zip",
    "application/x-zip-compressed": "zip", "application/gzip": "gzip", "application/x-gzip": "gzip",
}  # fmt: skip
_SAID_BY_PART: Final[tuple[tuple[str, Media], ...]] = (
    ("image/", "image"), ("+json", "json"), ("+xml", "xml"), ("+zip", "zip"), ("text/", "text"),
    ("application/vnd.openxmlformats-officedocument.", "zip"), ("application/vnd.oasis.opendocument.", "zip"),
    ("audio/", "binary"), ("video/", "binary"), ("font/", "binary"),
)  # fmt: skip
_UTF_16: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_SHOWN: Final[tuple[tuple[bytes, Media], ...]] = (
    (b"%PDF-", "pdf"), (b"\x89PNG\r\n\x1a\n", "image"), (b"\xff\xd8\xff", "image"), (b"GIF87a", "image"),
    (b"GIF89a", "image"), (b"II*\0", "image"), (b"MM\0*", "image"), (b"\0\0\x01\0", "image"), (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"), (b"\x1f\x8b\x08", "gzip"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "binary"),
    (b"Rar!\x1a\x07", "binary"), (b"7z\xbc\xaf\x27\x1c", "binary"), (b"OggS\0", "binary"), (b"wOFF", "binary"),
    (b"wOF2", "binary"), (b"SQLite format 3\0", "binary"), (b"PAR1", "binary"), (b"\x7fELF", "binary"),
)  # fmt: skip
_HTML: Final = re.compile(
    rb"<(?:!doctype\s+html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[\s>/]|<!--",
    re.IGNORECASE,
)
_XHTML: Final = re.compile(rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_JSON: Final = re.compile(rb"""\{\s*(?:"|\}|\Z)|\[\s*(?:[\[{"\]\d-]|true|false|null|\Z)""")


def said(content_type: str) -> Media | None:
    """The family that a Content-Type names, if it names one."""
    return _said(content_type[:200])


@lru_cache(maxsize=256)
def _said(content_type: str) -> Media | None:
    name = content_type.partition(";")[0].partition(",")[0].strip().lower()
    if name in _SAID:
        return _SAID[name]
    for part, family in _SAID_BY_PART:
        if name.startswith(part) or name.endswith(part):
            return family
    return None  # application/octet-stream, and whatever else may be anything


def shown(body: bytes) -> Media | None:
    """The family that the first bytes show, if they show one."""
    head = body[:HEAD]
    if head.startswith(b"<"):  # nearly all
        return _shown_by_text(head)
    for mark, family in _SHOWN:
        if head.startswith(mark):
            return family
    if head.startswith(b"RIFF"):
        return "image" if head[8:12] == b"WEBP" else "binary"
    if head[4:8] == b"ftyp":
        return "image" if head[8:12] in (b"avif", b"heic", b"mif1") else "binary"
    return _shown_by_text(_plain(head))


def _plain(head: bytes) -> bytes:
    """The first characters as ASCII, also of UTF-16, without a byte order mark and blanks in front."""
    if encoding := _UTF_16.get(head[:2]):
        head = head[2:].decode(encoding, "replace").encode("ascii", "replace")
    return head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\x0c")


def _shown_by_text(head: bytes) -> Media | None:
    if head.startswith(b"<?xml"):
        return "html" if _XHTML.search(head) else "xml"
    if head.startswith(b"%PDF-"):
        return "pdf"
    if _HTML.match(head):
        return "html"
    return "json" if _JSON.match(head) else None


def of(content_type: str, body: bytes) -> Media:
    """What a body is: as it shows, else as its header says, else as its bytes look."""
    return shown(body) or said(content_type) or ("binary" if b"\0" in body[:HEAD] else "text")


def mismatch(content_type: str, body: bytes) -> bool:
    """Whether header and bytes name two different families."""
    by_header, by_bytes = said(content_type), shown(body)
    return None not in (by_header, by_bytes) and by_header != by_bytes


def objection(content_type: str, body: bytes, accepts: Collection[str]) -> str:
    """Why a page cannot be what its kind reads; empty when it can.

    Without `accepts` only what no reader can have meant: markup that is a sealed file, or a sealed file that is HTML.
    """
    if accepts:
        found = of(content_type, body)
        return "" if found in accepts else f"{_named(content_type, found)}; the kind accepts {', '.join(accepts)}"
    by_header, by_bytes = said(content_type), shown(body)
    is_impossible = (by_header in MARKUP and by_bytes in SEALED) or (by_header in SEALED and by_bytes == "html")
    return _named(content_type, by_bytes) if is_impossible else ""


def _named(content_type: str, found: Media | None) -> str:
    return f"the header says {content_type[:100] or 'nothing'}, the body is {found}"
