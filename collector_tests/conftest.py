"""Fixtures for every test; each lives in its own file under `fixtures/`."""

from __future__ import annotations

pytest_plugins = ["collector_tests.fixtures.postgres", "collector_tests.fixtures.site"]
