"""Parts of the sources: code locations that have some of them, and runs that build their own alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._grpc.impl import core_execute_run

from collector_assets.definitions import build, part
from collector_assets.graph import run_worker
from collector_assets.settings import load_settings
from collector_tests.graph.test_definitions import GOOD, IMPOSSIBLE, settings_of

WORKSPACE = """
load_from:
  - python_file: {relative_path: shops.py, location_name: shops}
  - python_file: {relative_path: rest.py, location_name: rest}
"""
LOCATION = """
from collector_assets.definitions import part

defs = part("{pattern}")
"""
REFUSED = "Dagster refuses it"


def sources_in(defs: dg.Definitions) -> set[str]:
    return {key.path[0] for key in defs.resolve_asset_graph().get_all_asset_keys()}


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two good sources, one that Dagster refuses; found by the settings."""
    settings_of(tmp_path, good=GOOD.format(name="good"), better=GOOD.format(name="better"), never=IMPOSSIBLE)
    monkeypatch.setenv("COLLECTOR_SOURCES", str(tmp_path))
    monkeypatch.setenv("COLLECTOR_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLLECTOR_DEMO_SOURCES", "false")
    return tmp_path


def test_a_part_and_the_rest_are_all(three: Path) -> None:
    """Broken ones too, by the name of their source or of their file."""
    # Mutation: in Registry.only leave the broken ones out
    (three / "bad.py").write_text("SOURCE = 1 / 0")
    some, rest, everything = (sources_in(defs) for defs in (part("b*"), part("!b*"), part()))
    assert some == {"better", "books", "broken_sources"}
    assert rest == {"good", "broken_sources"}
    assert some | rest == everything
    broken = {
        key.path[-1] for defs in (part("b*"), part("!b*")) for key in defs.resolve_asset_graph().get_all_asset_keys()
        if key.path[0] == "broken_sources"
    }  # fmt: skip
    assert broken == {"bad", "never"}


def test_the_setting_names_the_sources_of_a_code_location(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Mutation: in definitions.build ignore settings.only_names
    monkeypatch.setenv("COLLECTOR_ONLY", "good, be*,!books")
    settings = load_settings()
    assert sources_in(build(settings).defs) == {"good", "better"}
    assert sources_in(build(settings, only=("books",)).defs) == {"books"}


def test_sources_of_different_parts_still_have_to_agree(three: Path) -> None:
    """Rule 7: all sources of a domain say domain or host, whichever location has them."""
    # Mutation: in definitions._build load only the files that are meant
    quarrel = GOOD.format(name="quarrel").replace(
        'name="quarrel"', 'name="quarrel", budget=replace(SHOP.budget, per="host")'
    )
    settings = settings_of(three, quarrel=quarrel)
    built = build(settings, only=("quarrel",))
    assert built.registry.loaded == ()
    assert "must agree" in str(built.registry.broken[0])


def run_of(instance: dg.DagsterInstance, **what: object) -> dg.DagsterRun:
    """A run as the daemon hands it to a process."""
    job = build(load_settings()).defs.resolve_job_def(str(what.pop("job", "__ASSET_JOB")))
    return instance.create_run_for_job(job, **what)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "what",
    [{"job": "collect_good"}, {"asset_selection": frozenset({dg.AssetKey(["good", "latest"])})}],
    ids=["its job", "an asset"],
)
def test_a_run_builds_its_own_sources_alone(
    three: Path, caplog: pytest.LogCaptureFixture, what: dict[str, object]
) -> None:
    """The process of a run loads the code location anew; a source that nobody asked for costs it nothing."""
    # Mutation: run_worker.sources_of_run returns None
    with dg.instance_for_test() as instance:
        run = run_of(instance, **what)
        assert REFUSED in caplog.text, "all of them were built"
        caplog.clear()
        location = ReconstructableRepository.for_module("collector_assets.definitions", "defs")
        job = location.get_reconstructable_job(run.job_name)
        events = core_execute_run(job, run, instance, inject_env_vars=False)
        assert next(events).event_type is dg.DagsterEventType.PIPELINE_START
        events.close()
        assert REFUSED not in caplog.text
    assert run_worker.sources_of_run() is None, "in any other process"


def test_a_run_that_may_be_about_anything_builds_everything(three: Path) -> None:
    with dg.instance_for_test() as instance:
        config = {"ops": {"report": {"config": {"source": "good"}}}}
        run = run_of(instance, job="report", run_config=config)
    assert run_worker._sources(run) is None


def test_two_code_locations_share_the_sources(three: Path) -> None:
    """`docs/many-sources.md` as it is written, by Dagster's own command."""
    folder = three / "locations"
    folder.mkdir()
    (folder / "workspace.yaml").write_text(WORKSPACE)
    (folder / "shops.py").write_text(LOCATION.format(pattern="b*"))
    (folder / "rest.py").write_text(LOCATION.format(pattern="!b*"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        cwd=folder, env={**os.environ, "DAGSTER_HOME": ""}, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Validation successful for code location shops" in said
    assert "Validation successful for code location rest" in said
