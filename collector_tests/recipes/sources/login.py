"""What only members see: one login a window with the form of the site, its cookie for every page after it."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa

from collector_assets import html, normalize
from collector_assets.contract import Budget, Daily, Kind, Link, Page, Secret, Session, Source, seconds


class Price(pa.DataFrameModel):
    """What members pay."""

    item: str = pa.Field(description="What it is")
    price: float = pa.Field(gt=0, description="GBP")


def discover(page: Page) -> Iterator[Link]:
    """Every item of the list; never `a.logout`: that would end the session."""
    for item in html.all(page, "ul a", at_least=1):
        yield Link(html.absolute(page, html.attribute(item, "href")), kind="item")


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The one item of a page."""
    price = normalize.price(html.text(html.one(page, "p.price")))
    yield {"item": html.text(html.one(page, "h1")), "price": float(price)}


SOURCE = Source(
    name="login",
    start_urls=("http://members.localhost:8765/members/",),
    session=Session(
        page="http://members.localhost:8765/login",
        form="form#login",  # its hidden fields go along
        fields={"user": Secret("SHOP_USER"), "password": Secret("SHOP_PASSWORD")},
        # Without a form: login=Link("https://…/login", body={"user": Secret("SHOP_USER"), …}). For an API with tokens:
        # token=ClientCredentials(url="https://…/token", client_id=Secret("ID"), client_secret=Secret("KEY"))
        proof="a.logout",  # on every page of who is logged in, and on no other
    ),
    kinds={"list": Kind(discover=discover), "item": Kind(extract=extract)},
    schema=Price,
    entity="item",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05)),
)
