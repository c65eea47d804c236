"""One page in a browser, from the answer that the site gave to the document in the end.

The document itself comes from our HTTP fetcher, byte for byte as the archive keeps it, and is handed to the browser;
redirects never happen in here. A page that goes elsewhere by itself is stopped before the request leaves: where it was
going is a redirect like any other, a request of the frontier with a robots.txt, a budget and a record of its own.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import fnmatch
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, Literal
from urllib.parse import urldefrag

from collector_assets import urls
from collector_assets.contract import View
from collector_assets.fetch import acting
from collector_assets.fetch.acting import Inside, Unsettled
from collector_assets.fetch.devtools import BrowserGone, DevtoolsError, Event, Session
from collector_assets.fetch.gate import LEFT, Asked, Gate
from collector_assets.page import RENDERED_TYPE, Part

MOST_DIALOGS: Final = 20
LEAVES_WITHIN_S: Final = 2.0
"""A navigation that a page has announced is waited for so long."""
READS_WITHIN_S: Final = 10.0
"""A page that cannot be read by then is busy with itself."""
BODIES_WITHIN_S: Final = 2.0
_SIZE: Final = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}

Ending = Literal["settled", "unsettled", "left", "astray", "crashed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What the browser is given as the page."""

    url: str
    """With its fragment."""
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    """Decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How a visit ended, and what was seen."""

    ending: Ending
    reason: str = ""
    target: str = ""
    """Where a page that left was going."""
    parts: tuple[Part, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(slots=True)
class _Visit:
    """What is known of the visit under way."""

    document: Document
    view: View
    gate: Gate
    max_bytes: int
    end: asyncio.Future[Seen]
    is_open: bool = False
    """The document was handed over."""
    is_leaving: bool = False
    """The page announced that it goes elsewhere."""
    dialogs: int = 0
    flags: set[str] = field(default_factory=set)
    bodies: dict[str, asyncio.Task[Part | None]] = field(default_factory=dict)
    captured: dict[str, Event] = field(default_factory=dict)
    """Responses that are to be kept, by request."""
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)


