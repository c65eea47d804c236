"""Sources that are not the demo site's, as people run them: they reach what they may reach, and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from collector_assets import discover, registry
from collector_assets.database import Database
from collector_assets.window import Window
from collector_tests.end_to_end.test_bad_input import collector, one_line
from collector_tests.fixtures.stranger import HOME, Stranger

SOURCE = """
from collections.abc import Iterator
from typing import Any

import pandera.pandas as pa

from collector_assets.contract import Budget, Daily, Page, Source, seconds


def extract(page: Page) -> Iterator[dict[str, Any]]:
    yield {"url": page.url}


SOURCE = Source(
    name="inside",
    start_urls=("%(url)s",),
    extract=extract,
    schema=pa.DataFrameSchema({"url": pa.Column(str)}),
    entity="url",
    extractor_version="1",
    window=Daily(start="2026-11-01"),
    budget=Budget(gap=seconds(0)),
    allow_addresses=%(allowed)r,
)
"""
CONTACT = "data@example.org"
WINDOW = Window(key="2099-01-29", start=datetime(2099, 1, 29, tzinfo=UTC), end=datetime(2099, 1, 30, tzinfo=UTC))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sources").mkdir()
    return tmp_path


def worked(folder: Path, database: Database, url: str, *allowed: str, contact: str = CONTACT) -> Any:
    """How `collector work` on a window of a source with this start ended."""
    file = folder / "sources" / "inside.py"
    file.write_text(SOURCE % {"url": url, "allowed": allowed})
    discover.open_window(registry.load_one(f"{file}::inside"), WINDOW, database)
    return collector(
        folder, "work", "inside", WINDOW.key, "--json", COLLECTOR_DSN=database.dsn, COLLECTOR_CONTACT=contact
    )


def test_a_site_of_ones_own_network_is_collected_when_it_is_named(folder: Path, database: Database, stranger: Stranger):
    """Rule 13: unless the source allows it by name."""
    # Mutation: `AddressPolicy()` in `egress_of`.
    done = worked(folder, database, stranger.page("/prices").replace("site.example", HOME), f"{HOME}/32")

    assert json.loads(done.stdout)["outcomes"] == {"ok": 1}, done.stderr
    assert stranger.requests[-1] == "/prices"


def test_it_is_refused_when_another_is_named(folder: Path, database: Database, stranger: Stranger):
    """Rule 13."""
    done = worked(folder, database, stranger.page("/prices").replace("site.example", HOME), "127.0.0.1/32")

    assert json.loads(done.stdout)["outcomes"] == {"destination_refused": 1}, done.stderr
    assert stranger.requests == []


def test_nobody_is_visited_without_a_contact(folder: Path, database: Database, stranger: Stranger):
    done = worked(folder, database, stranger.page("/").replace("site.example", HOME), f"{HOME}/32", contact="")

    assert done.returncode == 2
    assert "COLLECTOR_CONTACT" in one_line(done)
    assert stranger.requests == []
