"""Whatever a stranger's pages say, a worker on a whole window connects to nothing but the stranger (rule 13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandera.pandas as pa

from collector_assets import collect, discover, urls
from collector_assets.archive import LocalArchive
from collector_assets.contract import Budget, Daily, Kind, Link, Page, Source, seconds
from collector_assets.database import Database
from collector_assets.outcome import Outcome
from collector_assets.status import window_row
from collector_assets.window import Window
from collector_tests.fixtures.stranger import ALLOWED, Resolver, Stranger
from collector_tests.hostile.conftest import Canary
from collector_tests.hostile.targets import SPELLINGS

DAY = datetime(2099, 1, 29, tzinfo=UTC)
TODAY = Window(key="2099-01-29", start=DAY, end=DAY + timedelta(days=1))


def leads(page: Page) -> Iterator[Link]:
    for href in page.selector.css("a::attr(href)").getall():
        yield Link(href, kind="detail")


def nothing(_: Page) -> Iterator[dict[str, Any]]:
    return iter(())


def source(stranger: Stranger, hosts: set[str], *starts: str) -> Source:
    """One that would go wherever it is led: nothing but the guard stands between."""
    return Source(
        name="hostile", start_urls=starts or (f"{stranger.origin}/",), scope=("site.example", *sorted(hosts)),
        kinds={"listing": Kind(discover=leads), "detail": Kind(extract=nothing, may_be_empty=True)},
        records={"page": pa.DataFrameSchema({"url": pa.Column(str)})}, entity="url", extractor_version="1",
        window=Daily(start="2026-01-01"), budget=Budget(gap=seconds(0), slots=4), max_attempts=1,
        allow_addresses=ALLOWED, patience=seconds(1),
    )  # fmt: skip


def collected(by: Source, database: Database, folder: Path) -> Counter[str]:
    """How the requests of a whole window ended."""
    archive = LocalArchive(folder)
    places = {"source": by, "database": database, "archive": archive, "fetcher": Resolver().fetcher}
    discover.run(**places, window=TODAY)
    collect.run(**places, window=window_row(database, by.name, TODAY.key), kinds=None)
    with database.transaction() as connection:
        rows = connection.execute("SELECT kind, state, outcome FROM requests").fetchall()
    return Counter(f"{kind}: {outcome or state}" for kind, state, outcome in rows)


def hosts_of(canary: Canary) -> tuple[list[str], set[str]]:
    """The targets, and the hosts that they are."""
    targets = [f"http://{spelling}:{canary.port}/" for spelling in SPELLINGS]
    links = [urls.resolve(each, "http://site.example/") for each in targets]
    return targets, {urls.host(link.url) for link in links if isinstance(link, urls.WebAddress)}


def test_links_lead_nowhere_else(database: Database, canary: Canary, stranger: Stranger, tmp_path: Path):
    targets, hosts = hosts_of(canary)
    stranger.page("/", "\n".join(f'<a href="{target}">x</a>' for target in targets))
    canary.targets += len(targets)

    ends = collected(source(stranger, hosts), database, tmp_path)

    assert ends.pop("listing: ok") == 1
    assert set(ends) == {f"detail: {Outcome.DESTINATION_REFUSED}"}
    assert ends.total() > 40
