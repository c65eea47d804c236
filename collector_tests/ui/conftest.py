"""A browser, and a tab per test that has to end without an incident."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from collector_tests.fixtures.dagster_dev import Dev
from collector_tests.ui import walk as walks
from collector_tests.ui.walk import Walk


# For this folder only: while it is open, Playwright's event loop keeps others from running in the same thread.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One headless Chromium; `make ui` installs one where it can."""
    if not walks.has_browser():
        pytest.skip("there is no Chromium: make browser")
    with walks.browser() as browser:
        yield browser


@pytest.fixture
def walk(chromium: Browser, dagster_dev: Dev, tmp_path: Path) -> Iterator[Walk]:
    """A tab on the running Dagster; afterwards nothing has left the machine, no dialog came up, no script broke."""
    with walks.walk(chromium, dagster_dev.url, shots=tmp_path) as walk:
        yield walk
    assert not walk.incidents.any(), walk.incidents
