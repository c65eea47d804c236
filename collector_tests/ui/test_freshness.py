"""Six sources that are not fresh, each for another reason: the UI names the cause, and says what to do."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from collector_assets import database, mutes
from collector_assets.causes import Cause
from collector_assets.demo import DemoSite
from collector_assets.graph.resume import SENSOR as RESUME
from collector_tests.fixtures.dagster_dev import Dev
from collector_tests.ui.walk import ASSET, Walk

STAGES = ("frontier", "raw_pages", "records", "latest")
BOOKS = 12
TICKS_WITHIN_S = 100
"""The sensor looks each minute; on a busy machine it takes its time."""


def day(days: int = 0) -> str:
    """Today's window, or another's."""
    return f"{datetime.now(UTC) + timedelta(days=days):%Y-%m-%d}"


def host(source: str) -> str:
    """Where its pages are on the demo site."""
    return f"{source.replace('_', '-')}.localhost"


SAID: Mapping[str, tuple[Cause, str]] = {
    "stale_refused": (Cause.HALTED, r"refused us and is halted since .*\(refused: 403 Forbidden; 1 in a row\)"),
    "stale_gone": (Cause.UNREACHABLE, r"1 attempts ended without an answer \(\w+ 1×\); no page came"),
    "stale_redesigned": (Cause.FAILED_CHECK, r"pages_readable: 12 of 12 pages could not be read"),
    "stale_slow": (Cause.BUDGET_TOO_SMALL, r"cannot be done in time: 12 requests × \(14400 s gap \+ .* = 2 d"),
    "stale_waiting": (Cause.BACKLOG, r"12 of 12 requests wait.*; the next is due "),
    "stale_unscheduled": (Cause.SCHEDULE_OFF, r"schedule stale_unscheduled_windows is off"),
}
"""Of each source: the cause, and what the message has to say about it."""


@pytest.fixture(autouse=True)
def nothing_is_resumed(dagster_dev: Dev) -> Iterator[None]:
    """What waits is to wait; afterwards it stays away from what other tests look at."""
    dagster_dev.stop_sensor(RESUME)
    yield
    with database.connect(dagster_dev.dsn) as connection:
        until = datetime.now(UTC) + timedelta(days=1)
        for source in SAID:
            mutes.put(connection, source=source, until=until, pauses=True, reason="its test is over", by_whom="tests")
        connection.commit()
    dagster_dev.start_sensor(RESUME)


@pytest.fixture
def broken(dagster_dev: Dev, site: DemoSite) -> Iterator[DemoSite]:
    """The shops, each with its trouble; what was collected of them is there."""
    for source in SAID:
        site.switch(host=host(source), books=BOOKS)
    site.switch(host=host("stale_redesigned"), books=BOOKS, redesign=1)
    site.misbehave("status", arg="403", prefix="/catalogue/", host=host("stale_refused"))
    site.misbehave("drop", prefix="/catalogue/", host=host("stale_gone"))
    site.misbehave("retry_after", arg="429/3600", prefix="/catalogue/", host=host("stale_waiting"))
    runs = [
        dagster_dev.launch(
            [[source, stage] for stage in (STAGES[:1] if source == "stale_slow" else STAGES)],
            day(-9) if source == "stale_unscheduled" else day(),
        )
        for source in SAID
    ]
    for run in runs:
        dagster_dev.ended(run, within_s=240)
    yield site
    site.behave()


def told(dev: Dev) -> dict[str, str]:
    """The cause that the check `fresh` of each source says now; without those that were not told yet."""
    found: dict[str, str] = {}
    for source in SAID:
        checks = dev.ask(
            "query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {"
            " assetChecksOrError { ... on AssetChecks { checks { name executionForLatestMaterialization { evaluation {"
            " metadataEntries { label ... on TextMetadataEntry { text } } } } } } } } } }",
            key={"path": [source, "latest"]},
        )["assetNodeOrError"]["assetChecksOrError"]["checks"]
        (fresh,) = [check for check in checks if check["name"] == "fresh"]
        evaluation = (fresh["executionForLatestMaterialization"] or {}).get("evaluation") or {}
        for entry in evaluation.get("metadataEntries", ()):
            if entry["label"] == "cause":
                found[source] = entry["text"]
    return found


@pytest.mark.timeout(600)
def test_six_causes_have_six_names_and_each_says_what_to_do(walk: Walk, dagster_dev: Dev, broken: DemoSite) -> None:
    """Rule 19: freshness is about the data; rule 22: where the schedule is off, nothing is asked for."""
    expected = {source: str(cause) for source, (cause, _) in SAID.items()}
    assert len(set(expected.values())) == 6
    with contextlib.suppress(AssertionError):  # the comparison says more
        dagster_dev.until(lambda: told(dagster_dev) == expected, TICKS_WITHIN_S)
    assert told(dagster_dev) == expected
    for source, (cause, words) in SAID.items():
        page = walk.open(f"{ASSET.format(source, 'latest', 'checks')}&checkDetail=fresh")
        expect(page.get_by_text("Failed", exact=True).first).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="cause").filter(has_text=str(cause)).first).to_be_visible()
        expect(page.get_by_text(re.compile(words)).first).to_be_visible()
        row = page.get_by_role("row").filter(has_text="what to do")
        expect(row.first).to_be_visible()
        expect(row.first).to_contain_text(re.compile(r"\w+ \w+ \w+"))
