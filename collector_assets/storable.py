"""What may be stored: text and JSON made fit for Postgres, JSON exports and Parquet. The one choke point, pure.

Web pages hold what a database refuses: NUL characters, halves of surrogate pairs, NaN. Every value that came
from outside passes here before a write; the original bytes stay in the archive.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

SURROGATE: Final = re.compile("[\ud800-\udfff]")
PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
REPLACEMENT: Final = "\ufffd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A storable value and what it cost: a caller records it as a flag or a failed check."""

    value: Json
    chars_removed: int = 0
    """NUL characters dropped plus lone surrogates replaced."""
    numbers_removed: int = 0
    """NaN and infinities that became null."""


def clean_text(text: str) -> str:
    """The text without NUL; pairs of surrogates joined, lone halves replaced by U+FFFD."""
    return text if text.isascii() and "\0" not in text else _text(text)[0]


def clean_json(value: object) -> Json:
    """The value as JSON that `jsonb` takes: text cleaned (keys too), NaN and infinities null."""
    return clean(value).value


def clean(value: object) -> Cleaned:
    """Like `clean_json`, with counts of what was removed."""
    counts = _Counts()
    cleaned = counts.json(value)
    return Cleaned(value=cleaned, chars_removed=counts.chars, numbers_removed=counts.numbers)


def _text(text: str) -> tuple[str, int]:
    nuls = text.count("\0") if "\0" in text else 0
    if nuls:
        text = text.replace("\0", "")
    if text.isascii() or not SURROGATE.search(text):
        return text, nuls
    joined = PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
    repaired, lone = SURROGATE.subn(REPLACEMENT, joined)
    return repaired, nuls + lone


class _Counts:
    """One walk over a value."""

    def __init__(self) -> None:
        self.chars = 0
        self.numbers = 0

    def json(self, value: object) -> Json:
        match value:
            case None | bool() | int():
                return value
            case str():
                return self.text(value)
            case float():
                return self.number(value)
            case Mapping():
                return {self.text(str(key)): self.json(item) for key, item in value.items()}
            case list() | tuple():
                return [self.json(item) for item in value]
            case _:
                problem = f"{type(value).__name__} is not a JSON value: write it as text or a number first"
                raise TypeError(problem)

    def text(self, value: str) -> str:
        cleaned, removed = _text(value)
        self.chars += removed
        return cleaned

    def number(self, value: float) -> float | None:
        if math.isfinite(value):
            return value
        self.numbers += 1
        return None
