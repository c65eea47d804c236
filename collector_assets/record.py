"""Records: what an extractor yields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a named record type; an extractor of a source with one type may yield plain mappings."""

    type: str
    """One of the source's `records`."""
    values: Mapping[str, Any]
    """The row, by column."""
