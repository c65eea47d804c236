"""A canary on every local address, and a witness of each connection that Python makes."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from collector_tests.fixtures.stranger import HOME

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


@pytest.fixture
def canary(listening_canary: Canary) -> Iterator[Canary]:
    """Watches; at the end of each test nothing may have come."""
    listening_canary.watch()
    yield listening_canary
    assert listening_canary.connections == []
