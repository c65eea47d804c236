"""What a page seems to hold, guessed from it alone: for a first draft of its source. Pure.

Conservative: a selector is offered only where it matches exactly what it is for on this page (one element; one in every
card), and a field only where it could be read. What cannot be seen from one page is not guessed.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from selectolax.lexbor import LexborNode

from collector_assets import html, normalize, urls
from collector_assets.page import Page

LEAST_CARDS: Final = 3
MOST_FIELDS: Final = 60
HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
NEXT: Final = ('a[rel~="next"]', 'link[rel~="next"]', "li.next a", ".next a", "a.next", ".pagination-next a")
ENTITIES: Final = ("sku", "upc", "ean", "gtin", "isbn", "isbn_13", "asin", "mpn", "id", "item_id", "product_id", "code")
"""Names of fields that usually name a thing for good."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_CURRENCY: Final = re.compile(r"[$£€¥₹₽₩₺₴₪₫₱₦฿]|\b[A-Z]{3}\b|\b(?:kr|zł|Kč|Ft)\b")
_PRICED: Final = '[class*="price" i], [itemprop="price"], [class*="amount" i]'
_LAYOUT: Final = re.compile(r"\.(?:col|row|grid|span|offset|[mp][trblxy]?|[wh])-?(?:\d|[a-z]{2}-|auto)")
"""Classes that say where something stands, not what it is."""
Mark = Literal[".", ","]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Where a price is, and how it is written."""

    css: str
    decimal: Mark
    scale: int
    """Digits after it."""
    is_ambiguous: bool
    """The other mark would read it too, as another number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """A listing: one element per thing."""

    css: str
    number: int
    link: str
    """The one link of each card."""
    title_attribute: bool
    """The title stands in full in the link's attribute."""
    price: Price | None
    following: str | None
    """The link to the next page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """A page about one thing."""

    title: str | None
    price: Price | None
    table: str | None
    labels: Mapping[str, str]
    """Labels of the table and the names of their fields."""
    entity: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table with a header, one row per thing."""

    css: str
    columns: Mapping[str, str]
    """Headings and the names of their fields."""
    entity: str | None
    following: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """JSON: a list of objects, or one."""

    path: tuple[str, ...]
    is_list: bool
    fields: Mapping[str, tuple[str, str, bool]]
    """Keys, each with the name of its field, its Python type, and whether it may be missing."""
    ignored: tuple[str, ...]
    entity: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """Nothing that could be recognized."""

    title: str | None


Shape = Cards | Detail | Grid | Objects | Bare


def shape_of(page: Page) -> Shape:
    """What the page seems to be."""
    if (found := _objects(page)) is not None:
        return found
    if page.tree.root is None:
        return Bare(title=None)
    return _detail(page) or _cards(page) or _grid(page) or Bare(title=_title(page))


def field_name(label: str, taken: Iterable[str] = ()) -> str:
    """A label as the name of a column, unlike those that are taken."""
    words = re.sub(r"[^0-9a-z]+", "_", label.lower()).strip("_")[:40] or "field"
    name = words if _NAME.match(words) and not keyword.iskeyword(words) else f"field_{words}"
    if name in _reserved():
        name = f"{name}_"
    used, number, plain = set(taken), 2, name
    while name in used:
        name, number = f"{plain}_{number}", number + 1
    return name


def _reserved() -> frozenset[str]:
    """Names that mean something on a pandera model."""
    import pandera.pandas as pa  # noqa: PLC0415

    return frozenset(dir(pa.DataFrameModel))


# --- Selectors -------------------------------------------------------------------------------------------------------


def _selectors(node: LexborNode) -> Iterator[str]:
    """Ways to say this element by itself, the plainest first."""
    if (id_ := node.attributes.get("id")) and _NAME.match(id_):
        yield f"#{id_}"
    for name in (node.attributes.get("class") or "").split():
        if _NAME.match(name):
            yield f"{node.tag}.{name}"
    if (item := node.attributes.get("itemprop")) and _NAME.match(item):
        yield f'{node.tag}[itemprop="{item}"]'
    yield str(node.tag)


