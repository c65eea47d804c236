"""Book shops with the pages of books.toscrape.com (django-oscar): listing pages of cards, one page per book."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandera.pandas as pa
from pandera.engines.pandas_engine import Decimal

from collector_assets import html, normalize
from collector_assets.contract import Link, Page

IGNORED = frozenset({"Product Type", "Price (excl. tax)", "Price (incl. tax)", "Tax", "Number of reviews"})


class Book(pa.DataFrameModel):
    """One book as its page shows it."""

    upc: str = pa.Field(str_matches=r"^[0-9a-z]{16}$", description="Product code that names the book")
    title: str = pa.Field(str_length={"min_value": 1}, description="Title in full, as its page shows it")
    price: Decimal = pa.Field(
        ge=0, dtype_kwargs={"precision": 10, "scale": 2}, description="What a customer pays, tax included; GBP"
    )
    currency: str = pa.Field(isin=["GBP"], description="Currency of the price (ISO 4217)")
    rating: int = pa.Field(ge=1, le=5, description="Stars, of five")
    in_stock: bool = pa.Field(description="Whether the shop has it")
    available: int = pa.Field(ge=0, description="Copies in stock")
    category: str = pa.Field(description="Where the shop files it")
    description: str = pa.Field(nullable=True, description="What the shop says about it, if anything")
    url: str = pa.Field(description="Its page, after redirects")

    class Config(pa.DataFrameModel.Config):
        """A column that the schema does not name is an error."""

        strict = True
        coerce = True


def discover(page: Page) -> Iterator[Link]:
    """The next listing page in this one's lane; each book in the lane of its category, where the card tells it."""
    if following := html.maybe(page, "ul.pager li.next a"):
        yield Link(html.absolute(page, html.attribute(following, "href")), kind="listing", lane=page.lane)
    for card in html.all(page, "article.product_pod", at_least=1):
        title = html.one(card, "h3 a")
        yield Link(html.absolute(page, html.attribute(title, "href")), lane=card.attributes.get("data-category"))


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The one book of a detail page."""
    product = html.one(page, "article.product_page")
    price = html.text(html.one(product, ".product_main .price_color"))
    stars = html.one(product, ".product_main .star-rating")
    facts = html.fields(html.one(product, "table"))
    in_stock, available = _availability(facts.pop("Availability"))
    about = html.maybe(product, "#product_description + p")
    yield {
        "upc": facts.pop("UPC"),
        "title": html.text(html.one(product, "h1")),
        "price": normalize.price(price),
        "currency": normalize.currency(price),
        "rating": normalize.rating(html.attribute(stars, "class")),
        "in_stock": in_stock,
        "available": available,
        "category": html.text(html.one(page, ".breadcrumb li:nth-child(3) a")),
        "description": html.text(about) if about else None,
        "url": page.final_url,
    }
    html.expect_empty(facts, ignore=IGNORED)


def _availability(shown: str) -> tuple[bool, int]:
    """Whether the book is in stock, and how many."""
    if match := re.fullmatch(r"In stock \(([0-9,]+) available\)", shown):
        return True, normalize.integer(match[1])
    if shown == "Out of stock":
        return False, 0
    raise ValueError(f"availability {shown!r} is neither 'In stock (n available)' nor 'Out of stock'")
