"""What ends a step at once, and what is tried again."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from collector_assets.contract import Budget, replace, seconds
from collector_assets.demo import DemoSite
from collector_assets.errors import DatabaseUnreachable
from collector_assets.graph.resources import Installation
from collector_assets.settings import load_settings
from collector_assets.status import opened_keys
from collector_tests.graph.conftest import made
from collector_tests.graph.test_materialize import KEY, QUICK, attempts_of, checks_of, collect, failure_of, materialized


def test_a_refusal_is_not_tried_again(installation: Installation, instance: dg.DagsterInstance) -> None:
    """Rule 23: a refusal or a broken contract is for a person to decide."""
    # Mutation: allow_retries=True in assets._final
    result = collect(replace(QUICK, late="refuse"), installation, instance, "frontier")
    assert not result.success
    assert attempts_of(result, "frontier") == 1
    assert failure_of(result, "frontier").startswith(f"shop {KEY}: the window closed at 2026-02-04 01:00 UTC")


def test_a_halt_fails_the_step_once_and_says_what_to_do(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    """Rule 23: nothing is gained by trying again; a person resumes the origin."""
    site.misbehave("status", prefix="/catalogue/", arg="403")
    serial = Budget(gap=seconds(0), slots=1)
    one = replace(QUICK, refusal_limit=1, budget=serial, start_urls=(*QUICK.start_urls, f"{QUICK.start_urls[0]}?again"))
    result = collect(one, installation, instance, "frontier")
    assert attempts_of(result, "frontier") == 1
    assert "`collector resume http://shop.localhost:8765 --reason …`" in failure_of(result, "frontier")
    sent = len(site.arrivals())
    assert "requests wait for http://shop.localhost:8765" in failure_of(
        collect(one, installation, instance, "frontier"), "frontier"
    )
    assert len(site.arrivals()) == sent


def test_late_work_is_refused_also_where_only_the_pages_are_asked_for(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    """Rule 22: late="refuse" forbids it."""
    # Mutation: raw_pages without discover.require_in_time
    collect(QUICK, installation, instance, "frontier")
    sent = len(site.arrivals())
    result = collect(replace(QUICK, late="refuse"), installation, instance, "raw_pages")
    assert attempts_of(result, "raw_pages") == 1
    assert "late=" in failure_of(result, "raw_pages")
    assert len(site.arrivals()) == sent


def test_a_window_that_was_never_opened_says_what_to_do(
    installation: Installation, instance: dg.DagsterInstance
) -> None:
    for stage in ("raw_pages", "records", "latest"):
        result = collect(QUICK, installation, instance, stage)
        assert attempts_of(result, stage) == 1
        assert "materialize its `frontier` first" in failure_of(result, stage)


def test_a_source_on_the_open_web_without_a_contact_sends_nothing(
    dsn: str, tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLLECTOR_CONTACT", raising=False)
    nameless = Installation(
        dsn=lambda: dsn, archive=str(tmp_path), user_agent="x", demo_site="127.0.0.1:9",
        require_contact=load_settings().require_contact,
    )  # fmt: skip
    abroad = replace(QUICK, start_urls=("https://books.example/",))
    result = collect(abroad, nameless, instance, "frontier")
    assert attempts_of(result, "frontier") == 1
    assert failure_of(result, "frontier").startswith("COLLECTOR_CONTACT: source 'shop' is not a demo source")
    assert opened_keys(nameless.database, "shop", [KEY]) == set()
    nameless.close()


def test_a_database_that_comes_back_is_waited_for(
    dsn: str, tmp_path: Path, site: DemoSite, instance: dg.DagsterInstance
) -> None:
    """The step's own policy is for what ends the whole step."""
    # Mutation: no retry_policy in assets._stage
    answers = iter([DatabaseUnreachable("cannot reach it"), DatabaseUnreachable("cannot reach it")])
    installation = made(dsn, tmp_path, site.address)

    def dsn_at_last() -> str:
        for error in answers:
            raise error
        return dsn

    installation._dsn = dsn_at_last
    result = collect(QUICK, installation, instance, "frontier")
    installation.close()
    assert result.success
    assert attempts_of(result, "frontier") == 3


def test_every_op_has_waits_that_grow(installation: Installation) -> None:
    from collector_assets.graph import assets  # noqa: PLC0415

    for asset in assets.build(QUICK, installation):
        assert asset.op.retry_policy is assets.STEP_RETRY


def test_failed_requests_leave_a_complete_looking_window_incomplete(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite
) -> None:
    """Rule 20: materialized with complete = false, and a warning; an error above max_error_rate."""
    # Mutation: _severity always WARN
    site.misbehave("status", prefix="/catalogue/", arg="404", every=30)
    some = checks_of(collect(QUICK, installation, instance))["raw_pages", "window_complete"]
    assert (some.passed, some.severity) == (False, dg.AssetCheckSeverity.WARN)
    site.behave()
    site.misbehave("status", prefix="/catalogue/", arg="404", every=5)
    result = collect(QUICK, installation, instance, key="2026-02-04")
    many = checks_of(result)["raw_pages", "window_complete"]
    assert (many.passed, many.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "raw_pages" in materialized(result)
