"""Sites as functions of a URL, crawled through the guard against traps: endless ones end, honest ones lose nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import count
from urllib.parse import parse_qs, urlsplit

import pytest

from collector_assets import links, traps
from collector_assets.cases import page
from collector_assets.contract import Link, Page, Source, replace
from collector_assets.links import Found
from collector_assets.request import NewRequest
from collector_assets.sift import Sifter
from collector_assets.sources.shop import SHOP

SITE = "http://shop.localhost"
Site = Callable[[str], str]


def every_link(shown: Page) -> list[Link]:
    """Items by their class, every other link as a listing."""
    kinds = {"item": "detail"}
    return [
        Link(a.attributes["href"] or "", kind=kinds.get(a.attributes.get("class") or "", "listing"))
        for a in shown.tree.css("a")
    ]


SOURCE = replace(SHOP, discover=every_link)


@dataclass(slots=True)
class Crawl:
    """What a crawl came to."""

    source: Source
    listings: int = 0
    items: set[str] = field(default_factory=set)
    suspected: set[str] = field(default_factory=set)
    known: set[bytes] = field(default_factory=set)
    trails: dict[str, traps.Trail] = field(default_factory=dict)

    def run(self, start: str, site: Site, most: int = 3_000) -> Crawl:
        """Breadth first, one page at a time."""
        waiting = deque(links.of_starts(self.source, [Link(SITE + start, kind="listing")]).requests)
        while waiting and self.listings < most:
            request = waiting.popleft()
            self.listings += 1
            for found in self._sifted(request, site(request.url.removeprefix(SITE))).requests:
                if found.unique_key not in self.known:
                    self.known.add(found.unique_key)
                    if found.kind == "listing":
                        waiting.append(found)
                    else:
                        self.items.add(found.url.removeprefix(SITE))
        return self

    def _sifted(self, request: NewRequest, markup: str) -> Found:
        shown = page(markup, url=request.url, kind="listing")
        found = links.of_page(self.source, shown, request.depth, barren=request.barren, above=request.above)
        assert found.listing
        ways = {each.unique_key: traps.pattern(each.url) for each in found.requests if each.kind == "listing"}
        for pattern in {*ways.values(), found.listing.pattern}:
            self.trails.setdefault(pattern, traps.Trail())
        known = self.known & ways.keys()
        sifter = Sifter(
            source=self.source, ways=ways, known=known, trails=self.trails, most=self.source.max_barren or 0
        )
        sifted = sifter.sifted(found, found.listing)
        self.suspected |= {each.detail for each in sifted.rejected if each.reason == links.TRAP}
        return sifted


def ways(*hrefs: str) -> str:
    return "".join(f'<a href="{href}">way</a>' for href in hrefs)


def items(*names: object) -> str:
    return "".join(f'<a class=item href="/item/{name}">item</a>' for name in names)


def number(url: str, name: str = "p") -> int:
    return int(parse_qs(urlsplit(url).query).get(name, ["1"])[0])


# --- Endless ----------------------------------------------------------------------------------------------------------


def days_and_months(url: str) -> str:
    """Months that lead to their days and to the next month, days that lead to the next day."""
    parts = [int(part) for part in url.split("/") if part.isdigit()]
    first = date(parts[0], parts[1], parts[2] if len(parts) == 3 else 1)
    if len(parts) == 3:
        near = [first + timedelta(days=step) for step in (-1, 1)]
        return f"<h1>{first}</h1>" + ways(*[f"/c/{day:%Y/%m/%d}/" for day in near], f"/c/{first:%Y/%m}/")
    after, before = (first + timedelta(days=32)).replace(day=1), first - timedelta(days=1)
    days = [first + timedelta(days=step) for step in range((after - first).days)]
    return ways(f"/c/{after:%Y/%m}/", f"/c/{before:%Y/%m}/", *[f"/c/{day:%Y/%m/%d}/" for day in days])


def relative_page(url: str) -> str:
    """A next link that is relative by mistake, on a server that does not care."""
    return f"<h1>{len(url)}</h1>" + items(1, 2) + ways(f"page/{url.count('page/') + 2}/")


def empty_pages(url: str) -> str:
    """An offset that may grow for ever."""
    return (
        f"<h1>{number(url)}</h1>" + (items(number(url)) if number(url) <= 5 else "") + ways(f"/l?p={number(url) + 1}")
    )


FRESH = count()


def words(url: str) -> str:
    """Months by name, each page different from the last time it was seen."""
    names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    year, month = int(url.split("/")[2]), names.index(url.split("/")[3])
    near = [year * 12 + month + step for step in (-1, 1)]
    return f"<h1>{next(FRESH)}</h1>" + ways(*[f"/c/{at // 12}/{names[at % 12]}/" for at in near])


@pytest.mark.parametrize(
    ("start", "site", "most", "holds"),
    [
        ("/c/2026/11/", days_and_months, 400, 0),
        ("/c/2026/nov/", words, 50, 0),
        ("/blog/", relative_page, 25, 2),
        ("/l?p=1", empty_pages, 30, 5),
    ],
)
def test_endless_sites_end(start: str, site: Site, most: int, holds: int) -> None:
    crawl = Crawl(SOURCE).run(start, site)
    assert crawl.listings <= most
    assert len(crawl.items) == holds
    assert crawl.suspected


# --- Honest -----------------------------------------------------------------------------------------------------------


def paged(url: str) -> str:
    """A hundred pages of five items."""
    at = number(url)
    return items(*[f"{at}-{each}" for each in range(5)]) + (ways(f"/l?p={at + 1}") if at < 100 else "")


def with_gaps(url: str) -> str:
    """An item on each fifteenth page only."""
    at = number(url)
    return f"<h1>{at}</h1>" + (items(at) if at % 15 == 0 else "") + (ways(f"/l?p={at + 1}") if at < 150 else "")


def all_and_categories(url: str) -> str:
    """Each item under "all" and once more under its category."""
    at = number(url)
    if url.startswith("/cat/"):
        first = int(url.split("/")[2].partition("?")[0]) * 50 + at * 5
        return items(*range(first, first + 5)) + (ways(f"{url.partition('?')[0]}?p={at + 1}") if at < 9 else "")
    categories = ways(*[f"/cat/{each}" for each in range(20)])
    return items(*range(at * 10, at * 10 + 10)) + categories + (ways(f"/all?p={at + 1}") if at < 100 else "")


def index_of_indexes(url: str) -> str:
    """Sixty pages of links to listings, and no item on any of them."""
    if url.startswith("/list/"):
        return items(url.removeprefix("/list/"))
    at = number(url)
    return ways(*[f"/list/{at}-{each}" for each in range(5)]) + (ways(f"/index?p={at + 1}") if at < 60 else "")


def tree(url: str) -> str:
    """Three levels of branches, items on the leaves alone."""
    names = ["ant", "bee", "cow", "doe", "elk", "fox"]
    at = url.removeprefix("/t/")
    return f"<h1>{at}</h1>" + (
        items(at) if at.count("/") == 3 else ways(*[f"{name}-{at.count('/')}/" for name in names])
    )


@pytest.mark.parametrize(
    ("start", "site", "holds"),
    [
        ("/l?p=1", paged, 500),
        ("/l?p=1", with_gaps, 10),
        ("/all?p=1", all_and_categories, 1_005),
        ("/index?p=1", index_of_indexes, 300),
        ("/t/", tree, 216),
    ],
)
def test_honest_sites_lose_nothing(start: str, site: Site, holds: int) -> None:
    crawl = Crawl(SOURCE).run(start, site)
    assert crawl.suspected == set()
    assert len(crawl.items) == holds
