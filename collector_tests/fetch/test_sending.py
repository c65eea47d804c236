"""What leaves the machine, and when: judged by the server's own log."""

from __future__ import annotations

import asyncio
import socket
import time
from time import monotonic, sleep

import pytest

from collector_assets.demo import DemoSite
from collector_assets.fetch import Fetcher, NoResponse, NotSent, Response
from collector_assets.outcome import Outcome
from collector_tests.fetch.conftest import USER_AGENT, Client, always, asked, speaking

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
OTHER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"


class TestPermission:
    def test_is_asked_once_on_a_standing_connection(self, client: Client, site: DemoSite):
        """Rule 8: the not-after is checked after connecting, just before the bytes leave."""
        # Mutation: ask `may_send` at the start of `Connector.connect`.
        before = site.state()["connections"]
        seen: list[object] = []

        def may_send() -> bool:
            seen.append(site.state()["connections"])
            return True

        client.fetch(site.address, asked("/"), may_send=may_send)

        assert seen == [before + 1]

    def test_that_is_over_sends_nothing_and_keeps_the_connection(self, client: Client, site: DemoSite):
        """Rule 8."""
        # Mutation: drop `if not self.may_send(): raise PermissionOver`.
        answers = iter([True, False, True])
        first, over, last = client.fetch(
            site.address, asked("/"), asked("/no"), asked("/"), may_send=lambda: next(answers)
        )

        assert isinstance(over, NotSent)
        assert isinstance(first, Response)
        assert isinstance(last, Response)
        arrivals = site.arrivals()
        assert [each.path for each in arrivals] == ["/", "/"]
        assert arrivals[0].peer_port == arrivals[1].peer_port

    def test_is_asked_again_for_a_reused_connection(self, client: Client, site: DemoSite):
        asks: list[float] = []
        client.fetch(site.address, asked("/"), asked("/"), may_send=lambda: not asks.append(monotonic()))

        assert len(asks) == len(site.arrivals()) == 2

    def test_that_cannot_be_asked_is_a_failure_with_nothing_sent(self, client: Client, site: DemoSite):
        def may_send() -> bool:
            raise RuntimeError("no such slot")

        (failed,) = client.fetch(site.address, asked("/"), may_send=may_send)

        assert isinstance(failed, NoResponse)
        assert (failed.outcome, failed.reason, failed.sent) == (
            Outcome.FETCHER_ERROR,
            "RuntimeError: no such slot",
            False,
        )
        assert site.arrivals() == []


class TestOnce:
    @pytest.mark.parametrize("misbehaviour", ["drop", "reset"])
    def test_a_request_dropped_on_a_reused_connection_arrives_once(
        self, client: Client, site: DemoSite, misbehaviour: str
    ):
        """Rule 8: the client's own silent resend is off."""
        # Mutation: drop `if attempt.is_sent: raise Resent`.
        fine, dropped = client.fetch(site.address, asked("/"), asked(f"/misbehave/{misbehaviour}"))

        assert isinstance(fine, Response)
        assert isinstance(dropped, NoResponse)
        assert dropped.outcome is Outcome.CONNECTION_LOST
        first, second = site.arrivals()
        assert second.path == f"/misbehave/{misbehaviour}"
        assert first.peer_port == second.peer_port

    def test_a_connection_closed_behind_an_answer_costs_no_attempt(self, client: Client, site: DemoSite):
        # Mutation: let `_is_stale` return False.
        async def scenario(fetcher: Fetcher) -> list[object]:
            ends: list[object] = []
            for _ in range(5):
                ends.append(await fetcher.fetch(asked("/misbehave/close_after"), always))
                sleep(0.02)  # noqa: ASYNC251  the end of the connection comes, and the loop cannot see it
            return ends

        assert [getattr(end, "outcome", end) for end in client.use(site.address, scenario)] == 5 * [Outcome.OK]
        assert len(site.arrivals()) == 5

    @pytest.mark.parametrize(
        "says", [(FINE, OTHER), (FINE, b"rubbish"), (FINE + OTHER,)], ids=["later", "junk", "at-once"]
    )
    @pytest.mark.parametrize("is_loop_blocked", [False, True])
    def test_an_answer_that_nobody_asked_for_is_never_taken_for_the_next(
        self, client: Client, says: tuple[bytes, ...], is_loop_blocked: object
    ):
        # Mutation: drop `connection.protocol.should_close` from `_is_stale`.
        with speaking(says, FINE) as server:

            async def scenario(fetcher: Fetcher) -> list[object]:
                first = await fetcher.fetch(asked("/1"), always)
                if is_loop_blocked:
                    sleep(0.2)  # noqa: ASYNC251  the bytes come, and the loop cannot read them
                else:
                    await asyncio.sleep(0.2)
                return [first, await fetcher.fetch(asked("/2"), always)]

            ends = client.use(server.address, scenario)

        assert [getattr(end, "body", end) for end in ends] == [b"ok", b"ok"]


