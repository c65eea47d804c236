"""The first draft of a source file, from what one page seems to hold. Pure: text out of a guess.

What the page cannot tell is marked `DECIDE`, for a person. Text from the page stands in the draft as string literals
only; nothing that a site wrote becomes code or a comment.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import Final

from collector_assets.guess import Bare, Cards, Detail, Grid, Objects, Price, Shape

MARK: Final = "DECIDE"

_FILE: Final = '''\
"""{name}: a draft by `collector new`, from one page. What a person must decide is marked {mark}."""

from __future__ import annotations

from collections.abc import Iterator

import pandera.pandas as pa
{decimal_import}
from collector_assets import {tools}
from collector_assets.contract import {contract}


class Item(pa.DataFrameModel):
    """{about}"""

{columns}

    class Config(pa.DataFrameModel.Config):
        """A column that the schema does not name is an error."""

        strict = True

{discover}
def extract(page: Page) -> Iterator[dict[str, object]]:
    """{does}"""
{extract}


SOURCE = Source(
    name="{name}",
    description="",
    start_urls=({url},),
{kinds}
    schema=Item,
    entity="{entity}",{entity_note}
    extractor_version="1",
    window=Daily(start="{start}"),  # {mark}: how often, and in which time zone a day begins
    budget=Budget(gap=seconds(2), slots=1{per}),  # {mark}: what robots.txt and the site's terms allow
    expect=Expect(min_records={records}),  # {mark}: the fewest records that a whole window may have
    freshness=hours(26),
    licence_note="",  # {mark}: what may be done with the data, and where that is written
)
'''

_DISCOVER: Final = '''
def discover(page: Page) -> Iterator[Link]:
    """The next listing page."""
    if following := html.maybe(page, {css}):
        yield Link(html.absolute(page, html.attribute(following, "href")), kind="listing")

'''

_DETAIL_HINT: Final = """\
# {mark}: if a record needs what stands on the page of each item, let discover() yield those links too, as
# Link(url, kind="detail"), and add kinds["detail"] = Kind(extract=...)."""


@dataclass(slots=True, kw_only=True)
class _Parts:
    """What a shape puts into the file."""

    about: str
    does: str
    columns: list[str]
    extract: str
    entity: str
    entity_note: str = ""
    kind: str = "detail"
    following: str | None = None
    tools: set[str] = field(default_factory=lambda: {"html"})


def source_file(shape: Shape, *, name: str, url: str, start: str, records: int, per: str = "domain") -> str:
    """The text of the file; `records` is how many the page holds, `per` what the other sources of its domain say."""
    parts = _parts(shape)
    links = {"Kind"} if parts.kind == "listing" else set()
    links |= {"Link"} if parts.following else set()
    code = _FILE.format(
        name=name, mark=MARK, about=parts.about, does=parts.does, url=_literal(url), start=start, records=records,
        decimal_import="from pandera.engines.pandas_engine import Decimal\n" if _uses_decimal(parts) else "",
        tools=", ".join(sorted(parts.tools)), columns=textwrap.indent("\n".join(parts.columns), "    "),
        contract=", ".join(
            [*sorted({"Budget", "Daily", "Expect", "Page", "Source"} | links), "hours", "seconds"]
        ),
        discover=_DISCOVER.format(css=_literal(parts.following)) if parts.following else "",
        extract=textwrap.indent(parts.extract, "    "), kinds=_kinds(parts),
        entity=parts.entity, entity_note=parts.entity_note, per="" if per == "domain" else f', per="{per}"',
    )  # fmt: skip
    return code if parts.tools else code.replace("from collector_assets import \n", "")


def _uses_decimal(parts: _Parts) -> bool:
    return any(": Decimal" in column for column in parts.columns)


def _kinds(parts: _Parts) -> str:
    if parts.kind == "detail":
        return "    extract=extract,"
    hint = textwrap.indent(_DETAIL_HINT.format(mark=MARK), "    ")
    first = "discover=discover, " if parts.following else ""
    note = "" if parts.following else f"  # {MARK}: no link to a next page was recognized"
    return f'{hint}\n    kinds={{"listing": Kind({first}extract=extract)}},{note}'


def _parts(shape: Shape) -> _Parts:
    match shape:
        case Cards():
            return _of_cards(shape)
        case Detail():
            return _of_detail(shape)
        case Grid():
            return _of_grid(shape)
        case Objects():
            return _of_objects(shape)
        case Bare():
            return _of_bare(shape)


# --- Shapes ----------------------------------------------------------------------------------------------------------


def _of_cards(shape: Cards) -> _Parts:
    title = 'html.attribute(link, "title")' if shape.title_attribute else "html.text(link)"
    fields = {"url": 'html.absolute(page, html.attribute(link, "href"))', "title": title}
    columns, tools = ["url: str", "title: str"], {"html"}
    if shape.price:
        columns.append(_price_column(shape.price))
        fields["price"] = _read_price("card", shape.price)
        tools.add("normalize")
    code = [f"for card in html.all(page, {_literal(shape.css)}, at_least=1):"]
    code += [
        f"    link = html.one(card, {_literal(shape.link)})",
        *_indented(_ambiguity(shape.price)),
        *_indented(_row(fields)),
    ]
    return _Parts(
        about="One card of a listing page.", does="The cards of a listing page.", columns=columns,
        extract="\n".join(code), entity="url", entity_note=_URL_NOTE, kind="listing", following=shape.following,
        tools=tools,
    )  # fmt: skip


