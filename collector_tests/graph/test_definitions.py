"""What Dagster loads: every source that can be, and the others in words."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import dagster as dg
import pytest

from collector_assets.definitions import build
from collector_assets.graph import checks, names
from collector_assets.settings import Settings, load_settings

GOOD = """
    from collector_assets.contract import Daily, replace
    from collector_assets.sources.shop import SHOP

    SOURCE = replace(SHOP, name="{name}")
"""
IMPOSSIBLE = """
    from collector_assets.contract import Cron, replace
    from collector_assets.sources.shop import SHOP

    SOURCE = replace(SHOP, name="never", window=Cron("0 0 30 2 *", start="2026-01-01-00:00"))
"""


def settings_of(folder: Path, **files: str) -> Settings:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    return load_settings(sources=str(folder), state=folder / "state", demo_sources=False)


def test_bundled_sources_load() -> None:
    built = build(load_settings())
    assert built.registry.broken == ()
    dg.Definitions.validate_loadable(built.defs)
    graph = built.defs.resolve_asset_graph()
    for source in built.registry.sources:
        keys = [names.asset_key(source, stage) for stage in names.STAGES]
        assert all(graph.get(key).is_partitioned for key in keys)
        assert [graph.get(key).parent_keys for key in keys] == [set(), *({key} for key in keys[:-1])]


def test_a_source_without_freshness_has_no_check_of_it_and_loads(tmp_path: Path) -> None:
    # Mutation: `stages - …checks(fresh)` in factory.build_source whatever the source says
    timeless = GOOD.replace('name="{name}"', 'name="timeless", freshness=None')
    defs = build(settings_of(tmp_path, timeless=timeless)).defs
    dg.Definitions.validate_loadable(defs)
    keys = defs.resolve_asset_graph().asset_check_keys
    assert "fresh" not in {key.name for key in keys if key.asset_key.path[0] == "timeless"}


def test_every_asset_and_check_of_a_source_has_the_shape_that_the_rules_need() -> None:
    built = build(load_settings())
    graph = built.defs.resolve_asset_graph()
    for stage in names.STAGES:
        node = graph.get(names.asset_key("shop", stage))
        assert node.backfill_policy is None, "range runs lose the partition of checks"
        assert node.pools == ({"shop.localhost"} if stage in names.FETCHING else set())
        assert node.tags["collector/source"] == "shop"
    nodes = [graph.get(key) for key in graph.asset_check_keys if key.asset_key.path[0] == "shop"]
    assert len(nodes) == sum(map(len, checks.HOLDS.values())) + 1, "each, and fresh"
    assert [check.key.name for check in nodes if check.partitions_def is None] == ["fresh"], "of the newest window"
    assert [check.key.name for check in nodes if check.blocking] == ["schema_holds"]
    job = built.defs.resolve_job_def("collect_shop")
    assert (job.tags["collector/source"], job.tags["collector/domain"]) == ("shop", "shop.localhost")
    assert job.executor_def.name == "in_process"
    assert built.defs.resolve_job_def("__ASSET_JOB").executor_def.name == "in_process"


def test_a_broken_file_stands_in_the_asset_list_beside_the_good_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Mutation: build without _broken_assets
    settings = settings_of(tmp_path, good=GOOD.format(name="good"), bad="SOURCE = 1 / 0")
    built = build(settings)
    assert {"books", "good"} <= set(built.registry.sources)
    node = built.defs.resolve_asset_graph().get(dg.AssetKey(["broken_sources", "bad"]))
    assert "ZeroDivisionError" in str(node.metadata["error"])
    assert "division by zero" in (node.description or "")
    assert not node.is_materializable
    assert "source left out" in caplog.text
    dg.Definitions.validate_loadable(built.defs)


def test_a_schedule_that_dagster_refuses_breaks_only_its_source(tmp_path: Path) -> None:
    # Mutation: build_source outside of the try block
    built = build(settings_of(tmp_path, good=GOOD.format(name="good"), never=IMPOSSIBLE))
    assert "good" in built.registry.sources
    assert "never" not in built.registry.sources
    (broken,) = built.registry.broken
    assert str(broken).endswith(
        "Dagster refuses it: Found invalid cron schedule '0 0 30 2 *' for a TimeWindowPartitionsDefinition."
    )
    assert built.defs.resolve_asset_graph().has(dg.AssetKey(["broken_sources", "never"]))


def test_two_broken_files_of_one_name_are_two_assets(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        (folder / "bad.py").write_text("SOURCE = None.x")
    built = build(load_settings(sources=":".join(map(str, folders)), demo_sources=False))
    found = {
        key.path[-1] for key in built.defs.resolve_asset_graph().get_all_asset_keys() if key.path[0] == "broken_sources"
    }
    assert found == {"bad", "bad__2"}


def test_loading_opens_no_database_and_starts_no_server(tmp_path: Path) -> None:
    """A code location must load while Postgres is down, and a look at it must not start one."""
    # Mutation: Installation(dsn=...) called in build
    settings = settings_of(tmp_path)
    built = build(settings)
    built.defs.get_repository_def()
    assert "database" not in vars(built.installation)
    assert not (tmp_path / "state").exists()


LOADED = """
    import json, sys
    from collector_assets.definitions import defs
    built = defs()
    print(json.dumps(sorted(sys.modules)))
"""


def test_loading_imports_nothing_that_only_a_run_needs() -> None:
    """Every run imports the definitions anew."""
    output = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LOADED)], check=True, capture_output=True, text=True, timeout=100
    )
    loaded = set(json.loads(output.stdout))
    assert not loaded & {"playwright", "scrapy", "collector_assets.demo.serve", "collector_assets.embedded"}
    assert not output.stderr
