"""Reading HTML strictly: say what a page must hold, and be told when it does not (lexbor; CSS only).

A selector that matches something else than declared raises ValueError: the page fails loudly, which is better than a
silent wrong value. Every function takes a page or an element of one.
"""

from __future__ import annotations

from collector_assets.html.elements import (
    absolute,
    all,  # noqa: A004  reads as html.all(…)
    attribute,
    expect_empty,
    fields,
    maybe,
    one,
    rows,
    text,
)
from collector_assets.html.pointers import canonical, refresh_target

__all__ = [
    "absolute",
    "all",
    "attribute",
    "canonical",
    "expect_empty",
    "fields",
    "maybe",
    "one",
    "refresh_target",
    "rows",
    "text",
]
