"""The shop of one host: which pages exist, each rendered when it is first asked for and kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property

from . import markup
from .catalogue import CATEGORIES, Book, Category, book
from .reply import Reply, gzipped, reply
from .switches import Switches

_FIRST_EDITION = datetime(2026, 1, 1, 9, 0, tzinfo=UTC).timestamp()
_DAY = 86_400.0
_KEPT_BYTES = 512 * 1024 * 1024

_DETAIL = re.compile(r"/catalogue/([a-z0-9-]+_(\d+))/index\.html")
_ALL = re.compile(r"/catalogue/page-(\d+)\.html")
_ALL_IN_CATEGORY = re.compile(r"/catalogue/category/books_1/(?:index|page-(\d+))\.html")
_CATEGORY = re.compile(r"/catalogue/category/books/([a-z-]+_\d+)/(?:index|page-(\d+))\.html")


class Shop:
    """Pages by path for one set of switches."""

    def __init__(self, switches: Switches) -> None:
        self.switches = switches
        self._kept: dict[tuple[str, bool], Reply] = {}
        self._kept_bytes = 0

    def page(self, path: str, *, accepts_gzip: bool = False) -> Reply | None:
        """The page at a path; None when the shop has none."""
        compress = accepts_gzip and self.switches.gzip > 0
        kept = self._kept.get((path, compress))
        if kept is not None:
            return kept
        made = self._made(path)
        if made is None:
            return None
        if compress:
            made = gzipped(made)
        self._keep((path, compress), made)
        return made

    def paths(self) -> Iterator[str]:
        """Every page of the shop."""
        yield "/"
        for number in range(1, self._pages(self.switches.books) + 1):
            yield f"/catalogue/page-{number}.html"
        for category, books in self._by_category.items():
            yield f"/catalogue/category/books/{category}/index.html"
            for number in range(2, self._pages(len(books)) + 1):
                yield f"/catalogue/category/books/{category}/page-{number}.html"
        for each in self._books:
            yield f"/catalogue/{each.slug}/index.html"

    def listing_paths(self) -> Iterator[str]:
        """The pages that list every book."""
        for number in range(1, self._pages(self.switches.books) + 1):
            yield f"/catalogue/page-{number}.html"

    def books(self) -> Iterator[tuple[str, float]]:
        """Every book's page, and when it was modified last, in seconds since 1970."""
        for each in self._books:
            yield f"/catalogue/{each.slug}/index.html", _modified_in(each.changed_in)

    @property
    def catalogue(self) -> Sequence[Book]:
        """Every book, by number."""
        return self._books

    def warm(self) -> None:
        """Render every page now, so that no request pays for it."""
        for path in self.paths():
            self.page(path)

    def _keep(self, key: tuple[str, bool], made: Reply) -> None:
        size = len(made.body) + len(made.after_date)
        if self._kept_bytes + size > _KEPT_BYTES:
            self._kept.clear()
            self._kept_bytes = 0
        self._kept[key] = made
        self._kept_bytes += size

    @cached_property
    def _books(self) -> tuple[Book, ...]:
        seed, edition = self.switches.seed, self.switches.edition
        return tuple(book(number, seed=seed, edition=edition) for number in range(1, self.switches.books + 1))

    @cached_property
    def _by_category(self) -> dict[str, list[Book]]:
        found: dict[str, list[Book]] = {category.slug: [] for category in CATEGORIES}
        for each in self._books:
            found[each.category.slug].append(each)
        return found

    def _pages(self, books: int) -> int:
        return max(1, -(-books // self.switches.per_page))

    def _made(self, path: str) -> Reply | None:
        if path in ("/", "/index.html"):
            return self._listing(self._books, None, 1, root="", page_url="catalogue/page-%d.html")
        if match := _DETAIL.fullmatch(path):
            return self._detail(match[1], int(match[2]))
        if match := _ALL.fullmatch(path):
            return self._listing(self._books, None, int(match[1]), root="../", page_url="page-%d.html")
        if match := _ALL_IN_CATEGORY.fullmatch(path):
            return self._listing(self._books, None, int(match[1] or 1), root="../../../", page_url="page-%d.html")
        if match := _CATEGORY.fullmatch(path):
            return self._category(match[1], int(match[2] or 1))
        return None

    def _detail(self, slug: str, number: int) -> Reply | None:
        if not 1 <= number <= len(self._books) or self._books[number - 1].slug != slug:
            return None
        the_book = self._books[number - 1]
        page = markup.detail(the_book, at_least_bytes=self.switches.detail_bytes)
        return self._reply(page, edition=the_book.changed_in, is_redesigned=self.switches.redesign >= 1)

    def _category(self, slug: str, number: int) -> Reply | None:
        if slug not in self._by_category:
            return None
        category = next(each for each in CATEGORIES if each.slug == slug)
        return self._listing(self._by_category[slug], category, number, root="../../../../", page_url="page-%d.html")

    def _listing(
        self, books: Sequence[Book], category: Category | None, number: int, *, root: str, page_url: str
    ) -> Reply | None:
        pages, per_page = self._pages(len(books)), self.switches.per_page
        if not 1 <= number <= pages:
            return None
        shown = books[(number - 1) * per_page : number * per_page]
        page = markup.listing(
            shown,
            heading=markup.category_heading(category),
            number=number,
            pages=pages,
            total=len(books),
            per_page=per_page,
            root=root,
            page_url=page_url,
        )
        edition = max((each.changed_in for each in shown), default=1)
        return self._reply(page, edition=edition, is_redesigned=self.switches.redesign >= 2)

    def _reply(self, page: str, *, edition: int, is_redesigned: bool) -> Reply:
        """A page with validators: it was last modified on the day of the edition that changed a price on it."""
        text = (markup.redesigned(page) if is_redesigned else page).replace("£", self.switches.currency)
        return reply(text, modified=_modified_in(edition))


def _modified_in(edition: int) -> float:
    return _FIRST_EDITION + (edition - 1) * _DAY
