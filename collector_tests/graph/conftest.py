"""An installation on the test database and the running demo site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from collector_assets.demo import DemoSite
from collector_assets.graph import assets
from collector_assets.graph.resources import Installation


def made(dsn: str, folder: Path, demo_site: str = "127.0.0.1:9") -> Installation:
    return Installation(
        dsn=lambda: dsn,
        archive=str(folder),
        user_agent="collector-tests/0 (demo)",
        demo_site=demo_site,
        require_contact=lambda _: None,
    )


@pytest.fixture
def installation(dsn: str, site: DemoSite, tmp_path: Path) -> Iterator[Installation]:
    installation = made(dsn, tmp_path / "archive", site.address)
    yield installation
    installation.close()


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """In memory: a tenth of the time that one in files takes."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits between a step's attempts are Dagster's; the tests need not sit through them."""
    monkeypatch.setattr(assets, "STEP_RETRY", dg.RetryPolicy(max_retries=3, delay=0.01))