class Tab:
    """One page of a browser, for one visit after the other."""

    def __init__(self, session: Session, target: str, *, blocked: Sequence[str]) -> None:
        """`target`: its id, which is also that of its main frame. `blocked`: URL patterns that are not loaded."""
        self.target = target
        self._session, self._blocked = session, blocked
        self._visit: _Visit | None = None
        self._lifecycle: dict[str, set[str]] = {}
        self._moved = asyncio.Event()
        self._loading: dict[str, asyncio.Future[None]] = {}
        self.is_broken = False
        """Not to be used again."""

    async def prepare(self) -> None:
        """Set it up while it waits for its first command; then it may go."""
        page = self._session
        page.on("Page.lifecycleEvent", self._lived)
        page.on("Page.frameRequestedNavigation", self._announced)
        page.on("Page.javascriptDialogOpening", self._asked_by_dialog)
        page.on("Page.downloadWillBegin", lambda _: self._flag("download_denied"))
        page.on("Inspector.targetCrashed", lambda _: self._crashed("the page crashed"))
        page.on("Target.attachedToTarget", self._attached)
        page.on("Target.detachedFromTarget", lambda event: page.child(event["sessionId"]).leave())
        page.on("Network.responseReceived", self._responded)
        self._watch(page)
        await asyncio.gather(
            page.call("Page.enable"),
            page.call("Page.setLifecycleEventsEnabled", enabled=True),
            page.call("Inspector.enable"),
            page.call("Emulation.setDeviceMetricsOverride", **_SIZE),
            *self._guards(page),
            page.call("Runtime.runIfWaitingForDebugger"),
        )

    def _watch(self, session: Session) -> None:
        """Requests of a page, a frame or a worker."""
        session.on("Fetch.requestPaused", lambda event: self._paused(session, event))
        session.on("Network.loadingFinished", lambda event: self._loaded(session, event, whole=True))
        session.on("Network.loadingFailed", lambda event: self._loaded(session, event, whole=False))

    def _guards(self, session: Session) -> list[Coroutine[Any, Any, Any]]:
        """What must be in force before anything of it runs."""
        return [
            session.call("Network.enable", maxTotalBufferSize=64 * 2**20, maxResourceBufferSize=32 * 2**20),
            session.call("Network.setBlockedURLs", urls=list(self._blocked)),
            session.call("Network.setBypassServiceWorker", bypass=True),
            session.call("Fetch.enable", patterns=[{"urlPattern": "*"}]),
            session.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True),
        ]

    async def cookies(self, url: str) -> str:
        """What the browser would send along to this address."""
        found = await self._session.call("Network.getCookies", urls=[url])
        return "; ".join(f"{each['name']}={each['value']}" for each in found["cookies"])

    async def take_cookies(self, url: str, pairs: str) -> None:
        """Cookies that redirects on the way here have set."""
        for pair in filter(None, pairs.split("; ")):
            name, _, value = pair.partition("=")
            with contextlib.suppress(DevtoolsError):  # one that a browser would not keep
                await self._session.call("Network.setCookie", url=url, path="/", name=name, value=value)

    # --- A visit ------------------------------------------------------------------------------------------------------

    async def visit(self, document: Document, view: View, gate: Gate, *, deadline: float, max_bytes: int) -> Seen:
        """Show the document, do what the kind says, and read it. Nothing leaves when this has returned."""
        end = asyncio.get_running_loop().create_future()
        visit = self._visit = _Visit(document=document, view=view, gate=gate, max_bytes=max_bytes, end=end)
        going = asyncio.create_task(self._go(visit, deadline))
        try:
            ends = {going, end, self._session.gone}
            await asyncio.wait(ends, timeout=max(0.0, deadline - monotonic()), return_when=asyncio.FIRST_COMPLETED)
            seen = self._seen(visit, going)
        finally:
            gate.close()
            going.cancel()
            for task in (*visit.tasks, *visit.bodies.values()):
                task.cancel()
            await asyncio.gather(going, *visit.tasks, *visit.bodies.values(), return_exceptions=True)
            self._visit = None
            self._loading.clear()
            self._lifecycle.clear()
        self.is_broken = self.is_broken or seen.ending in ("unsettled", "crashed")
        if not self.is_broken:
            # It stays until the next one comes, and does nothing: an empty page in between costs as much as a visit.
            self._session.tell("Emulation.setScriptExecutionDisabled", value=True)
            self._session.tell("Page.stopLoading")
        return seen

    def _seen(self, visit: _Visit, going: asyncio.Task[Seen]) -> Seen:
        if visit.end.done():
            seen = visit.end.result()
        elif self._session.gone.done():
            seen = Seen(ending="crashed", reason="the browser ended")
        elif not going.done():
            seen = Seen(ending="unsettled", reason="not settled by the total deadline")
        elif (error := going.exception()) is None:
            seen = going.result()
        elif isinstance(error, Unsettled | TimeoutError):
            seen = Seen(ending="unsettled", reason=str(error) or f"busy with itself for {READS_WITHIN_S:g} s")
        elif isinstance(error, BrowserGone):
            seen = Seen(ending="crashed", reason=str(error))
        elif isinstance(error, DevtoolsError):
            seen = Seen(ending="unsettled", reason=f"it changed while it was read: {error}")
        else:
            raise error
        return Seen(
            ending=seen.ending, reason=seen.reason, target=seen.target, parts=seen.parts,
            flags=(*seen.flags, *sorted(visit.flags)),
        )  # fmt: skip

    async def _go(self, visit: _Visit, deadline: float) -> Seen:
        page, view = self._session, visit.view
        within_s = view.wait_at_most.total_seconds()
        # Waited for: a document that goes into a process of its own is given what the browser knows of the tab by then.
        await page.call("Emulation.setScriptExecutionDisabled", value=False)
        gone = await page.call("Page.navigate", url=visit.document.url)
        if problem := gone.get("errorText"):
            raise Unsettled(f"the browser does not show it: {problem}")
        loader = gone.get("loaderId", "")
        await self._reaches(loader, "DOMContentLoaded", within_s)
        inside = await Inside.of(page, self.target)
        if view.wait == "networkidle":
            try:
                await self._reaches(loader, "networkIdle", acting.left_s(deadline, within_s))
            except Unsettled:
                visit.flags.add("never_idle")
        elif view.wait != "domcontentloaded":
            await acting.there(inside, view.wait, acting.left_s(deadline, within_s))
        await acting.act(inside, view.actions, acting.left_s(deadline, within_s))
        async with asyncio.timeout(READS_WITHIN_S):
            return await self._read(visit, inside)

    async def _reaches(self, loader: str, name: str, within_s: float) -> None:
        """Until the document has come so far."""
        try:
            async with asyncio.timeout(within_s):
                while name not in self._lifecycle.get(loader, ()):
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise Unsettled(f"no {name} within {within_s:g} s") from None

    async def _read(self, visit: _Visit, inside: Inside) -> Seen:
        """The document as it is now, unless it is on its way elsewhere."""
        html, frames, address = await acting.dom(inside)
        if visit.is_leaving:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LEAVES_WITHIN_S):
                    await asyncio.shield(visit.end)
            html, frames, address = await acting.dom(inside)
        if len(html) > visit.max_bytes:
            raise Unsettled(f"a document of {len(html):,} bytes; at most {visit.max_bytes:,} are taken")
        parts = [_document("rendered", address, html)]
        if frames:
            parts += [_document("frame", *each) for each in await acting.frames(inside)]
        parts += await self._captures(visit)
        if visit.view.screenshot:
            shot = await self._session.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
            picture = base64.b64decode(shot["data"])
            parts.append(
                Part(role="view", url=address, status=200, headers=(("Content-Type", "image/png"),), body=picture)
            )
        return Seen(ending="settled", parts=tuple(parts))

    async def _captures(self, visit: _Visit) -> list[Part]:
        """The responses that are kept, in the order of their ends; one whose body is not to be had is a flag."""
        if not visit.bodies:
            return []
        done, late = await asyncio.wait(visit.bodies.values(), timeout=BODIES_WITHIN_S)
        found = [part for task in visit.bodies.values() if task in done and (part := task.result())]
        if late or len(found) < len(done):
            visit.flags.add("body_unavailable")
        return found

    # --- What the page does ------------------------------------------------------------------------------------------

    def _paused(self, session: Session, event: Event) -> None:
        """A request waits for our word. The first of a visit is the document; another one of the page leaves it."""
        visit, request, kind = self._visit, event["request"], event["resourceType"]
        is_page = kind == "Document" and event["frameId"] == self.target
        if visit and not visit.is_open and is_page and _is_same(request["url"], visit.document.url):
            visit.is_open = True
            session.tell("Fetch.fulfillRequest", requestId=event["requestId"], **_fulfilled(visit.document))
            return
        if visit is None or not visit.is_open:  # the page before, which has nothing more to ask for
            session.tell("Fetch.failRequest", requestId=event["requestId"], errorReason="Aborted")
            return
        if is_page:
            session.tell("Fetch.failRequest", requestId=event["requestId"], errorReason="Aborted")
            self._left(visit, request)
            return
        if not request["url"].startswith(("http:", "https:")):  # data:, blob: nothing leaves
            session.tell("Fetch.continueRequest", requestId=event["requestId"])
            return
        task = asyncio.create_task(self._load(visit, session, event))
        visit.tasks.add(task)
        task.add_done_callback(visit.tasks.discard)

    async def _load(self, visit: _Visit, session: Session, event: Event) -> None:
        """Let it go, in its turn, or refuse it."""
        request = event["request"]
        asked = Asked(url=request["url"], type=event["resourceType"], headers=request.get("headers", {}))
        self._end_of(event.get("networkId", ""))  # of the hop before, where this is one of a redirect

        def go() -> asyncio.Future[None]:
            end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._loading[event.get("networkId", "")] = end
            session.tell("Fetch.continueRequest", requestId=event["requestId"])
            return end

        if await visit.gate.passes(asked, go) not in LEFT:
            session.tell("Fetch.failRequest", requestId=event["requestId"], errorReason="BlockedByClient")

    def _left(self, visit: _Visit, request: Mapping[str, Any]) -> None:
        """The page goes elsewhere."""
        if visit.end.done():
            return
        url, method = request["url"], request["method"]
        if method == "GET" and url.startswith(("http:", "https:")):
            visit.end.set_result(Seen(ending="left", target=url, reason=f"the page goes to {url[:200]} by itself"))
        else:
            said = f"the page sends {method} to {url[:200]} by itself" if method != "GET" else f"it goes to {url[:200]}"
            visit.end.set_result(Seen(ending="astray", target=url, reason=said))

    def _lived(self, event: Event) -> None:
        if event["frameId"] == self.target:
            self._lifecycle.setdefault(event["loaderId"], set()).add(event["name"])
            self._moved.set()

    def _announced(self, event: Event) -> None:
        if self._visit and self._visit.is_open and event["frameId"] == self.target:
            self._visit.is_leaving = event.get("disposition", "currentTab") == "currentTab"

    def _asked_by_dialog(self, event: Event) -> None:
        """Nobody is there to answer: no, and on. A page that asks without end does not settle."""
        self._session.tell("Page.handleJavaScriptDialog", accept=event["type"] == "beforeunload")
        visit = self._visit
        if visit is None:
            return
        visit.flags.add("dialog_dismissed")
        visit.dialogs += 1
        if visit.dialogs > MOST_DIALOGS and not visit.end.done():
            visit.end.set_result(Seen(ending="unsettled", reason=f"more than {MOST_DIALOGS} dialogs"))

    def _attached(self, event: Event) -> None:
        """A frame in a process of its own, or a worker, goes on under the same guards; a service worker never does."""
        kind = event["targetInfo"]["type"]
        if kind not in ("iframe", "worker"):
            return
        child = self._session.child(event["sessionId"])
        child.on("Target.attachedToTarget", self._attached)
        self._watch(child)
        for guard in self._guards(child):
            task = asyncio.create_task(guard)
            task.add_done_callback(_seen)  # a worker has fewer of them: its requests pass those of its page
        child.tell("Runtime.runIfWaitingForDebugger")

    def _responded(self, event: Event) -> None:
        visit = self._visit
        if (
            visit
            and event["type"] != "Document"
            and any(fnmatch.fnmatchcase(event["response"]["url"], pattern) for pattern in visit.view.capture)
        ):
            visit.captured[event["requestId"]] = event["response"]

    def _loaded(self, session: Session, event: Event, *, whole: bool) -> None:
        name, visit = event["requestId"], self._visit
        self._end_of(name)
        if visit is None:
            return
        if event.get("blockedReason") == "inspector" and event.get("errorText") != "net::ERR_BLOCKED_BY_CLIENT":
            visit.gate.loads["unwanted"] += 1
        response = visit.captured.pop(name, None)
        if response is not None:
            body = self._body(session, name, response, visit.max_bytes) if whole else _none()
            visit.bodies[name] = asyncio.create_task(body)

    def _end_of(self, name: str) -> None:
        end = self._loading.pop(name, None)
        if end is not None and not end.done():
            end.set_result(None)

    async def _body(self, session: Session, name: str, response: Event, most: int) -> Part | None:
        """The body of a response, while the browser still has it (BRW-13)."""
        try:
            got = await session.call("Network.getResponseBody", requestId=name)
        except DevtoolsError:
            return None
        body = base64.b64decode(got["body"]) if got["base64Encoded"] else got["body"].encode("utf-8", "replace")
        if len(body) > most:
            return None
        headers = tuple(
            (str(key), value) for key, values in response["headers"].items() for value in values.split("\n")
        )
        return Part(
            role="captured", url=response["url"], status=response["status"], headers=headers, body=body,
        )  # fmt: skip

    def leave(self) -> None:
        """Listen to it no more."""
        self._session.leave()

    def _flag(self, name: str) -> None:
        if self._visit:
            self._visit.flags.add(name)

    def popup(self) -> None:
        """It opened another page, which was closed before it loaded anything."""
        self._flag("popup_closed")

    def _crashed(self, why: str) -> None:
        self.is_broken = True
        if self._visit and not self._visit.end.done():
            self._visit.end.set_result(Seen(ending="crashed", reason=why))


def _document(role: Literal["rendered", "frame"], url: str, html: bytes) -> Part:
    return Part(role=role, url=url, status=200, headers=(("Content-Type", RENDERED_TYPE),), body=html)


def _is_same(url: str, asked: str) -> bool:
    """Whether the browser's spelling of an address is that of the document, but for its fragment."""
    asked = urldefrag(asked)[0]
    return url == asked or urls.key(url) == urls.key(asked)


_OF_THE_BODY: Final = frozenset(("content-encoding", "content-length", "transfer-encoding", "refresh", "link"))
"""Not for the browser: the body is decoded, and what leads on is followed by us."""


def _fulfilled(document: Document) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in document.headers if name.lower() not in _OF_THE_BODY]
    body = base64.b64encode(document.body).decode("ascii")
    return {"responseCode": document.status, "responseHeaders": headers, "body": body}


async def _none() -> Part | None:
    return None


def _seen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
