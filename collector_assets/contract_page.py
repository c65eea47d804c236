"""Makes docs/source-contract.md from the code: `python -m collector_assets.contract_page > docs/source-contract.md`."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields
from datetime import timedelta
from typing import Any, Final

from pydantic.fields import FieldInfo

from collector_assets import contract
from collector_assets.contract import (
    FOREVER,
    Browser,
    Budget,
    Click,
    ClientCredentials,
    Expect,
    Fill,
    FromFile,
    FromQuery,
    FromSource,
    InHeader,
    InJson,
    Keys,
    Kind,
    Link,
    Page,
    Press,
    Record,
    RenderingService,
    Retention,
    Scroll,
    Secret,
    Session,
    Source,
    View,
)  # fmt: skip

PARTS: Final = (
    Source,
    Kind,
    Session,
    ClientCredentials,
    View,
    Click,
    Fill,
    Press,
    Scroll,
    Browser,
    FromQuery,
    FromFile,
    FromSource,
    Keys,
    Budget,
    RenderingService,
    InJson,
    InHeader,
    Expect,
    Retention,
    Link,
    Record,
    Secret,
)
ALIASES: Final = {
    "Discover": "(Page) -> Iterable[Link]",
    "Extract": "(Page) -> Iterable[Mapping | Record]",
    "SoftGone": "(Page) -> bool",
    "Combine": "(entity, rows) -> Mapping",
    "Start": "(Window, inputs) -> Iterable[Link]",
    "Headers": "Mapping[str, str | Secret]",
    "Pairs": "Mapping[str, str | Secret]",
    "SchemaType": "pandera model",
    "Action": "Click | Fill | Press | Scroll",
    "Loads": '"image" | "media" | "font" | "stylesheet" | "script"',
    "Schedule": "Daily | Hourly | Cron",
}
MIB: Final = 2**20
UNITS: Final = {
    "slots": "requests", "weight": "share", "min_records": "records", "max_records": "records",
    "max_error_rate": "fraction", "max_reject_rate": "fraction", "max_removed_rate": "fraction",
    "removed_after": "windows", "stop_after_known": "items", "edition": "",
    "capacity": "requests", "max_requests": "requests", "max_depth": "links", "max_barren": "listings",
    "lanes": "share",
    "interleave_weights": "share", "max_bytes": "bytes", "max_decoded_bytes": "bytes", "max_attempts": "attempts",
    "in_flight": "requests", "max_redirects": "hops", "max_restarts": "times",
    "refusal_limit": "refusals", "on_status": "", "priority": "", "status": "",
    "price": "money or credits", "cap": "money or credits",
    "pages": "pages", "retire_after_pages": "pages", "max_memory": "bytes", "most": "scrolls",
}  # fmt: skip
HEAD: Final = """\
# Source contract

Everything that a source file may say. Generated from the code by `python -m collector_assets.contract_page`;
a test compares the two. How to write a source from nothing is in [add-a-source.md](add-a-source.md).

