"""Elements of a page, their text and attributes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from collector_assets import urls
from collector_assets.page import Page
from collector_assets.record import Unreadable

_UNSEEN: Final = frozenset({"script", "style", "template", "title", "desc", "metadata"})
"""Never shown as text: the last three are what a drawing says of itself, or the head of a page."""
_INLINE: Final = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "label",
    "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})  # fmt: skip


def all(of: Page | LexborNode, css: str, *, at_least: int = 0) -> list[LexborNode]:  # noqa: A001  reads as html.all(…)
    """Every element that the selector matches, in document order; `Unreadable` when they are fewer than `at_least`."""
    found = _root(of).css(css)
    if len(found) < at_least:
        raise Unreadable("missing", f"{css!r} matches {len(found)} elements, not at least {at_least}")
    return found


def one(of: Page | LexborNode, css: str) -> LexborNode:
    """The only element that the selector matches; `Unreadable` for none or several: to choose is to guess."""
    found = _root(of).css(css)
    if len(found) != 1:
        raise Unreadable(
            "ambiguous" if found else "missing", f"{css!r} matches {len(found)} elements, not exactly 1"
        )  # fmt: skip
    return found[0]


def maybe(of: Page | LexborNode, css: str) -> LexborNode | None:
    """The only element that the selector matches, or None when there is none; `Unreadable` when there are several."""
    found = _root(of).css(css)
    if len(found) > 1:
        raise Unreadable("ambiguous", f"{css!r} matches {len(found)} elements, not 0 or 1")
    return found[0] if found else None


def text(node: LexborNode, *, without: Collection[str] = ()) -> str:
    """The text of an element: blanks collapsed, a blank between blocks, nothing of script, style and template.

    `without` names elements whose text is left out, such as `{"table"}` for a cell that holds another table.
    """
    child = node.child
    if child is not None and child.next is None and child.tag == "-text":
        return " ".join((child.text_content or "").split())
    parts: list[str] = []
    _gather(node, _unseen(frozenset(without)) if without else _UNSEEN, parts)
    return " ".join("".join(parts).split())


def own_text(node: LexborNode) -> str:
    """The text of an element itself and of markup like `<b>` in it, without that of blocks, lists and tables inside."""
    parts: list[str] = []
    _gather(node, _UNSEEN, parts, blocks=False)
    return " ".join("".join(parts).split())


def title(page: Page) -> str:
    """The title of the page, "" without one; never that of a drawing."""
    found = (node for node in page.tree.css("title") if not _is_in(node, "svg"))
    return text(first) if (first := next(found, None)) else ""


def attribute(node: LexborNode, name: str) -> str:
    """The value of an attribute; `Unreadable` when the element lacks it."""
    value = node.attributes.get(name)
    if value is None:
        raise Unreadable("missing", f"<{node.tag}> has no {name}")
    return value


def expect_empty(row: Mapping[str, object], *, ignore: Collection[str] = ()) -> None:
    """Refuse what was neither read nor ignored by name: a new field on a site is news, not noise."""
    if left := [name for name in row if name not in ignore]:
        raise Unreadable("unexpected", f"neither read nor ignored: {', '.join(map(repr, left))}")


def absolute(page: Page, href: str) -> str:
    """A link as a browser would follow it from this page.

    One that no browser would follow comes back as it is: discovery counts it, with its reason, and the page goes on.
    """
    address = page.resolve(href)
    return address.url if isinstance(address, urls.WebAddress) else href


def _root(of: Page | LexborNode) -> LexborHTMLParser | LexborNode:
    return of.tree if isinstance(of, Page) else of


def _is_in(node: LexborNode, tag: str) -> bool:
    while (parent := node.parent) is not None:
        if parent.tag == tag:
            return True
        node = parent
    return False


@lru_cache(maxsize=64)
def _unseen(without: frozenset[str]) -> frozenset[str]:
    return _UNSEEN | without


def _gather(node: LexborNode, unseen: Collection[str], parts: list[str], *, blocks: bool = True) -> None:
    """Append the text in order, a blank around blocks. Without recursion: pages nest deeper than Python may."""
    waiting: list[Iterator[LexborNode] | None] = [node.iter(include_text=True)]
    while waiting:
        children = waiting[-1]
        child = next(children, None) if children else None
        if child is None:
            waiting.pop()
            if children is None:  # the end of a block
                parts.append(" ")
            continue
        tag = child.tag
        if tag == "-text":
            parts.append(child.text_content or "")
        elif tag is None or tag in unseen or tag.startswith("-"):  # "-": comments and the like
            continue
        elif tag in _INLINE:
            waiting.append(child.iter(include_text=True))
        else:
            parts.append(" ")
            if blocks:
                waiting += (None, child.iter(include_text=True))
