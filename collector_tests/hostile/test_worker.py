"""Whatever a stranger's pages say, a worker on a whole window connects to nothing but the stranger (rule 13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pandera.pandas as pa
import pytest

from collector_assets import collect, discover, urls
from collector_assets.archive import LocalArchive
from collector_assets.contract import Budget, Daily, Kind, Link, Page, Source, replace, seconds
from collector_assets.database import Database
from collector_assets.outcome import Outcome
from collector_assets.status import window_row
from collector_assets.window import Window
from collector_tests.fixtures.stranger import ALLOWED, Resolver, Stranger
from collector_tests.hostile.conftest import Canary
from collector_tests.hostile.targets import HIDDEN, HOSTS, SPELLINGS

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
        allow_addresses=ALLOWED, patience=seconds(5),
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


def spelled(canary: Canary) -> tuple[list[str], set[str]]:
    """The targets as a page or a header can carry them, and the hosts that they are after parsing."""
    targets = [f"http://{spelling}:{canary.port}/" for spelling in SPELLINGS if "\n" not in spelling]
    links = [urls.resolve(each, "http://site.example/") for each in targets]
    canary.targets += len(targets)
    return targets, {urls.host(link.url) for link in links if isinstance(link, urls.WebAddress)}


REFUSED = str(Outcome.DESTINATION_REFUSED)


def test_links_lead_nowhere_else(database: Database, canary: Canary, stranger: Stranger, tmp_path: Path):
    targets, hosts = spelled(canary)
    stranger.page("/", "\n".join(f'<a href="{target}">x</a>' for target in targets))

    ends = collected(source(stranger, hosts), database, tmp_path)

    assert ends.pop("listing: ok") == 1
    assert set(ends) == {f"detail: {REFUSED}"}
    assert ends.total() > 40


def test_redirects_lead_nowhere_else(database: Database, canary: Canary, stranger: Stranger, tmp_path: Path):
    targets, hosts = spelled(canary)
    hidden = [each.format(host=f"{host}:{canary.port}") for each in HIDDEN for host in HOSTS]
    told = targets + [target for target in hidden if "\n" not in target]
    canary.targets += len(told) - len(targets)
    starts = [stranger.redirect(f"/{number}", to=target) for number, target in enumerate(told)]

    ends = collected(source(stranger, hosts, *starts), database, tmp_path)

    # What is no URL, or another kind, is invalid; what leads home is answered by nobody at port 80.
    assert set(ends) == {f"listing: {REFUSED}", "listing: redirect_invalid", "listing: connect_error"}
    assert ends[f"listing: {REFUSED}"] > 200
    assert ends.total() == len(told)


def test_redirects_of_robots_txt_lead_nowhere_else(
    database: Database, canary: Canary, stranger: Stranger, tmp_path: Path
):
    """Each file on an origin of its own."""
    targets, _ = spelled(canary)
    starts: list[str] = []
    for number, target in enumerate(targets):
        stranger.redirect(f"r{number}.site.example/robots.txt", to=target)
        starts.append(stranger.page(f"r{number}.site.example/"))

    collected(source(stranger, set(), *starts), database, tmp_path)


@pytest.mark.parametrize("of", ["urlset", "sitemapindex"])
def test_sitemaps_lead_nowhere_else(database: Database, canary: Canary, stranger: Stranger, tmp_path: Path, of: str):
    targets, hosts = spelled(canary)
    entry = {"urlset": "url", "sitemapindex": "sitemap"}[of]
    entries = "".join(f"<{entry}><loc>{escape(target)}</loc></{entry}>" for target in targets)
    sitemap = stranger.page("/sitemap.xml", f"<{of}>{entries}</{of}>")

    ends = collected(replace(source(stranger, hosts), start_urls=(), sitemaps=(sitemap,)), database, tmp_path)

    assert ends.pop("sitemap: ok") == 1
    assert {end.partition(": ")[2] for end in ends} == {REFUSED}
    assert ends.total() > 40


def test_sitemap_lines_of_robots_txt_lead_nowhere_else(
    database: Database, canary: Canary, stranger: Stranger, tmp_path: Path
):
    targets, hosts = spelled(canary)
    robots = stranger.page("/robots.txt", "".join(f"Sitemap: {target}\n" for target in targets))

    ends = collected(replace(source(stranger, hosts), start_urls=(), sitemaps=(robots,)), database, tmp_path)

    assert ends.pop("sitemap: ok") == 1
    assert {end.partition(": ")[2] for end in ends} == {REFUSED}
    assert ends.total() > 40
