"""HTTP/1.1 by aiohttp: each request is sent once, and its answer is kept as the bytes that came.

What aiohttp would do by itself is off or refused here: redirects, cookies, decompression, proxies from the environment,
and the second sending of a request whose connection was dropped (rule 8).
"""

from __future__ import annotations

import asyncio
import re
import select
import ssl
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from time import monotonic
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from collector_assets import outcome
from collector_assets.errors import DestinationRefused
from collector_assets.fetch import FetchRequest, NoResponse, NotSent, Response, Truncated
from collector_assets.fetch.egress import DemoSiteOnly, Egress
from collector_assets.outcome import Outcome
from collector_assets.request import Secret

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
"""What `decoding.py` can undo."""
KEEP_ALIVE_S = 4.0
"""Common servers close an idle connection after 5 s: a shorter time keeps us from writing into a closing one."""
MAX_HEADER_BYTES = 32_768
"""Of one header line; real sites exceed aiohttp's 8,190."""
MAX_HEADERS = 256
MAX_REASON = 300

_OURS = frozenset(
    ("user-agent", "host", "connection", "content-length", "transfer-encoding", "te", "upgrade", "expect", "keep-alive")
)
_NEVER = datetime.min.replace(tzinfo=UTC)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class HttpFetcher:
    """One pool of connections; of more than `connections` requests at once, the rest wait for a free connection."""

    def __init__(self, *, user_agent: str, demo_site: str, connections: int) -> None:
        self._egress = DemoSiteOnly(demo_site)
        self._identity = {"User-Agent": user_agent, "Accept": "*/*", "Accept-Encoding": ACCEPT_ENCODING}
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def fetch(self, request: FetchRequest, may_send: Callable[[], bool]) -> Response | NoResponse | NotSent:
        """Send `request` once (see `Fetcher.fetch`)."""
        attempt = _Attempt(may_send=may_send)
        attempt_before = _current.set(attempt)
        try:
            return await self._exchange(request, attempt)
        except _PermissionOver:
            return NotSent(ended_at=monotonic())
        except Exception as error:  # noqa: BLE001  every end of an attempt is an outcome
            await attempt.abandon()
            what, reason = _explained(error, request, is_sent=attempt.is_sent)
            return NoResponse(outcome=what, reason=attempt.shown(reason), ended_at=monotonic(), sent=attempt.is_sent)
        except BaseException:
            attempt.abort()
            raise
        finally:
            _current.reset(attempt_before)

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, request: FetchRequest, attempt: _Attempt) -> Response:
        answer = await (self._session or self._open()).request(
            request.method,
            URL(request.url, encoded=True),
            headers=attempt.revealed(request.headers) if request.headers else None,
            data=request.body,
            allow_redirects=False,
            timeout=_timeout(request.connect_s, request.read_s, request.total_s),
        )
        body = await _received(answer, request, attempt)
        fetched_at, ended_at = datetime.now(UTC), monotonic()
        version = answer.version
        what, reason = _judged(answer, body, request.method)
        return Response(
            outcome=what,
            reason=attempt.shown(reason) if reason else "",
            url=request.url,
            final_url=request.url,
            http_version=f"{version.major}.{version.minor}" if version else "",
            status=answer.status,
            status_text=answer.reason or "",
            headers=answer.raw_headers,
            body=body.content,
            truncated=body.truncated,
            request_headers=attempt.masked(answer.request_info.headers),
            requested_at=attempt.requested_at,
            fetched_at=fetched_at,
            ended_at=ended_at,
            ip=attempt.ip,
        )

    def _open(self) -> aiohttp.ClientSession:
        """The session, made at the first request because it belongs to the running loop."""
        self._session = aiohttp.ClientSession(
            connector=_Connector(self._egress, self._connections),
            headers=self._identity,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )
        return self._session


# --- One attempt ------------------------------------------------------------------------------------------------------


class _PermissionOver(Exception):
    """The connection stands, but `may_send()` says no."""


class _Resent(Exception):
    """aiohttp asked for a second connection for one request: the first one was dropped."""


class _SecretUnusable(Exception):
    """A secret is not in the environment, or no header can carry it; the message is without its value."""


