"""How deep markup nests, before a parser is let loose on it: lexbor takes two minutes for 100,000 nested `<div>`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

DEEPEST: Final = 10_000
"""Elements inside each other. Browsers stop at 512; a parse to this depth takes a second at worst."""
_VOID: Final = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
_ENDED_BY_THE_NEXT: Final = frozenset({
    "p", "li", "dd", "dt", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "option", "optgroup", "rp", "rt",
})  # fmt: skip
_NEVER_DEEP: Final = _VOID | _ENDED_BY_THE_NEXT
_HEAD: Final = re.compile(r"<(?:!--|(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*))")
_COMMENT_END: Final = re.compile(r"--!?>")
# A quote opens a value only after "=". One character at a time: nothing to try again when a tag has no end.
_REST: Final = re.compile(r"""(?:[^>=]|=\s*(?:"[^"]*"|'[^']*'|(?!["'\s])))*>""")
_RAW: Final = {
    name: re.compile(rf"</{name}\b", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


def is_too_deep(markup: str) -> bool:
    """Whether more than `DEEPEST` elements may be open at once; an upper bound. Costs nothing on pages with fewer."""
    if len(markup) <= len("<b>") * DEEPEST or markup.count("<") <= DEEPEST:
        return False
    opened: Counter[str] = Counter()
    depth = 0
    for name, is_end in _tags(markup):
        if not is_end:
            opened[name] += 1
            depth += 1
        elif opened[name]:  # an end without a beginning closes nothing
            opened[name] -= 1
            depth -= 1
        if depth > DEEPEST:
            return True
    return False


def _tags(markup: str) -> Iterator[tuple[str, bool]]:
    """(name, whether it is an end) of the tags that can nest; what has no end swallows the rest, as in a browser."""
    at = 0
    while head := _HEAD.search(markup, at):
        name = (head["name"] or "").lower()
        end = _REST.match(markup, head.end()) if name else _COMMENT_END.search(markup, head.end() - 2)
        if end and name in _RAW and not head["end"]:
            end = _RAW[name].search(markup, end.end())
            yield name, False
        elif name and name not in _NEVER_DEEP:
            yield name, bool(head["end"])
        if not end:
            return
        at = end.start() if name in _RAW and not head["end"] else end.end()
