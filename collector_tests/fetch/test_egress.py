"""Where a source of the demo site may send: there and nowhere else. The open web: test_guard.py."""

from __future__ import annotations

import asyncio
import socket

import pytest

from collector_assets.demo import DemoSite
from collector_assets.errors import ConfigurationError, DestinationRefused
from collector_assets.fetch.egress import Address, DemoSiteOnly
from collector_assets.outcome import Outcome
from collector_tests.fetch.conftest import Client, asked

ELSEWHERE = [
    "example.com",
    "shop.localhost.example.com",
    "notlocalhost",
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "2130706433",
    "[::1]",
    "[::ffff:127.0.0.1]",
]


class TestRefusal:
    @pytest.mark.parametrize("host", ELSEWHERE)
    def test_comes_before_any_look_up_or_connection(
        self, client: Client, site: DemoSite, monkeypatch: pytest.MonkeyPatch, host: str
    ):
        """Rule 13."""
        # Mutation: drop `self._egress.check(...)` from `Connector.connect` (addresses are then connected to).
        looked_up: list[object] = []
        asks: list[bool] = []
        request = asked(url=f"http://{host}:{site.address.rpartition(':')[2]}/")

        with monkeypatch.context() as patched:
            patched.setattr(socket, "getaddrinfo", lambda *names, **_: looked_up.append(names) or [])
            (failed,) = client.fetch(site.address, request, may_send=lambda: not asks.append(True))

        assert getattr(failed, "outcome", failed) is Outcome.DESTINATION_REFUSED
        assert getattr(failed, "sent", failed) is False
        assert (looked_up, asks, site.arrivals()) == ([], [], [])

    def test_is_an_error_for_a_person(self):
        with pytest.raises(DestinationRefused, match=r"^bank\.example: a source of the demo site goes nowhere else"):
            DemoSiteOnly("127.0.0.1:8765").check("bank.example", 80)


class TestDemoSite:
    @pytest.mark.parametrize("url", ["http://shop.localhost:8765/", "http://lab.localhost./", "http://localhost:1/"])
    def test_serves_every_demo_host_whatever_its_port(self, client: Client, site: DemoSite, url: str):
        assert client.answer(site.address, asked(url=url)).outcome is Outcome.OK

    def test_gets_the_host_of_the_url(self, client: Client, site: DemoSite):
        client.fetch(site.address, asked(url="http://lab.localhost:1234/"))

        assert [each.host for each in site.arrivals()] == ["lab.localhost"]

    @pytest.mark.parametrize(
        ("setting", "address"),
        [("127.0.0.1:8765", Address("127.0.0.1", 8765)), ("[::1]:80", Address("::1", 80))],
    )
    def test_is_an_address(self, setting: str, address: Address):
        assert asyncio.run(DemoSiteOnly(setting).addresses("shop.localhost", 1)) == (address,)

    def test_may_be_a_name_that_the_machine_knows(self):
        found = asyncio.run(DemoSiteOnly("localhost:8765").addresses("shop.localhost", 1))

        assert Address("127.0.0.1", 8765) in found

    @pytest.mark.parametrize(
        "setting", ["", "127.0.0.1", ":8765", "127.0.0.1:x", "http://127.0.0.1:8765", "a@b:1", "127.0.0.1:8765/x"]
    )
    def test_that_is_no_address_is_one_clear_line(self, setting: str):
        with pytest.raises(ConfigurationError, match=r"^COLLECTOR_DEMO_SITE: .* is not host:port"):
            DemoSiteOnly(setting)