def _only(within: Page | LexborNode, node: LexborNode) -> str | None:
    """A selector that matches this element and nothing else."""
    parents, parent = [], node.parent
    while parent is not None and parent.tag not in ("body", "html", "-undef", None) and len(parents) < 4:
        if isinstance(within, LexborNode) and parent.mem_id == within.mem_id:
            break
        parents.append(parent)
        parent = parent.parent
    for prefix in ("", *(f"{css} " for each in parents for css in _selectors(each) if css != each.tag)):
        for css in _selectors(node):
            if _matches(within, prefix + css) == [node.mem_id]:
                return prefix + css
    return None


def _matches(within: Page | LexborNode, css: str) -> list[int]:
    return [found.mem_id for found in html.all(within, css)]


# --- Parts -----------------------------------------------------------------------------------------------------------


def _price(texts: Sequence[str], css: str) -> Price | None:
    """A price that every text holds, if they agree on how decimals are written."""
    if not texts or not all(_CURRENCY.search(text) for text in texts):
        return None
    read: dict[Mark, list[Decimal]] = {}
    for mark in (".", ","):
        try:
            read[mark] = [normalize.price(text, decimal=mark) for text in texts]
        except ValueError:
            continue
    if not read:
        return None
    mark = next(iter(read))
    scale = max(2, *(-int(amount.as_tuple().exponent) for amount in read[mark]))
    return Price(css=css, decimal=mark, scale=scale, is_ambiguous=len(read) == 2 and read["."] != read[","])


def _price_of(page: Page) -> Price | None:
    for node in html.all(page, _PRICED):
        if (css := _only(page, node)) and (found := _price([html.text(node)], css)):
            return found
    return None


def _following(page: Page) -> str | None:
    for css in NEXT:
        found = html.all(page, css)
        if len(found) == 1 and _leads(page, found[0]):
            return css
    return None


def _leads(page: Page, link: LexborNode) -> bool:
    href = link.attributes.get("href")
    return bool(href) and isinstance(urls.resolve(href, page.base_url), urls.WebAddress)


def _title(page: Page) -> str | None:
    return next(
        (css for css in ("h1", "title") if len(html.all(page, css)) == 1 and html.text(html.one(page, css))), None
    )


def _entity(names: Iterable[str]) -> str | None:
    known = set(names)
    return next((name for name in ENTITIES if name in known), None)