def _of_detail(shape: Detail) -> _Parts:
    columns, fields, tools, code = ["url: str"], {"url": "page.final_url"}, {"html"}, []
    if shape.title:
        columns.append("title: str")
        fields["title"] = f"html.text(html.one(page, {_literal(shape.title)}))"
    if shape.price:
        columns.append(_price_column(shape.price))
        fields["price"] = _read_price("page", shape.price)
        tools.add("normalize")
        code += _ambiguity(shape.price)
    if shape.table:
        columns += [_TEXT_NOTE, *(f"{name}: str" for name in shape.labels.values())]
        code.append(f"facts = html.fields(html.one(page, {_literal(shape.table)}))")
        fields |= {name: f"facts.pop({_literal(label)})" for label, name in shape.labels.items()}
    code += _row(fields)
    if shape.table:
        code.append("html.expect_empty(facts)")
    return _Parts(
        about="What a page is about.", does="The one thing of a page.", columns=columns, extract="\n".join(code),
        entity=shape.entity or "url", entity_note=_KEY_NOTE if shape.entity else _URL_NOTE, tools=tools,
    )  # fmt: skip


def _of_grid(shape: Grid) -> _Parts:
    fields = {name: f"row.pop({_literal(heading)})" for heading, name in shape.columns.items()}
    code = [
        f"heading, *rows = html.rows(html.one(page, {_literal(shape.css)}))",
        "names = [html.text(cell) for cell in heading]",
        "for cells in rows:",
        "    row = dict(zip(names, (html.text(cell) for cell in cells), strict=True))",
        *_indented(_row(fields)),
        "    html.expect_empty(row)",
    ]
    entity = shape.entity or next(iter(shape.columns.values()))
    return _Parts(
        about="One row of the table.", does="The rows of the table.", extract="\n".join(code),
        columns=[_TEXT_NOTE, *(f"{name}: str" for name in shape.columns.values())], entity=entity,
        entity_note=_KEY_NOTE if shape.entity else f"  # {MARK}: no column is different in every row",
        kind="listing", following=shape.following,
    )  # fmt: skip


def _of_objects(shape: Objects) -> _Parts:
    fields = {name: f"row.pop({_literal(key)})" for key, (name, _, _) in shape.fields.items()}
    columns = [
        f"{name}: {type_}" + (" = pa.Field(nullable=True)" if empty else "")
        for name, type_, empty in shape.fields.values()
    ]
    for key, (name, _, empty) in shape.fields.items():
        if empty:
            fields[name] = f"row.pop({_literal(key)}, None)"
    ignored = f", ignore={{{', '.join(map(_literal, shape.ignored))}}}" if shape.ignored else ""
    inner = [*_row(fields), f"html.expect_empty(row{ignored})"]
    if ignored:
        inner.insert(-1, f"# {MARK}: these are lists or objects, or not of one type")
    place = "page.json()" + "".join(f"[{_literal(key)}]" for key in shape.path)
    code = [f"for row in {place}:", *_indented(inner)] if shape.is_list else [f"row = {place}", *inner]
    entity = shape.entity or next(name for name, _, _ in shape.fields.values())
    return _Parts(
        about="One object of the answer.", does="The objects of the answer.", columns=columns,
        extract="\n".join(code), entity=entity,
        entity_note=_KEY_NOTE if shape.entity else f"  # {MARK}: no field is different in every object",
    )  # fmt: skip


def _of_bare(shape: Bare) -> _Parts:
    fields, columns = {"url": "page.final_url"}, ["url: str"]
    if shape.title:
        fields["title"] = f"html.text(html.one(page, {_literal(shape.title)}))"
        columns.append("title: str")
    return _Parts(
        about="What a page is about.", does="The one thing of a page.", columns=columns,
        extract="\n".join([f"# {MARK}: neither cards nor a table nor a price was recognized", *_row(fields)]),
        entity="url", entity_note=_URL_NOTE, tools={"html"} if shape.title else set(),
    )  # fmt: skip


# --- Pieces ----------------------------------------------------------------------------------------------------------

_TEXT_NOTE: Final = f"# {MARK}: all of these are text until you say otherwise, and none may be missing"
_URL_NOTE: Final = f"  # {MARK}: the field that names a thing for good; a URL may change"
_KEY_NOTE: Final = f"  # {MARK}: does it name a thing for good?"


def _price_column(price: Price) -> str:
    precision = 12 + price.scale
    return f'price: Decimal = pa.Field(ge=0, dtype_kwargs={{"precision": {precision}, "scale": {price.scale}}})'


def _read_price(within: str, price: Price) -> str:
    decimal = "" if price.decimal == "." else ', decimal=","'
    return f"normalize.price(html.text(html.one({within}, {_literal(price.css)})){decimal})"


def _ambiguity(price: Price | None) -> list[str]:
    if price is None or not price.is_ambiguous:
        return []
    return [f'# {MARK}: is the point before the decimals, or between the thousands? Say decimal="," if so']


def _row(fields: dict[str, str]) -> list[str]:
    return ["yield {", *(f'    "{name}": {value},' for name, value in fields.items()), "}"]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _literal(text: str | None) -> str:
    """Python's literal for the text, in double quotes where that is as short."""
    said = repr(text)
    return said if text is None or '"' in said else f'"{said[1:-1]}"'
