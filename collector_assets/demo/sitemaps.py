"""The sitemaps of a shop: /sitemap.xml is an index of /sitemap-listings.xml and /sitemap-books.xml."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from .reply import Reply, reply
from .request import Request
from .shop import Shop

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def answer(request: Request, shop: Shop) -> Reply | None:
    """The sitemap at the request's path; None when there is none."""
    host = next((value for name, value in request.headers.lines if name.lower() == "host"), request.headers.host)
    match request.path:
        case "/sitemap.xml":
            return _reply(index(f"http://{host}/sitemap-{name}.xml" for name in ("listings", "books")))
        case "/sitemap-listings.xml":
            return _reply(urlset((f"http://{host}{path}", None) for path in shop.listing_paths()))
        case "/sitemap-books.xml":
            return _reply(urlset((f"http://{host}{path}", modified) for path, modified in shop.books()))
        case _:
            return None


def index(urls: Iterable[str]) -> str:
    """An index of sitemaps."""
    entries = "".join(f"<sitemap><loc>{_escaped(url)}</loc></sitemap>\n" for url in urls)
    return f"{_HEAD}<sitemapindex {_NAMESPACE}>\n{entries}</sitemapindex>\n"


def urlset(pages: Iterable[tuple[str, float | None]]) -> str:
    """A sitemap of pages, each with when it was modified, in seconds since 1970, if known."""
    entries = "".join(f"<url><loc>{_escaped(url)}</loc>{_lastmod(modified)}</url>\n" for url, modified in pages)
    return f"{_HEAD}<urlset {_NAMESPACE}>\n{entries}</urlset>\n"


def _lastmod(modified: float | None) -> str:
    return "" if modified is None else f"<lastmod>{datetime.fromtimestamp(modified, UTC):%Y-%m-%dT%H:%M:%SZ}</lastmod>"


def _escaped(url: str) -> str:
    return url.replace("&", "&amp;").replace("<", "&lt;")


def _reply(text: str) -> Reply:
    return reply(text, content_type="application/xml")
