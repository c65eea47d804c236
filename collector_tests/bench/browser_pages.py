"""What both ways in a browser visit: the books of the demo shop, as pages without a script's help and built by one."""

from __future__ import annotations

from collector_assets.demo.shop import Shop
from collector_assets.demo.switches import Switches

FORMS = ("static", "script")
UNWANTED = frozenset(("image", "media", "font", "stylesheet"))


def urls_of(form: str, pages: int) -> list[str]:
    """The addresses of so many books."""
    slugs = [book.slug for book in Shop(Switches(books=pages)).catalogue]
    where = "/catalogue/{}/index.html" if form == "static" else "/app/{}.html"
    return [f"http://shop.localhost:8765{where.format(slug)}" for slug in slugs]
