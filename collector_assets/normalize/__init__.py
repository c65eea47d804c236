"""Text of a page into values, strictly: what could be read in two ways is a ValueError, never a guess.

How a site writes numbers is a fact about the source, said once (`decimal=","`), and never seen from the single value.
"""

from __future__ import annotations

from collector_assets.normalize.numbers import STARS, DecimalMark, currency, integer, number, price, rating, whitespace

__all__ = ["STARS", "DecimalMark", "currency", "integer", "number", "price", "rating", "whitespace"]
