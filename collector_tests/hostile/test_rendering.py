"""No way of naming a forbidden address makes a rendering service ask for it: the service is not asked (rule 13)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_assets.fetch.rendering import RenderingFetcher
from collector_tests.fetch.conftest import always
from collector_tests.fetch.rendering import preset
from collector_tests.fixtures.services import ServiceSite
from collector_tests.fixtures.stranger import USER_AGENT, Resolver
from collector_tests.hostile.conftest import Canary
from collector_tests.hostile.targets import ADDRESSES, SPELLINGS
from collector_tests.hostile.test_fetcher import End, asked, let_through


def fetched(services: ServiceSite, resolver: Resolver, targets: Iterable[str]) -> dict[str, End]:
    """How the requests ended at a service that would ask for anything."""

    async def whole() -> dict[str, End]:
        by = HttpFetcher(user_agent=USER_AGENT, egress=DemoSiteOnly(services.address), connections=1)
        service = preset("firecrawl", "127.0.0.1:9")
        fetcher = RenderingFetcher(service, by=by, target=resolver.guard(), purse=None)
        try:
            return {each: await fetcher.fetch(asked(each), always) for each in targets}
        finally:
            await fetcher.close()

    return asyncio.run(whole())


def test_a_url_however_it_is_spelled_is_not_asked_for(canary: Canary, services: ServiceSite) -> None:
    # Mutation: drop `self._target.addresses(...)` from `RenderingFetcher._refusal`.
    targets = [f"http://{each}:{canary.port}/" for each in SPELLINGS]

    assert let_through(canary, fetched(services, Resolver(), targets)) == {}
    assert services.calls == []


def test_a_name_with_such_an_address_is_not_asked_for(canary: Canary, services: ServiceSite) -> None:
    for ip in ADDRESSES:
        ends = fetched(services, Resolver([ip]), [f"http://evil.example:{canary.port}/"])
        assert let_through(canary, ends) == {}
    assert services.calls == []
