"""From a failure on the demo site to one message at a real receiver, through runs, event log, table and channel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from collector_assets import channels, stack
from collector_assets.channels import Routes
from collector_assets.contract import Budget, Source, replace, seconds
from collector_assets.demo import DemoSite
from collector_assets.errors import ConfigurationError, ContractError
from collector_assets.graph import alerts, freshness
from collector_assets.graph.factory import build_source
from collector_assets.graph.resources import Installation
from collector_assets.registry import Broken
from collector_assets.sources.shop import SHOP
from collector_tests.fixtures.dagster_dev import Dev
from collector_tests.fixtures.receivers import Hook, Postbox
from collector_tests.graph.conftest import made

KEY = "2026-02-03"
QUICK = replace(SHOP, budget=Budget(gap=seconds(0), slots=8), owners=("team:prices",))
BROKEN = Broken(file="sources/bad.py", error=ContractError("entity", "is missing", file="sources/bad.py"))


@pytest.fixture
def stores(dsn: str, site: DemoSite, tmp_path: Path) -> Iterator[Installation]:
    installation = made(dsn, tmp_path / "archive", site.address)
    yield installation
    installation.close()


@pytest.fixture
def recorded(fresh_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """On Postgres, as in `dagster.yaml`: an event log in many files has no cursor."""
    monkeypatch.setattr(alerts, "SETTLED_S", 0.0)  # nobody else writes to this log
    storage = {"postgres": {"postgres_url": stack._sqlalchemy(fresh_dsn)}}
    with dg.instance_for_test(overrides={"storage": storage}) as instance:
        yield instance


@pytest.fixture
def routes(hook: Hook, postbox: Postbox, monkeypatch: pytest.MonkeyPatch) -> Routes:
    """The owner's to the webhook, the rest by mail."""
    monkeypatch.setenv("HOOK_URL", hook.url)
    letters = {
        "kind": "email",
        "host": "127.0.0.1",
        "port": postbox.port,
        "security": "none",
        "sender": "c@example.org",
    }
    return channels.parse({
        "default": ["mail"], "owners": {"team:prices": ["hook"]},
        "channels": {"hook": {"kind": "webhook", "url_env": "HOOK_URL"}, "mail": {**letters, "to": ["d@example.org"]}},
    })  # fmt: skip


class Watch:
    """The sensor, turned on before anything happened; each tick gets the cursor of the one before."""

    def __init__(
        self,
        stores: Installation,
        instance: dg.DagsterInstance,
        routes: Routes,
        broken: Sequence[Broken] = (),
        ui: str = "",
    ) -> None:
        self.instance, self.cursor = instance, None
        self.routes: Callable[[], Routes] = lambda: routes
        self.definition = alerts.sensor([QUICK], broken, stores, self._routes, ui)
        self.tick()

    def _routes(self) -> Routes:
        return self.routes()

    def tick(self) -> Any:
        context = dg.build_sensor_context(instance=self.instance, cursor=self.cursor)
        found = self.definition.evaluate_tick(context)
        self.cursor = found.cursor
        return found


def collect(
    stores: Installation, instance: dg.DagsterInstance, source: Source = QUICK, key: str = KEY
) -> dg.ExecuteInProcessResult:
    job = dg.Definitions.merge(build_source(source, stores)).resolve_job_def(f"collect_{source.name}")
    return job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)


def test_a_redesign_is_one_alert_with_the_failed_checks_and_reasons(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, site: DemoSite, hook: Hook, postbox: Postbox
) -> None:
    """The layout changes: `latest` is not touched, and the owner hears of it once, however many windows fail."""
    # Mutation: one note per check in alerts._of_checks; TOLD_ELSEWHERE empty
    watch = Watch(stores, recorded, routes)
    site.switch(redesign=1)
    for key in (KEY, "2026-02-04"):
        assert not collect(stores, recorded, key=key).success
        watch.tick()
        watch.tick()
    (post,) = hook.posts
    value = post.value
    assert (value["source"], value["cause"]) == ("shop", "records: checks failed")
    assert "record_count_expected" in value["title"]
    assert KEY in value["title"]
    assert "0 records" in value["body"]
    assert postbox.letters == []


