"""Blanks, and values that stand as words among others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from collector_assets.record import Unreadable

STARS: Final[Mapping[str, int]] = {"One": 1, "Two": 2, "Three": 3, "Four": 4, "Five": 5}


def whitespace(text: str) -> str:
    """The text with every run of blanks, line breaks and no-break spaces as one blank, none at the ends."""
    return " ".join(text.split())


def rating(classes: str, *, marker: str = "star-rating", words: Mapping[str, int] = STARS) -> int | None:
    """The value that stands as a word among the class names; None when only the marker is there.

    `Unreadable` when none of the other names is a known word, or several are.
    """
    names = set(classes.split()) - {marker}
    values = {words[name] for name in names if name in words}
    if len(values) == 1:
        return values.pop()
    if not names:
        return None
    check = "ambiguous" if values else "malformed"
    raise Unreadable(check, f"{classes!r} holds {len(values)} of the known values {', '.join(words)}, not one")
