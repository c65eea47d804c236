"""What the UI is given: bounded, and with the columns of every record type. Pure."""

from __future__ import annotations

import dagster as dg
import pandera.pandas as pa
import pytest

from collector_assets.contract import Kind, replace
from collector_assets.graph import metadata
from collector_assets.graph.columns import MOST_WORDS, in_words
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
    assert columns["born"].type == "bigint"


def test_checks_of_a_column_are_told_in_words_and_bounded() -> None:
    columns = {column.name: column for column in metadata.column_schema(SHOP, "record").columns}
    said = {name: column.constraints.other for name, column in columns.items() if column.constraints.other}
    assert said == {
        "upc": ["looks like ^[0-9a-z]{16}$"],
        "title": ["not empty"],
        "price": ["at least 0"],
        "currency": ["one of: GBP"],
        "rating": ["at least 1", "at most 5"],
        "available": ["at least 0"],
    }
    assert all(column.description for column in columns.values())
    own = pa.Check(lambda value: value > 0, error="is a round number " * 10)
    assert in_words(own).startswith("is a round number")
    assert len(in_words(own)) == MOST_WORDS


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (pa.Check.in_range(1, 5), "from 1 to 5"),
        (pa.Check.in_range(1, 5, include_min=False, include_max=False), "over 1 to under 5"),
        (pa.Check.str_length(2, 3), "2 to 3 characters"),
        (pa.Check.str_length(exact_value=4), "4 characters"),
        (pa.Check.notin(["x", "y"]), "none of: x, y"),
        (pa.Check.ne(0), "never 0"),
        (pa.Check.str_startswith("http"), "starts with http"),
    ],
)
def test_each_check_has_its_words(check: pa.Check, words: str) -> None:
    assert in_words(check) == words


def test_the_first_record_type_is_where_dagster_shows_columns_and_the_others_beside_it() -> None:
    one, both = metadata.of_record_types(SHOP), metadata.of_record_types(BOTH)
    assert set(one) == {"dagster/column_schema"}
    assert set(both) == {"dagster/column_schema", "record_types", "columns of author"}
    assert both["dagster/column_schema"] == one["dagster/column_schema"]


def test_a_preview_has_the_schemas_order_and_the_type_only_where_there_are_several() -> None:
    rows = [{"record_type": "book", "entity": "a", "upc": "a"}]

    def columns(shown: dg.TableMetadataValue) -> list[str]:
        return [column.name for column in shown.schema.columns]

    assert columns(metadata.preview(SHOP, rows)) == list(SHOP.schema.to_schema().columns)
    assert columns(metadata.preview(BOTH, rows)) == ["record_type", "entity", "upc"]


def test_a_contract_is_told_in_short() -> None:
    told = metadata.of_contract(SHOP)
    assert told["budget"] == "2 at once, 0.05 s after each answer, weight 1, per domain"
    assert told["backfill"].startswith("no:")
