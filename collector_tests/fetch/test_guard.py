"""The guard for the open web: every address is judged, and connections go to judged addresses alone (rule 13)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import pytest
import uvloop

from collector_assets.addresses import AddressPolicy
from collector_assets.errors import DestinationRefused
from collector_assets.fetch import Fetcher, FetchRequest, NoResponse, Response
from collector_assets.fetch.egress import Address, Guard
from collector_assets.fetch.http import HttpFetcher
from collector_assets.fetch.names import Memory, Names
from collector_assets.outcome import Outcome
from collector_tests.fetch.conftest import USER_AGENT, always, asked, speaking

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSED = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
HERE = ("127.0.0.1/32",)


def guard(*answers: Sequence[str], allow: Sequence[str] = ()) -> Guard:
    """A guard whose resolver gives these answers in turn, to whatever name, and is asked each time."""
    left = list(answers)

    async def look_up(_: str) -> Sequence[str]:
        return left.pop(0)

    return Guard(AddressPolicy(allow), Names(look_up, memory=Memory(addresses_s=0)))


def addresses(by: Guard, host: str = "shop.example", port: int = 80) -> Sequence[Address]:
    return asyncio.run(by.addresses(host, port))


Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param


def fetched(run: Run, by: Guard, *requests: FetchRequest) -> list[object]:
    """How the requests ended, one after the other on one fetcher."""

    async def whole() -> list[object]:
        fetcher: Fetcher = HttpFetcher(user_agent=USER_AGENT, egress=by, connections=4)
        try:
            return [await fetcher.fetch(request, always) for request in requests]
        finally:
            await fetcher.close()

    return run(whole())


class TestAddresses:
    def test_are_those_of_the_name(self):
        found = addresses(guard(["8.8.8.8", "2606:4700::1111"]), port=8080)

        assert found == [Address("8.8.8.8", 8080), Address("2606:4700::1111", 8080)]

    @pytest.mark.parametrize(
        "answer",
        [
            ["127.0.0.1"],
            ["8.8.8.8", "127.0.0.1"],
            ["10.0.0.1", "8.8.8.8"],
            ["2606:4700::1111", "fd00:ec2::254"],
            ["::ffff:169.254.169.254"],
            ["64:ff9b::a00:1"],
            ["fe80::1%2"],
        ],
    )
    def test_one_that_leads_inside_refuses_the_name(self, answer: list[str]):
        """Rule 13: every address is judged."""
        # Mutation: judge only `found[:1]` in `Guard.addresses`.
        with pytest.raises(DestinationRefused, match=r"^shop\.example has the address .*, which is "):
            addresses(guard(answer))

    def test_one_for_examples_is_left_out(self):
        """HTTP-33: it is of no use, and no danger."""
        assert addresses(guard(["2001:db8::1", "8.8.8.8"])) == [Address("8.8.8.8", 80)]

    def test_for_examples_alone_are_refused(self):
        with pytest.raises(DestinationRefused, match=r"no address of the public internet, only 192\.0\.2\.1"):
            addresses(guard(["192.0.2.1"]))

    def test_inside_need_a_source_that_names_them(self):
        with pytest.raises(DestinationRefused, match="only a source that names it in allow_addresses may go there"):
            addresses(guard(["10.1.2.3"], allow=("10.9.0.0/16",)))

        assert addresses(guard(["10.1.2.3"], allow=("10.1.0.0/16",))) == [Address("10.1.2.3", 80)]

    def test_of_metadata_are_for_no_source(self):
        with pytest.raises(DestinationRefused, match="cloud metadata: no source may go there"):
            addresses(guard(["100.100.100.200"], allow=("100.64.0.0/10",)))


class TestCheck:
    @pytest.mark.parametrize(
        "host", ["shop.example", "www.shop.example.", "a_b.example", "xn--bcher-kva.example", "1a"]
    )
    def test_names_may_be_looked_up(self, host: str):
        guard().check(host, 443)

    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1", "::1", "2130706433", "127.1", "0x7f.1", "0x7f000001", "0X7F.0.0.1", "017700000001",
            "127.0.0.1.", "0177.0.0.1", "1.2.3.4.5", "256.1.1.1", "shop.example.0x", "fe80::1%lo", "127.0.0.1%00",
            "127\u30020\u30020\u30021",
            "\uff11\uff12\uff17.0.0.1", "\u2460\u2461\u2466.0.0.1", "localhost", "LOCALHOST.", "shop.localhost",
            "shop.localhost.", "", ".", "a..b", "-" * 64 + ".example", "a b.example", "shop.example\n", "a@b", "[::1]",
            "::ffff:7f00:1", "%31",
            "a" * 63 + 4 * ("." + "a" * 63),
        ],
    )  # fmt: skip
    def test_what_is_inside_or_no_name_is_refused_before_a_look_up(self, host: str):
        """Rule 13."""
        with pytest.raises(DestinationRefused):
            guard().check(host, 80)

    @pytest.mark.parametrize("port", [0, 22, 25, 6667, 10080])
    def test_ports_of_other_protocols_are_refused(self, port: int):
        with pytest.raises(DestinationRefused, match=f"port {port} is not for the web"):
            guard().check("shop.example", port)

    @pytest.mark.parametrize("port", [80, 443, 8080, 8443, 3000, 65535])
    def test_other_ports_are_fine(self, port: int):
        guard().check("shop.example", port)


class TestConnections:
    def test_go_to_the_judged_address(self, run: Run):
        """Rule 13."""
        with speaking(FINE) as server:
            port = server.address.rpartition(":")[2]
            (answer,) = fetched(run, guard(["127.0.0.1"], allow=HERE), asked(url=f"http://shop.example:{port}/"))

        assert isinstance(answer, Response)
        assert (answer.outcome, answer.ip) == (Outcome.OK, "127.0.0.1")
        assert f"Host: shop.example:{port}\r\n".encode() in server.heads[0]

    def test_are_not_made_to_where_the_name_points_next(self, run: Run):
        """Rule 13: DNS rebinding. The name is looked up once per connection, and what was judged is what is used."""
        with speaking(CLOSED) as server:
            port = server.address.rpartition(":")[2]
            url = f"http://shop.example:{port}/"
            rebinding = guard(["127.0.0.1"], ["127.0.0.2"], allow=HERE)
            first, second = fetched(run, rebinding, asked(url=url), asked(url=url))

        assert isinstance(first, Response)
        assert isinstance(second, NoResponse)
        assert (second.outcome, second.sent) == (Outcome.DESTINATION_REFUSED, False)
        assert "127.0.0.2, which is loopback" in second.reason
        assert len(server.heads) == 1

    def test_to_a_name_without_address_have_a_reason(self, run: Run):
        (failed,) = fetched(run, guard([]), asked(url="http://gone.example/"))

        assert isinstance(failed, NoResponse)
        assert (failed.outcome, failed.sent) == (Outcome.HOST_UNRESOLVED, False)

    def test_try_the_next_address_when_one_refuses(self, run: Run):
        """HTTP-33: both families are tried."""
        with speaking(FINE) as server:
            port = server.address.rpartition(":")[2]
            both = guard(["::1", "127.0.0.1"], allow=("::1", "127.0.0.1"))
            (answer,) = fetched(run, both, asked(url=f"http://shop.example:{port}/"))

        assert getattr(answer, "outcome", answer) is Outcome.OK

    def test_do_not_wait_for_an_address_that_does_not_answer(self, run: Run):
        """HTTP-33: within about a second."""
        with silent("::1") as port, speaking(FINE, port=port):
            both = guard(["::1", "127.0.0.1"], allow=("::1", "127.0.0.1"))
            began = monotonic()
            (answer,) = fetched(run, both, asked(url=f"http://shop.example:{port}/"))
            took_s = monotonic() - began

        assert isinstance(answer, Response)
        assert answer.ip == "127.0.0.1"
        assert took_s < 1.5

    def test_that_no_address_takes_tried_both_families(self, run: Run):
        """HTTP-33."""
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        (failed,) = fetched(
            run, guard(["::1", "127.0.0.1"], allow=("::1", "127.0.0.1")), asked(url=f"http://a:{port}/")
        )

        assert isinstance(failed, NoResponse)
        assert (failed.outcome, failed.sent) == (Outcome.CONNECT_ERROR, False)
        assert "::1" in failed.reason
        assert "127.0.0.1" in failed.reason


@contextmanager
def silent(ip: str) -> Iterator[int]:
    """A port where connections are neither accepted nor refused: the queue of those who wait is full."""
    with socket.socket(socket.AF_INET6) as listening, socket.socket(socket.AF_INET6) as first:
        listening.bind((ip, 0))
        listening.listen(0)
        address = listening.getsockname()
        first.connect(address)
        second = socket.socket(socket.AF_INET6)
        second.setblocking(False)
        with second, suppress(BlockingIOError):
            second.connect(address)
        yield address[1]
