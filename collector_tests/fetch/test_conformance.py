"""What every fetcher does with what sites do, over real sockets (cases.md, HTTP)."""

from __future__ import annotations

import gzip
import socket
import ssl
from datetime import UTC, datetime
from time import monotonic

import pytest

from collector_assets.demo import DemoSite
from collector_assets.fetch import NoResponse, Response
from collector_assets.outcome import Outcome
from collector_assets.spool import whole
from collector_tests.fetch.conftest import Client, asked, speaking
from collector_tests.fixtures.site import parts, raw


@pytest.fixture
def client(every_client: Client) -> Client:
    """This is the suite of all of them."""
    return every_client


FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class TestWholeAnswers:
    def test_a_page_is_kept_as_it_came(self, client: Client, site: DemoSite):
        _, _, body = parts(raw(site, "/")[0])
        began, began_at = monotonic(), datetime.now(UTC)

        answer = client.answer(site.address, asked("/"))

        assert (answer.outcome, answer.reason, answer.truncated) == (Outcome.OK, "", None)
        assert (answer.status, answer.status_text, answer.http_version) == (200, "OK", "1.1")
        assert answer.body == body
        assert (b"Content-Type", b"text/html") in answer.headers
        assert answer.url == answer.final_url == "http://shop.localhost:8765/"
        assert answer.ip == "127.0.0.1"
        assert began_at <= answer.requested_at <= answer.fetched_at <= datetime.now(UTC)
        assert began <= answer.ended_at <= monotonic()

    def test_raw_headers_keep_order_case_and_repetition(self, client: Client):
        said = b"HTTP/1.1 200 Fine by me\r\nx-B: 1\r\nX-a: \xe4\r\nx-B: 2\r\nContent-Length: 2\r\n\r\nok"
        with speaking(said) as server:
            answer = client.answer(server.address, asked())

        assert answer.headers == ((b"x-B", b"1"), (b"X-a", b"\xe4"), (b"x-B", b"2"), (b"Content-Length", b"2"))
        assert answer.status_text == "Fine by me"

    @pytest.mark.parametrize("misbehaviour", ["gzip_body", "cut_gzip", "unlabelled_gzip"])
    def test_a_body_stays_encoded(self, client: Client, site: DemoSite, misbehaviour: str):
        """Rule 11."""
        # Mutation: drop `auto_decompress=False`.
        answer = client.answer(site.address, asked(f"/misbehave/{misbehaviour}"))

        assert answer.outcome is Outcome.OK
        assert answer.body[:2] == b"\x1f\x8b"

    def test_a_body_that_says_gzip_and_is_plain_is_kept(self, client: Client, site: DemoSite):
        """HTTP-01."""
        answer = client.answer(site.address, asked("/misbehave/mislabelled_gzip"))

        assert answer.outcome is Outcome.OK
        assert whole(answer.body).startswith(b"<!DOCTYPE html>")

    def test_a_bomb_is_not_unpacked(self, client: Client, site: DemoSite):
        """HTTP-07."""
        answer = client.answer(site.address, asked("/misbehave/gzip_bomb/20000000"))

        assert answer.outcome is Outcome.OK
        assert len(answer.body) < 65_536
        assert len(gzip.decompress(whole(answer.body))) == 20_000_000

    def test_chunks_are_joined(self, client: Client, site: DemoSite):
        plain, chunked = (
            client.answer(site.address, asked(path)) for path in ("/misbehave/delay/0", "/misbehave/chunked")
        )

        assert chunked.outcome is Outcome.OK
        assert chunked.body == plain.body

    def test_early_hints_are_not_the_answer(self, client: Client, site: DemoSite):
        """HTTP-36."""
        answer = client.answer(site.address, asked("/misbehave/early_hints"))

        assert (answer.status, answer.outcome) == (200, Outcome.OK)
        assert whole(answer.body).startswith(b"<!DOCTYPE html>")

    def test_http_1_0_ends_by_closing(self, client: Client, site: DemoSite):
        answer = client.answer(site.address, asked("/misbehave/http10"))

        assert (answer.outcome, answer.http_version, answer.truncated) == (Outcome.OK, "1.0", None)
        assert whole(answer.body).endswith(b"</html>\n")

    def test_a_large_body_comes_whole(self, client: Client, site: DemoSite):
        answer = client.answer(site.address, asked("/misbehave/oversized/5000000", max_bytes=5_000_000))

        assert (answer.outcome, len(answer.body)) == (Outcome.OK, 5_000_000)

    def test_head_has_no_body_and_is_not_empty(self, client: Client, site: DemoSite):
        answer = client.answer(site.address, asked("/", method="HEAD", max_bytes=10))

        assert (answer.outcome, answer.status, answer.body) == (Outcome.OK, 200, b"")

    def test_a_request_body_is_sent(self, client: Client):
        with speaking(FINE) as server:
            client.answer(server.address, asked("/search", method="POST", body=b"q=1"))

        assert server.heads[0].startswith(b"POST /search HTTP/1.1\r\n")
        assert server.heads[0].endswith(b"\r\n\r\nq=1")

    def test_bytes_after_the_answer_are_in_no_answer(self, client: Client, site: DemoSite):
        extra = asked("/misbehave/extra_bytes")

        for end in client.fetch(site.address, extra, asked("/"), extra, asked("/")):
            if isinstance(end, Response):
                assert end.outcome is Outcome.OK
                assert whole(end.body).endswith(b"</html>\n")
            else:
                assert isinstance(end, NoResponse)
                assert end.outcome is Outcome.PROTOCOL_ERROR


