"""Cases HTTP-32 and HTTP-33: names, addresses, and trouble with both; whole windows against a stranger's site."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pandera.pandas as pa
import pytest

from collector_assets import collect, discover, politeness
from collector_assets.archive import LocalArchive
from collector_assets.contract import Budget, Daily, Source, seconds
from collector_assets.database import Database
from collector_assets.fetch import Fetcher
from collector_assets.fetch.names import Memory
from collector_assets.page import Page
from collector_assets.status import window_row
from collector_assets.window import Window
from collector_tests.fixtures.stranger import ALLOWED, HOME, Resolver, Stranger

DAY = datetime(2099, 1, 29, tzinfo=UTC)
TODAY = Window(key="2099-01-29", start=DAY, end=DAY + timedelta(days=1))
NO_NAME = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
NOT_NOW = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
QUICK = Memory(none_s=0.2, trouble_s=0.2)
"""Doubling waits as in life, three hundred times faster."""


def extract(page: Page) -> Iterator[dict[str, Any]]:
    yield {"url": page.url}


PAGES = 20


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first wait for a robots.txt whose host cannot be reached; it doubles too."""
    monkeypatch.setattr(politeness, "FIRST_WAIT_AWAY", timedelta(seconds=0.05))


def pages(stranger: Stranger) -> Source:
    return Source(
        name="stranger", start_urls=tuple(stranger.page(f"/{number}") for number in range(PAGES)), extract=extract,
        schema=pa.DataFrameSchema({"url": pa.Column(str)}), entity="url", extractor_version="1",
        window=Daily(start="2026-01-01"), budget=Budget(gap=seconds(0), slots=4), retry_wait=seconds(0.01),
        allow_addresses=ALLOWED, connect_timeout=seconds(5),
    )  # fmt: skip


@pytest.fixture
def collected(database: Database, tmp_path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """A window, collected in one run: state, outcome, reason and attempts of each request."""

    def run(source: Source, fetcher: Callable[[], Fetcher]) -> list[tuple[Any, ...]]:
        archive = LocalArchive(tmp_path)
        places = {"source": source, "database": database, "archive": archive, "fetcher": fetcher}
        discover.run(**places, window=TODAY)
        collect.run(**places, window=window_row(database, source.name, TODAY.key), kinds=None)
        with database.transaction() as connection:
            return connection.execute("SELECT state, outcome, reason, attempts FROM requests").fetchall()

    return run


def test_http_32_a_resolver_in_trouble_is_asked_again_in_the_same_run(stranger: Stranger, collected: Callable):
    """Twice EAI_AGAIN, then the address: every page comes, and the name was looked up once per try, not per URL."""
    resolver = Resolver(NOT_NOW, NOT_NOW, [HOME])

    ends = collected(pages(stranger), lambda: resolver.fetcher(QUICK))

    assert [(state, attempts) for state, _, _, attempts in ends] == PAGES * [("fetched", 1)]
    assert resolver.asked == 3 * ["site.example"]


def test_http_32_a_name_that_is_gone_is_one_probe_for_all_of_its_urls(stranger: Stranger, collected: Callable):
    """NXDOMAIN for as long as it is asked: each request says so after its attempts, and none is gone."""
    # Mutation: `self._answers[name] = answer` only with addresses, and no `least` in `politeness._no_response`.
    resolver = Resolver(NO_NAME)

    ends = collected(pages(stranger), lambda: resolver.fetcher(QUICK))

    told = [(state, outcome, attempts) for state, outcome, _, attempts in ends]
    assert told == PAGES * [("failed", "host_unresolved", 3)]
    assert all("site.example" in reason and "Name or service not known" in reason for _, _, reason, _ in ends)
    assert len(resolver.asked) <= politeness.AWAY_AFTER + 2
    assert stranger.requests == []


def test_http_33_a_host_whose_ipv6_address_leads_nowhere_is_reached_by_ipv4(stranger: Stranger, collected: Callable):
    """AAAA for documentation, A of the site: connected within a second."""
    began = monotonic()

    ends = collected(pages(stranger), Resolver(["2001:db8::1", HOME]).fetcher)

    assert [(state, attempts) for state, _, _, attempts in ends] == PAGES * [("fetched", 1)]
    assert monotonic() - began < 5
