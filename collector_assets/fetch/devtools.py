"""The DevTools protocol of a Chromium over its two pipes: JSON messages, each ended by a NUL byte.

A pipe and no port: nobody else on the machine can speak to the browser, and it ends when we do. Nothing stands between
(no driver process, no second copy of each event): what a page asks for waits until we answered, which is what a budget
and a guard need. https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

Event = Mapping[str, Any]
Handler = Callable[[Event], None]
PATIENCE_S: Final = 30.0
"""A command that is not answered by then never will be: the browser hangs."""


class DevtoolsError(Exception):
    """The browser refused a command; or it is gone."""


class BrowserGone(DevtoolsError):
    """The browser ended, or does not answer any more."""


class Devtools(asyncio.Protocol):
    """One browser's end of the line; made inside the event loop."""

    def __init__(self) -> None:
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the browser's pipe has closed."""
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._handlers: dict[tuple[str, str], Handler] = {}
        self._partial: list[bytes] = []
        self._writing: asyncio.WriteTransport | None = None

    def write_to(self, transport: asyncio.WriteTransport) -> None:
        """Where commands go."""
        self._writing = transport

    # --- asyncio.Protocol: the pipe that is read ---------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Messages, whole or in part."""
        *whole, rest = data.split(b"\0")
        for piece in whole:
            self._partial.append(piece)
            message = b"".join(self._partial)
            self._partial.clear()
            self._received(json.loads(message))
        if rest:
            self._partial.append(rest)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Whoever waits for an answer will not get one."""
        if not self.gone.done():
            self.gone.set_result(None)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(BrowserGone("the browser ended"))
        self._waiting.clear()

    # --- Commands and events -----------------------------------------------------------------------------------------

    def send(self, session: str, method: str, params: Mapping[str, Any]) -> asyncio.Future[Any]:
        """Send a command now; its answer comes later, or a `DevtoolsError`."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._writing is None or self._writing.is_closing() or self.gone.done():
            answer.set_exception(BrowserGone("the browser ended"))
            return answer
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": params}
        if session:
            command["sessionId"] = session
        self._waiting[number] = answer
        self._writing.write(json.dumps(command).encode() + b"\0")
        return answer

    def listen(self, session: str, event: str, handler: Handler) -> None:
        """Call `handler` for each such event of a session; "" is the browser itself."""
        self._handlers[session, event] = handler

    def forget(self, session: str) -> None:
        """Listen to a session no more."""
        for key in [key for key in self._handlers if key[0] == session]:
            del self._handlers[key]

    def _received(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            handler = self._handlers.get((message.get("sessionId", ""), message["method"]))
            if handler:
                handler(message.get("params", {}))
            return
        waiting = self._waiting.pop(message["id"], None)
        if waiting is None or waiting.done():
            return
        if error := message.get("error"):
            waiting.set_exception(DevtoolsError(str(error.get("message", error))))
        else:
            waiting.set_result(message.get("result", {}))


class Session:
    """A browser, a page, a frame or a worker: what commands are addressed to."""

    __slots__ = ("_line", "name")

    def __init__(self, line: Devtools, name: str = "") -> None:
        self._line, self.name = line, name

    @property
    def gone(self) -> asyncio.Future[None]:
        """Done when the browser has ended; to be looked at, never cancelled."""
        return self._line.gone

    async def call(self, method: str, /, **params: Any) -> Any:
        """The answer to a command."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._line.send(self.name, method, params)
        except TimeoutError:
            raise BrowserGone(f"the browser did not answer {method} within {PATIENCE_S:g} s") from None

    def tell(self, method: str, /, **params: Any) -> None:
        """Send a command whose answer does not matter: what it is about may be gone by then."""
        self._line.send(self.name, method, params).add_done_callback(_seen)

    def on(self, event: str, handler: Handler) -> None:
        """Listen to an event."""
        self._line.listen(self.name, event, handler)

    def child(self, name: str) -> Session:
        """Another session of the same browser."""
        return Session(self._line, name)

    def leave(self) -> None:
        """Listen no more."""
        self._line.forget(self.name)


def _seen(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()
