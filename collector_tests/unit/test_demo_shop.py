"""The generated shop: deterministic, of the size asked for, and read by what reads books.toscrape.com."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import urljoin

import pytest
from selectolax.lexbor import LexborHTMLParser

from collector_assets.demo.catalogue import book
from collector_assets.demo.shop import Shop
from collector_assets.demo.switches import Switches

ORIGIN = "http://shop.localhost:8765"
REAL = Path(os.environ.get("COLLECTOR_SHARED", "/work/shared")) / "pages"


def _html(shop: Shop, path: str) -> str:
    page = shop.page(path)
    assert page is not None, path
    return page.body.decode()


def _detail(html: str) -> dict[str, str]:
    """What an extractor takes from a detail page."""
    tree = LexborHTMLParser(html)

    def text(selector: str) -> str:
        node = tree.css_first(selector)
        return node.text(strip=True) if node else ""

    names, values = tree.css("table.table-striped th"), tree.css("table.table-striped td")
    table = {name.text(): value.text() for name, value in zip(names, values, strict=True)}
    rating = tree.css_first(".product_main p.star-rating")
    return {
        "title": text("h1"),
        "price": text(".product_main p.price_color"),
        "rating": (rating.attributes["class"] or "").split()[1] if rating else "",
        "availability": text(".product_main .instock.availability"),
        "upc": table.get("UPC", ""),
        "category": text("ul.breadcrumb li:nth-child(3) a"),
        "description": text("#product_description + p"),
    }


def _links(html: str, url: str) -> tuple[list[str], str | None]:
    """What an extractor takes from a listing page: details and the next page, absolute."""
    tree = LexborHTMLParser(html)
    following = tree.css_first("li.next a")
    details = [urljoin(url, each.attributes["href"] or "") for each in tree.css("article.product_pod h3 a")]
    return details, urljoin(url, following.attributes["href"] or "") if following else None


def _walk(shop: Shop, path: str) -> list[list[str]]:
    pages, url = [], f"{ORIGIN}{path}"
    while url:
        details, following = _links(_html(shop, url.removeprefix(ORIGIN)), url)
        pages.append(details)
        url = following or ""
    return pages


def test_the_default_shop_is_three_listing_pages_and_sixty_books() -> None:
    shop = Shop(Switches())
    pages = _walk(shop, "/catalogue/page-1.html")
    assert [len(each) for each in pages] == [20, 20, 20]
    details = {url for page in pages for url in page}
    assert len(details) == 60
    assert all(shop.page(url.removeprefix(ORIGIN)) for url in details)


@pytest.mark.parametrize("start", ["/", "/index.html", "/catalogue/category/books_1/index.html"])
def test_every_way_in_leads_to_the_same_books(start: str) -> None:
    shop = Shop(Switches())
    assert _walk(shop, start) == _walk(shop, "/catalogue/page-1.html")


def test_categories_differ_in_size_and_together_hold_every_book_once() -> None:
    shop = Shop(Switches())
    tree = LexborHTMLParser(_html(shop, "/"))
    starts = [f"/{each.attributes['href']}" for each in tree.css(".side_categories ul ul a")]
    sizes = {start.split("/")[-2]: [len(page) for page in _walk(shop, start)] for start in starts}
    assert sizes["travel_2"] == [12]
    assert sizes["mystery_3"] == [20, 4]
    assert sizes["poetry_23"] == [9]
    assert len({url for start in starts for page in _walk(shop, start) for url in page}) == 60
    assert sum(sum(each) for each in sizes.values()) == 60


def test_a_detail_page_is_in_the_category_that_lists_it() -> None:
    shop = Shop(Switches())
    [page] = _walk(shop, "/catalogue/category/books/travel_2/index.html")
    assert {_detail(_html(shop, url.removeprefix(ORIGIN)))["category"] for url in page} == {"Travel"}


def test_the_same_selectors_read_the_real_pages() -> None:
    ours = _detail(_html(Shop(Switches()), f"/catalogue/{book(1, seed='demo', edition=1).slug}/index.html"))
    assert all(ours.values()), ours
    assert len(ours["upc"]) == 16
    assert ours["price"].startswith("£")
    if not REAL.is_dir():
        pytest.skip("the real pages are not here")
    real = _detail((REAL / "books_detail_1.html").read_text())
    assert {name: type(value) for name, value in ours.items()} == {name: type(value) for name, value in real.items()}
    assert (real["price"], real["rating"], real["category"]) == ("£51.77", "Three", "Poetry")
    details, following = _links((REAL / "books_listing.html").read_text(), f"{ORIGIN}/")
    assert (len(details), following) == (20, f"{ORIGIN}/catalogue/page-2.html")


def test_the_bytes_are_the_same_on_every_machine() -> None:
    """A golden digest: when it changes, figures of earlier runs no longer compare. Say so in the changelog."""
    shop = Shop(Switches())
    digest = hashlib.sha256(b"".join(shop.page(path).body for path in shop.paths() if shop.page(path)))  # type: ignore[union-attr]
    assert digest.hexdigest()[:16] == "d11b6806533b5328"
    assert Shop(Switches(seed="other")).page("/").body != shop.page("/").body  # type: ignore[union-attr]


def test_a_catalogue_of_another_size_begins_with_the_same_books() -> None:
    small, large = Shop(Switches(books=20)), Shop(Switches(books=1000))
    assert _walk(small, "/catalogue/page-1.html")[0] == _walk(large, "/catalogue/page-1.html")[0]
    assert len(_walk(large, "/catalogue/page-1.html")) == 50
    assert [len(each) for each in _walk(Shop(Switches(books=7, per_page=5)), "/")] == [5, 2]
    assert _walk(Shop(Switches(books=0)), "/") == [[]]


def test_a_new_edition_changes_the_price_of_about_one_book_in_ten() -> None:
    first = [book(n, seed="demo", edition=1) for n in range(1, 1001)]
    second = [book(n, seed="demo", edition=2) for n in range(1, 1001)]
    changed = [new for old, new in zip(first, second, strict=True) if old.price != new.price]
    assert 70 <= len(changed) <= 130
    assert {each.number for each in changed} == {each.number for each in second if each.changed_in == 2}
    assert [old.slug for old in first] == [new.slug for new in second]


def test_prices_ratings_and_stock_stay_in_range_and_upcs_are_unique() -> None:
    books = [book(n, seed="demo", edition=3) for n in range(1, 1001)]
    assert all(10 <= each.price < 60 and 1 <= each.rating <= 5 and 1 <= each.stock <= 22 for each in books)
    assert {each.rating for each in books} == {1, 2, 3, 4, 5}
    assert len({each.upc for each in books}) == 1000


@pytest.mark.parametrize("size", [10_000, 40_000])
def test_a_detail_page_is_padded_to_about_the_size_asked_for(size: int) -> None:
    shop = Shop(Switches(detail_bytes=size, books=30))
    sizes = [
        len(_html(shop, path).encode()) for path in shop.paths() if path.count("/") == 3 and "category" not in path
    ]
    assert len(sizes) == 30
    assert all(abs(each - size) < 400 for each in sizes), sizes


def test_padding_changes_no_field() -> None:
    path = f"/catalogue/{book(3, seed='demo', edition=1).slug}/index.html"
    assert _detail(_html(Shop(Switches()), path)) == _detail(_html(Shop(Switches(detail_bytes=20_000)), path))


def test_after_a_redesign_the_selectors_find_nothing() -> None:
    path = f"/catalogue/{book(1, seed='demo', edition=1).slug}/index.html"
    assert set(_detail(_html(Shop(Switches(redesign=1)), path)).values()) == {""}
    assert len(_walk(Shop(Switches(redesign=1)), "/")) == 3
    assert _walk(Shop(Switches(redesign=2)), "/") == [[]]


def test_prices_are_in_the_currency_that_was_switched_on() -> None:
    path = f"/catalogue/{book(1, seed='demo', edition=1).slug}/index.html"
    in_pounds, in_euros = (_detail(_html(Shop(switches), path)) for switches in (Switches(), Switches(currency="€")))
    assert in_euros == {name: text.replace("£", "€") for name, text in in_pounds.items()}
    assert in_euros != in_pounds


def test_a_wrong_slug_or_page_is_not_there() -> None:
    shop = Shop(Switches())
    for path in (
        "/catalogue/nothing_1/index.html",
        "/catalogue/page-0.html",
        "/catalogue/page-4.html",
        "/catalogue/category/books/travel_2/page-2.html",
        "/catalogue/category/books/horror_31/index.html",
    ):
        assert shop.page(path) is None, path