def test_a_run_that_fails_is_one_alert_that_names_stage_error_and_run(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, hook: Hook
) -> None:
    watch = Watch(stores, recorded, routes)
    first, *_ = [(collect(stores, recorded, replace(QUICK, late="refuse")), watch.tick()) for _ in range(3)]
    (post,) = hook.posts
    assert post.value["cause"] == "run failed: frontier: LateRefused"
    assert post.value["title"] == f"shop: run of {KEY} failed in frontier"
    assert "the window closed at 2026-02-04 01:00 UTC" in post.value["body"]
    assert f"Run {first[0].run_id}" in post.value["body"]


def test_a_message_ends_with_the_page_on_which_to_look(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, site: DemoSite, hook: Hook, postbox: Postbox
) -> None:
    """Of the run, of the stage's checks, of the code locations; however long the message is, the address is whole."""
    # Mutation: Note.with_page appends the line without cutting the body
    long = Broken(file="sources/bad.py", error=ContractError("entity", "is wrong " * 400, file="sources/bad.py"))
    watch = Watch(stores, recorded, routes, [long], ui="https://dagster.example.org/")
    late = collect(stores, recorded, replace(QUICK, late="refuse"))
    site.switch(redesign=1)
    collect(stores, recorded)
    watch.tick()
    (letter,) = postbox.letters
    pages = [text.rstrip().splitlines()[-1] for text in (letter.get_content(), *(p.value["body"] for p in hook.posts))]
    assert set(pages) == {
        "https://dagster.example.org/locations",
        f"https://dagster.example.org/runs/{late.run_id}",
        "https://dagster.example.org/assets/shop/records?view=checks",
    }


def test_a_window_that_is_well_alerts_nobody(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, hook: Hook, postbox: Postbox
) -> None:
    """What only warns is for the report card."""
    # Mutation: drop the severity in alerts._is_failed
    watch = Watch(stores, recorded, routes)
    assert collect(stores, recorded).success
    watch.tick()
    assert hook.posts == []
    assert postbox.letters == []


def test_a_source_that_is_not_fresh_alerts_with_its_cause(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, hook: Hook
) -> None:
    watch = Watch(stores, recorded, routes)
    collect(stores, recorded)  # of February: as old as it is
    built = build_source(QUICK, stores)
    sensor = freshness.sensor([QUICK], stores, list(built.jobs or ()))
    found = sensor.evaluate_tick(dg.build_sensor_context(instance=recorded))
    for event in found.asset_events:
        recorded.report_runless_asset_event(event)  # as the daemon does
    watch.tick()
    (post,) = hook.posts
    assert post.value["cause"] == "not fresh: schedule_off"
    assert "What to do: turn on shop_windows" in post.value["body"]


def test_a_broken_source_file_alerts_once(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, postbox: Postbox
) -> None:
    # Mutation: repeats=True
    watch = Watch(stores, recorded, routes, [BROKEN])
    for _ in range(5):
        watch.tick()
    (letter,) = postbox.letters
    assert letter["Subject"] == "source file left out: sources/bad.py"
    assert "entity: is missing" in letter.get_content()
    other = Broken(file=BROKEN.file, error=ContractError("entity", "is a number", file=BROKEN.file))
    Watch(stores, recorded, routes, [other])
    assert len(postbox.letters) == 2


def test_what_was_there_before_the_sensor_is_no_news(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, hook: Hook
) -> None:
    # Mutation: start at 0
    collect(stores, recorded, replace(QUICK, late="refuse"))
    watch = Watch(stores, recorded, routes)
    watch.tick()
    assert hook.posts == []


def test_nothing_is_lost_while_the_file_of_channels_is_wrong(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, hook: Hook
) -> None:
    # Mutation: read the event log before the routes, and move the cursor
    watch = Watch(stores, recorded, routes)
    collect(stores, recorded, replace(QUICK, late="refuse"))

    def wrong() -> Routes:
        raise ConfigurationError("COLLECTOR_ALERTS", "wrong", "Correct it")

    watch.routes = wrong
    with pytest.raises(ConfigurationError):
        watch.tick()
    watch.routes = lambda: routes
    watch.tick()
    assert len(hook.posts) == 1


def test_a_receiver_that_was_down_gets_it_later(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, hook: Hook
) -> None:
    watch = Watch(stores, recorded, routes)
    hook.status = 500
    collect(stores, recorded, replace(QUICK, late="refuse"))
    assert "0 messages sent, 1 to be tried again" in watch.tick().skip_message
    hook.status = 200
    with stores.database.transaction() as connection:
        connection.execute("UPDATE alerts SET not_before = NULL")
    assert "1 messages sent" in watch.tick().skip_message
    assert len(hook.posts) == 2


