"""The shop's HTML: the structure, classes and ids of books.toscrape.com, so that one extractor reads both.

One thing is ours: a card tells its category (`data-category`), so that a source can have lanes
without further requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .catalogue import CATEGORIES, RATINGS, Book, Category, draws, sentence, slugged
from .templates import CARD, CATEGORY, DETAIL, FOOT, HEAD, LISTING, REVIEW, STARS

# What a redesign renames. After it none of the selectors that read the old pages finds anything.
_REDESIGN = (
    ("product_pod", "tile"),
    ("product_page", "sheet"),
    ("product_main", "sheet__main"),
    ("product_description", "about"),
    ("price_color", "money"),
    ("star-rating", "stars"),
    ("instock availability", "supply"),
    ("breadcrumb", "trail"),
    ("<th>UPC</th>", "<th>Article code</th>"),
    ("<h1>", '<h2 class="title">'),
    ("</h1>", "</h2>"),
    ('class="next"', 'class="onward"'),
)


def detail(book: Book, *, at_least_bytes: int = 0) -> str:
    """A book's page; reviews fill it up to about the size asked for."""
    missing = 0
    if at_least_bytes:
        missing = at_least_bytes - len(_detail(book, reviews=()).encode())
    return _detail(book, reviews=_reviews(book, missing))


def _detail(book: Book, *, reviews: Sequence[str]) -> str:
    values = {
        "title": escape(book.title),
        "summary": escape(f"\n    {book.description[:160]}\n"),
        "root": "../../",
        "category": escape(book.category.name),
        "category_slug": book.category.slug,
        "slug": book.slug,
        "image": _image(book),
        "price": book.price,
        "stock": book.stock,
        "rating": RATINGS[book.rating - 1],
        "stars": STARS,
        "description": escape(book.description, quote=False),
        "upc": book.upc,
        "reviews": len(reviews),
        "review_markup": "".join(reviews),
    }
    return (HEAD + DETAIL + FOOT) % values


def _reviews(book: Book, missing_bytes: int) -> list[str]:
    """Reviews of 300 to 600 bytes each, until less than half of one is missing."""
    draw, reviews = draws(f"{book.upc}:reviews"), []
    while missing_bytes > 150:
        text = " ".join(sentence(draw) for _ in range(1 + next(draw) % 4))
        reviews.append(REVIEW % (len(reviews) + 1, next(draw), next(draw) % 31 + 1, text))
        missing_bytes -= len(reviews[-1].encode())
    return reviews


def listing(
    books: Sequence[Book], *, heading: str, number: int, pages: int, total: int, per_page: int, root: str, page_url: str
) -> str:
    """One listing page. `root` leads to the site's root, `page_url` to page `%d`, both relative to this page."""
    first = (number - 1) * per_page + 1
    catalogue = f"{root}catalogue/"
    if root == "../":  # pages in /catalogue/ link to their neighbours, as the real ones do
        catalogue = ""
    values = {
        "title": escape(heading),
        "summary": "",
        "root": root,
        "catalogue": catalogue,
        "heading": escape(heading),
        "categories": "\n".join(CATEGORY % (catalogue, each.slug, escape(each.name)) for each in CATEGORIES),
        "total": total,
        "first": first if books else 0,
        "last": first + len(books) - 1,
        "cards": "".join(_card(each, root, catalogue) for each in books),
        "pager": _pager(number, pages, page_url),
    }
    return (HEAD + LISTING + FOOT) % values


def _card(book: Book, root: str, catalogue: str) -> str:
    return CARD % {
        "url": f"{catalogue}{book.slug}/index.html",
        "root": root,
        "image": _image(book),
        "title": escape(book.title),
        "short_title": escape(_shortened(book.title), quote=False),
        "category": slugged(book.category.name),
        "rating": RATINGS[book.rating - 1],
        "stars": STARS,
        "price": book.price,
    }


def _pager(number: int, pages: int, page_url: str) -> str:
    if pages <= 1:
        return ""
    before = f'<li class="previous"><a href="{page_url % (number - 1)}">previous</a></li>' if number > 1 else ""
    after = f'<li class="next"><a href="{page_url % (number + 1)}">next</a></li>' if number < pages else ""
    return f"""        <ul class="pager">
            {before}
            <li class="current">

                Page {number} of {pages}

            </li>
            {after}
        </ul>"""


def redesigned(page: str) -> str:
    """The same page after a redesign."""
    for old, new in _REDESIGN:
        page = page.replace(old, new)
    return page


def not_found() -> str:
    """The page for a path that the shop does not have."""
    return "<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1></body></html>\n"


def category_heading(category: Category | None) -> str:
    """What stands above a listing: of one category, or of all books."""
    return category.name if category else "All products"


def _shortened(title: str) -> str:
    """As the real listing shows a long title: whole words and an ellipsis."""
    if len(title) <= 28:
        return title
    return title[:28].rpartition(" ")[0] + " ..."


def _image(book: Book) -> str:
    return f"{book.upc[:2]}/{book.upc[2:4]}/{book.upc}"
