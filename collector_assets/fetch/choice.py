"""Which fetcher a request goes through: the kind of its page says so, and what is of no kind (robots.txt) goes by HTTP.

The worker sees one fetcher. Each of those behind it is made at its first use, inside the running loop, so that a source
without a page for the browser never starts one; all are closed together. Permission, budget and halts are asked for
before a fetcher is, so they are the same for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal

from collector_assets.contract import Source
from collector_assets.fetch import Fetcher, FetchRequest, NoResponse, NotSent, Response

FetcherName = Literal["http", "browser", "rendering"]
"""As `Kind.fetcher` says it."""
Makers = Mapping[FetcherName, Callable[[], Fetcher]]


def of(source: Source, makers: Makers) -> Fetcher:
    """The fetcher of a source: the one that all its kinds use, or one that chooses by kind."""
    by_kind: dict[str, FetcherName] = {
        name: kind.fetcher for name, kind in source.kind_map.items() if kind.fetcher != "http"
    }
    return Choice(by_kind, makers) if by_kind else makers["http"]()


class Choice:
    """Several fetchers as one."""

    def __init__(self, by_kind: Mapping[str, FetcherName], makers: Makers) -> None:
        self._by_kind, self._makers = by_kind, makers
        self._made: dict[FetcherName, Fetcher] = {}
        self.user_agent = self._of("http").user_agent

    async def fetch(self, request: FetchRequest, may_send: Callable[[], bool]) -> Response | NoResponse | NotSent:
        """Send `request` once, by the fetcher of its kind (see `Fetcher.fetch`)."""
        return await self._of(self._by_kind.get(request.kind, "http")).fetch(request, may_send)

    async def close(self) -> None:
        """Close every fetcher that was made; an error of one is raised when all are closed."""
        made, self._made = list(self._made.values()), {}
        ends = await asyncio.gather(*(fetcher.close() for fetcher in made), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    def _of(self, name: FetcherName) -> Fetcher:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]