class TestConnections:
    def test_stay_open_from_one_request_to_the_next(self, client: Client, site: DemoSite):
        client.fetch(site.address, *(5 * [asked("/")]))

        assert len({each.peer_port for each in site.arrivals()}) == 1

    def test_are_never_more_than_allowed(self, client: Client, site: DemoSite):
        async def at_once(fetcher: Fetcher) -> None:
            await asyncio.gather(*(fetcher.fetch(asked("/misbehave/delay/0.05"), always) for _ in range(9)))

        client.use(site.address, at_once, connections=3)

        arrivals = site.arrivals()
        assert len(arrivals) == 9
        assert len({each.peer_port for each in arrivals}) == 3

    def test_that_others_took_over_are_left_alone(self, client: Client, site: DemoSite):
        """An answer that is whole but too large has given its connection to the next in line."""
        # Mutation: abort in `Attempt.abort` whatever became of the connection.
        requests = [asked("/misbehave/delay/0.05", max_bytes=100), *(5 * [asked("/misbehave/delay/0.05")])]

        async def at_once(fetcher: Fetcher) -> list[object]:
            return list(await asyncio.gather(*(fetcher.fetch(request, always) for request in requests)))

        ends = client.use(site.address, at_once, connections=1)

        assert [getattr(end, "outcome", end) for end in ends] == [Outcome.TOO_LARGE, *(5 * [Outcome.OK])]
        assert len({each.peer_port for each in site.arrivals()}) == 1

    def test_are_closed_with_the_fetcher(self, client: Client, site: DemoSite):
        before = site.state()["connections"]
        client.fetch(site.address, asked("/"))

        assert site.state()["connections"] == before

    @pytest.mark.parametrize("misbehaviour", ["hang", "hang_after_headers/10"])
    def test_of_a_cancelled_request_are_closed_at_once(self, client: Client, site: DemoSite, misbehaviour: str):
        while (before := site.state()["connections"]) > 1:  # those of an earlier test; one asks
            time.sleep(0.05)

        async def scenario(fetcher: Fetcher) -> object:
            task = asyncio.ensure_future(fetcher.fetch(asked(f"/misbehave/{misbehaviour}"), always))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0)
            return await asyncio.to_thread(lambda: site.state()["connections"])

        assert client.use(site.address, scenario) == before

    def test_are_closed_when_a_failure_is_reported(self, client: Client, site: DemoSite):
        """The gap counts from `ended_at`: nothing of the request may still be open then."""
        before = site.state()["connections"]

        async def scenario(fetcher: Fetcher) -> object:
            await fetcher.fetch(asked("/misbehave/hang", read_s=0.2), always)
            return site.state()["connections"]  # blocks the loop: nothing of it can still close the connection

        assert client.use(site.address, scenario) == before


class TestWhatIsSent:
    @pytest.mark.parametrize(
        "target",
        [
            "/cmp/Dia%25",
            "/a%2Fb",
            "/x%20%2376",
            "/a%3Bb;c=1",
            "/?a=1%2B1",
            "/?a=1+1",
            "/%7euser/%e4",
            "/a//b/",
            "/?q=a=b&c&&d[]=1|2",
            "/{x}'(y)*!$,:@",
            "/%",
            "/?a=%zz",
        ],
    )
    def test_the_url_goes_out_as_written(self, client: Client, site: DemoSite, target: str):
        """URL-04."""
        # Mutation: drop `encoded=True`.
        client.fetch(site.address, asked(target))

        assert [each.path for each in site.arrivals()] == [target]

    def test_the_request_says_who_we_are(self, client: Client):
        with speaking(FINE) as server:
            answer = client.answer(
                server.address, asked("/a", headers={"Accept-Language": "de", "accept": "text/html"})
            )

        assert answer.request_headers == (
            ("Host", "shop.localhost:8765"),
            ("User-Agent", USER_AGENT),
            ("accept", "text/html"),
            ("Accept-Encoding", "gzip, deflate, br, zstd"),
            ("Accept-Language", "de"),
        )
        head = "".join(f"{name}: {value}\r\n" for name, value in answer.request_headers)
        assert server.heads == [f"GET /a HTTP/1.1\r\n{head}\r\n".encode()]

    def test_a_source_cannot_say_that_we_are_somebody_else_or_frame_the_message(self, client: Client):
        headers = {"user-agent": "Mozilla/5.0", "HOST": "bank.example", "Content-Length": "9", "connection": "close"}
        with speaking(FINE) as server:
            answer = client.answer(server.address, asked("/a", headers=headers))

        assert f"User-Agent: {USER_AGENT}\r\n".encode() in server.heads[0]
        assert b"Host: shop.localhost:8765\r\n" in server.heads[0]
        assert not any(word in server.heads[0] for word in (b"Mozilla", b"bank", b"Content-Length", b"close"))
        assert "Mozilla" not in str(answer.request_headers)

    def test_cookies_are_not_kept(self, client: Client):
        answered = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nContent-Length: 2\r\n\r\nok"
        with speaking(answered, answered) as server:
            client.fetch(server.address, asked("/1"), asked("/2"))

        assert len(server.heads) == 2
        assert b"cookie" not in server.heads[1].lower()

    def test_no_proxy_is_taken_from_the_environment(
        self, client: Client, site: DemoSite, monkeypatch: pytest.MonkeyPatch
    ):
        with socket.create_server(("127.0.0.1", 0)) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
            assert client.answer(site.address, asked("/")).outcome is Outcome.OK

    def test_a_url_that_cannot_be_sent_is_an_error_of_ours(self, client: Client, site: DemoSite):
        failed = client.failure(site.address, asked(url="http://shop.localhost:99999/"))

        assert (failed.outcome, failed.sent) == (Outcome.FETCHER_ERROR, False)
        assert site.arrivals() == []

    def test_a_header_that_cannot_be_sent_is_an_error_of_ours(self, client: Client, site: DemoSite):
        failed = client.failure(site.address, asked("/", headers={"X-A": "1\r\nX-B: 2"}))

        assert failed.outcome is Outcome.FETCHER_ERROR
        assert site.arrivals() == []
