"""Models of record types, as far as a contract looks into them."""

from __future__ import annotations

from typing import Any

SchemaType = Any  # a pandera DataFrameModel class or DataFrameSchema; pandera itself is imported by the source file


def schema_columns(schema: SchemaType) -> tuple[str, ...] | None:
    """Column names of a pandera model or schema; nothing if it is neither."""
    made = schema.to_schema() if hasattr(schema, "to_schema") else schema
    return tuple(made.columns) if hasattr(made, "columns") and hasattr(made, "validate") else None
