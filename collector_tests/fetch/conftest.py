"""Every fetcher, on every loop that it may run on, and servers that say exactly what a test wants."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import sleep
from typing import Any, TypeVar

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from collector_assets.contract import Browser
from collector_assets.fetch import Fetcher, FetchRequest, NoResponse, NotSent, Response
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_tests.fixtures.browser import NEEDS_CHROMIUM, browser_fetcher

Result = TypeVar("Result")
End = Response | NoResponse | NotSent

USER_AGENT = "collector-assets/0.1 (+test@shop.example)"
HARD_CLOSE = struct.pack("ii", 1, 0)


def always() -> bool:
    return True


def asked(path: str = "/", **changes: Any) -> FetchRequest:
    """A request to the demo shop with deadlines that a busy machine keeps."""
    url = f"http://shop.localhost:8765{path}"
    usual = FetchRequest(url=url, connect_s=10.0, read_s=10.0, total_s=20.0, max_bytes=65_536)
    return replace(usual, **changes)


def http_fetcher(address: str, connections: int = 8) -> Fetcher:
    return HttpFetcher(user_agent=USER_AGENT, egress=DemoSiteOnly(address), connections=connections)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One kind of fetcher with the loop that it runs on."""

    make: Callable[..., Fetcher]
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def use(self, address: str, scenario: Callable[[Fetcher], Awaitable[Result]], **options: Any) -> Result:
        """What `scenario` returns, with a fetcher that is closed after it."""

        async def whole() -> Result:
            fetcher = self.make(address, **options)
            try:
                return await scenario(fetcher)
            finally:
                await fetcher.close()

        return self.run(whole())

    def fetch(self, address: str, *requests: FetchRequest, may_send: Callable[[], bool] = always) -> list[End]:
        """How the requests ended, one after the other on one fetcher."""

        async def in_turn(fetcher: Fetcher) -> list[End]:
            return [await fetcher.fetch(request, may_send) for request in requests]

        return self.use(address, in_turn)

    def answer(self, address: str, request: FetchRequest) -> Response:
        """The answer to one request."""
        (end,) = self.fetch(address, request)
        assert isinstance(end, Response), end
        return end

    def failure(self, address: str, request: FetchRequest) -> NoResponse:
        """The end of one request that gets no answer."""
        (end,) = self.fetch(address, request)
        assert isinstance(end, NoResponse), end
        return end


def page_fetcher(address: str, connections: int = 8) -> Fetcher:
    """Documents alone: what a page loads besides is no matter of what every fetcher does."""
    return browser_fetcher(DemoSiteOnly(address), Browser(subrequests="cap 0"), connections=connections)


HTTP = (
    pytest.param((http_fetcher, asyncio.run), id="http"),
    pytest.param((http_fetcher, uvloop.run), id="http-uvloop"),
)


@pytest.fixture(params=HTTP)
def client(request: pytest.FixtureRequest) -> Client:
    """The HTTP fetcher, on each loop."""
    make, run = request.param
    return Client(make=make, run=run)


@pytest.fixture(params=[*HTTP, pytest.param((page_fetcher, uvloop.run), id="browser", marks=NEEDS_CHROMIUM)])
def every_client(request: pytest.FixtureRequest) -> Client:
    """Each fetcher; a new one joins the suite here."""
    make, run = request.param
    return Client(make=make, run=run)


@dataclass(slots=True)
class Speaker:
    """A server that answers each request with the next of `says`, whatever was asked, and then closes."""

    address: str
    heads: list[bytes] = field(default_factory=list)
    """What was received, request by request."""


@contextmanager
def speaking(
    *says: bytes | tuple[bytes, ...],
    resets: bool = False,
    waits: bool = True,
    tls: ssl.SSLContext | None = None,
    port: int = 0,
) -> Iterator[Speaker]:
    """Serve on a port, a free one if none is said; of a tuple, each piece travels alone.

    `resets`: end with RST. Without `waits` it speaks before it was asked.
    """
    with socket.create_server(("127.0.0.1", port)) as listening:
        speaker = Speaker(address=f"127.0.0.1:{listening.getsockname()[1]}")

        def serve() -> None:
            with suppress(OSError):  # the listening socket was shut down
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), _secured(connection, tls) as secured:
                        _speak(secured, speaker, says, waits=waits)
                        if resets:
                            secured.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HARD_CLOSE)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield speaker
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def _secured(connection: socket.socket, tls: ssl.SSLContext | None) -> socket.socket:
    return tls.wrap_socket(connection, server_side=True) if tls else connection


def _speak(
    connection: socket.socket, speaker: Speaker, says: tuple[bytes | tuple[bytes, ...], ...], *, waits: bool
) -> None:
    for each in says:
        if waits:
            request = _received_request(connection)
            if not request:
                return
            speaker.heads.append(request)
        for piece in (each,) if isinstance(each, bytes) else each:
            connection.sendall(piece)
            sleep(0.05 * isinstance(each, tuple))


def _received_request(connection: socket.socket) -> bytes:
    """Head and body of one request; nothing when the client closes before."""
    received = b""
    while True:
        head, end, body = received.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
        if end and len(body) >= length:
            return received
        some = connection.recv(65_536)
        if not some:
            return b""
        received += some


@pytest.fixture(scope="session")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """TLS for `*.localhost` with a certificate that nobody has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.localhost")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.localhost")]), critical=False)
        .sign(key, SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
