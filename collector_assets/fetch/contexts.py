"""The browser of a worker: one Chromium behind one proxy, and contexts in it, each for one origin at a time.

A context holds cookies, storage and cache of its origin, and dies with them after so many pages or minutes. The browser
is replaced when it has ended, hangs, or holds too much memory with all its processes; at most `pages` visits are open.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final

from collector_assets.contract import Browser
from collector_assets.fetch import blocking
from collector_assets.fetch.callers import Callers
from collector_assets.fetch.chromium import Chromium, Launch
from collector_assets.fetch.devtools import BrowserGone, Event
from collector_assets.fetch.egress import Egress
from collector_assets.fetch.gate import Gate
from collector_assets.fetch.proxy import EgressProxy
from collector_assets.fetch.tab import Tab

LOG = logging.getLogger(__name__)

WORN: Final = 0.75
"""Part of the memory from which the browser is replaced once the open pages are done."""
MEASURED_EVERY_S: Final = 0.5
OPENS_WITHIN_S: Final = 20.0
RENDERER_SHARE: Final = 3
"""One page's JavaScript may hold this part of the browser's memory."""


class StateUnreadable(Exception):
    """The file of a storage state is not there, or not what it should be; the message names the variable."""


@dataclass(slots=True, kw_only=True)
class _Context:
    """Cookies, storage and cache of one origin, and the tab in it."""

    id: str
    origin: str
    tab: Tab | None = None
    born: float = field(default_factory=monotonic)
    visits: int = 0


@dataclass(slots=True)
class _Running:
    """One browser from its start to its end."""

    chromium: Chromium
    proxy: EgressProxy
    idle: list[_Context] = field(default_factory=list)
    by_id: dict[str, _Context] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    """Session of each page that was announced, by its id."""
    active: int = 0
    is_worn: bool = False
    ended_for: str = ""
    watching: asyncio.Task[None] | None = None


class Contexts:
    """Gives out tabs."""

    def __init__(self, *, program: Path, browser: Browser, user_agent: str, egress: Egress) -> None:
        self._program, self._browser, self._user_agent, self._egress = program, browser, user_agent, egress
        self.places = asyncio.Semaphore(browser.pages)
        """One for each page that may be open; taken before the document is asked for."""
        self._starting = asyncio.Lock()
        self._freed = asyncio.Event()
        self._running: _Running | None = None
        self._gates: set[Gate] = set()
        self._blocked = blocking.patterns(browser.block, browser.block_urls, trackers=browser.block_trackers)
        self.starts = 0
        """Browsers that were started."""

    # --- What the proxy asks -----------------------------------------------------------------------------------------

    def may_send(self, url: str) -> bool:
        """Whether a visit under way asked for this request."""
        return any(gate.has_asked(url) for gate in self._gates)

    def may_connect(self, host: str, port: int) -> bool:
        """Whether a visit under way asked for a request through TLS to there."""
        return any(gate.has_asked_at(host, port) for gate in self._gates)

    @contextlib.contextmanager
    def passing(self, gate: Gate) -> Any:
        """What passes this gate passes the proxy meanwhile."""
        self._gates.add(gate)
        try:
            yield
        finally:
            self._gates.discard(gate)

    # --- Tabs --------------------------------------------------------------------------------------------------------

    def has_context(self, origin: str) -> bool:
        """Whether a context of this origin may hold cookies."""
        return self._browser.storage_state is not None or (
            self._running is not None and any(each.origin == origin for each in self._running.idle)
        )

    @asynccontextmanager
    async def tab(self, origin: str) -> AsyncIterator[Tab]:
        """A tab in a context of this origin, for one visit; one at a time for each of `places`. `DevtoolsError`."""
        running = await self._started()
        running.active += 1
        context = None
        try:
            context = await self._opened(running, origin)
            assert context.tab is not None  # noqa: S101  opened with it
            yield context.tab
        finally:
            running.active -= 1
            if context is not None:
                self._put_back(running, context)
            self._freed.set()

    async def _opened(self, running: _Running, origin: str) -> _Context:
        """A context with its tab; a browser that does not come so far in time hangs, and is ended."""
        try:
            async with asyncio.timeout(OPENS_WITHIN_S):
                context = await self._context(running, origin)
        except TimeoutError:
            await self._end(running, "hung")
            raise BrowserGone(f"no page within {OPENS_WITHIN_S:g} s: the browser hangs") from None
        context.visits += 1
        return context

    def why_ended(self) -> str:
        """What ended the browser that ran last, if we did."""
        return self._running.ended_for if self._running else ""

    async def _started(self) -> _Running:
        """The browser that runs, or a new one; a worn one is waited for until nobody uses it."""
        async with self._starting:
            while (running := self._running) is not None:
                if running.chromium.gone.done():
                    await self._end(running, running.ended_for or "ended")
                elif not running.is_worn:
                    return running
                elif running.active == 0:
                    await self._end(running, "memory")
                else:
                    self._freed.clear()
                    await self._freed.wait()
            self._running = await self._start()
            return self._running

    async def _start(self) -> _Running:
        self.starts += 1
        callers = Callers()
        proxy = EgressProxy(self._egress, self, callers.are_ours)
        heap = self._browser.max_memory // RENDERER_SHARE
        launch = Launch(
            program=self._program, proxy=await proxy.start(), user_agent=self._user_agent, renderer_memory=heap
        )
        try:
            chromium = await Chromium.start(launch)
        except BaseException:
            await proxy.close()
            raise
        callers.root = chromium.pid
        running = _Running(chromium, proxy)
        chromium.root.on("Target.attachedToTarget", lambda event: self._attached(running, event))
        await chromium.root.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        running.watching = asyncio.create_task(self._watch(running))
        return running

    def _attached(self, running: _Running, event: Event) -> None:
        """A page appeared: the one that we are opening, or one that a page of ours opened. That one never runs."""
        info, root = event["targetInfo"], running.chromium.root
        if info["type"] != "page":
            return
        running.sessions[info["targetId"]] = event["sessionId"]
        context = running.by_id.get(info.get("browserContextId", ""))
        if context is not None and context.tab is not None and context.tab.target != info["targetId"]:
            context.tab.popup()
            # Its opener shares a process with it and waits until it may go on: it may, and what it asks for is not
            # answered (nor would it pass the proxy).
            popup = root.child(event["sessionId"])
            popup.tell("Fetch.enable", patterns=[{"urlPattern": "*"}])
            popup.tell("Runtime.runIfWaitingForDebugger")
            root.tell("Target.closeTarget", targetId=info["targetId"])

    async def _context(self, running: _Running, origin: str) -> _Context:
        """An idle context of the origin, or a new one; with the tab open."""
        root = running.chromium.root
        for context in running.idle:
            if context.origin == origin:
                running.idle.remove(context)
                return context
        if len(running.idle) + running.active > self._browser.pages:  # `active` counts us already
            self._retire(running, running.idle.pop(0))
        made = await root.call("Target.createBrowserContext", disposeOnDetach=True)
        context = _Context(id=made["browserContextId"], origin=origin)
        running.by_id[context.id] = context
        try:
            await root.call("Browser.setDownloadBehavior", behavior="deny", browserContextId=context.id)
            if state := _cookies_of(self._browser):
                await root.call("Storage.setCookies", cookies=state, browserContextId=context.id)
            target = (await root.call("Target.createTarget", url="about:blank", browserContextId=context.id))[
                "targetId"
            ]
            context.tab = Tab(root.child(running.sessions[target]), target, blocked=self._blocked)
            await context.tab.prepare()
        except BaseException:
            self._retire(running, context)
            raise
        return context

    def _put_back(self, running: _Running, context: _Context) -> None:
        """Idle until the next visit, or retired."""
        is_old = monotonic() - context.born >= self._browser.retire_after.total_seconds()
        is_worn = context.visits >= self._browser.retire_after_pages
        if is_old or is_worn or running.is_worn or context.tab is None or context.tab.is_broken:
            self._retire(running, context)
        else:
            running.idle.append(context)

    def _retire(self, running: _Running, context: _Context) -> None:
        """Close it, with all that it holds; not waited for."""
        running.by_id.pop(context.id, None)
        if context.tab:
            running.sessions.pop(context.tab.target, None)
            context.tab.leave()
        running.chromium.root.tell("Target.disposeBrowserContext", browserContextId=context.id)

    # --- Memory, and the end -----------------------------------------------------------------------------------------

    async def _watch(self, running: _Running) -> None:
        """Measure the whole tree while pages are open; a page that eats it all takes the browser with it, not us."""
        most = self._browser.max_memory
        while not running.chromium.gone.done():
            await asyncio.sleep(MEASURED_EVERY_S)
            held = await asyncio.to_thread(running.chromium.memory)
            if held >= most:
                running.ended_for = f"its memory: {held // 2**20:,} MiB, at most {most // 2**20:,}"
                LOG.warning("the browser is ended for %s", running.ended_for)
                await running.chromium.kill()
            elif held >= WORN * most:
                running.is_worn = True

    async def _end(self, running: _Running, why: str) -> None:
        running.ended_for = running.ended_for or why
        if self._running is running:
            self._running = None
        if running.watching:
            running.watching.cancel()
            await asyncio.gather(running.watching, return_exceptions=True)
        await (running.chromium.kill() if why == "hung" else running.chromium.close())
        await running.proxy.close()

    async def close(self) -> None:
        """End the browser; bounded, and nothing of it is left."""
        if self._running is not None:
            await self._end(self._running, "closed")


def _cookies_of(browser: Browser) -> list[dict[str, Any]]:
    """The cookies of the storage state that the settings name; none where no state is asked for."""
    if browser.storage_state is None:
        return []
    name, path = browser.storage_state.name, browser.storage_state.read()
    if path is None:
        raise StateUnreadable(f"{name} is not set in the environment")
    try:
        found = json.loads(Path(path).read_text("utf-8"))["cookies"]
        return [dict(_as_cookie(each)) for each in found]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateUnreadable(f"{name} names no readable storage state ({type(error).__name__})") from None


def _as_cookie(given: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    for name in ("name", "value", "domain", "path", "httpOnly", "secure", "sameSite"):
        if name in given:
            yield name, given[name]
    if given.get("expires", -1) > 0:
        yield "expires", given["expires"]
