"""Which of a page's own requests may leave, and when: the budget inside a visit (rule 7).

The document was asked for like any request. What it loads from its own domain is charged or capped, as the source says;
what it loads from domains that the source allows is counted; all else stays here. `robots.txt` and a halt hold for all
of it. Nothing passes the proxy that did not pass here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final, Literal
from urllib.parse import urlsplit

from collector_assets import urls
from collector_assets.contract import Browser
from collector_assets.fetch import blocking

Load = Literal["own", "allowed", "unwanted", "foreign", "forbidden", "over_cap", "late"]
"""own, allowed: it left. The rest did not: not needed; another domain; robots.txt or a halt; the cap; no permission."""
LEFT: Final[frozenset[Load]] = frozenset(("own", "allowed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a page wants to load."""

    url: str
    type: str
    """As DevTools calls it: Document, Script, XHR …"""
    headers: Mapping[str, str]


class Gate:
    """The rules of one visit."""

    def __init__(
        self,
        address: str,
        browser: Browser,
        *,
        gap_s: float,
        ended_at: float,
        most_s: float,
        may_send: Callable[[], bool],
        may_load: Callable[[str], bool],
    ) -> None:
        """`address`: of the document; its answer ended at `ended_at`. `most_s`: longest wait for the end of a load."""
        self.loads: Counter[Load] = Counter()
        self.domain = urls.domain(urls.host(address))
        self._browser, self._gap_s, self._most_s = browser, gap_s, most_s
        self._may_send, self._may_load = may_send, may_load
        self._ended_at = ended_at
        self._turn = asyncio.Lock()
        self._urls: set[str] = set()
        self._tunnels: set[tuple[str, int]] = set()
        self._is_open = True

    def close(self) -> None:
        """The visit is over: nothing leaves any more."""
        self._is_open = False
        self._urls.clear()
        self._tunnels.clear()

    async def passes(self, asked: Asked, go: Callable[[], asyncio.Future[None]]) -> Load:
        """Let the request leave (`go`: send it, the future is its end) or say why not. Counted either way."""
        load = self._judged(asked)
        if load == "own" and self._browser.cap is None:
            async with self._turn:
                # The loop's timers count in milliseconds and may be early.
                while (wait_s := self._ended_at + self._gap_s - monotonic()) > 0:  # noqa: ASYNC110  a time, no event
                    await asyncio.sleep(wait_s)
                load = await self._sent(asked, go, "own")
        elif load in LEFT:
            load = self._released(asked, load)
            if load in LEFT:
                go()
        self.loads[load] += 1
        return load

    async def _sent(self, asked: Asked, go: Callable[[], asyncio.Future[None]], load: Load) -> Load:
        """Send it and wait for its end: the gap runs from there."""
        if (load := self._released(asked, load)) in LEFT:
            await asyncio.wait({go()}, timeout=self._most_s)
            self._ended_at = monotonic()
        return load

    def _released(self, asked: Asked, load: Load) -> Load:
        """Asked last, right before it leaves."""
        if not (self._is_open and self._may_send()):
            return "late"
        parts = urlsplit(asked.url)
        if parts.scheme == "http":
            self._urls.add(asked.url)
        else:
            self._tunnels.add((parts.hostname or "", parts.port or 443))
        return load

    def _judged(self, asked: Asked) -> Load:
        parts, browser = urlsplit(asked.url), self._browser
        if blocking.is_unwanted(asked.type, browser.block, asked.headers):
            return "unwanted"
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return "foreign"
        domain = urls.domain(parts.hostname)
        is_own = domain == self.domain
        if not is_own and domain not in browser.allow_domains:
            return "foreign"
        if not self._may_load(asked.url):
            return "forbidden"
        if is_own and browser.cap is not None and self.loads["own"] >= browser.cap:
            return "over_cap"
        return "own" if is_own else "allowed"

    # --- What the proxy asks -----------------------------------------------------------------------------------------

    def has_asked(self, url: str) -> bool:
        """Whether this plain request left with permission."""
        return url in self._urls

    def has_asked_at(self, host: str, port: int) -> bool:
        """Whether a request through TLS to this host left with permission."""
        return (host, port) in self._tunnels
