"""Where requests may go: the one question that every byte passes before it leaves the machine (design.md rule 13).

A source goes one of two ways: to the demo site and nowhere else, or to the open web through the guard. Neither leads to
the other, so no page of a stranger can send us to what the demo site's setting names.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, Literal, Protocol
from urllib.parse import urlsplit

from collector_assets import urls
from collector_assets.addresses import AddressPolicy, Reach
from collector_assets.contract import RenderingService, Source
from collector_assets.errors import ConfigurationError, DestinationRefused
from collector_assets.fetch.names import Names

BAD_PORTS: Final = frozenset((
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
))  # fmt: skip
"""Where mail, shells, files and the like listen: browsers send nothing there either (Fetch standard, "bad port")."""

_NAME: Final = re.compile(r"(?=.{1,254}\Z)(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?\Z")
_NUMBER: Final = re.compile(r"(?:[0-9]+|0[xX][0-9A-Fa-f]*)\Z")
"""A last label after which the system's resolver may read an IPv4 address: 2130706433, 127.1, 0x7f.1 (URL standard)."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a connection is made to; `ip` is a literal, so that nothing is looked up again."""

    ip: str
    port: int


class Egress(Protocol):
    """Judges the host of each request, and says which addresses a new connection to it may use."""

    def check(self, host: str, port: int) -> None:
        """Raise DestinationRefused unless requests may go there; asked for each request, so it does no I/O."""
        ...

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """Checked addresses, the best first; asked for each new connection. Raises DestinationRefused, or OSError."""
        ...

    def close(self) -> None:
        """Stop what is under way."""
        ...


class DemoSiteOnly:
    """Hosts under `.localhost` are served by `demo_site` ("host:port"), whatever port URLs say; others are refused."""

    def __init__(self, demo_site: str) -> None:
        self._host, self._port = _host_and_port(demo_site)

    def check(self, host: str, port: int) -> None:  # noqa: ARG002  the demo site has one port
        """No name is looked up and no address is accepted: only names that never leave the machine."""
        if not urls.is_demo(host):
            raise DestinationRefused(f"{host}: a source of the demo site goes nowhere else")

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """The demo site's, for any demo host."""
        self.check(host, port)
        if _is_literal(self._host):
            return (Address(self._host, self._port),)
        found = await asyncio.get_running_loop().getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        return tuple(Address(str(where[0]), self._port) for *_, where in found)

    def close(self) -> None:
        """Nothing is under way."""


class Guard:
    """The open web: each host becomes addresses once, each address is judged, and connections go to those.

    Nothing is looked up again after the judgement, so a name that answers differently the next time (DNS rebinding)
    gains nothing. One address that leads inside refuses the whole name: such an answer is an attack, or not for us.
    """

    def __init__(self, policy: AddressPolicy, names: Names | None = None) -> None:
        self._policy, self._names = policy, names or Names()

    def check(self, host: str, port: int) -> None:
        """Refuse ports of other protocols, addresses that lead inside, and what is no host name at all.

        URLs are parsed after the URL standard long before; this holds also for a host that was not.
        """
        if port in BAD_PORTS:
            raise DestinationRefused(f"{host}: port {port} is not for the web")
        match _form(host):
            case "address":
                self._may_use(host, host)
            case "nonsense":
                raise DestinationRefused(f"{host[:100]!r} is not a host name")
            case "demo":
                raise DestinationRefused(f"{host}: only a source of the demo site goes to the demo site")
            case "name":
                pass

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """The addresses of `host`, all of them judged. Raises DestinationRefused, or `NameUnresolved`."""
        self.check(host, port)
        if _form(host) == "address":
            return (Address(host, port),)
        found = await self._names.addresses(host)
        usable = [ip for ip in found if self._may_use(ip, host)]
        if not usable:
            raise DestinationRefused(f"{host} has no address of the public internet, only {found[0]}")
        return [Address(ip, port) for ip in usable]

    def _may_use(self, ip: str, host: str) -> bool:
        """Whether to connect to an address of `host`; DestinationRefused unless it is allowed or harmless."""
        verdict = self._policy.verdict(ip)
        if verdict.allowed or (verdict.reach is Reach.NOWHERE and ip != host):
            return verdict.allowed
        what = f"{ip} is {verdict.name}" if ip == host else f"{host} has the address {ip}, which is {verdict.name}"
        who = "only a source that names it in allow_addresses" if verdict.reach is Reach.INSIDE else "no source"
        raise DestinationRefused(f"{what}: {who} may go there")

    def close(self) -> None:
        """Stop what is under way."""
        self._names.close()


def egress_of(source: Source, *, demo_site: str) -> Egress:
    """The way of a source, for one fetcher."""
    return DemoSiteOnly(demo_site) if source.is_demo else Guard(AddressPolicy(source.allow_addresses))


def egress_of_service(source: Source, service: RenderingService, *, demo_site: str) -> Egress:
    """The way to a source's rendering service; what it may reach inside is its own, and no page's."""
    return DemoSiteOnly(demo_site) if source.is_demo else Guard(AddressPolicy(service.allow_addresses))


def _host_and_port(demo_site: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{demo_site}")
        if parts.hostname and parts.port and parts.netloc == demo_site and parts.username is None:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise ConfigurationError("COLLECTOR_DEMO_SITE", f"{demo_site!r} is not host:port", "Write 127.0.0.1:8765")


@lru_cache(maxsize=4_096)
def _form(host: str) -> Literal["address", "name", "demo", "nonsense"]:
    """What a host of a URL is."""
    if _is_literal(host):
        return "address"
    if not _NAME.match(host) or _NUMBER.match(host.removesuffix(".").rpartition(".")[2]):
        return "nonsense"
    return "demo" if urls.is_demo(host.lower()) else "name"


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
