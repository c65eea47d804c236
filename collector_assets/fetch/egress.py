"""Where requests may go: the one question that every byte passes before it leaves the machine (design.md rule 13).

In this release the answer is "only to the demo site". The guard for the open web takes `DemoSiteOnly`'s place.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from collector_assets import urls
from collector_assets.errors import ConfigurationError, DestinationRefused


@dataclass(frozen=True, slots=True)
class Address:
    """Where a connection is made to; `ip` is a literal, so that nothing is looked up again."""

    ip: str
    port: int


class Egress(Protocol):
    """Judges the host of each request, and says which addresses a new connection to it may use."""

    def check(self, host: str) -> None:
        """Raise DestinationRefused unless requests may go to `host`; asked for each request, so it does no I/O."""
        ...

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """Checked addresses, the best first; asked for each new connection. Raises DestinationRefused, or OSError."""
        ...


class DemoSiteOnly:
    """Hosts under `.localhost` are served by `demo_site` ("host:port"), whatever port URLs say; others are refused."""

    def __init__(self, demo_site: str) -> None:
        self._host, self._port = _host_and_port(demo_site)

    def check(self, host: str) -> None:
        """No name is looked up and no address is accepted: only names that never leave the machine."""
        if not urls.is_demo(host):
            raise DestinationRefused(f"{host}: this release sends requests to nothing but the demo site")

    async def addresses(self, host: str, port: int) -> Sequence[Address]:  # noqa: ARG002  the demo site has one port
        """The demo site's, for any demo host."""
        self.check(host)
        if _is_literal(self._host):
            return (Address(self._host, self._port),)
        found = await asyncio.get_running_loop().getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        return tuple(Address(str(where[0]), self._port) for *_, where in found)


def _host_and_port(demo_site: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{demo_site}")
        if parts.hostname and parts.port and parts.netloc == demo_site and parts.username is None:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise ConfigurationError("COLLECTOR_DEMO_SITE", f"{demo_site!r} is not host:port", "Write 127.0.0.1:8765")


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
