"""The browser's only way out: for our browser, for what was asked for, to judged addresses, and counted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from collector_assets.addresses import AddressPolicy
from collector_assets.demo import DemoSite
from collector_assets.fetch.callers import Callers
from collector_assets.fetch.egress import DemoSiteOnly, Egress, Guard
from collector_assets.fetch.names import Names
from collector_assets.fetch.proxy import EgressProxy
from collector_tests.fetch.conftest import speaking
from collector_tests.fixtures.stranger import Resolver

Result = TypeVar("Result")


@dataclass(slots=True)
class Asked:
    """What visits have asked for."""

    urls: set[str] = field(default_factory=set)
    tunnels: set[tuple[str, int]] = field(default_factory=set)

    def may_send(self, url: str) -> bool:
        return url in self.urls

    def may_connect(self, host: str, port: int) -> bool:
        return (host, port) in self.tunnels


def through(
    egress: Egress,
    asked: Asked,
    scenario: Callable[[EgressProxy], Awaitable[Result]],
    *,
    is_ours: Callable[[int, int], bool] = lambda _port, _to: True,
) -> Result:
    async def whole() -> Result:
        proxy = EgressProxy(egress, asked, is_ours)
        await proxy.start()
        try:
            return await scenario(proxy)
        finally:
            await proxy.close()

    return asyncio.run(whole())


async def said(proxy: EgressProxy, *pieces: bytes) -> bytes:
    """Everything that comes back for bytes, each piece after the answer to the one before has begun."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    answer = b""
    for piece in pieces:
        writer.write(piece)
        answer += await reader.read(65_536)
    answer += await reader.read(-1) if answer else b""
    writer.close()
    return answer


def plain(url: str, *lines: str) -> bytes:
    return "\r\n".join([f"GET {url} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


class TestPlainRequests:
    def test_reach_the_site_in_its_own_form_and_are_counted(self):
        url = "http://shop.localhost:8765/a?b=1"
        with speaking(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
            head = plain(url, "Proxy-Connection: keep-alive", "Proxy-Authorization: x", "Connection: keep-alive")

            async def go(proxy: EgressProxy) -> tuple[bytes, int]:
                return await said(proxy, head), proxy.sent["shop.localhost"]

            answer, sent = through(DemoSiteOnly(server.address), Asked({url}), go)

        assert answer.endswith(b"\r\n\r\nok")
        assert server.heads == [b"GET /a?b=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"]
        assert sent == 1

    def test_that_nobody_asked_for_are_refused_without_a_look_up(self, site: DemoSite):
        """Rule 13."""
        # Mutation: `if not is_asked:` in `EgressProxy._connected` becomes `if False:`.

        async def go(proxy: EgressProxy) -> tuple[bytes, dict[str, int]]:
            return await said(proxy, plain("http://shop.localhost/b")), dict(proxy.refused)

        answer, refused = through(DemoSiteOnly(site.address), Asked({"http://shop.localhost/a"}), go)

        assert answer.startswith(b"HTTP/1.1 403 ")
        assert refused == {"shop.localhost": 1}
        assert site.arrivals() == []

    @pytest.mark.parametrize("target", ["/a", "ftp://shop.localhost/", "http:///", "x", "http://[::1/"])
    def test_in_no_form_for_a_proxy_are_bad_requests(self, site: DemoSite, target: str):
        answer = through(DemoSiteOnly(site.address), Asked({target}), lambda proxy: said(proxy, plain(target)))

        assert answer.startswith(b"HTTP/1.1 400 ")


class TestTunnels:
    def test_carry_whatever_is_inside(self, site: DemoSite):
        inside = b"GET /echo HTTP/1.1\r\nHost: shop.localhost\r\nConnection: close\r\n\r\n"
        connect = b"CONNECT shop.localhost:443 HTTP/1.1\r\nHost: shop.localhost:443\r\n\r\n"
        asked = Asked(tunnels={("shop.localhost", 443)})
        answer = through(DemoSiteOnly(site.address), asked, lambda proxy: said(proxy, connect, inside))

        assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n")

    @pytest.mark.parametrize(
        "host", ["127.0.0.1", "[::1]", "localhost", "169.254.169.254", "2130706433", "0x7f.1", "rebound.example"]
    )
    def test_lead_to_no_address_that_the_guard_refuses(self, host: str):
        """Rule 13: also where a visit asked for it."""
        with socket.create_server(("127.0.0.1", 0)) as canary:
            canary.settimeout(0.2)
            port = canary.getsockname()[1]
            asked = Asked(tunnels={(host.strip("[]"), port)})
            guard = Guard(AddressPolicy(()), Names(Resolver(["127.0.0.1"]).look_up))
            head = f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode()
            answer = through(guard, asked, lambda proxy: said(proxy, head))

            assert answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 "))
            with pytest.raises(TimeoutError):
                canary.accept()

    def test_to_a_site_that_does_not_answer_are_a_bad_gateway(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = f"127.0.0.1:{closed.getsockname()[1]}"
        head = b"CONNECT shop.localhost:443 HTTP/1.1\r\n\r\n"
        asked = Asked(tunnels={("shop.localhost", 443)})

        assert through(DemoSiteOnly(address), asked, lambda proxy: said(proxy, head)).startswith(b"HTTP/1.1 502 ")


class TestStrangers:
    def test_on_this_machine_are_hung_up_on(self, site: DemoSite):
        """Rule 13. Nobody else uses it: a connection that is not of our browser's processes gets no answer."""
        # Mutation: `not await asyncio.to_thread(self._is_ours, …)` in `EgressProxy._serve` becomes `False`.
        url = "http://shop.localhost/"

        async def go(proxy: EgressProxy) -> tuple[bytes, int]:
            return await said(proxy, plain(url)), proxy.strangers

        found = through(DemoSiteOnly(site.address), Asked({url}), go, is_ours=Callers().are_ours)

        assert found == (b"", 1)
        assert site.arrivals() == []
