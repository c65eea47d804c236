"""Record types, their entities and their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector_assets.contract.refusing import wrong
from collector_assets.contract.schemas import SchemaType, schema_columns

if TYPE_CHECKING:
    from collector_assets.contract.source import Source


def check_records(source: Source) -> None:
    """Record types are said in one form, each with a schema that has its entity."""
    if bool(source.records) == (source.schema is not None):
        raise wrong(source, "schema", "give either schema (one record type) or records (several), and not both")
    if not isinstance(source.entity, str) and (unknown := set(source.entity) - set(source.schemas)):
        raise wrong(source, "entity", f"{min(unknown)!r} is not a record type ({', '.join(source.schemas)})")
    for record_type, schema in source.schemas.items():
        _check_record_type(source, record_type, schema)
    columns = {column for schema in source.schemas.values() for column in schema_columns(schema) or ()}
    if source.revised_at is not None and source.revised_at not in columns:
        raise wrong(source, "revised_at", f"{source.revised_at!r} is not a column of any record type")


def _check_record_type(source: Source, record_type: str, schema: SchemaType) -> None:
    columns = schema_columns(schema)
    if columns is None:
        raise wrong(source, "schema", f"record type {record_type!r} needs a pandera DataFrameModel or DataFrameSchema")
    if not isinstance(source.entity, str) and record_type not in source.entity:
        raise wrong(source, "entity", f"record type {record_type!r} has no entity field")
    if (column := source.entity_field(record_type)) not in columns:
        raise wrong(
            source, "entity", f"{column!r} is not a column of record type {record_type!r} ({', '.join(columns)})"
        )
