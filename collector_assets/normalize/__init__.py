"""Text of a page into values, strictly: what could be read in two ways is `Unreadable`, a ValueError, never a guess.

How a site writes numbers, dates and times is a fact about the source, said once (`decimal=","`, `order="dmy"`,
`zone="Europe/London"`), and never seen from the single value.
"""

from __future__ import annotations

from collector_assets.normalize.dates import ago, date, epoch, instant
from collector_assets.normalize.languages import (
    DUTCH,
    ENGLISH,
    FRENCH,
    GERMAN,
    ITALIAN,
    PORTUGUESE,
    SPANISH,
    Language,
)
from collector_assets.normalize.numbers import DecimalMark, integer, number
from collector_assets.normalize.prices import currency, price
from collector_assets.normalize.words import STARS, rating, whitespace

__all__ = [
    "DUTCH", "ENGLISH", "FRENCH", "GERMAN", "ITALIAN", "PORTUGUESE", "SPANISH", "STARS", "DecimalMark", "Language",
    "ago", "currency", "date", "epoch", "instant", "integer", "number", "price", "rating", "whitespace",
]  # fmt: skip
