"""The owner's tools as Dagster jobs: typed config, safe defaults, and a page that says what was done."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from collector_assets import origins
from collector_assets.contract import Expect, Retention, days, replace
from collector_assets.definitions import build
from collector_assets.demo import DemoSite
from collector_assets.demo.catalogue import book
from collector_assets.graph import alerts, names, owner_jobs
from collector_assets.graph.resources import Installation
from collector_assets.registry import Loaded, Registry
from collector_assets.settings import load_settings
from collector_tests.graph.test_materialize import (
    KEY,
    QUICK,
    checks_of,
    collect,
    materialized,
    metadata_of,
    price_is_missing,
)

WHY = {"reason": "the publisher corrected it"}
CHANGED = next(n for n in range(1, 61) if book(n, seed="demo", edition=2).changed_in == 2)
VERBS = ("report", "requests", "rejects", "replay", "recollect", "resume_origin", "retain")
FOUND = Registry(loaded=(Loaded(source=QUICK, file="shop.py", locator=""),), broken=())


def launch(installation: Installation, instance: dg.DagsterInstance, verb: str, **config: Any) -> Any:
    """Launch a verb's job on the shop's window, as its launchpad would; failures are results."""
    jobs = {job.name: job for job in owner_jobs.build(FOUND, installation)}
    wanted = {"source": QUICK.name, "window": KEY} | config
    return jobs[verb].execute_in_process(
        run_config={"ops": {verb: {"config": wanted}}}, instance=instance, raise_on_error=False
    )


def page_of(result: Any) -> dict[str, Any]:
    """What the run's page shows, tables as lists of rows."""
    (event,) = [event for event in result.all_events if event.event_type_value == "STEP_OUTPUT"]
    values = event.step_output_data.metadata
    return {
        name: [dict(row.data) for row in each.records] if isinstance(each, dg.TableMetadataValue) else each.value
        for name, each in values.items()
    }


def failure_of(result: Any) -> str:
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data.user_failure_data.description


def count(installation: Installation, query: bytes) -> int:
    with installation.database.transaction() as connection:
        row: Any = connection.execute(query).fetchone()
    return row[0]


