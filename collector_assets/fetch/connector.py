"""Connections for one HTTP attempt: where they may lead, when a request may leave on them, and that it leaves once.

aiohttp calls the connector in the task of the fetch, so the attempt travels in a context variable.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from collector_assets.fetch.egress import Egress

SECOND_ADDRESS_AFTER_S = 0.25
"""When the next address is tried beside one that does not answer; families take turns (RFC 8305 §5, §8)."""
KEEP_ALIVE_S = 4.0
"""Common servers close an idle connection after 5 s: a shorter time keeps us from writing into a closing one."""

_NEVER = datetime.min.replace(tzinfo=UTC)


class PermissionOver(Exception):
    """The connection stands, but `may_send()` says no."""


class Resent(Exception):
    """aiohttp asked for a second connection for one request: the first one was dropped."""


@dataclass(slots=True)
class Attempt:
    """One request on its connection."""

    may_send: Callable[[], bool]
    is_sent: bool = False
    """Whether bytes may have left."""
    requested_at: datetime = _NEVER
    ip: str | None = None
    connection: Connection | None = None
    transport: asyncio.Transport | None = None
    content: aiohttp.StreamReader | None = None
    """The body, once there is one."""

    def take_off(self, connection: Connection) -> None:
        """Ask for the permission, on a connection that stands; after this the bytes leave."""
        if not self.may_send():
            raise PermissionOver
        self.connection, self.transport = connection, connection.transport
        peer = self.transport.get_extra_info("peername") if self.transport else None
        self.ip = peer[0] if peer else None
        self.requested_at, self.is_sent = datetime.now(UTC), True

    def connection_ended(self) -> None:
        """End the body too: aiohttp leaves its reader waiting when it closes because chunks stopped making sense."""
        if self.content is not None and not self.content.is_eof() and self.content.exception() is None:
            self.content.set_exception(aiohttp.ClientPayloadError())

    def abort(self) -> None:
        """Close the connection, also one with bytes still to be sent; not one that went back to the pool."""
        if self.connection is None or self.transport is None:
            return
        if self.connection.protocol is not None or self.transport.is_closing():
            self.transport.abort()
            self.connection.close()

    async def abandon(self) -> None:
        """Close the connection; it is closed when this returns."""
        self.abort()
        await asyncio.sleep(0)  # the loop closes the socket in its next round


current: ContextVar[Attempt] = ContextVar("attempt")


class _Resolver(AbstractResolver):
    """Names become addresses only by the egress rule."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=each.ip, port=each.port, family=family, proto=0, flags=0)
            for each in await self._egress.addresses(host, port)
        ]

    async def close(self) -> None:
        """Nothing to release."""


class Connector(aiohttp.TCPConnector):
    """Connections by the egress rule, given out under the permission, once for each attempt."""

    def __init__(self, egress: Egress, connections: int, *, trust: ssl.SSLContext | None = None) -> None:
        super().__init__(
            ssl=trust or True,
            resolver=_Resolver(egress),
            use_dns_cache=False,
            limit=connections,
            keepalive_timeout=KEEP_ALIVE_S,
            happy_eyeballs_delay=SECOND_ADDRESS_AFTER_S,
            interleave=1,
        )
        self._egress = egress
        self._latest: WeakKeyDictionary[asyncio.Protocol, _Known] = WeakKeyDictionary()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[aiohttp.tracing.Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's signature
    ) -> Connection:
        """A connection, new or kept alive, on which the request may leave at once."""
        attempt = current.get()
        if attempt.is_sent:
            raise Resent
        self._egress.check(req.url.raw_host or "", req.url.port or 0)
        connection = await super().connect(req, traces, timeout)
        while (known := self._known(connection)) and known.is_stale(connection):
            connection.close()
            connection = await super().connect(req, traces, timeout)
        try:
            attempt.take_off(connection)
        except BaseException:
            connection.release()
            raise
        if known:
            known.attempt = attempt
        elif connection.protocol is not None and connection.transport is not None:
            self._know(connection.protocol, connection.transport, attempt)
        return connection

    def _known(self, connection: Connection) -> _Known | None:
        return self._latest.get(connection.protocol) if connection.protocol is not None else None

    def _know(self, protocol: ResponseHandler, transport: asyncio.Transport, attempt: Attempt) -> None:
        if (closed := protocol.closed) is not None:
            closed.add_done_callback(lambda closed: self._ended(protocol, closed))
        waiting = select.poll()
        waiting.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self._latest[protocol] = _Known(attempt, waiting)

    def _ended(self, protocol: ResponseHandler, closed: asyncio.Future[None]) -> None:
        if not closed.cancelled():
            closed.exception()  # seen: asyncio would log it
        if (known := self._latest.get(protocol)) is not None:
            known.attempt.connection_ended()


@dataclass(slots=True)
class _Known:
    """A connection that was used before."""

    attempt: Attempt
    """The latest on it."""
    waiting: select.poll
    """Says whether bytes wait on its socket."""

    def is_stale(self, connection: Connection) -> bool:
        """Whether something came on it while it was idle: its end, or bytes that would pass for the answer to come.

        aiohttp looks for neither before it uses a connection again, and the loop may not have read them yet.
        """
        if connection.transport is None or connection.protocol is None or connection.protocol.should_close:
            return True
        return bool(self.waiting.poll(0))
