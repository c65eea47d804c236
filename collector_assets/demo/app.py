"""The shop's twin as a single-page application: shells without content, a script, and a small JSON API.

`/app/page-N.html` and `/app/<book>.html` hold nothing but a script, which asks `/app/api/…` and builds the same markup
as the shop's own pages. Around it stands what such sites load besides: a stylesheet, a font, pictures, a beacon, and a
script of a tracker on another domain.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .catalogue import RATINGS, slugged
from .reply import Reply, json_reply, reply

if TYPE_CHECKING:
    from .catalogue import Book
    from .shop import Shop

_SHELL = re.compile(r"/app/(?:page-\d+|[a-z0-9-]+_\d+)\.html")
_PAGE = re.compile(r"/app/api/page-(\d+)\.json")
_BOOK = re.compile(r"/app/api/(\d+)\.json")
_PIXEL = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")

_HTML = """\
<!DOCTYPE html>
<html lang="en-us">
<head><title>Books, built by a script</title>
<link rel="stylesheet" href="/app/style.css">
<link rel="preload" as="font" href="/app/font.woff2" crossorigin>
</head>
<body><main id="app">Loading&hellip;</main><img src="/app/logo.gif" alt="">
<script src="http://tracker.localhost:8765/watch.js" async></script>
<script src="/app/app.js"></script>
</body></html>
"""
_CSS = """\
@font-face { font-family: Shop; src: url(/app/font.woff2) }
body { font-family: Shop; background: url(/app/paper.gif) }
"""
_JS = """\
'use strict';
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
const card = book => make('article', {class: 'product_pod', 'data-category': book.category_slug},
  make('img', {src: `/app/cover-${book.number}.gif`, alt: book.title}),
  make('h3', {}, make('a', {href: `/app/${book.slug}.html`, title: book.title}, book.title)),
  make('p', {class: 'price_color'}, book.price));
const listing = page => [
  make('h1', {}, 'All products'),
  make('section', {}, ...page.books.map(card)),
  make('ul', {class: 'pager'}, ...[page.next].filter(Boolean).map(
    href => make('li', {class: 'next'}, make('a', {href}, 'next'))))];
const row = ([name, value]) => make('tr', {}, make('th', {}, name), make('td', {}, value));
const detail = book => [
  make('ul', {class: 'breadcrumb'}, ...['Home', 'Books', book.category].map(
    name => make('li', {}, make('a', {href: '/'}, name)))),
  make('article', {class: 'product_page'},
    make('div', {class: 'product_main'}, make('h1', {}, book.title), make('p', {class: 'price_color'}, book.price),
      make('p', {class: `star-rating ${book.rating}`})),
    ...(book.description ? [make('div', {id: 'product_description'}), make('p', {}, book.description)] : []),
    make('table', {}, ...Object.entries(book.facts).map(row)))];
const where = location.pathname.match(/(page-\\d+|_(\\d+))\\.html$/);
fetch(`/app/api/${where[2] || where[1]}.json`).then(answer => answer.json()).then(found => {
  document.getElementById('app').replaceChildren(...(where[2] ? detail(found) : listing(found)));
  document.title = found.title || 'All products';
  navigator.sendBeacon('/app/seen', document.title);
});
"""


def answer(path: str, shop: Shop) -> Reply | None:
    """What the application has at a path."""
    if _SHELL.fullmatch(path):
        return reply(_HTML)
    if path == "/app/app.js":
        return reply(_JS, content_type="text/javascript")
    if path == "/app/style.css":
        return reply(_CSS, content_type="text/css")
    if path.startswith("/app/") and path.endswith(".gif"):
        return reply(_PIXEL, content_type="image/gif")
    if match := _PAGE.fullmatch(path):
        return _page(int(match[1]), shop)
    if (match := _BOOK.fullmatch(path)) and 1 <= int(match[1]) <= len(shop.catalogue):
        return json_reply(_detail(shop.catalogue[int(match[1]) - 1], shop.switches.currency))
    return None


def _page(number: int, shop: Shop) -> Reply | None:
    per_page = shop.switches.per_page
    shown = shop.catalogue[(number - 1) * per_page : number * per_page]
    if number < 1 or not shown:
        return None
    following = f"/app/page-{number + 1}.html" if number * per_page < len(shop.catalogue) else None
    return json_reply({"books": [_brief(book, shop.switches.currency) for book in shown], "next": following})


def _brief(book: Book, currency: str) -> dict[str, object]:
    return {
        "number": book.number, "slug": book.slug, "title": book.title, "price": f"{currency}{book.price}",
        "category": book.category.name, "category_slug": slugged(book.category.name),
    }  # fmt: skip


def _detail(book: Book, currency: str) -> dict[str, object]:
    price = f"{currency}{book.price}"
    facts = {
        "UPC": book.upc, "Product Type": "Books", "Price (excl. tax)": price, "Price (incl. tax)": price,
        "Tax": f"{currency}0.00", "Availability": f"In stock ({book.stock} available)", "Number of reviews": "0",
    }  # fmt: skip
    return {
        **_brief(book, currency), "rating": RATINGS[book.rating - 1], "description": book.description, "facts": facts,
    }  # fmt: skip
