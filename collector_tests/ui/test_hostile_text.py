"""What a site puts on its pages is text in the UI and on the terminal, whatever it says.

`walk` adds what must hold beside each test: no dialog opens, no script breaks, nothing leaves the machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest
from playwright.sync_api import expect

from collector_assets.demo import DemoSite
from collector_assets.graph import checks
from collector_assets.graph.metadata import MOST_CELL
from collector_assets.storable import clean_text
from collector_tests.fixtures.dagster_dev import LOCATION, REPOSITORY, Dev
from collector_tests.ui.sources.hostile import HOST, KEYS, PER_WINDOW, SOURCE, STRINGS, TITLED, strings_of
from collector_tests.ui.walk import ASSET, Walk, as_read

BOOKS = 30
FOREIGN = (
    'iframe, object, embed, base, plaintext, [href^="javascript:" i], [src*="evil.example"], [href*="evil.example"]'
)
EXAMPLES = 5
"""A table in the UI has room for that many rows at least."""


@pytest.fixture(scope="module", autouse=True)
def collected(dagster_dev: Dev, running_site: DemoSite) -> None:
    """Three windows of twenty strings each."""
    running_site.reset()
    running_site.switch(host=HOST, books=BOOKS, per_page=BOOKS)
    assert len(STRINGS) == 60
    backfill = dagster_dev.backfill("collect_hostile", KEYS)
    assert dagster_dev.backfill_ended(backfill, within_s=400) == "COMPLETED_SUCCESS"


def seen(text: str) -> str:
    """As a browser's layout lets it be read: one blank for every run of white space."""
    return " ".join(text.split())


def missing(walk: Walk, strings: Iterable[str], most: int = MOST_CELL - 1) -> list[str]:
    """The strings that cannot be read on the page, up to where they are cut."""
    words = seen(walk.words())
    return [text for text in strings if seen(clean_text(text)[:most]) not in words]


def holds_nothing_foreign(walk: Walk) -> bool:
    """No element and no variable that the UI did not make itself."""
    found = walk.page.locator(FOREIGN).evaluate_all("elements => elements.map(element => element.outerHTML)")
    return found == [] and walk.page.evaluate("typeof window.canary") == "undefined"


def launched(dev: Dev, job: str, config: dict[str, Any]) -> str:
    """The button of a launchpad; the run's id."""
    found = dev.ask(
        "mutation($wish: ExecutionParams!) { launchPipelineExecution(executionParams: $wish) { __typename"
        " ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }",
        wish={
            "selector": {**LOCATION, "pipelineName": job}, "mode": "default",
            "runConfigData": {"ops": {job: {"config": config}}},
        },
    )["launchPipelineExecution"]  # fmt: skip
    assert found["__typename"] == "LaunchRunSuccess", found
    return found["run"]["runId"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("stage", ["records", "latest"])
@pytest.mark.parametrize("key", KEYS)
def test_titles_are_text_in_a_preview(walk: Walk, stage: str, key: str) -> None:
    page = walk.open(f"{ASSET.format('hostile', stage, 'partitions')}&partition={key}")
    for number in range(1, TITLED + 1):
        expect(page.get_by_role("cell", name=f"book {number:02}", exact=True)).to_be_visible()
    assert missing(walk, strings_of(key)) == []
    assert holds_nothing_foreign(walk)


@pytest.mark.timeout(300)
def test_links_are_text_beside_the_frontier(walk: Walk) -> None:
    """Why a link was not followed, with an example; the start URL is shown as Markdown."""
    page = walk.open(f"{ASSET.format('hostile', 'frontier', 'partitions')}&partition={KEYS[1]}")
    expect(page.get_by_role("cell", name="not_a_web_address", exact=True).first).to_be_visible()
    expect(page.get_by_role("cell", name="javascript:alert(document.domain)", exact=True).first).to_be_visible()
    assert holds_nothing_foreign(walk)

    page = walk.open(ASSET.format("hostile", "frontier", "overview"))
    expect(page.get_by_text("What nobody should put on a page.").first).to_be_visible()
    expect(page.get_by_text(str(SOURCE.start_urls[0])).first).to_be_visible()
    assert holds_nothing_foreign(walk)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", KEYS)
def test_rejected_values_are_text_in_a_check(walk: Walk, key: str) -> None:
    page = walk.open(f"{ASSET.format('hostile', 'records', 'checks')}&checkDetail=schema_holds")
    expect(page.get_by_text(as_read(checks.HOLDS["records"]["schema_holds"]))).to_be_visible()
    page.get_by_role("tab", name="Partitions").last.click()
    walk.choose_partitions(key)
    page.get_by_text(key, exact=True).filter(visible=True).last.click()
    expect(page.get_by_text(re.compile("^book 01-0: ")).first).to_be_visible()
    assert missing(walk, strings_of(key)[:EXAMPLES], most=60) == []
    assert holds_nothing_foreign(walk)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("job", "more"),
    [
        pytest.param("requests", {"outcomes": ["extraction_failed"]}, id="what extract() raised"),
        pytest.param("rejects", {}, id="what the schema refused"),
    ],
)
def test_reasons_are_text_on_the_page_of_a_run(
    walk: Walk, dagster_dev: Dev, job: str, more: dict[str, Any], key: str
) -> None:
    run = launched(dagster_dev, job, {"source": "hostile", "window": key} | more)
    assert dagster_dev.ended(run)["status"] == "SUCCESS"
    page = walk.open(f"/runs/{run}")
    expect(page.get_by_text("STEP_OUTPUT").first).to_be_visible()
    assert missing(walk, strings_of(key)[:EXAMPLES], most=60) == []
    assert holds_nothing_foreign(walk)