def test_after_a_replay_the_partition_of_raw_pages_sends_exactly_the_chosen_requests(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    """Rule 15: by the site's log; records and latest follow."""
    source = replace(QUICK, expect=Expect(min_records=50))
    site.misbehave("status", prefix="/catalogue/", arg="404", every=20)
    collect(source, installation, instance)
    site.behave()
    listed = page_of(launch(installation, instance, "requests", states=["failed(fetch)"]))
    assert listed["total"] == 3
    chosen, sent = listed["requests"][0], len(site.arrivals())

    done = page_of(launch(installation, instance, "replay", ids=[chosen["id"]], dry_run=False, **WHY))
    assert (done["requests"], done["partition"]) == (1, KEY)
    assert done["materialize"] == names.asset_key("shop", "raw_pages")
    assert len(site.arrivals()) == sent, "the job itself sends nothing"
    result = collect(source, installation, instance, "raw_pages", "records", "latest")
    assert materialized(result) == ["raw_pages", "records", "latest"]
    assert [arrival.path for arrival in site.arrivals()[sent:]] == [chosen["url"].partition(":8765")[2]]
    assert metadata_of(result, "records")["records"] == 58


def test_a_corrected_page_reaches_latest_by_clicking(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    """Rule 17."""
    collect(QUICK, installation, instance)
    site.switch(edition=2)
    sent = len(site.arrivals())
    upc = book(CHANGED, seed="demo", edition=1).upc
    done = page_of(launch(installation, instance, "recollect", entities=[upc], dry_run=False, **WHY))
    assert done["were"] == [{"where": "done ok", "requests": 1}]
    result = collect(QUICK, installation, instance, "raw_pages", "records", "latest")
    assert Counter(arrival.status for arrival in site.arrivals()[sent:]) == {200: 1}
    assert metadata_of(result, "latest")["updated"] == 1
    assert checks_of(result)["latest", "latest_agrees"].passed


def test_without_a_decision_nothing_is_changed(installation: Installation, instance: dg.DagsterInstance) -> None:
    # Mutation: dry_run defaults to False in owner_jobs.Again
    collect(QUICK, installation, instance)
    result = launch(installation, instance, "recollect", everything=True, **WHY)
    assert page_of(result)["requests"] == 63
    assert "dry run" in page_of(result)["next_step"]
    assert count(installation, b"SELECT count(*) FROM interventions") == 0
    assert count(installation, b"SELECT count(*) FROM requests WHERE state <> 'done'") == 0


def test_the_run_says_which_source_and_who_it_was(installation: Installation, instance: dg.DagsterInstance) -> None:
    collect(QUICK, installation, instance)
    result = launch(installation, instance, "recollect", kinds=["listing"], dry_run=False, by="ada", **WHY)
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags[names.SOURCE_TAG] == "shop"
    assert run.tags[owner_jobs.WINDOW_TAG] == KEY
    # Mutation: names.PARTITION_TAG for WINDOW_TAG -> the schedule counts it as a run that collects the window
    assert names.PARTITION_TAG not in run.tags
    (kept,) = page_of(launch(installation, instance, "report"))["interventions"]
    assert (kept["verb"], kept["requests"], kept["reason"]) == ("recollect", 3, WHY["reason"])
    assert kept["by_whom"] == f"ada, run {result.run_id}"


def test_a_halted_origin_is_resumed_with_a_reason(installation: Installation, instance: dg.DagsterInstance) -> None:
    origin = "http://shop.localhost:8765"
    with installation.database.transaction() as connection:
        origins.locked(connection, {origin: "shop.localhost"})
        origins.halt(connection, origin, source="shop", reason="refused: 403, 3 in a row")
    wanted = {"ops": {"resume_origin": {"config": {"origin": origin, "reason": "they gave us a key", "by": "ada"}}}}
    (job,) = [job for job in owner_jobs.build(FOUND, installation) if job.name == "resume_origin"]
    result = job.execute_in_process(run_config=wanted, instance=instance, raise_on_error=False)
    assert "may be asked again" in page_of(result)["summary"]
    assert count(installation, b"SELECT count(*) FROM origins WHERE resumed_by LIKE 'ada, run %'") == 1
    again = job.execute_in_process(run_config=wanted, instance=instance, raise_on_error=False)
    assert "is not halted" in failure_of(again)


def test_the_report_is_a_card(installation: Installation, instance: dg.DagsterInstance) -> None:
    collect(QUICK, installation, instance)
    card = page_of(launch(installation, instance, "report", window=""))
    assert card["window"] == KEY
    assert {row["check"]: row["passed"] for row in card["verdict"]}["schema_holds"] is True
    assert (card["rejects"], card["unread_pages"], card["latest_entities"]) == (0, 0, 60)
    assert card["freshness_h"] == 26
    assert "fetched after the window closed" in card["summary"]


def test_rejects_show_every_failure_case(installation: Installation, instance: dg.DagsterInstance) -> None:
    collect(replace(QUICK, extract=price_is_missing), installation, instance)
    shown = page_of(launch(installation, instance, "rejects", limit=2))
    assert shown["total"] == 60
    assert {"price", "title"} <= {case["column"] for case in shown["failure_cases"]}


@pytest.mark.parametrize(
    ("verb", "config", "said"),
    [
        ("replay", {"outcomes": ["timeout"], "reason": " "}, "say why"),
        ("replay", WHY, "nothing is selected"),
        ("recollect", {"source": "shopp", **WHY}, "no source is called 'shopp'; known: shop"),
        ("recollect", {"window": "2026-02-09", "everything": True, **WHY}, "never opened"),
        ("requests", {"limit": 0}, "limit 0"),
        ("requests", {"kinds": ["book"]}, "no kind is called 'book'"),
    ],
)
def test_what_a_person_must_change_is_one_line_and_no_second_attempt(
    installation: Installation, instance: dg.DagsterInstance, verb: str, config: dict[str, Any], said: str
) -> None:
    # Mutation: _Desk.serving without the except
    collect(QUICK, installation, instance, "frontier")
    result = launch(installation, instance, verb, **config)
    assert not result.success
    assert said in failure_of(result)
    assert "\n" not in failure_of(result)


def test_a_refused_wish_alerts_nobody(installation: Installation, instance: dg.DagsterInstance) -> None:
    """Whoever launched it is looking at its page."""
    # Mutation: _job without the tag
    refused = launch(installation, instance, "replay", ids=[1], **WHY)
    failed = collect(QUICK, installation, instance, "latest")
    assert not refused.success
    assert not failed.success
    told = [alerts._of_run(instance, record) for record in alerts._run_failures(instance, 0)]
    assert [note is None for note in told] == [True, False]


@pytest.mark.parametrize("missing", ["source", "window", "reason"])
def test_the_launchpad_asks_for_what_must_be_said(
    installation: Installation, instance: dg.DagsterInstance, missing: str
) -> None:
    config = {"source": "shop", "window": KEY, **WHY}
    del config[missing]
    (job,) = [job for job in owner_jobs.build(FOUND, installation) if job.name == "replay"]
    with pytest.raises(dg.DagsterInvalidConfigError, match=f'Missing required config entry "{missing}"'):
        job.execute_in_process(run_config={"ops": {"replay": {"config": config}}}, instance=instance)


def test_the_deployment_has_one_job_per_verb_in_no_pool(tmp_path: Path) -> None:
    built = build(load_settings(state=tmp_path))
    jobs = built.defs.get_repository_def().get_all_jobs()
    mine = [job for job in jobs if job.name in VERBS]
    assert sorted(job.name for job in mine) == sorted(VERBS)
    assert not any(op.pool for job in mine for op in job.graph.iterate_op_defs())
    assert all(job.description for job in mine)


def test_the_job_retain_counts_until_it_is_told_to_discard(
    installation: Installation, instance: dg.DagsterInstance
) -> None:
    """A dry run by default; the run's page has a line per source."""
    old = replace(QUICK, retention=Retention(raw_pages=days(30)))
    collect(old, installation, instance)
    found = Registry(loaded=(Loaded(source=old, file="shop.py", locator=""),), broken=())
    with installation.database.transaction() as connection:
        # The window of this test has not ended; its pages were fetched just now.
        connection.execute(
            b"UPDATE windows SET window_start = window_start, window_end = window_start + interval '1 s'"
        )
        connection.execute(b"UPDATE pages SET fetched_at = fetched_at - interval '40 days'")
    (job,) = [job for job in owner_jobs.build(found, installation) if job.name == "retain"]
    for dry_run in ({}, {"dry_run": False}):
        config = {"ops": {"retain": {"config": dry_run}}} if dry_run else {}
        page = page_of(job.execute_in_process(run_config=config, instance=instance))
        assert page["retained"][0]["pages"] == 63
        assert count(installation, b"SELECT count(*) FROM pages") == (0 if dry_run else 63)
