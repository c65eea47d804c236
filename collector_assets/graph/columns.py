"""The columns of a record type as the UI shows them: the types of the typed view, and the checks in words."""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from collector_assets.contract import Source
from collector_assets.validation import Judge

Words = Callable[[Mapping[str, Any]], str]

MOST_WORDS = 60
"""Characters of a check: more does not fit beside a column."""


def column_schema(source: Source, record_type: str) -> dg.TableSchema:
    """The columns of a record type, from its pandera schema."""
    schema = source.schemas[record_type]
    made = schema.to_schema() if hasattr(schema, "to_schema") else schema
    types = {column.name: column.type for column in Judge(source, record_type).columns}
    columns = [
        dg.TableColumn(
            name=name,
            type=types[name].sql,
            description=column.description or column.title or None,
            constraints=dg.TableColumnConstraints(
                nullable=column.nullable,
                unique=name == source.entity_field(record_type),
                other=[in_words(check) for check in column.checks],
            ),
        )
        for name, column in made.columns.items()
    ]
    return dg.TableSchema(columns=columns)


def in_words(check: Any) -> str:
    """What a pandera check asks for; one of the source's own is called by its error text or name."""
    words = WORDS.get(check.name)
    said = words(check.statistics or {}) if words else str(check.error or check.name or "a check of its own")
    return said if len(said) <= MOST_WORDS else said[: MOST_WORDS - 1] + "…"


def _listed(values: Any) -> str:
    return ", ".join(str(value) for value in values)


def _length(asked: Mapping[str, Any]) -> str:
    least, most, exact = (asked.get(name) for name in ("min_value", "max_value", "exact_value"))
    if exact is not None:
        return f"{exact} characters"
    if most is None:
        return "not empty" if least == 1 else f"at least {least} characters"
    return f"{least or 0} to {most} characters"


def _range(asked: Mapping[str, Any]) -> str:
    low = "from" if asked.get("include_min", True) else "over"
    high = "to" if asked.get("include_max", True) else "to under"
    return f"{low} {asked['min_value']} {high} {asked['max_value']}"


WORDS: dict[str, Words] = {
    "equal_to": lambda asked: f"always {asked['value']}",
    "not_equal_to": lambda asked: f"never {asked['value']}",
    "greater_than": lambda asked: f"over {asked['min_value']}",
    "greater_than_or_equal_to": lambda asked: f"at least {asked['min_value']}",
    "less_than": lambda asked: f"under {asked['max_value']}",
    "less_than_or_equal_to": lambda asked: f"at most {asked['max_value']}",
    "in_range": _range,
    "isin": lambda asked: f"one of: {_listed(asked['allowed_values'])}",
    "notin": lambda asked: f"none of: {_listed(asked['forbidden_values'])}",
    "str_matches": lambda asked: f"looks like {asked['pattern']}",
    "str_contains": lambda asked: f"contains {asked['pattern']}",
    "str_startswith": lambda asked: f"starts with {asked['string']}",
    "str_endswith": lambda asked: f"ends with {asked['string']}",
    "str_length": _length,
}
