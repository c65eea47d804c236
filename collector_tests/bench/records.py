"""What every contender must come to: the same fields of the same books."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

FIELDS = ("upc", "title", "price", "currency", "rating", "in_stock", "available", "category", "description")


def digest(found: Iterable[Mapping[str, Any]]) -> tuple[int, str]:
    """How many records, and a digest of all their values; hosts and the order of records do not matter."""
    rows = sorted([str(row["price"] if name == "price" else row[name]) for name in FIELDS] + [urlsplit(row["url"]).path]
                  for row in found)  # fmt: skip
    return len(rows), hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def listing_paths(pages: int, per_page: int) -> list[str]:
    """The listing pages that hold this many books: every contender starts from all of them."""
    return [f"/catalogue/page-{number}.html" for number in range(1, -(-pages // per_page) + 1)]
