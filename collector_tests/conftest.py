"""Fixtures for every test; each lives in its own file under `fixtures/`."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

pytest_plugins = [
    "collector_tests.fixtures.postgres",
    "collector_tests.fixtures.receivers",
    "collector_tests.fixtures.scheduling",
    "collector_tests.fixtures.services",
    "collector_tests.fixtures.site",
    "collector_tests.fixtures.script_site",
    "collector_tests.fixtures.dagster_dev",
    "collector_tests.fixtures.object_store",
    "collector_tests.fixtures.stored",
    "collector_tests.fixtures.stranger",
    "collector_tests.fixtures.workers",
]

# Two busy cores make any deadline a lie. The merge gate repeats its examples; a developer looks for new ones.
settings.register_profile("collector", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("collector")

# Whole programs, clocks and a browser on a machine that others use too: one that fails gets a second try, and the
# summary says so ("rerun"). Everything else has to hold at once.
_PROGRAMS = frozenset({"end_to_end", "ui"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _PROGRAMS.intersection(item.path.parts):
            item.add_marker(pytest.mark.flaky(reruns=1))