@dataclass(slots=True)
class _Attempt:
    """What one call of `fetch` shares with the connector, which aiohttp calls for it in the same task."""

    may_send: Callable[[], bool]
    is_sent: bool = False
    """Whether bytes may have left."""
    requested_at: datetime = _NEVER
    ip: str | None = None
    connection: aiohttp.connector.Connection | None = None
    transport: asyncio.Transport | None = None
    content: aiohttp.StreamReader | None = None
    secrets: dict[str, Secret] = field(default_factory=dict)
    """By header name in lower case."""
    values: list[str] = field(default_factory=list)
    """What must not be seen: the secrets' values, with and without prefix."""

    def take_off(self, connection: aiohttp.connector.Connection) -> None:
        """Ask for the permission, on a connection that stands; after this the bytes leave."""
        if not self.may_send():
            raise _PermissionOver
        self.connection, self.transport = connection, connection.transport
        peer = self.transport.get_extra_info("peername") if self.transport else None
        self.ip = peer[0] if peer else None
        self.requested_at, self.is_sent = datetime.now(UTC), True

    def connection_ended(self) -> None:
        """End the body too: aiohttp leaves its reader waiting when it closes because chunks stopped making sense."""
        if self.content is not None and not self.content.is_eof() and self.content.exception() is None:
            self.content.set_exception(aiohttp.ClientPayloadError())

    def abort(self) -> None:
        """Close the connection, also one with bytes still to be sent."""
        if self.connection is not None and self.transport is not None:
            self.transport.abort()
            self.connection.close()

    async def abandon(self) -> None:
        """Close the connection; it is closed when this returns."""
        self.abort()
        await asyncio.sleep(0)  # the loop closes the socket in its next round

    def revealed(self, headers: Mapping[str, str | Secret]) -> dict[str, str]:
        """The headers with their secrets' values, read now."""
        return {name: self._value(name, value) for name, value in headers.items() if name.lower() not in _OURS}

    def _value(self, name: str, value: str | Secret) -> str:
        if isinstance(value, str):
            return value
        revealed = value.read()
        if revealed is None:
            raise _SecretUnusable(f"header {name}: {value.name} is not set in the environment")
        if _CONTROL.search(revealed):
            raise _SecretUnusable(f"header {name}: {value.name} holds a line break or another control character")
        self.secrets[name.lower()] = value
        self.values += [revealed, revealed.removeprefix(value.prefix)]
        return revealed

    def masked(self, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The headers as sent, secrets by their names."""
        if not self.secrets:
            return tuple(headers.items())
        return tuple((name, str(self.secrets.get(name.lower(), value))) for name, value in headers.items())

    def shown(self, reason: str) -> str:
        """The reason on one short line, without secrets."""
        for value in self.values:
            reason = reason.replace(value, "{secret}")
        return " ".join(_CONTROL.sub(" ", reason).split())[:MAX_REASON]


_current: ContextVar[_Attempt] = ContextVar("attempt")


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


class _Connector(aiohttp.TCPConnector):
    """Connections by the egress rule, given out under the permission, once for each attempt."""

    def __init__(self, egress: Egress, connections: int) -> None:
        super().__init__(
            resolver=_Resolver(egress), use_dns_cache=False, limit=connections, keepalive_timeout=KEEP_ALIVE_S
        )
        self._egress = egress
        self._latest: WeakKeyDictionary[asyncio.Protocol, _Attempt] = WeakKeyDictionary()
        """The latest attempt on each connection."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[aiohttp.tracing.Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  aiohttp's signature
    ) -> aiohttp.connector.Connection:
        """A connection, new or kept alive, on which the request may leave at once."""
        attempt = _current.get()
        if attempt.is_sent:
            raise _Resent
        self._egress.check(req.url.raw_host or "")
        connection = await super().connect(req, traces, timeout)
        while (protocol := connection.protocol) in self._latest and _is_stale(connection):
            connection.close()
            connection = await super().connect(req, traces, timeout)
        try:
            attempt.take_off(connection)
        except BaseException:
            connection.release()
            raise
        if protocol is not None:
            self._know(protocol, attempt)
        return connection

    def _know(self, protocol: ResponseHandler, attempt: _Attempt) -> None:
        if protocol not in self._latest and (closed := protocol.closed) is not None:
            closed.add_done_callback(lambda closed: self._ended(protocol, closed))
        self._latest[protocol] = attempt

    def _ended(self, protocol: ResponseHandler, closed: asyncio.Future[None]) -> None:
        if not closed.cancelled():
            closed.exception()  # seen: asyncio would log it
        if (attempt := self._latest.get(protocol)) is not None:
            attempt.connection_ended()


