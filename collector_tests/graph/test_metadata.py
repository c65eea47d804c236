"""What the UI is given: bounded, and with the columns of every record type. Pure."""

from __future__ import annotations

import dagster as dg
import pandera.pandas as pa

from collector_assets.contract import Kind, replace
from collector_assets.graph import metadata
from collector_assets.sources.shop import SHOP


class Author(pa.DataFrameModel):
    name: str
    born: int = pa.Field(nullable=True)


BOTH = replace(
    SHOP,
    discover=None, extract=None, schema=None,
    kinds={"listing": Kind(discover=SHOP.discover), "detail": Kind(extract=SHOP.extract)},
    records={"book": SHOP.schema, "author": Author}, entity={"book": "upc", "author": "name"},
)  # fmt: skip


def test_a_table_is_cut_by_rows_and_cells() -> None:
    """DAG-10: metadata stays under 10 kB whatever a site sends."""
    # Mutation: table without _bounded, or _cell without its limit
    rows = [{f"column {n}": "x" * 5_000 for n in range(8)} for _ in range(1_000)]
    shown = metadata.table(rows)
    assert 1 <= len(shown.records) < 5
    assert len(repr(shown)) < 5_000


def test_an_empty_table_keeps_its_columns() -> None:
    assert [column.name for column in metadata.table([], columns=("kind", "requests")).schema.columns] == [
        "kind",
        "requests",
    ]


def test_columns_say_type_constraints_and_which_is_the_entity() -> None:
    columns = {column.name: column for column in metadata.column_schema(BOTH, "author").columns}
    assert columns["name"].constraints.unique
    assert not columns["name"].constraints.nullable
    assert columns["born"].constraints.nullable
    assert columns["born"].type == "int64"


def test_the_first_record_type_is_where_dagster_shows_columns_and_the_others_beside_it() -> None:
    one, both = metadata.of_record_types(SHOP), metadata.of_record_types(BOTH)
    assert set(one) == {"dagster/column_schema"}
    assert set(both) == {"dagster/column_schema", "record_types", "columns of author"}
    assert both["dagster/column_schema"] == one["dagster/column_schema"]


def test_a_preview_shows_type_and_entity_only_where_there_are_several_types() -> None:
    rows = [{"record_type": "book", "entity": "a", "upc": "a"}]

    def columns(shown: dg.TableMetadataValue) -> list[str]:
        return [column.name for column in shown.schema.columns]

    assert columns(metadata.preview(SHOP, rows)) == ["upc"]
    assert columns(metadata.preview(BOTH, rows)) == ["record_type", "entity", "upc"]


def test_a_contract_is_told_in_short() -> None:
    told = metadata.of_contract(SHOP)
    assert told["budget"] == "2 at once, 0.05 s after each answer, weight 1, per domain"
    assert told["backfill"].startswith("no:")