A wrong or unknown field is an error that names the file and the field; `collector sources --check` shows all of them.
Lengths of time are written `seconds(2)`, `minutes(2)`, `hours(2)`, `days(2)` or `FOREVER`. Fields that say
*issue C* or *issue D* are known here and refused by name until the release that brings them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One field of one part of the contract."""

    name: str
    type: str
    default: str
    unit: str
    meaning: str


def contract_page() -> str:
    """The page, as Markdown."""
    sections = [_section(part.__name__, _first_line(part), rows(part)) for part in PARTS]
    page = _section("Page", "What `discover` and `extract` are given: one stored response, decoded.", _page_rows())
    return "\n".join([HEAD, *sections, _windows(), page])


def rows(part: type) -> list[Row]:
    """Every field of a part."""
    written = _written(part)
    return [_row(each, *written[each.name]) for each in fields(part)]


def _row(field: Field[Any], annotation: str, docstring: str) -> Row:
    info = field.default if isinstance(field.default, FieldInfo) else None
    return Row(
        name=field.name,
        type=f"`{_type(annotation)}`{_bounds(info)}",
        default=_default(_pydantic_default(info) if info else _dataclass_default(field)),
        unit="time" if "timedelta" in annotation else UNITS.get(field.name, ""),
        meaning=(info.description or "") if info else docstring,
    )


def _written(part: type) -> dict[str, tuple[str, str]]:
    """The annotation of each field as it stands in the code, and the docstring below it."""
    return {
        node.target.id: (ast.unparse(node.annotation), docstring)
        for node, docstring in _statements(part)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _statements(of: Any) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a class or function, each with the docstring that stands below it."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    body: list[ast.stmt] = getattr(definition, "body", [])
    for node, below in zip(body, [*body[1:], None], strict=True):
        yield node, _docstring(below)


def _docstring(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str() as text)):
            return inspect.cleandoc(text)
        case _:
            return ""


def _type(annotation: str) -> str:
    """An annotation in the words of a source file."""
    text = re.sub(r"Literal\[([^]]*)\]", lambda match: match[1].replace(", ", " | ").replace("'", '"'), annotation)
    text = re.sub(r"\b[A-Z]\w+\b", lambda match: ALIASES.get(match[0], match[0]), text)
    return text.removesuffix(" | None").replace(", ...]", ", …]")


def _bounds(info: FieldInfo | None) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    found = [
        f"{sign} {_length(value) if isinstance(value, timedelta) else value}"
        for limit in (info.metadata if info else ())
        for name, sign in signs.items()
        if (value := getattr(limit, name, None)) is not None
    ]
    return f" {', '.join(found)}" if found else ""


def _pydantic_default(info: FieldInfo) -> Any:
    return MISSING if info.is_required() else info.get_default(call_default_factory=True)


def _dataclass_default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _default(value: Any) -> str:
    if value is MISSING:
        return "**required**"
    if value in (None, (), "") or value == {}:
        return "–"
    match value:
        case timedelta():
            return _length(value)
        case Browser() | Budget() | Expect() | Retention() | View():
            return f"`{type(value).__name__}()`"
        case int() if value >= MIB and value % MIB == 0:
            return f"{value // MIB} MiB"
        case _:
            return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def _length(length: timedelta) -> str:
    if length == FOREVER:
        return "forever"
    seconds = length.total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _windows() -> str:
    lines = ["## Daily, Hourly, Cron\n", "How a source's time is cut into collection windows.\n"]
    for make in (contract.Daily, contract.Hourly, contract.Cron):
        given = str(inspect.signature(make)).partition(" -> ")[0].replace("'", "")
        lines.append(f"* `{make.__name__}{given.replace('UTC', chr(34) + 'UTC' + chr(34))}`: {_first_line(make)}")
    return "\n".join(lines) + "\n"


def _page_rows() -> Iterator[Row]:
    """The attributes of a page, from its constructor's arguments and its properties."""
    types = {name: str(each.annotation) for name, each in inspect.signature(Page.__init__).parameters.items()}
    for node, docstring in _statements(Page.__init__):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Attribute) and (name := target.attr) in types:
            yield Row(name=name, type=f"`{_type(types[name])}`", default="", unit="", meaning=docstring)
    for name, member in vars(Page).items():
        if not name.startswith("_"):
            made = getattr(member, "fget", None) or getattr(member, "func", None) or member
            shown = f"{name}()" if made is member else name
            returned = str(inspect.signature(made).return_annotation)
            yield Row(name=shown, type=f"`{returned}`", default="", unit="", meaning=_first_line(made))


def _section(title: str, about: str, found: Iterator[Row] | list[Row]) -> str:
    shown = list(found)
    has_defaults = any(row.default for row in shown)
    columns = ("name", "type", "default", "unit", "meaning") if has_defaults else ("name", "type", "meaning")
    lines = [f"## {title}\n", f"{about}\n", _line(columns), _line("---" for _ in columns)]
    lines += [_line(f"`{row.name}`" if column == "name" else _cell(row, column) for column in columns) for row in shown]
    return "\n".join(lines) + "\n"


def _cell(row: Row, column: str) -> str:
    return str(getattr(row, column)).replace("|", "\\|").replace("\n", " ")


def _line(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _first_line(of: Any) -> str:
    return (inspect.getdoc(of) or "").partition("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(contract_page())
