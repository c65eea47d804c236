"""Tables as browsers lay them out: spans by the rules of HTML, never the rows or the text of a table inside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborNode

from collector_assets.html.elements import text
from collector_assets.record import Unreadable

MAX_COLSPAN: Final = 1_000
"""HTML standard, "attributes common to td and th elements"; `rowspan` ends with its group of rows."""
MAX_SLOTS: Final = 1_000_000
"""Places of one table: a few bytes of spans may ask for billions."""

_NUMBER: Final = re.compile(r"[\t\n\f\r ]*\+?([0-9]+)")
_INNER: Final = frozenset({"table"})
_GROUPS: Final = ("thead", "tbody", "tfoot")

Grid = list[list[LexborNode | None]]
"""Rows of equal width; an element stands in every place that it spans, None where a row has no cell."""


def rows(table: LexborNode) -> list[list[LexborNode]]:
    """The cells of each row of this table: direct children, with or without tbody, never those of a table inside."""
    return [_cells(row) for group in _row_groups(table) for row in group]


def grid(table: LexborNode) -> Grid:
    """The table with its spans unfolded; `Unreadable` where it would have more than a million places.

    A span begins with its number (`2;` is 2); one that is no number is 1, of columns at most 1,000; `rowspan=0` goes to
    the end of the group.
    """
    found: Grid = []
    for group in _row_groups(table):
        found += _unfolded(group, room=MAX_SLOTS - sum(map(len, found)))
    width = max(map(len, found), default=0)
    if width * len(found) > MAX_SLOTS:
        raise _too_large()
    return [row + [None] * (width - len(row)) for row in found]


def records(table: LexborNode, *, header_rows: int = 1) -> Iterator[dict[str, str] | Unreadable]:
    """Each row by the headings of the table; text as it stands, for `normalize` to read.

    Headings of several rows are joined by a blank where they differ. A row without a cell for each of them is yielded
    as `Unreadable`: hand it on, and it becomes a reject. Headings that are empty or repeat raise: nobody could tell the
    columns apart.
    """
    laid_out = grid(table)
    names = _headings(laid_out[:header_rows])
    for number, cells in enumerate(laid_out[header_rows:], start=header_rows + 1):
        if None in cells:
            given = sum(cell is not None for cell in cells)
            yield Unreadable("malformed", f"row {number} of the table has {given} cells, not {len(names)}")
        else:
            yield {name: _cell_text(cell) for name, cell in zip(names, cells, strict=True) if cell is not None}


def fields(table: LexborNode) -> dict[str, str]:
    """A table of labels and values, two cells a row; `Unreadable` for another shape, or a label that repeats."""
    found: dict[str, str] = {}
    for cells in rows(table):
        if len(cells) != 2:
            raise Unreadable("malformed", f"a row of the table has {len(cells)} cells, not a label and a value")
        label = _cell_text(cells[0])
        if label in found:
            raise Unreadable("ambiguous", f"the label {label!r} stands twice in the table")
        found[label] = _cell_text(cells[1])
    return found


def span(value: str | None, most: int) -> int | None:
    """A span attribute by the "rules for parsing non-negative integers", at most `most`; None when it is no number."""
    match = _NUMBER.match(value or "")
    return min(int(match[1][:9]), most) if match else None


def _cell_text(cell: LexborNode) -> str:
    return text(cell, without=_INNER)


def _row_groups(table: LexborNode) -> Iterator[list[LexborNode]]:
    """Rows that a rowspan may cross; rows outside of any group are one each time they stand together."""
    loose: list[LexborNode] = []
    for child in table.iter():
        if child.tag == "tr":
            loose.append(child)
        elif child.tag in _GROUPS:
            if loose:
                yield loose
                loose = []
            yield [row for row in child.iter() if row.tag == "tr"]
    if loose:
        yield loose


def _cells(row: LexborNode) -> list[LexborNode]:
    return [cell for cell in row.iter() if cell.tag in ("th", "td")]


def _unfolded(group: list[LexborNode], *, room: int) -> Grid:
    """HTML standard, "forming a table": a cell takes the first free place of its row, and those that it spans."""
    found: Grid = [[] for _ in group]
    for at, row in enumerate(group):
        column = 0
        for cell in _cells(row):
            while column < len(found[at]) and found[at][column] is not None:
                column += 1
            wide = span(cell.attributes.get("colspan"), MAX_COLSPAN) or 1
            high = span(cell.attributes.get("rowspan"), len(group))
            high = len(group) - at if high == 0 else min(high or 1, len(group) - at)
            room -= wide * high
            if room < 0:
                raise _too_large()
            for line in found[at : at + high]:
                line.extend([None] * (column - len(line)))
                line[column : column + wide] = [cell] * wide
            column += wide
    return found


def _headings(header: Grid) -> list[str]:
    names = []
    for column in zip(*header, strict=True):
        said = dict.fromkeys(_cell_text(cell) for cell in column if cell is not None)
        names.append(" ".join(filter(None, said)))
    if "" in names or len(set(names)) < len(names):
        raise Unreadable("ambiguous", f"the headings of the table are empty or repeat: {', '.join(names)[:200]}")
    return names


def _too_large() -> Unreadable:
    return Unreadable("malformed", f"the spans of the table ask for more than {MAX_SLOTS:,} places")