def _is_stale(connection: aiohttp.connector.Connection) -> bool:
    """Whether something came on an idle connection: its end, or bytes that would pass for the answer to come.

    aiohttp looks for neither before it uses a connection again, and the loop may not have read them yet.
    """
    if connection.transport is None or connection.protocol is None or connection.protocol.should_close:
        return True
    waiting = select.poll()
    waiting.register(connection.transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(waiting.poll(0))


@lru_cache(maxsize=64)
def _timeout(connect_s: float, read_s: float, total_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, connect=connect_s, sock_read=read_s, ceil_threshold=float("inf"))


# --- The body ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    """What came, and why it is not all."""

    content: bytes
    outcome: Outcome = Outcome.OK
    truncated: Truncated | None = None
    reason: str = ""


async def _received(answer: aiohttp.ClientResponse, request: FetchRequest, attempt: _Attempt) -> _Body:
    """The body up to its end, the cap, a deadline or a disconnect; the connection is free or closed after it."""
    attempt.content = answer.content
    if answer.content.at_eof():
        return _Body(content=b"")
    declared = answer.content_length
    if declared is not None and declared > request.max_bytes:
        await attempt.abandon()
        return _too_large(b"", f"{declared:,} bytes declared", request.max_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        while part := await answer.content.readany():
            parts.append(part)
            size += len(part)
            if size > request.max_bytes:
                await attempt.abandon()
                return _too_large(b"".join(parts)[: request.max_bytes], "longer", request.max_bytes)
            if answer.content.at_eof():
                break
    except (aiohttp.ClientError, OSError) as error:
        content = b"".join((*parts, *answer.content._buffer))[: request.max_bytes]  # noqa: SLF001  reading it raises by now
        await attempt.abandon()
        what, reason = _explained(error, request, is_sent=True)
        is_late = what is Outcome.TIMEOUT
        return _Body(
            content=content,
            outcome=what if is_late else Outcome.TRUNCATED,
            truncated="time" if is_late else "disconnect",
            reason=f"{reason}; {len(content):,} bytes of the body came",
        )
    return _Body(content=parts[0] if len(parts) == 1 else b"".join(parts))


def _too_large(content: bytes, found: str, most: int) -> _Body:
    reason = f"{found}, at most {most:,} are taken"
    return _Body(content=content, outcome=Outcome.TOO_LARGE, truncated="length", reason=reason)


# --- Outcomes ---------------------------------------------------------------------------------------------------------


def _judged(answer: aiohttp.ClientResponse, body: _Body, method: str) -> tuple[Outcome, str]:
    """The status decides; only a 200 is judged by its body."""
    by_status = outcome.of_status(answer.status)
    if by_status is not Outcome.OK:
        location = answer.headers.get("Location") if by_status is Outcome.REDIRECT else None
        said = (str(answer.status), answer.reason, location and f"to {location}", body.reason)
        return by_status, " ".join(filter(None, said))
    if body.outcome is Outcome.OK and not body.content and method != "HEAD":
        return Outcome.EMPTY_BODY, "status 200 without a byte"
    return body.outcome, body.reason


_MEANINGS: tuple[tuple[type[Exception], Outcome, str], ...] = (
    (DestinationRefused, Outcome.DESTINATION_REFUSED, ""),
    (_SecretUnusable, Outcome.SECRET_MISSING, ""),
    (aiohttp.ClientConnectorDNSError, Outcome.HOST_UNRESOLVED, ""),
    (aiohttp.ClientSSLError, Outcome.TLS_ERROR, ""),
    (ssl.SSLError, Outcome.TLS_ERROR, ""),
    (aiohttp.ClientConnectorError, Outcome.CONNECT_ERROR, ""),
    (aiohttp.ClientPayloadError, Outcome.TRUNCATED, "the connection ended before the body did"),
    (aiohttp.ClientConnectionError, Outcome.CONNECTION_LOST, "closed or reset before an answer came"),
    (_Resent, Outcome.CONNECTION_LOST, "closed or reset before an answer came"),
    (OSError, Outcome.CONNECTION_LOST, "closed or reset before an answer came"),
)
"""What an exception means: the first that fits; without words it speaks for itself."""


def _explained(error: Exception, request: FetchRequest, *, is_sent: bool) -> tuple[Outcome, str]:
    """The one outcome that an exception of this attempt means, and words for it."""
    if isinstance(error, TimeoutError):
        return _late(error, request, is_sent=is_sent)
    if isinstance(error, aiohttp.ClientResponseError):
        first_line = error.message.partition("\n")[0]  # the others quote what was received
        return Outcome.PROTOCOL_ERROR, f"not HTTP: {first_line.rstrip(':')}"
    for kind, what, words in _MEANINGS:
        if isinstance(error, kind):
            return what, words or str(error)
    return Outcome.FETCHER_ERROR, f"{type(error).__name__}: {error}"


def _late(error: TimeoutError, request: FetchRequest, *, is_sent: bool) -> tuple[Outcome, str]:
    if not is_sent:
        return Outcome.CONNECT_ERROR, f"no connection within {min(request.connect_s, request.total_s):g} s"
    if isinstance(error, aiohttp.SocketTimeoutError):
        return Outcome.TIMEOUT, f"silent for {request.read_s:g} s"
    return Outcome.TIMEOUT, f"not complete within {request.total_s:g} s"
