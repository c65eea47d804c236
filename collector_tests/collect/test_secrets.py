"""Secrets in queries and bodies: in the bytes that leave, and nowhere else."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from collector_assets import html
from collector_assets.contract import Kind, Link, Page, Secret, Source, Window, replace
from collector_tests.collect.conftest import QUICK, TODAY, Hands
from collector_tests.fixtures.hidden import archived, everything_in_the_database

VALUE = "s3cr3t/0f+a shop&more"
SPELLINGS = ("s3cr3t/0f+a shop&more", "s3cr3t%2F0f%2Ba+shop%26more", "s3cr3t%2F0f%2Ba%20shop%26more")
KEY = Secret("SHOP_KEY")
ECHO = "http://shop.localhost:8765/echo"


def extract(page: Page) -> Iterator[dict[str, object]]:
    """Nothing: what matters is what was sent."""
    yield from ()


def source(*links: Link) -> Source:
    return replace(
        QUICK, discover=None, extract=None, start_urls=links, kinds={"echo": Kind(extract=extract, may_be_empty=True)}
    )


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", VALUE)


def echoed(hands: Hands) -> list[dict[str, str]]:
    """What the archive holds of what the site says it received, secrets masked."""
    responses = [part for part in archived(hands).split(b"WARC/1.1") if b"msgtype=response" in part]
    return [json.loads(part.rpartition(b"\r\n\r\n{")[2].join((b"{", b"")).strip()) for part in responses]


def test_a_secret_in_query_and_body_is_sent_and_written_down_nowhere(
    hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 11: in no row of any table, nowhere in the archive, in no log, although the site repeats it; its name is."""
    # Mutation: drop `secrets.veiled` in `HttpFetcher._exchange`.
    caplog.set_level(logging.DEBUG)
    both = source(
        Link(f"{ECHO}?page=1&key=old", kind="echo", query={"key": KEY}),
        Link(f"{ECHO}?page=2", kind="echo", body={"user": "anna", "password": KEY}),
    )
    hands.whole(both)
    assert [(each.method, each.path) for each in hands.arrivals()] == [
        ("GET", f"/echo?page=1&key={SPELLINGS[1]}"), ("POST", "/echo?page=2"),
    ]  # fmt: skip
    for kept in (caplog.text, everything_in_the_database(hands), archived(hands).decode("utf-8", "replace")):
        assert not any(value in kept for value in SPELLINGS)
    assert "/echo?page=1&key={secret+SHOP_KEY}" in everything_in_the_database(hands)
    assert b"user=anna&password={secret+SHOP_KEY}" in archived(hands)


def test_the_site_gets_what_a_form_would_send(hands: Hands) -> None:
    hands.whole(source(Link(ECHO, kind="echo", body=[("a", "1"), ("a", "ü"), ("k", KEY)])))
    (answer,) = echoed(hands)
    assert answer["body"] == "a=1&a=%C3%BC&k={secret+SHOP_KEY}"
    sent = {name.lower(): value for name, value in answer["headers"]}
    assert sent["content-type"] == "application/x-www-form-urlencoded"
    assert sent["content-length"] == str(len(f"a=1&a=%C3%BC&k={SPELLINGS[1]}"))


def test_no_page_can_ask_for_what_is_in_our_environment(hands: Hands) -> None:
    """Rule 11: a placeholder in a link of a stranger is text."""
    # Mutation: in `HttpFetcher._exchange`, fill in whatever placeholder there is.

    def found(_: Window, __: Mapping[str, Any]) -> Iterator[Link]:
        yield Link(f"{ECHO}?key={{secret+SHOP_KEY}}", kind="echo")

    hands.whole(replace(source(Link(ECHO, kind="echo")), start=found))
    assert [each.path for each in hands.arrivals()] == ["/echo", "/echo?key={secret+SHOP_KEY}"]


def test_a_redirect_that_repeats_a_secret_is_followed_and_masked(hands: Hands) -> None:
    hands.site.misbehave("redirect", prefix="/start", arg=f"/echo?from=redirect&key={SPELLINGS[1]}")
    hands.whole(source(Link("http://shop.localhost:8765/start", kind="echo", query={"key": KEY})))
    assert [each.path for each in hands.arrivals()] == [
        f"/start?key={SPELLINGS[1]}", f"/echo?from=redirect&key={SPELLINGS[1]}",
    ]  # fmt: skip
    assert hands.column("SELECT final_url FROM pages WHERE outcome = 'ok'") == [
        f"{ECHO}?from=redirect&key={{secret+SHOP_KEY}}"
    ]
    for kept in (everything_in_the_database(hands), archived(hands).decode("utf-8", "replace")):
        assert not any(value in kept for value in SPELLINGS)


def test_a_secret_does_not_leave_its_origin(hands: Hands) -> None:
    """Rule 11: a redirect to another host that repeats it gets the placeholder."""
    # Mutation: in `redirects.standing`, give the secrets along whatever `keeps_headers` says.
    hands.site.misbehave("redirect", prefix="/start", arg=f"http://other.shop.localhost:8765/echo?key={SPELLINGS[1]}")
    start = Link("http://shop.localhost:8765/start", kind="echo", query={"key": KEY})
    hands.whole(replace(source(start), scope=("shop.localhost",)))
    assert [each.path for each in hands.arrivals("other.shop.localhost")] == ["/echo?key={secret+SHOP_KEY}"]


def test_a_missing_secret_sends_nothing_and_says_which(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_KEY")
    hands.whole(source(Link(ECHO, kind="echo", query={"key": KEY}), Link(ECHO, kind="echo", body={"key": KEY})))
    assert hands.arrivals() == []
    assert set(hands.column("SELECT outcome || ': ' || reason FROM requests")) == {
        "secret_missing: the query: SHOP_KEY is not set in the environment",
        "secret_missing: the body: SHOP_KEY is not set in the environment",
    }


def test_a_form_of_a_page_takes_secrets(hands: Hands) -> None:
    page = Page(
        url=ECHO, final_url=ECHO, status=200, headers={"content-type": "text/html; charset=utf-8"}, kind="echo",
        body=b"<form id=f method=post action=/echo><input type=hidden name=t value=1><input name=k></form>",
        fetched_at=TODAY.start, window=TODAY, entity=None, lane="*", referrer=None, hints={},
    )  # fmt: skip
    link = html.form(page, "form#f", {"k": KEY}, kind="echo")
    assert link == Link(ECHO, kind="echo", method="POST", body=[("t", "1"), ("k", KEY)])
    hands.whole(source(link))
    assert [each["body"] for each in echoed(hands)] == ["t=1&k={secret+SHOP_KEY}"]
