"""Data that a page carries in its scripts: JSON-LD, and JSON that is wrapped as pages wrap it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from selectolax.lexbor import LexborNode

from collector_assets.page import Page
from collector_assets.record import Unreadable

JSON_LD: Final = "application/ld+json"
MAX_DEPTH: Final = 100
"""Arrays and graphs inside each other that are looked into."""

_LENIENT: Final = json.JSONDecoder(strict=False)
# What pages put around JSON so that old browsers leave it alone: comments and CDATA marks, alone or in comments.
_BEFORE: Final = re.compile(r"(?:\ufeff|\s|<!--|//[^\n]*(?:\n|\Z)|/\*.*?\*/|<!\[CDATA\[)+", re.DOTALL)
_BLANKS: Final = " \t\r\n;"
MAX_WRAPPERS: Final = 8
"""Marks that are taken off at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLd:
    """The JSON-LD of a page."""

    blocks: tuple[Any, ...]
    """The value of each block that is JSON."""
    skipped: int
    """Blocks that are not."""

    def of_type(self, name: str) -> list[dict[str, Any]]:
        """Every object of a type, in document order: of arrays and of `@graph` too, not those in a property."""
        return [found for block in self.blocks for found in _objects(block) if name in _types(found)]


def json_ld(page: Page) -> JsonLd:
    """Every JSON-LD block of the page; one that is no JSON is skipped and counted, and costs nothing else."""
    blocks, skipped = [], 0
    for script in page.tree.css("script[type]"):
        if (script.attributes["type"] or "").partition(";")[0].strip().lower() != JSON_LD:
            continue
        try:
            blocks.append(json_in(script))
        except Unreadable:
            skipped += 1
    return JsonLd(blocks=tuple(blocks), skipped=skipped)


def json_in(script: LexborNode) -> Any:
    """The one JSON value in a script; `Unreadable` when it is not JSON.

    Line breaks inside texts, comments and CDATA marks around it and a semicolon after it are forgiven: what is left is
    read in one way only. A comma too many, quotes of the other sort, a second value are not.
    """
    bare = _unwrapped(script.text_content or script.text(deep=True))
    if not bare:
        raise Unreadable("missing", "the script is empty")
    try:
        return _LENIENT.decode(bare)
    except (ValueError, RecursionError) as error:
        raise Unreadable("malformed", f"not JSON: {str(error)[:200]}") from None


def json_after(script: LexborNode, marker: str) -> Any:
    """The JSON value that follows a text in a script, such as `window.__STATE__ =`; what comes behind it is code.

    `Unreadable` where the text stands never or twice, or is followed by something else.
    """
    text = script.text_content or script.text(deep=True)
    if (found := text.count(marker)) != 1:
        raise Unreadable(
            "ambiguous" if found else "missing", f"{marker!r} stands {found} times in the script, not once"
        )
    try:
        return _LENIENT.raw_decode(text[text.index(marker) + len(marker) :].lstrip())[0]
    except (ValueError, RecursionError) as error:
        raise Unreadable("malformed", f"no JSON after {marker!r}: {str(error)[:200]}") from None


def _unwrapped(text: str) -> str:
    start = before.end() if (before := _BEFORE.match(text)) else 0
    bare = text[start:]
    for _ in range(MAX_WRAPPERS):
        bare, was = bare.rstrip(_BLANKS), bare
        if bare.endswith("*/") and "/*" in bare:
            bare = bare[: bare.rindex("/*")]
        elif bare.endswith(("-->", "]]>")):
            bare = bare[:-3].rstrip(" \t").removesuffix("//")
        elif bare == was:
            break
    return bare


def _objects(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _objects(item, depth + 1)
    elif isinstance(value, dict):
        yield value
        yield from _objects(value.get("@graph", []), depth + 1)


def _types(found: dict[str, Any]) -> list[str]:
    """Names of its types, without the address of their vocabulary."""
    said = found.get("@type", [])
    named = said if isinstance(said, list) else [said]
    return [name.rpartition("/")[2] for name in named if isinstance(name, str)]
