"""Inputs are edges into `frontier`, whether their assets are in this code location or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from collector_assets.contract import FromFile, FromQuery, FromSource, Link, Secret, Window, replace
from collector_assets.graph import names
from collector_assets.graph.factory import build_source
from collector_assets.graph.resources import Installation
from collector_tests.graph.conftest import made
from collector_tests.graph.test_definitions import build, settings_of
from collector_tests.graph.test_materialize import KEY, QUICK, collect, materialized, metadata_of


def by_url(_: Window, inputs: Mapping[str, Any]) -> Iterator[Link]:
    """The page of each book that the shop knows."""
    for row in inputs["books"]:
        yield Link(row["url"])


INPUTS = {
    "books": FromSource("shop"),
    "itself": FromSource("again"),
    "skus": FromQuery("SELECT 1", dsn=Secret("DWH"), asset="dbt/watchlist"),
    "more": FromQuery("SELECT 1", dsn=Secret("DWH")),
    "zips": FromFile("s3://bucket/in/zips {window.key}.csv"),
}
AGAIN = replace(
    QUICK, name="again", start_urls=(), scope=("shop.localhost",), discover=None, start=by_url,
    inputs={"books": FromSource("shop")},
)  # fmt: skip


@pytest.mark.parametrize("beside", [True, False], ids=["beside the other source", "alone"])
def test_each_input_is_an_edge_into_the_frontier(tmp_path: Path, *, beside: bool) -> None:
    installation = made("postgresql://nowhere", tmp_path)
    defs = build_source(replace(AGAIN, inputs=INPUTS), installation)
    defs = dg.Definitions.merge(defs, build_source(QUICK, installation)) if beside else defs
    dg.Definitions.validate_loadable(defs)
    parents = defs.resolve_asset_graph().get(names.asset_key("again", "frontier")).parent_keys
    assert {"/".join(key.path) for key in parents} == {
        "shop/latest", "dbt/watchlist", "again/more", "s3/bucket/in/zips_window.key_.csv",
    }  # fmt: skip


def test_a_window_that_starts_from_another_source_is_collected_and_says_what_it_read(
    installation: Installation, instance: dg.DagsterInstance
) -> None:
    too_early = collect(AGAIN, installation, instance, "frontier")
    assert "nothing of source 'shop' is in `latest` yet" in str(too_early.all_events)
    assert collect(QUICK, installation, instance).success
    done = collect(AGAIN, installation, instance, key=KEY)
    assert materialized(done) == list(names.STAGES)
    (read,) = metadata_of(done, "frontier")["inputs"].records
    assert (read.data["input"], read.data["rows"]) == ("books", 60)


CIRCLE = """
    from collector_assets.contract import FromSource, replace
    from collector_assets.sources.shop import SHOP

    SOURCE = replace(SHOP, name="{name}", start=lambda window, inputs: (), inputs={{"rows": FromSource("{other}")}})
"""


def test_a_circle_of_sources_breaks_one_of_them_and_not_the_code_location(tmp_path: Path) -> None:
    files = {name: CIRCLE.format(name=name, other=other) for name, other in (("a", "b"), ("b", "c"), ("c", "a"))}
    built = build(settings_of(tmp_path, **files))
    dg.Definitions.validate_loadable(built.defs)
    [broken] = built.registry.broken
    assert "inputs: a circle, each starts from the next: c -> a -> b -> c" in str(broken)