class TestStatus:
    @pytest.mark.parametrize(
        ("status", "outcome"),
        [
            (201, Outcome.UNEXPECTED_STATUS),
            (400, Outcome.CLIENT_ERROR),
            (403, Outcome.REFUSED),
            (404, Outcome.GONE),
            (429, Outcome.THROTTLED),
            (500, Outcome.SERVER_ERROR),
            (503, Outcome.UNAVAILABLE),
        ],
    )
    def test_decides_and_the_answer_is_kept(self, client: Client, site: DemoSite, status: int, outcome: Outcome):
        answer = client.answer(site.address, asked(f"/misbehave/status/{status}"))

        assert (answer.status, answer.outcome) == (status, outcome)
        assert answer.reason.startswith(str(status))
        assert whole(answer.body).startswith(b"<html>")

    @pytest.mark.parametrize("path", ["redirect/301/item", "redirect_loop", "redirect_chain/3"])
    def test_a_redirect_is_not_followed(self, client: Client, site: DemoSite, path: str):
        answer = client.answer(site.address, asked(f"/misbehave/{path}"))

        assert answer.outcome is Outcome.REDIRECT
        assert " to /" in answer.reason
        assert len(site.arrivals()) == 1

    def test_304_does_not_wait_for_the_length_that_it_names(self, client: Client):
        """HTTP-23."""
        with speaking(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n") as server:
            answer = client.answer(server.address, asked())

        assert (answer.outcome, answer.body, answer.truncated) == (Outcome.UNEXPECTED_STATUS, b"", None)

    def test_101_ends_the_connection(self, client: Client):
        switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        with speaking(switch) as server:
            first, second = client.fetch(server.address, asked("/1"), asked("/2"))

        assert [getattr(end, "outcome", end) for end in (first, second)] == 2 * [Outcome.UNEXPECTED_STATUS]
        assert len(server.heads) == 2

    def test_counts_also_when_the_body_is_cut(self, client: Client):
        with speaking(b"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno such") as server:
            answer = client.answer(server.address, asked())

        assert (answer.outcome, answer.body, answer.truncated) == (Outcome.GONE, b"no such", "disconnect")

    @pytest.mark.parametrize("head", [b"", b"Content-Encoding: gzip\r\n"])
    def test_a_200_without_a_byte_is_empty_and_no_page(self, client: Client, head: bytes):
        """HTTP-06."""
        with speaking(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + head + b"\r\n") as server:
            answer = client.answer(server.address, asked())

        assert answer.outcome is Outcome.EMPTY_BODY

    def test_an_empty_chunked_200_is_empty(self, client: Client):
        with speaking(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") as server:
            assert client.answer(server.address, asked()).outcome is Outcome.EMPTY_BODY


class TestNoAnswer:
    @pytest.mark.parametrize(
        ("misbehaviour", "outcome"),
        [
            ("drop", Outcome.CONNECTION_LOST),
            ("reset", Outcome.CONNECTION_LOST),
            ("hang", Outcome.TIMEOUT),
            ("delay/2", Outcome.TIMEOUT),
            ("garbage", Outcome.PROTOCOL_ERROR),
            ("bad_header", Outcome.PROTOCOL_ERROR),
            ("header_flood", Outcome.PROTOCOL_ERROR),
        ],
    )
    def test_has_an_outcome_and_spares_the_next_request(
        self, client: Client, site: DemoSite, misbehaviour: str, outcome: Outcome
    ):
        patience = 0.4 if outcome is Outcome.TIMEOUT else 10.0
        began = monotonic()
        failed, fine = client.fetch(site.address, asked(f"/misbehave/{misbehaviour}", read_s=patience), asked("/"))

        assert isinstance(failed, NoResponse)
        assert (failed.outcome, failed.sent) == (outcome, True)
        assert failed.reason
        assert began <= failed.ended_at <= monotonic()
        assert isinstance(fine, Response)
        assert fine.outcome is Outcome.OK

    @pytest.mark.parametrize(
        "said",
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
            b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
            b"HTTP/1.1 200 OK\r\nX-Long: " + 100_000 * b"x" + b"\r\n\r\n",
            b"HTTP/9.1 200 OK\r\n\r\n",
            b"HTTP/1.1 abc OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
        ],
        ids=["two-lengths", "no-number", "long-header", "version", "status", "chunk-size"],
    )
    def test_what_makes_no_sense_is_a_protocol_error(self, client: Client, said: bytes):
        with speaking(said) as server:
            assert client.failure(server.address, asked()).outcome is Outcome.PROTOCOL_ERROR

    def test_half_a_head_is_a_lost_connection(self, client: Client):
        with speaking(b"HTTP/1.1 200 OK\r\nContent-Le") as server:
            assert client.failure(server.address, asked()).outcome is Outcome.CONNECTION_LOST

    def test_a_closed_port_is_a_connect_error_and_nothing_was_sent(self, client: Client):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            address = f"127.0.0.1:{closed.getsockname()[1]}"
        failed = client.failure(address, asked())

        assert (failed.outcome, failed.sent) == (Outcome.CONNECT_ERROR, False)

    def test_a_silent_tls_server_is_a_connect_error_by_the_connect_deadline(self, client: Client):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            began = monotonic()
            failed = client.failure(address, asked(url="https://shop.localhost/", connect_s=0.3))
            took_s = monotonic() - began

        assert (failed.outcome, failed.sent) == (Outcome.CONNECT_ERROR, False)
        assert failed.reason == "no connection within 0.3 s"
        assert 0.29 <= took_s < 5  # uvloop counts in milliseconds

    def test_the_total_deadline_also_ends_a_connect(self, client: Client):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            failed = client.failure(address, asked(url="https://shop.localhost/", connect_s=5.0, total_s=0.3))

        assert (failed.outcome, failed.sent) == (Outcome.CONNECT_ERROR, False)

    def test_a_server_without_tls_is_a_tls_error_and_gets_no_request(self, client: Client):
        with speaking(b"HTTP/1.1 400 Bad Request\r\n\r\n", waits=False) as server:
            failed = client.failure(server.address, asked(url="https://shop.localhost/"))

        assert (failed.outcome, failed.sent) == (Outcome.TLS_ERROR, False)
        assert server.heads == []

    def test_an_unknown_certificate_is_a_tls_error(self, client: Client, self_signed: ssl.SSLContext):
        """HTTP-31: verification is never switched off."""
        with speaking(FINE, tls=self_signed) as server:
            failed = client.failure(server.address, asked(url="https://shop.localhost/"))

        assert (failed.outcome, failed.sent) == (Outcome.TLS_ERROR, False)
        assert "certificate" in failed.reason.lower()


class TestCutAnswers:
    def test_a_silent_body_is_kept_up_to_the_read_deadline(self, client: Client, site: DemoSite):
        answer = client.answer(site.address, asked("/misbehave/hang_after_headers/10", read_s=0.4))

        assert (answer.outcome, answer.truncated, len(answer.body)) == (Outcome.TIMEOUT, "time", 10)
        assert answer.reason == "silent for 0.4 s; 10 bytes of the body came"

    def test_a_slow_drip_ends_at_the_total_deadline_and_the_connection_is_closed(self, client: Client, site: DemoSite):
        """HTTP-27."""
        began = monotonic()
        answer = client.answer(site.address, asked("/misbehave/drip/0.2", total_s=1.0))

        assert (answer.outcome, answer.truncated) == (Outcome.TIMEOUT, "time")
        assert answer.reason.startswith("not complete within 1 s")
        assert 1 <= len(answer.body) <= 5
        assert 0.95 < answer.ended_at - began < 3
        assert site.state()["connections"] == 1  # the one that asks

    def test_a_declared_excess_is_refused_before_it_is_read(self, client: Client, site: DemoSite):
        """HTTP-28."""
        answer = client.answer(site.address, asked("/misbehave/oversized/5000000000"))

        assert (answer.outcome, answer.truncated, answer.body) == (Outcome.TOO_LARGE, "length", b"")
        assert answer.status == 200
        assert site.state()["connections"] == 1

    def test_an_endless_body_is_cut_at_the_cap(self, client: Client, site: DemoSite):
        """HTTP-28."""
        answer = client.answer(site.address, asked("/misbehave/endless"))

        assert (answer.outcome, answer.truncated, len(answer.body)) == (Outcome.TOO_LARGE, "length", 65_536)
        assert site.state()["connections"] == 1

    @pytest.mark.parametrize(("most", "outcome"), [(101, Outcome.OK), (100, Outcome.TOO_LARGE)])
    @pytest.mark.parametrize("path", ["/misbehave/chunked", "/misbehave/delay/0", "/misbehave/http10"])
    def test_the_cap_is_exact(self, client: Client, site: DemoSite, path: str, most: int, outcome: Outcome):
        assert client.answer(site.address, asked(path, max_bytes=most)).outcome is outcome

    def test_a_body_shorter_than_its_length_is_truncated(self, client: Client, site: DemoSite):
        """HTTP-08."""
        answer = client.answer(site.address, asked("/misbehave/short_body"))

        assert (answer.outcome, answer.truncated) == (Outcome.TRUNCATED, "disconnect")
        assert whole(answer.body).endswith(b"</html>\n")

    @pytest.mark.parametrize(
        ("said", "came"),
        [
            (b"Content-Length: 100\r\n\r\n0123456789", b"0123456789"),
            (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"hello"),
            (b"Transfer-Encoding: chunked\r\n\r\n10\r\npart", b"part"),
            (b"Content-Length: 100\r\n\r\n", b""),
        ],
        ids=["short", "no-last-chunk", "in-a-chunk", "nothing"],
    )
    @pytest.mark.parametrize("resets", [False, True], ids=["closed", "reset"])
    def test_what_came_before_a_break_is_kept_with_a_mark(
        self,
        client: Client,
        said: bytes,
        came: bytes,
        resets: bool,  # noqa: FBT001
    ):
        """HTTP-08, HTTP-10."""
        with speaking(b"HTTP/1.1 200 OK\r\n" + said, resets=resets) as server:
            answer = client.answer(server.address, asked())

        assert (answer.outcome, answer.truncated, answer.body) == (Outcome.TRUNCATED, "disconnect", came)

    def test_chunks_that_turn_to_nonsense_keep_what_came(self, client: Client):
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        with speaking((head, b"5\r\nhello\r\n", b"zz\r\n")) as server:
            answer = client.answer(server.address, asked())

        assert (answer.outcome, answer.truncated, answer.body) == (Outcome.TRUNCATED, "disconnect", b"hello")

    def test_a_cut_in_the_middle_of_a_chunk_spares_the_next_request(self, client: Client, site: DemoSite):
        """HTTP-10."""
        cut, fine = client.fetch(site.address, asked("/misbehave/cut_chunked"), asked("/"))

        assert isinstance(cut, Response)
        assert isinstance(fine, Response)
        assert (cut.outcome, fine.outcome) == (Outcome.TRUNCATED, Outcome.OK)
