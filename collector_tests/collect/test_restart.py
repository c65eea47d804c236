"""Rule 12: Postgres restarts in the middle of a window."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from collector_assets import embedded
from collector_assets.collect import Ending
from collector_assets.contract import Budget, replace, seconds
from collector_assets.database import Database, migrate
from collector_assets.demo import DemoSite
from collector_assets.demo.arrivals import violations
from collector_assets.errors import CollectorError
from collector_tests.collect.conftest import QUICK, Hands

GAP = 0.03
PACED = replace(
    QUICK, budget=Budget(gap=seconds(GAP), slots=1), in_flight=1, lease=seconds(2), total_timeout=seconds(2),
    connect_timeout=seconds(2), read_timeout=seconds(2), max_attempts=10,
)  # fmt: skip


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder that the server's user may reach; pytest's own are private to us."""
    with tempfile.TemporaryDirectory(prefix="collector-test-restart-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder) / "state"


@pytest.fixture
def own_server(state: Path, site: DemoSite, tmp_path: Path) -> Iterator[Hands]:
    """Hands on a Postgres that no other test uses; its address stays the same over a restart."""
    dsn = embedded.start(state).dsn
    try:
        migrate(dsn)
        with Database(dsn, patience_s=20) as database:
            yield Hands(database=database, site=site, folder=tmp_path / "archive")
    finally:
        embedded.stop(state)


def test_restart_in_the_middle_of_a_window_loses_nothing(own_server: Hands, state: Path) -> None:
    """Rule 12: the pass recovers or fails cleanly; the next one, on the same pool, completes the window."""
    hands = own_server
    hands.discover(PACED)
    ended: list[object] = []

    def work() -> None:
        try:
            ended.append(hands.collect(PACED).ending)
        except (psycopg.Error, CollectorError) as error:
            ended.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    _until(lambda: len(hands.arrivals()) > 15)
    embedded.stop(state)
    embedded.start(state)
    worker.join(60)
    assert ended, "it neither recovered nor failed"
    assert ended[0] is Ending.DRAINED or isinstance(ended[0], psycopg.Error | CollectorError)
    assert hands.collect(PACED).ending is Ending.DRAINED
    assert hands.read(PACED).records_total == 60
    counts = hands.status(PACED).counts
    assert (counts.planned, counts.done) == (63, 63)
    assert hands.column("SELECT count(*) FROM pages WHERE outcome = 'ok'") == [63]
    assert violations(hands.arrivals(), gap=GAP, slots=1, tolerance=0.002) == []


def _until(holds: Callable[[], bool], *, within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