@pytest.mark.timeout(300)
def test_urls_are_text_on_the_page_of_a_run(walk: Walk, dagster_dev: Dev) -> None:
    run = launched(dagster_dev, "requests", {"source": "hostile", "window": KEYS[1], "url_has": "/missing/"})
    assert dagster_dev.ended(run)["status"] == "SUCCESS"
    page = walk.open(f"/runs/{run}")
    expect(page.get_by_text(f"http://{HOST}:8765/missing/[click](javascript:alert(1))").first).to_be_visible()
    assert holds_nothing_foreign(walk)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", KEYS)
def test_what_a_person_types_is_text_in_errors_and_tags(walk: Walk, dagster_dev: Dev, key: str) -> None:
    """The message of a failed run, and a tag of it, with all twenty strings."""
    typed = " ".join(seen(clean_text(text)[:40]) for text in strings_of(key))
    run = launched(dagster_dev, "report", {"source": "hostile", "window": typed})
    assert dagster_dev.ended(run)["status"] == "FAILURE"
    page = walk.open(f"/runs/{run}")
    expect(page.get_by_text("RUN_FAILURE").first).to_be_visible()
    said = f"no window {typed!r}: it was never opened; materialize its `frontier` first"
    assert seen(said) in seen(walk.words())
    page.get_by_role("button", name="View tags and config").click()
    expect(page.get_by_role("dialog").get_by_text("collector/window").first).to_be_visible()
    assert holds_nothing_foreign(walk)
    page = walk.open(f"/runs?q[0]=id%3A{run}")
    expect(page.get_by_text(run[:8]).first).to_be_visible()
    assert holds_nothing_foreign(walk)


@pytest.mark.parametrize("key", KEYS)
def test_the_terminal_shows_what_was_rejected_and_obeys_none_of_it(dagster_dev: Dev, key: str) -> None:
    # Mutation: show.table without _plain
    done = subprocess.run(
        [sys.executable, "-m", "collector_assets.cli", "rejects", "hostile", key, "--limit", "100"],
        env={**os.environ, **dagster_dev.environment}, cwd=REPOSITORY,
        capture_output=True, encoding="utf-8", timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{PER_WINDOW} of {PER_WINDOW} records" in done.stdout
    assert {character for character in done.stdout if not character.isprintable()} == {"\n"}
