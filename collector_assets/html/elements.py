"""Elements of a page, their text and attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from collector_assets import urls
from collector_assets.page import Page

_UNSEEN: Final = frozenset({"script", "style", "template"})
_INLINE: Final = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label",
    "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})  # fmt: skip


def all(of: Page | LexborNode, css: str, *, at_least: int = 0) -> list[LexborNode]:  # noqa: A001  reads as html.all(…)
    """Every element that the selector matches, in document order; ValueError when they are fewer than `at_least`."""
    found = _root(of).css(css)
    if len(found) < at_least:
        raise ValueError(f"{css!r} matches {len(found)} elements, not at least {at_least}")
    return found


def one(of: Page | LexborNode, css: str) -> LexborNode:
    """The only element that the selector matches; ValueError when there is none or another: to choose is to guess."""
    found = _root(of).css(css)
    if len(found) != 1:
        raise ValueError(f"{css!r} matches {len(found)} elements, not exactly 1")
    return found[0]


def maybe(of: Page | LexborNode, css: str) -> LexborNode | None:
    """The only element that the selector matches, or None when there is none; ValueError when there are several."""
    found = _root(of).css(css)
    if len(found) > 1:
        raise ValueError(f"{css!r} matches {len(found)} elements, not 0 or 1")
    return found[0] if found else None


def text(node: LexborNode) -> str:
    """The text of an element: blanks collapsed, a blank between blocks, nothing of script, style and template."""
    parts: list[str] = []
    _gather(node, parts)
    return " ".join("".join(parts).split())


def attribute(node: LexborNode, name: str) -> str:
    """The value of an attribute; ValueError when the element lacks it."""
    value = node.attributes.get(name)
    if value is None:
        raise ValueError(f"<{node.tag}> has no {name}")
    return value


def rows(table: LexborNode) -> list[list[LexborNode]]:
    """The cells of each row of this table: direct children, with or without tbody, never those of a table inside."""
    groups = [child for child in table.iter() if child.tag in ("thead", "tbody", "tfoot")]
    found = [child for group in (table, *groups) for child in group.iter() if child.tag == "tr"]
    return [[cell for cell in row.iter() if cell.tag in ("th", "td")] for row in found]


def fields(table: LexborNode) -> dict[str, str]:
    """A table of labels and values, two cells a row; ValueError for another shape, or a label that repeats."""
    found: dict[str, str] = {}
    for cells in rows(table):
        if len(cells) != 2:
            raise ValueError(f"a row of the table has {len(cells)} cells, not a label and a value")
        label = text(cells[0])
        if label in found:
            raise ValueError(f"the label {label!r} stands twice in the table")
        found[label] = text(cells[1])
    return found


def expect_empty(row: Mapping[str, object], *, ignore: Collection[str] = ()) -> None:
    """Refuse what was neither read nor ignored by name: a new field on a site is news, not noise."""
    if left := [name for name in row if name not in ignore]:
        raise ValueError(f"neither read nor ignored: {', '.join(map(repr, left))}")


def absolute(page: Page, href: str) -> str:
    """A link as a browser would follow it from this page.

    One that no browser would follow comes back as it is: discovery counts it, with its reason, and the page goes on.
    """
    address = page.resolve(href)
    return address.url if isinstance(address, urls.WebAddress) else href


def _root(of: Page | LexborNode) -> LexborHTMLParser | LexborNode:
    return of.tree if isinstance(of, Page) else of


def _gather(node: LexborNode, parts: list[str]) -> None:
    for child in node.iter(include_text=True):
        tag = child.tag
        if tag == "-text":
            parts.append(child.text_content or "")
        elif tag is None or tag in _UNSEEN or tag.startswith("-"):  # "-": comments and the like
            continue
        elif tag in _INLINE:
            _gather(child, parts)
        else:
            parts.append(" ")
            _gather(child, parts)
            parts.append(" ")
