"""One TCP connection: requests in, responses out in order, each noted in the log of arrivals.

Times are `time.monotonic()`, which on Linux is one clock for all processes of a machine: they compare with a client's.
`arrived` is read when the bytes with the request line have been received. `ended` is read just before the write that
hands the last bytes to the kernel: read after it, a busy machine could note a time at which the client already had the
response, and accuse it of coming back too soon. When the kernel does not take everything at once, `ended` is when it
has; when the connection ends first, `ended` is when we saw that.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, cast

from .log import ArrivalLog
from .misbehave import TABLE, Exchange
from .reply import Reply, reply, wire
from .request import MOST_HEAD_BYTES, BadRequest, Headers, Request, parsed_headers, parsed_line

_HARD_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, zero seconds: closing sends RST


class Answers(Protocol):
    """What a connection needs of the site."""

    log: ArrivalLog | None
    connections: set[Connection]

    @property
    def accept_delay(self) -> float:
        """Seconds a new connection is left unread."""
        ...

    def control(self, request: Request) -> Reply | None:
        """The answer to a request for the control host; None when it is for another host."""
        ...

    def misbehaviour(self, request: Request) -> tuple[str, str] | None:
        """Name and argument of the misbehaviour for a request, or None."""
        ...

    def ordinary(self, request: Request) -> Reply:
        """What a request gets when nothing misbehaves."""
        ...

    def earlier(self, what: str, request: Request) -> int:
        """How often this was asked before for the request's host and target; counts it."""
        ...


@dataclass(slots=True, kw_only=True)
class _Open:
    """A request whose response has not ended."""

    request: Request
    arrived: float
    number: int
    epoch: int
    closes: bool
    misbehaviour: str | None = None
    status: int | None = None
    sent: int = 0


