"""A stranger's site, a canary on every local address, and a witness of each connection that Python makes."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from collector_assets.addresses import AddressPolicy
from collector_assets.fetch.egress import Guard
from collector_assets.fetch.http import HttpFetcher
from collector_assets.fetch.names import Memory, Names

USER_AGENT = "collector-tests/1 (+tests@example.org)"
HOME = "127.0.0.2"
"""Where the stranger's site is: the one address inside that these tests allow."""
ALLOWED = (f"{HOME}/32",)

_connections: list[Any] = []


def _watch(event: str, details: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        _connections.append(details[1])


sys.addaudithook(_watch)  # Python's own report of each connect(), whoever calls it


@dataclass(slots=True)
class Canary:
    """Listens where no request may arrive."""

    port: int
    arrivals: list[Any]
    targets: int = 0
    """How many were tried, over all ways."""
    _first: int = 0

    def watch(self) -> None:
        """From now on, connections count."""
        self.arrivals.clear()
        self._first = len(_connections)

    @property
    def connections(self) -> list[Any]:
        """Where connections were made to, the stranger's site aside."""
        made = [where for where in _connections[self._first :] if isinstance(where, tuple) and where[0] != HOME]
        return made + self.arrivals


@contextmanager
def _listening(family: int, ip: str, port: int, arrivals: list[Any]) -> Iterator[int]:
    with socket.create_server((ip, port), family=family) as server:

        def serve() -> None:
            with suppress(OSError):  # shut down
                while True:
                    connection, peer = server.accept()
                    arrivals.append(peer)
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@pytest.fixture(scope="session")
def listening_canary() -> Iterator[Canary]:
    """One for the session, on every address of this machine."""
    arrivals: list[Any] = []
    with (
        _listening(socket.AF_INET, "0.0.0.0", 0, arrivals) as port,  # noqa: S104  every address is the point
        _listening(socket.AF_INET6, "::", port, arrivals),
    ):
        canary = Canary(port=port, arrivals=arrivals)
        yield canary
        _tried.append(canary.targets)


_tried: list[int] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """For `make hostile`."""
    if _tried:
        terminalreporter.write_line(f"{sum(_tried)} hostile targets; each connection is a failure")


@dataclass(slots=True)
class Stranger:
    """A site that answers with what `pages` say: path -> (status, headers, body); else 404."""

    port: int
    pages: dict[str, tuple[int, Mapping[str, str], str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://site.example:{self.port}"

    def page(self, path: str, body: str = "<p>hello</p>", status: int = 200, **headers: str) -> str:
        """Add a page; its URL."""
        self.pages[path] = (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)
        return self.origin + path

    def redirect(self, path: str, to: str) -> str:
        return self.page(path, status=302, Location=to)


@pytest.fixture(scope="session")
def serving_stranger() -> Iterator[Stranger]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            stranger.requests.append(self.path)
            status, headers, body = stranger.pages.get(self.path, (404, {}, "no such page"))
            content = body.encode()
            head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}", "Content-Type: text/html; charset=utf-8"]
            head += [f"{name}: {value}" for name, value in headers.items()]
            self.wfile.write("\r\n".join(head).encode() + b"\r\n\r\n" + content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's name
            pass

    with ThreadingHTTPServer((HOME, 0), Handler) as server:
        stranger = Stranger(port=server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield stranger
        server.shutdown()
        thread.join(5)


@pytest.fixture
def stranger(serving_stranger: Stranger) -> Stranger:
    """The stranger's site, empty."""
    serving_stranger.pages.clear()
    serving_stranger.requests.clear()
    return serving_stranger


@pytest.fixture
def canary(listening_canary: Canary) -> Iterator[Canary]:
    """Watches; at the end of each test nothing may have come."""
    listening_canary.watch()
    yield listening_canary
    assert listening_canary.connections == []


def fetcher(*answers: Sequence[str]) -> HttpFetcher:
    """A fetcher on the open web, whose resolver gives these answers in turn, and the last for ever."""
    left = list(answers or [[HOME]])

    async def look_up(_: str) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    guard = Guard(AddressPolicy(ALLOWED), Names(look_up, memory=Memory(addresses_s=0)))
    return HttpFetcher(user_agent=USER_AGENT, egress=guard, connections=4)