def _names(labels: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    used, found = list(taken), {}
    for label in labels:
        found[label] = field_name(label, used)
        used.append(found[label])
    return found


# --- Shapes ----------------------------------------------------------------------------------------------------------


def _detail(page: Page) -> Detail | None:
    """A page with a table of labels and values, or with one heading and one price."""
    title, table, labels = _title(page), None, {}
    for node in html.all(page, "table"):
        found = _label_values(node)
        if found and (css := _only(page, node)):
            table, labels = css, _names(found, taken=("url", "title", "price"))
            break
    price = _price_of(page)
    is_one_thing = title == "h1" and price is not None and _cards(page) is None
    if not (labels or is_one_thing):
        return None
    return Detail(title=title, price=price, table=table, labels=labels, entity=_entity(labels.values()))


def _label_values(table: LexborNode) -> list[str]:
    """The labels of a table of two columns; none for another table."""
    try:
        found = html.fields(table)
    except ValueError:
        return []
    if not (2 <= len(found) <= MOST_FIELDS and all(0 < len(label) <= 80 for label in found)):
        return []
    is_header = all(cell.tag == "th" for cell in html.rows(table)[0])
    return [] if is_header else list(found)


def _cards(page: Page) -> Cards | None:
    """The largest set of like elements, each with a heading or a price and one link of its own."""
    found = [cards for css in _repeated(page) if (cards := _cards_of(page, css))]
    return max(
        found, key=lambda cards: (cards.price is not None, cards.number, not _LAYOUT.search(cards.css)), default=None
    )


def _repeated(page: Page) -> list[str]:
    counts: dict[str, int] = {}
    for node in html.all(page, "[class]"):
        for name in (node.attributes.get("class") or "").split():
            if _NAME.match(name):
                css = f"{node.tag}.{name}"
                counts[css] = counts.get(css, 0) + 1
    return [css for css, number in counts.items() if number >= LEAST_CARDS]


def _cards_of(page: Page, css: str) -> Cards | None:
    cards = html.all(page, css)
    if any(html.all(card, css)[1:] for card in cards):  # one inside another (an element matches itself, too)
        return None
    price = _card_price(cards)
    link = _card_link(page, cards, needs_heading=price is None)
    if link is None:
        return None
    titles = [html.one(card, link).attributes.get("title") for card in cards]
    has_title = all(titles)
    if not has_title and not all(html.text(html.one(card, link)) for card in cards):
        return None
    return Cards(
        css=css, number=len(cards), link=link, title_attribute=has_title, price=price, following=_following(page)
    )


def _card_link(page: Page, cards: Sequence[LexborNode], *, needs_heading: bool) -> str | None:
    """The selector of the one link that each card has for itself."""
    headed = tuple(f"{tag} a" for tag in HEADINGS)
    for css in headed if needs_heading else (*headed, "a"):
        links = [html.all(card, css) for card in cards]
        if all(len(found) == 1 and _leads(page, found[0]) for found in links):
            targets = {html.absolute(page, html.attribute(found[0], "href")) for found in links}
            return css if len(targets) == len(cards) else None
    return None


def _card_price(cards: Sequence[LexborNode]) -> Price | None:
    for node in html.all(cards[0], _PRICED):
        css = _only(cards[0], node)
        if css and all(len(html.all(card, css)) == 1 for card in cards):
            found = _price([html.text(html.one(card, css)) for card in cards], css)
            if found:
                return found
    return None


def _grid(page: Page) -> Grid | None:
    for table in html.all(page, "table"):
        rows = html.rows(table)
        css = _only(page, table)
        if css is None or len(rows) <= LEAST_CARDS or not rows[0] or len({len(row) for row in rows}) != 1:
            continue
        headings = [html.text(cell) for cell in rows[0]]
        if all(cell.tag == "th" for cell in rows[0]) and all(headings) and len(set(headings)) == len(headings):
            columns = _names(headings)
            return Grid(css=css, columns=columns, entity=_first_unique(rows[1:], columns), following=_following(page))
    return None


def _first_unique(rows: Sequence[Sequence[LexborNode]], columns: Mapping[str, str]) -> str | None:
    """The usual names first, then the first column that is different in every row."""
    unique = []
    for at, name in enumerate(columns.values()):
        values = [html.text(row[at]) for row in rows]
        if all(values) and len(set(values)) == len(values):
            unique.append(name)
    return _entity(unique) or next(iter(unique), None)


# --- JSON ------------------------------------------------------------------------------------------------------------

_TYPES: Final = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"))


def _objects(page: Page) -> Objects | None:
    if "json" not in page.headers.get("content-type", "") and page.text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        said = page.json()
    except ValueError:
        return None
    for path, rows in _lists(said, ()):
        return _of_rows(path, rows, is_list=True)
    return _of_rows((), [said], is_list=False) if isinstance(said, dict) and said else None


def _lists(said: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """Lists of objects, the outermost first."""
    if isinstance(said, list) and said and all(isinstance(row, dict) and row for row in said):
        yield path, said
    elif isinstance(said, dict) and len(path) < 3:
        for key, value in said.items():
            yield from _lists(value, (*path, key))


def _of_rows(path: tuple[str, ...], rows: Sequence[Mapping[str, Any]], *, is_list: bool) -> Objects | None:
    keys = dict.fromkeys(key for row in rows for key in row)
    typed: dict[str, tuple[str, bool]] = {}
    for key in list(keys)[:MOST_FIELDS]:
        values = [row.get(key) for row in rows]
        if (type_ := _type_of(values)) and key in rows[0]:
            typed[key] = (type_, any(value is None for value in values))
    if not typed:
        return None
    names = _names(typed)
    fields = {key: (names[key], *typed[key]) for key in typed}
    unique = [name for key, (name, type_, empty) in fields.items() if type_ in ("str", "int") and not empty
              and len({row[key] for row in rows}) == len(rows)]  # fmt: skip
    entity = _entity(unique) or next(iter(unique), None)
    ignored = tuple(key for key in keys if key not in fields)
    return Objects(path=path, is_list=is_list, fields=fields, ignored=ignored, entity=entity)


def _type_of(values: Sequence[Any]) -> str | None:
    """The one type of all values that are there; whole numbers among others are numbers."""
    given = [value for value in values if value is not None]
    for kind, name in _TYPES:
        if given and all(type(value) is kind for value in given):
            return name
    return "float" if given and all(type(value) in (int, float) for value in given) else None
