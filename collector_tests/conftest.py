"""Fixtures for every test; each lives in its own file under `fixtures/`."""

from __future__ import annotations

import os

from hypothesis import settings

pytest_plugins = [
    "collector_tests.fixtures.postgres",
    "collector_tests.fixtures.receivers",
    "collector_tests.fixtures.site",
    "collector_tests.fixtures.dagster_dev",
    "collector_tests.fixtures.stored",
    "collector_tests.fixtures.stranger",
    "collector_tests.fixtures.workers",
]

# Two busy cores make any deadline a lie. The merge gate repeats its examples; a developer looks for new ones.
settings.register_profile("collector", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("collector")
