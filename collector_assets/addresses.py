"""Which IP addresses requests may go to (design.md rule 13): one table, one verdict, no I/O.

`ipaddress.is_global` is not enough: it is true for multicast, for 6to4 and NAT64 around private addresses, for Azure's
metadata host, and differs between Python versions. So IPv6 is judged by what *is* given out for the public internet
(2000::/3), the rest by the special-purpose registries of IANA (RFC 6890) and by what clouds put their secrets behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Ip = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Reach(StrEnum):
    """Where an address leads."""

    PUBLIC = "public"
    INSIDE = "inside"
    """This machine or a private network: only for a source that names it in `allow_addresses`."""
    NOWHERE = "nowhere"
    """Set apart for examples or for discarding: harmless beside others, of no use alone."""
    NEVER = "never"
    """Whatever a source says: metadata services, link-local, multicast, what is not given out or wraps another."""


@dataclass(frozen=True, slots=True)
class Block:
    """A network that is not part of the public internet, and what it is."""

    network: Network
    reach: Reach
    name: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether requests may go to an address; where not, `name` says what it is ("loopback")."""

    allowed: bool
    reach: Reach
    name: str = ""


_TABLE: Final = (
    (Reach.PUBLIC, "public", "0.0.0.0/0 2000::/3"),
    (Reach.PUBLIC, "NAT64", "64:ff9b::/96"),  # RFC 6052: how IPv6-only networks reach IPv4 sites
    (Reach.INSIDE, "loopback", "127.0.0.0/8 ::1"),
    (Reach.INSIDE, "private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16"),
    (Reach.INSIDE, "shared by a carrier", "100.64.0.0/10"),  # RFC 6598
    (Reach.INSIDE, "for benchmarks", "198.18.0.0/15"),  # RFC 2544
    (Reach.INSIDE, "unique local", "fc00::/7"),  # RFC 4193
    (Reach.NOWHERE, "for documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24"),  # RFC 5737
    (Reach.NOWHERE, "for documentation", "2001:db8::/32 3fff::/20"),  # RFC 3849, RFC 9637
    (Reach.NOWHERE, "for discarding", "100::/64 100:0:0:1::/64"),  # RFC 6666, RFC 9780
    # Azure, Alibaba; AWS, Google, Oracle, Scaleway, Linode, Alibaba. Other clouds have theirs in link-local networks.
    (Reach.NEVER, "cloud metadata", "168.63.129.16 100.100.100.200"),
    (Reach.NEVER, "cloud metadata", "fd00:ec2::/32 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42 fd00:a9fe:a9fe::1"),
    (Reach.NEVER, "cloud metadata", "fd00:100::100:200"),
    (Reach.NEVER, "link-local", "169.254.0.0/16 fe80::/10"),
    (Reach.NEVER, "site-local", "fec0::/10"),
    (Reach.NEVER, "this network", "0.0.0.0/8"),  # a connection to it arrives at this machine
    (Reach.NEVER, "for protocols", "192.0.0.0/24 2001::/23"),  # Oracle's older metadata host is among them
    (Reach.NEVER, "Teredo", "2001::/32"),
    (Reach.NEVER, "6to4", "2002::/16 192.88.99.0/24"),  # RFC 7526: given up
    (Reach.NEVER, "IPv4 in IPv6", "::/96 ::ffff:0:0/96 ::ffff:0:0:0/96"),
    (Reach.NEVER, "NAT64 of one network", "64:ff9b:1::/48"),  # RFC 8215: only its operator knows what it stands for
    (Reach.NEVER, "multicast", "224.0.0.0/4 ff00::/8"),
    (Reach.NEVER, "broadcast", "255.255.255.255"),
    (Reach.NEVER, "unspecified", "::"),
    (Reach.NEVER, "not given out", "240.0.0.0/4 ::/0"),
)
_BLOCKS: Final = [Block(ip_network(each), reach, name) for reach, name, several in _TABLE for each in several.split()]
_BY_SIZE: Final = {
    version: sorted((b for b in _BLOCKS if b.network.version == version), key=lambda b: -b.network.prefixlen)
    for version in (4, 6)
}
"""The smallest block that holds an address says what it is."""

_NAT64: Final = IPv6Network("64:ff9b::/96")
_ISATAP: Final = frozenset((0x0000_5EFE, 0x0200_5EFE))
"""RFC 5214: how interface identifiers begin that hold an IPv4 address, in any network."""


class AddressPolicy:
    """The verdict on each address, for one source. `allow`: networks inside that it names."""

    __slots__ = ("_allow",)

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._allow = tuple(allowed_network(each) for each in allow)

    def verdict(self, literal: str) -> Verdict:
        """Whether requests may go to this address; what is no address may not."""
        try:
            ip = ip_address(literal)
        except ValueError:
            return Verdict(False, Reach.NEVER, "no address")
        if isinstance(ip, IPv6Address):
            if ip.scope_id is not None:
                return Verdict(False, Reach.NEVER, "bound to an interface")
            if ip.ipv4_mapped is not None:
                ip = ip.ipv4_mapped  # the system connects to that one
        return self._of(ip)

    def _of(self, ip: Ip) -> Verdict:
        block = _block_of(ip)
        is_named = block.reach is Reach.INSIDE and any(ip in network for network in self._allow)
        if not (is_named or block.reach is Reach.PUBLIC):
            return Verdict(False, block.reach, block.name)
        wrapped = _wrapped(ip)
        if wrapped is not None and (inner := _block_of(wrapped)).reach is not Reach.PUBLIC:
            return Verdict(False, Reach.NEVER, f"{wrapped} ({inner.name}) in IPv6")
        return Verdict(True, block.reach)


def allowed_network(text: str) -> Network:
    """A network that a source may name. Raises ValueError, with the reason, unless all of it is inside."""
    network = ip_network(text)
    blocks = _BY_SIZE[network.version]
    around = next(block for block in blocks if _holds(block.network, network))
    if around.reach is Reach.INSIDE:
        return network
    if around.reach is not Reach.PUBLIC:
        raise ValueError(f"{text} is {around.name}, which no source may reach")
    if held := [block for block in blocks if block.reach is not Reach.PUBLIC and _holds(network, block.network)]:
        raise ValueError(f"{text} is too wide: it holds {held[0].network} ({held[0].name})")
    raise ValueError(f"{text} is public, which needs no permission")


def _holds(outer: Network, inner: Network) -> bool:
    return inner.subnet_of(outer)  # pyright: ignore[reportArgumentType]  both are of one version


@lru_cache(maxsize=4_096)
def _block_of(ip: Ip) -> Block:
    return next(block for block in _BY_SIZE[ip.version] if ip in block.network)


def _wrapped(ip: Ip) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, where that can be told."""
    if isinstance(ip, IPv6Address) and (ip in _NAT64 or (int(ip) >> 32) & 0xFFFF_FFFF in _ISATAP):
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return None
