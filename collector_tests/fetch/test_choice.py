"""The kind of a page says which fetcher its requests go through; each is made when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from collector_assets.demo import DemoSite
from collector_assets.fetch import Fetcher
from collector_assets.fetch.choice import Choice, FetcherName
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_tests.fetch.conftest import always, asked


class Made:
    """Fetchers that say which they are by their user agent, and what became of them."""

    def __init__(self, site: DemoSite) -> None:
        self._site = site
        self.made: list[str] = []
        self.closed: list[str] = []

    def makers(self, *, broken: str = "") -> dict[FetcherName, Callable[[], Fetcher]]:
        names: tuple[FetcherName, ...] = ("http", "browser", "rendering")
        return {name: lambda name=name: self._make(name, is_broken=name == broken) for name in names}

    def _make(self, name: str, *, is_broken: bool) -> Fetcher:
        closed = self.closed

        class Noted(HttpFetcher):
            async def close(self) -> None:
                closed.append(name)
                await super().close()
                if is_broken:
                    raise OSError("will not close")

        self.made.append(name)
        return Noted(user_agent=f"{name}/1", egress=DemoSiteOnly(self._site.address), connections=2)


async def _fetched(choice: Choice, *kinds: str) -> None:
    for kind in kinds:
        await choice.fetch(asked("/", kind=kind), always)


def test_the_kind_chooses_and_what_is_of_none_goes_by_http(site: DemoSite):
    made = Made(site)

    async def scenario() -> None:
        choice = Choice({"detail": "rendering"}, made.makers())
        assert choice.user_agent == "http/1"
        await _fetched(choice, "", "detail", "listing", "detail")
        await choice.close()

    asyncio.run(scenario())

    assert [arrival.user_agent for arrival in site.arrivals()] == ["http/1", "rendering/1"] * 2
    assert made.made == ["http", "rendering"]
    assert sorted(made.closed) == ["http", "rendering"]


def test_a_fetcher_that_fails_to_close_keeps_none_open(site: DemoSite):
    made = Made(site)

    async def scenario() -> None:
        choice = Choice({"detail": "rendering", "shot": "browser"}, made.makers(broken="rendering"))
        await _fetched(choice, "detail", "shot")
        await choice.close()

    with pytest.raises(OSError, match="will not close"):
        asyncio.run(scenario())

    assert sorted(made.closed) == ["browser", "http", "rendering"]