class Connection(asyncio.Protocol):
    """Keep-alive and pipelining; a request waits until the one before it has been answered."""

    def __init__(self, site: Answers) -> None:
        self._site = site
        self._pending = b""
        self._line_at: float | None = None  # when the next request's line was complete
        self._raw_headers, self._headers = b"\0", None  # of the request before: most are the same
        self._open: _Open | None = None
        self._task: asyncio.Task[None] | None = None
        self._last_write_at = 0.0
        self._is_paused = False
        self._wake: asyncio.Future[None] | None = None
        self._is_held = False  # by the switch accept_delay
        self._is_lost = False

    # asyncio calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._peer_port = (transport.get_extra_info("peername") or ("", 0))[1]
        self._transport.set_write_buffer_limits(0)  # write at once, and tell us when not everything could be
        self._site.connections.add(self)
        if self._site.accept_delay:
            self._is_held = True
            asyncio.get_running_loop().call_later(self._site.accept_delay, self._begin)

    def _begin(self) -> None:
        self._is_held = False
        if self._pending and not self._is_lost:
            self.data_received(b"")

    def data_received(self, data: bytes) -> None:
        """Some bytes: part of a request, one, or several."""
        now = monotonic()
        self._pending = self._pending + data if self._pending else data
        if self._is_held:  # uvloop forgets pause_reading() in connection_made, so what comes is left lying here
            return
        if self._line_at is None and b"\r\n" in self._pending:
            self._line_at = now
        if self._open is None:
            self._serve(now)
        elif len(self._pending) > MOST_HEAD_BYTES * 4:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """The kernel did not take everything."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Now it has."""
        self._is_paused = False
        self._last_write_at = monotonic()
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        elif self._open is not None and self._task is None:
            self._finish()
            self._serve(self._last_write_at)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio names it)
        """The connection is gone, whoever closed it."""
        self._is_lost = True
        self._site.connections.discard(self)
        if self._task is not None:
            self._task.cancel()
        if self._open is not None:
            self._last_write_at = monotonic()
            self._finish()

    # one request

    def _serve(self, now: float) -> None:
        """Answer what is complete in the pending bytes, until an answer takes time or the connection closes."""
        while self._open is None and self._pending and not self._is_lost and not self._transport.is_closing():
            try:
                request = self._next_request()
            except BadRequest as error:
                self._refuse(error.status)
                return
            if request is None:
                return
            arrived, self._line_at = self._line_at or now, now if b"\r\n" in self._pending else None
            self._take(request, arrived)

    def _next_request(self) -> Request | None:
        """Cut the next request off the pending bytes; None while it is incomplete."""
        pending = self._pending
        end = pending.find(b"\r\n\r\n")
        if end < 0:
            if len(pending) > MOST_HEAD_BYTES:
                raise BadRequest(431)
            return None
        line_end = pending.find(b"\r\n")
        method, target = parsed_line(pending[:line_end])
        headers = self._parsed(pending[line_end + 2 : end])
        body_end = end + 4 + headers.body_bytes
        if len(pending) < body_end:
            return None
        self._pending = pending[body_end:]
        path = target.partition("?")[0]
        return Request(method=method, target=target, path=path, headers=headers, body=pending[end + 4 : body_end])

    def _parsed(self, raw: bytes) -> Headers:
        if self._headers is None or raw != self._raw_headers:
            self._headers, self._raw_headers = parsed_headers(raw), raw
        return self._headers

    def _take(self, request: Request, arrived: float) -> None:
        answer = self._site.control(request)
        if answer is not None:
            self._transport.write(wire(answer, method=request.method))
            if request.headers.closes:
                self._transport.close()
            return
        log = self._site.log
        number, epoch = (log.arrival(), log.epoch) if log else (0, 0)
        self._open = _Open(request=request, arrived=arrived, number=number, epoch=epoch, closes=request.headers.closes)
        misbehaviour = self._site.misbehaviour(request)
        answer = self._site.ordinary(request)
        if misbehaviour is None:
            self._open.status = answer.status
            self.write(wire(answer, method=request.method))
            if not self._is_paused:
                self._finish()
        else:
            self._open.misbehaviour = misbehaviour[0]
            self._task = asyncio.get_running_loop().create_task(self._misbehave(request, *misbehaviour, answer))

    async def _misbehave(self, request: Request, name: str, argument: str, ordinary: Reply) -> None:
        exchange = Exchange(self, request, ordinary, self._site.earlier(name, request))
        try:
            await TABLE[name](exchange, argument)
        except ValueError:
            exchange.respond(reply(f"{argument!r} is no argument for {name}\n", status=400, content_type="text/plain"))
        await self.drained()
        self._task = None
        self._finish()
        self._transport.resume_reading()
        self._serve(monotonic())

    def _finish(self) -> None:
        """The response has ended: log it, and close if the client asked for that."""
        done, self._open = self._open, None
        log = self._site.log
        if done is None:
            return
        if log is not None and done.epoch == log.epoch:
            request = done.request
            log.add(
                done.number, request.headers.host, request.target, request.method, done.arrived, self._last_write_at,
                done.status, done.sent, self._peer_port, request.headers.user_agent, done.misbehaviour,
            )  # fmt: skip
        if done.closes and not self._is_lost:
            self._transport.close()

    def _refuse(self, status: int) -> None:
        text = f"HTTP/1.1 {status} Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        self._transport.write(text.encode())
        self._transport.close()

    # what an Exchange does with the connection

    def note_status(self, status: int) -> None:
        """The status that the log will show."""
        if self._open is not None:
            self._open.status = status

    def write(self, data: bytes) -> None:
        """Hand bytes to the kernel now."""
        if self._open is None or self._is_lost:
            return
        self._open.sent += len(data)
        self._last_write_at = monotonic()
        self._transport.write(data)

    async def drained(self) -> None:
        """Return when the kernel has taken everything written."""
        if self._is_paused and not self._is_lost:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
            self._wake = None

    def close(self) -> None:
        """Close in good order after what was written."""
        self._last_write_at = monotonic()
        self._transport.close()

    def reset(self) -> None:
        """Close with RST."""
        self._last_write_at = monotonic()
        transport_socket = self._transport.get_extra_info("socket")
        with socket.socket(fileno=os.dup(transport_socket.fileno())) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _HARD_CLOSE)
        self._transport.abort()

    def abort(self) -> None:
        """The site stops: end the connection now; what was open is logged as ended."""
        self._transport.abort()
