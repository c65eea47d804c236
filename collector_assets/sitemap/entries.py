"""What a sitemap holds, and what is doubtful about one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from collector_assets.sitemap.lastmod import LastModified

# What is doubtful about a file; the number beside a flag is how often.
CUT: Final = "sitemap_cut"
"""The file ends in its middle."""
DAMAGED: Final = "sitemap_damaged"
"""From somewhere on it is neither XML nor gzip any more."""
TOO_LARGE: Final = "sitemap_too_large"
"""It has more bytes or more entries than are read; the rest was not."""
REPAIRED: Final = "sitemap_entry_repaired"
"""An entry with a bare `&` or with control characters."""
RELATIVE: Final = "sitemap_relative_loc"
JUNK: Final = "sitemap_junk_in_front"
TRAILING: Final = "sitemap_trailing_bytes"
MANY: Final = "sitemap_over_50000_entries"
BIG: Final = "sitemap_over_50_mb"
INCOMPLETE: Final = frozenset({CUT, DAMAGED, TOO_LARGE})
"""Flags that say: there was more."""


class NotASitemap(ValueError):
    """Nothing in the file is what a sitemap has, or it does what none may do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One address of a sitemap."""

    loc: str
    """As written, without blanks around it; perhaps relative."""
    lastmod: LastModified | None = None
    is_sitemap: bool = False
    """Whether it is another sitemap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """An entry that gives no address."""

    reason: str
    value: str
