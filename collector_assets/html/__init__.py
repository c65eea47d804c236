"""Reading HTML strictly: say what a page must hold, and be told when it does not (lexbor; CSS only).

A selector that matches something else than declared raises `Unreadable`, a ValueError: the page fails loudly, or the
row alone where the extractor says `attempt`; either is better than a silent wrong value. Every function takes a page or
an element of one. `docs/extracting.md` shows them all.
"""

from __future__ import annotations

from collector_assets.html.elements import (
    absolute,
    all,  # noqa: A004  reads as html.all(…)
    attribute,
    expect_empty,
    maybe,
    one,
    own_text,
    text,
    title,
)
from collector_assets.html.embedded import JsonLd, json_after, json_in, json_ld
from collector_assets.html.forms import form
from collector_assets.html.pointers import canonical, refresh_target
from collector_assets.html.tables import fields, grid, records, rows

__all__ = [
    "JsonLd", "absolute", "all", "attribute", "canonical", "expect_empty", "fields", "form", "grid", "json_after",
    "json_in", "json_ld", "maybe", "one", "own_text", "records", "refresh_target", "rows", "text", "title",
]  # fmt: skip
