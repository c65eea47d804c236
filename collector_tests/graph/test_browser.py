"""A window of pages in a browser, as Dagster shows it."""

from __future__ import annotations

import dagster as dg

from collector_assets.contract import Kind, Link, View, replace
from collector_assets.demo import DemoSite
from collector_assets.demo.shop import Shop
from collector_assets.demo.switches import Switches
from collector_assets.graph import metadata
from collector_assets.graph.resources import Installation
from collector_assets.sources.shop_js import SOURCE
from collector_assets.sources.templates.book_shop import extract
from collector_tests.fixtures.browser import NEEDS_CHROMIUM
from collector_tests.graph.test_materialize import collect, metadata_of


@NEEDS_CHROMIUM
def test_a_picture_and_what_pages_loaded_are_shown(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
):
    site.switch(host="shop-js.localhost", books=1)
    (book,) = Shop(Switches(books=1)).catalogue
    view = View(wait="article.product_page table", screenshot=True)
    source = replace(
        SOURCE,
        name="seen",
        start_urls=(Link(f"http://shop-js.localhost:8765/app/{book.slug}.html", kind="detail"),),
        kinds={"detail": Kind(extract=extract, fetcher="browser", view=view)},
    )
    result = collect(source, installation, instance, "frontier", "raw_pages")

    shown = metadata_of(result, "raw_pages")
    assert "(data:image/png;base64,iVBOR" in shown["view"]
    assert shown[metadata.PAGE_LOADS]["own"] == 2


def test_a_picture_too_large_for_the_event_log_is_named():
    (shown,) = metadata.of_view("http://shop.example/", bytes(metadata.MOST_PICTURE + 1)).values()

    assert shown == "http://shop.example/: 500,001 bytes, in the archive as urn:view:http://shop.example/"