def test_a_log_that_was_made_anew_is_read_from_its_start(
    stores: Installation, recorded: dg.DagsterInstance, routes: Routes, hook: Hook
) -> None:
    # Mutation: _reset returns the cursor it was given
    watch = Watch(stores, recorded, routes)
    watch.cursor = json.dumps({"runs": 10**9, "checks": 10**9})
    collect(stores, recorded, replace(QUICK, late="refuse"))
    watch.tick()
    assert len(hook.posts) == 1


def test_the_daemon_tells_the_check_and_runs_the_sensors(dagster_dev: Dev) -> None:
    """A whole Dagster: the three sensors run from the start, and `fresh` of every source has a cause in the UI."""

    def told() -> list[dict[str, Any]] | None:
        found = dagster_dev.ask(
            '{ assetNodeOrError(assetKey: {path: ["lab", "latest"]}) { ... on AssetNode { assetChecksOrError {'
            " ... on AssetChecks { checks { name executionForLatestMaterialization { status evaluation {"
            " severity description metadataEntries { label ... on TextMetadataEntry { text } } } } } } } } } }"
        )["assetNodeOrError"]["assetChecksOrError"]["checks"]
        (fresh,) = [check for check in found if check["name"] == "fresh"]
        execution = fresh["executionForLatestMaterialization"]
        return execution["evaluation"]["metadataEntries"] if execution and execution["evaluation"] else None

    entries = dagster_dev.until(told, 150)
    said = {entry["label"]: entry.get("text") for entry in entries}
    assert said["cause"] in {"never_collected", "schedule_off", "not_published", "failed_check", "backlog"}
    assert said["what to do"]

    def ticks() -> dict[str, str] | None:
        found = dagster_dev.ask(
            '{ sensorsOrError(repositorySelector: {repositoryLocationName: "collector",'
            ' repositoryName: "__repository__"}) { ... on Sensors { results { name sensorState { status'
            " ticks(limit: 1, statuses: [SKIPPED, SUCCESS, FAILURE]) { status error { message } } } } } } }"
        )["sensorsOrError"]["results"]
        last = {each["name"]: each["sensorState"]["ticks"] for each in found}
        return {name: each[0]["status"] for name, each in last.items()} if all(last.values()) else None

    states = dagster_dev.until(ticks, 60)
    assert set(states) >= {"freshness", "resume", "alerts"}
    assert "FAILURE" not in states.values()


def test_the_commands_show_and_quiet(dsn: str, tmp_path: Path, hook: Hook) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text('[channels.hook]\nkind = "webhook"\nurl_env = "HOOK_URL"\n')
    environment = {
        **os.environ, "COLLECTOR_DSN": dsn, "COLLECTOR_STATE": str(tmp_path / "state"), "COLLECTOR_ALERTS": str(file),
        "HOOK_URL": hook.url,
    }  # fmt: skip

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "collector_assets.cli", *words]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert command("alerts", "--test").returncode == 0
    assert [post.value["cause"] for post in hook.posts] == ["test"]
    done = command("mute", "shop", "--until", "2099-01-01", "--reason", "rebuilt", "--pause", "--by", "ann")
    assert done.returncode == 0, done.stderr
    listed = json.loads(command("alerts", "--json").stdout)
    (mute,) = listed["mutes"]
    assert (mute["source"], mute["pauses"], mute["reason"], mute["by_whom"]) == ("shop", True, "rebuilt", "ann")
    assert "is paused until 2099-01-01 00:00 UTC by ann: rebuilt" in command("alerts").stdout.replace("\n", " ")
    assert "heard again" in command("unmute", "shop").stdout
    assert json.loads(command("alerts", "--json").stdout)["mutes"] == []
    assert command("mute", "shop", "--until", "yesterday", "--reason", "x").returncode == 2
    assert command("mute", "shop", "--until", "2001-01-01", "--reason", "x").returncode == 2
    assert command("mute", "nobody", "--until", "2099-01-01", "--reason", "x").returncode == 2
    for words in (["freshness"], ["status"]):
        assert "nothing was judged yet" in command(*words).stdout
