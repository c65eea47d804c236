"""Downloads of a shop: `/downloads/index.html` links to `/downloads/prices.csv`, a row for every book.

Semicolons, a decimal comma and windows-1252, as spreadsheets on the continent write them.
"""

from __future__ import annotations

import csv
import io

from .reply import Reply, reply
from .shop import Shop

_INDEX = """<!DOCTYPE html><html><head><title>Downloads</title></head><body><h1>Downloads</h1>
<ul><li><a class="download" href="prices.csv">All prices (CSV)</a></li></ul></body></html>
"""


def answer(path: str, shop: Shop) -> Reply | None:
    """The page of downloads, or a file; None when there is none."""
    if path == "/downloads/index.html":
        return reply(_INDEX, content_type="text/html; charset=utf-8")
    if path == "/downloads/prices.csv":
        return reply(prices(shop), content_type="text/csv; charset=windows-1252", extra=_ATTACHED)
    return None


_ATTACHED = 'Content-Disposition: attachment; filename="prices.csv"\r\n'


def prices(shop: Shop) -> bytes:
    """The file."""
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter=";", lineterminator="\r\n")
    rows.writerow(["UPC", "Title", "Category", "Price", "In stock"])
    for book in shop.catalogue:
        rows.writerow([book.upc, book.title, book.category.name, f"{book.price:.2f}".replace(".", ","), book.stock])
    return text.getvalue().encode("cp1252", "replace")
