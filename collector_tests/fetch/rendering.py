"""Rendering services at work on the demo site."""

from __future__ import annotations

from collections.abc import Callable

from collector_assets.contract import RenderingService, Secret
from collector_assets.fetch.egress import DemoSiteOnly, Egress
from collector_assets.fetch.http import HttpFetcher
from collector_assets.fetch.rendering import Purse, RenderingFetcher
from collector_assets.rendering_services import alterlab, brightdata_web_unlocker, firecrawl, scrapingbee
from collector_tests.fixtures.services import SECRET_NAME

USER_AGENT = "collector-assets/0.1 (+test@shop.example)"
KEY = Secret(SECRET_NAME)
PRESETS: dict[str, Callable[[str], RenderingService]] = {
    "alterlab": lambda at: alterlab(key=KEY, cap=100, endpoint=at),
    "firecrawl": lambda at: firecrawl(key=KEY, cap=100, endpoint=at),
    "scrapingbee": lambda at: scrapingbee(key=KEY, cap=100, endpoint=at),
    "brightdata": lambda at: brightdata_web_unlocker(key=KEY, zone="unlocker1", cap=100, endpoint=at),
}


class Counted:
    """A purse with room for so many calls."""

    def __init__(self, room: int = 1_000) -> None:
        self.room, self.taken = room, 0

    async def take(self) -> bool:
        if self.taken >= self.room:
            return False
        self.taken += 1
        return True

    async def give_back(self) -> None:
        self.taken -= 1


def preset(name: str, site: str) -> RenderingService:
    """A service as its preset declares it, at our server, for the site at an address."""
    return PRESETS[name](f"http://render.localhost/{name}?site={site}")


def rendering_fetcher(
    service: RenderingService, services: str, *, target: Egress | None = None, purse: Purse | None = None
) -> RenderingFetcher:
    """A fetcher by that service, which is served at `services`."""
    by = HttpFetcher(user_agent=USER_AGENT, egress=DemoSiteOnly(services), connections=8)
    return RenderingFetcher(service, by=by, target=target or DemoSiteOnly("127.0.0.1:9"), purse=purse)
