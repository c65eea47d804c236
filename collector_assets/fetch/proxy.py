"""A browser's only way out: an HTTP proxy of ours on the loopback, in the worker's own event loop.

It connects to addresses that the egress guard has judged and to nothing else (rule 13), for requests that a visit has
asked permission for and for no others, and only for our own browser: whoever else on this machine connects is hung up
on. TLS passes unopened, by CONNECT; what is inside was asked for, request by request, before the browser sent it
(`tab.py`). A plain request is compared word for word with what was asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from collector_assets.errors import DestinationRefused
from collector_assets.fetch.egress import Egress

MAX_HEAD: Final = 256 * 1024
HEAD_WITHIN_S: Final = 30.0
CONNECTS_WITHIN_S: Final = 10.0
_PIECE: Final = 64 * 1024
_HOP_BY_HOP: Final = re.compile(rb"(?:proxy-[a-z-]+|connection|keep-alive|te|upgrade)\s*:", re.IGNORECASE)
"""Of the browser and us, not of the browser and the site (RFC 9110 §7.6.1)."""


class Passes(Protocol):
    """What the visits under way have asked permission for."""

    def may_send(self, url: str) -> bool:
        """Whether a plain request to this URL was asked for."""
        ...

    def may_connect(self, host: str, port: int) -> bool:
        """Whether a request through TLS to this host and port was asked for."""
        ...


class _NoWay(Exception):
    """The answer to the browser instead of a connection."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class EgressProxy:
    """Serves one browser."""

    def __init__(self, egress: Egress, passes: Passes, is_ours: Callable[[int, int], bool]) -> None:
        """`is_ours(port, to_port)`: whether a connection from that local port is the browser's; asked on a thread."""
        self.sent: Counter[str] = Counter()
        """Connections made, by host."""
        self.refused: Counter[str] = Counter()
        """Requests refused, by host."""
        self.strangers = 0
        """Connections of others, hung up on."""
        self._egress, self._passes, self._is_ours = egress, passes, is_ours
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen on a port of the loopback that the system chooses; its address as a URL."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=MAX_HEAD)
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None  # noqa: S101  started
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Hang up on everybody."""
        if self._server is None:
            return
        self._server.close()
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one plain request, or one tunnel."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  asyncio calls this as a task
        self._busy.add(task)
        try:
            peer = writer.get_extra_info("peername")
            if peer is None or not await asyncio.to_thread(self._is_ours, int(peer[1]), self.port):
                self.strangers += 1
                return
            await self._forward(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # one of both went away: the browser sees that, and a visit says what it means
        finally:
            self._busy.discard(task)
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_WITHIN_S):
            head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].split(b"\r\n")
        try:
            method, target, _ = first.decode("ascii").split(" ")
            if method == "CONNECT":
                host, port = _host_and_port(f"//{target}", 443)
                up, down = await self._connected(host, port, is_asked=self._passes.may_connect(host, port))
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                host, port = _host_and_port(target, 80)
                up, down = await self._connected(host, port, is_asked=self._passes.may_send(target))
                down.write(_own_form(method, target, lines))
        except (ValueError, _NoWay) as error:
            status = error.status if isinstance(error, _NoWay) else "400 Bad Request"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
            return
        await _both_ways(reader, writer, up, down)

    async def _connected(
        self, host: str, port: int, *, is_asked: bool
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a judged address; `_NoWay` without one. What nobody asked for is not even looked up."""
        if not is_asked:
            self.refused[host] += 1
            raise _NoWay("403 Not asked for")
        try:
            self._egress.check(host, port)
            async with asyncio.timeout(CONNECTS_WITHIN_S):
                found = await self._egress.addresses(host, port)
                connection = await _first_of([(each.ip, each.port) for each in found])
        except DestinationRefused:
            self.refused[host] += 1
            raise _NoWay("403 Destination refused") from None
        except (OSError, TimeoutError):
            raise _NoWay("502 No connection") from None
        self.sent[host] += 1
        return connection


async def _first_of(addresses: Sequence[tuple[str, int]]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The first address that takes a connection."""
    said: OSError = OSError("no address")
    for ip, port in addresses:
        try:
            return await asyncio.open_connection(ip, port)
        except OSError as error:
            said = error
    raise said


def _host_and_port(target: str, default: int) -> tuple[str, int]:
    """Of an absolute URL; ValueError for anything else."""
    parts = urlsplit(target)
    if parts.scheme not in ("", "http") or not parts.hostname:
        raise ValueError(target)
    return parts.hostname, parts.port or default


def _own_form(method: str, target: str, lines: Sequence[bytes]) -> bytes:
    """The head of a plain request as an origin server expects it (RFC 9112 §3.2.1); the connection ends with it."""
    parts = urlsplit(target)
    path = target[len(f"{parts.scheme}://{parts.netloc}") :].partition("#")[0] or "/"
    kept = [line for line in lines if not _HOP_BY_HOP.match(line)]
    head = [f"{method} {path if path.startswith('/') else '/' + path} HTTP/1.1".encode(), *kept, b"Connection: close"]
    return b"\r\n".join(head) + b"\r\n\r\n"


async def _both_ways(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, up: asyncio.StreamReader, down: asyncio.StreamWriter
) -> None:
    """Bytes from each to the other, until the site has ended, or the browser has gone."""
    to_site = asyncio.create_task(_pour(reader, down))
    to_browser = asyncio.create_task(_pour(up, writer))
    try:
        await asyncio.wait({to_site, to_browser}, return_when=asyncio.FIRST_COMPLETED)
        if to_site.done() and not to_browser.done():
            with contextlib.suppress(OSError):
                down.write_eof() if down.can_write_eof() else None
            await asyncio.wait({to_browser})
    finally:
        for task in (to_site, to_browser):
            task.cancel()
        await asyncio.gather(to_site, to_browser, return_exceptions=True)
        down.close()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
