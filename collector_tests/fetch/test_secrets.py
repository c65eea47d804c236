"""A secret's value is in the bytes that leave, and nowhere else."""

from __future__ import annotations

import logging

import pytest

from collector_assets.demo import DemoSite
from collector_assets.outcome import Outcome
from collector_assets.request import Secret
from collector_tests.fetch.conftest import Client, asked, speaking

VALUE = "s3cr3t-value"
TOKEN = Secret("SHOP_TOKEN", prefix="Bearer ")
WITH_TOKEN = {"authorization": TOKEN, "X-Plain": "plain"}


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", VALUE)


@pytest.mark.usefixtures("token")
class TestSecret:
    def test_is_sent_and_masked_in_what_is_kept(self, client: Client, caplog: pytest.LogCaptureFixture):
        with caplog.at_level(logging.DEBUG), speaking(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
            request = asked("/", headers=WITH_TOKEN)
            answer = client.answer(server.address, request)

        assert f"authorization: Bearer {VALUE}\r\n".encode() in server.heads[0]
        assert ("authorization", "Bearer {secret SHOP_TOKEN}") in answer.request_headers
        assert ("X-Plain", "plain") in answer.request_headers
        assert VALUE not in repr(answer) + repr(request) + caplog.text

    @pytest.mark.parametrize(
        "said",
        [
            f"HTTP/1.1 403 No such token {VALUE}\r\nContent-Length: 0\r\n\r\n",
            f"HTTP/1.1 302 Found\r\nLocation: /login?t=Bearer {VALUE}\r\nContent-Length: 0\r\n\r\n",
        ],
    )
    def test_is_masked_in_a_reason_that_the_site_echoes(self, client: Client, said: str):
        # Mutation: drop the loop over the values in `_Secrets.shown`.
        with speaking(said.encode()) as server:
            answer = client.answer(server.address, asked("/", headers=WITH_TOKEN))

        assert "{secret}" in answer.reason
        assert VALUE not in answer.reason

    @pytest.mark.parametrize("said", [f"{VALUE} is no HTTP\r\n\r\n", f"HTTP/1.1 200 OK\r\n{VALUE}\r\n\r\n"])
    def test_is_masked_in_a_failure_that_quotes_the_site(self, client: Client, said: str):
        with speaking(said.encode()) as server:
            failed = client.failure(server.address, asked("/", headers=WITH_TOKEN))

        assert failed.outcome is Outcome.PROTOCOL_ERROR
        assert VALUE not in repr(failed)


class TestUnusableSecret:
    def test_that_is_missing_sends_nothing(self, client: Client, site: DemoSite, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("SHOP_TOKEN", raising=False)
        failed = client.failure(site.address, asked("/", headers=WITH_TOKEN))

        assert (failed.outcome, failed.sent) == (Outcome.SECRET_MISSING, False)
        assert failed.reason == "header authorization: SHOP_TOKEN is not set in the environment"
        assert site.arrivals() == []

    def test_that_no_header_can_carry_is_not_shown(
        self, client: Client, site: DemoSite, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("SHOP_TOKEN", f"{VALUE}\n")
        failed = client.failure(site.address, asked("/", headers=WITH_TOKEN))

        assert (failed.outcome, failed.sent) == (Outcome.SECRET_MISSING, False)
        assert "SHOP_TOKEN holds a line break" in failed.reason
        assert VALUE not in repr(failed)
        assert site.arrivals() == []

    def test_is_read_at_each_request_anew(self, client: Client, monkeypatch: pytest.MonkeyPatch):
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        with speaking(answer) as server:
            for value in ("one", "two"):
                monkeypatch.setenv("SHOP_TOKEN", value)
                client.fetch(server.address, asked("/", headers=WITH_TOKEN))

        assert [b"Bearer one" in server.heads[0], b"Bearer two" in server.heads[1]] == [True, True]
