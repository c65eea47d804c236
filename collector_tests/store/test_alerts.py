"""Alerts: one message per source and cause, at real receivers; never a storm, never a loss."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from collector_assets import alerts, channels, mutes, notify
from collector_assets.alerts import AGAIN_AFTER, GONE_AFTER, HOLD
from collector_assets.channels import Routes
from collector_assets.database import Database
from collector_assets.errors import ConfigurationError
from collector_tests.fixtures.receivers import Hook, Postbox

NOW = datetime(2026, 3, 10, 6, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
OWNER = "team:prices"


@pytest.fixture
def routes(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> Routes:
    """Everything to the webhook."""
    monkeypatch.setenv("HOOK_URL", hook.url)
    return channels.parse({"default": ["hook"], "channels": {"hook": {"kind": "webhook", "url_env": "HOOK_URL"}}})


def happened(database: Database, now: datetime = NOW, **more: Any) -> None:
    values: dict[str, Any] = {"source": "shop", "cause": "c", "title": "shop: c", "body": "b", "owners": [OWNER]} | more
    with database.transaction() as connection:
        alerts.note(connection, now=now, **values)


def sent(database: Database, routes: Routes, now: datetime = NOW) -> list[notify.Delivered]:
    return list(notify.run(routes, database, now=now))


def row(database: Database) -> alerts.Listed:
    with database.transaction() as connection:
        (found,) = alerts.listed(connection)
    return found


# --- Never a storm ---------------------------------------------------------------------------------------------------


def test_a_storm_is_one_message(database: Database, routes: Routes, hook: Hook) -> None:
    # Mutation: `sent_at = NULL` in the conflict branch of note_alert
    for second in range(500):
        now = NOW + timedelta(seconds=second)
        happened(database, now)
        if second % 50 == 0:
            sent(database, routes, now)
    assert len(hook.posts) == 1
    assert row(database).count == 500


def test_what_goes_on_is_told_again_after_a_day_with_a_count(database: Database, routes: Routes, hook: Hook) -> None:
    # Mutation: drop `d.sent_at <= t.now - again_after`
    for hour in range(50):
        now = NOW + timedelta(hours=hour)
        happened(database, now)
        sent(database, routes, now)
    assert [post.value["count"] for post in hook.posts] == [1, 25, 49]
    assert hook.posts[1].value["first_at"] == NOW.isoformat()


def test_what_stopped_is_not_told_again(database: Database, routes: Routes, hook: Hook) -> None:
    # Mutation: drop `d.last_at > d.sent_at`
    happened(database)
    sent(database, routes)
    assert sent(database, routes, NOW + AGAIN_AFTER + MINUTE) == []
    assert len(hook.posts) == 1


def test_what_comes_back_after_a_while_is_news(database: Database, routes: Routes, hook: Hook) -> None:
    # Mutation: GONE_AFTER = timedelta(days=30)
    for now in (NOW, NOW + GONE_AFTER - MINUTE, NOW + 2 * GONE_AFTER):
        happened(database, now)
        sent(database, routes, now)
    assert [post.value["count"] for post in hook.posts] == [1, 1]


def test_sources_and_causes_are_told_apart(database: Database, routes: Routes, hook: Hook) -> None:
    for source, cause in (("shop", "a"), ("shop", "b"), ("lab", "a")):
        happened(database, source=source, cause=cause)
    sent(database, routes)
    assert sorted((post.value["source"], post.value["cause"]) for post in hook.posts) == [
        ("lab", "a"), ("shop", "a"), ("shop", "b"),
    ]  # fmt: skip


def test_a_call_sends_a_bounded_number_and_the_next_one_the_rest(
    database: Database, routes: Routes, hook: Hook
) -> None:
    # Mutation: choose them in a subquery of the UPDATE: it runs anew for each row, and passes over what it has changed
    for number in range(notify.MOST + 5):
        happened(database, NOW - timedelta(seconds=60 - number), source=f"shop{number}")
    with database.transaction() as connection:
        for way in ("hashagg", "sort", "material", "hashjoin", "mergejoin"):  # the plan of a small, analyzed table
            connection.execute(sql.SQL("SET LOCAL enable_{} = off").format(sql.SQL(way)))
        connection.execute("ANALYZE alerts")
        assert len(alerts.claim(connection, most=3, now=NOW)) == 3
    with database.transaction() as connection:
        connection.execute("UPDATE alerts SET not_before = NULL")
    assert len(sent(database, routes)) == notify.MOST
    assert len(sent(database, routes)) == 5
    assert len({post.value["source"] for post in hook.posts}) == notify.MOST + 5


def test_what_does_not_repeat_is_told_once(database: Database, routes: Routes, hook: Hook) -> None:
    # Mutation: drop `d.repeats`
    for hour in range(60):
        now = NOW + timedelta(hours=hour)
        happened(database, now, repeats=False)
        sent(database, routes, now)
    assert len(hook.posts) == 1


# --- Never a loss ----------------------------------------------------------------------------------------------------


def test_a_receiver_that_is_down_gets_the_message_later(database: Database, routes: Routes, hook: Hook) -> None:
    # Mutation: settle as sent whatever the channel said
    hook.status = 503
    happened(database)
    (failed,) = sent(database, routes)
    assert failed.problem == "hook: answered 503"
    assert row(database).problem == "hook: answered 503"
    assert sent(database, routes) == []  # not before its wait is over
    hook.status = 200
    (arrived,) = sent(database, routes, NOW + 2 * MINUTE)
    assert arrived.channels == ("hook",)
    assert row(database).problem is None


def test_waits_between_attempts_grow_to_an_hour(database: Database, routes: Routes, hook: Hook) -> None:
    hook.status = 500
    happened(database)
    attempts = []
    for minute in range(24 * 60):
        if sent(database, routes, NOW + minute * MINUTE):
            attempts.append(minute)
        happened(database, NOW + minute * MINUTE)
    assert attempts[:6] == [0, 1, 3, 7, 15, 31]
    assert attempts[-1] - attempts[-2] == 60


def test_only_the_channel_that_failed_is_tried_again(
    database: Database, hook: Hook, postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Mutation: delivered = '{}' while sent_at is null
    monkeypatch.setenv("HOOK_URL", hook.url)
    both = channels.parse({
        "owners": {OWNER: ["hook", "mail"]},
        "channels": {"hook": {"kind": "webhook", "url_env": "HOOK_URL"}, "mail": mail(postbox)},
    })  # fmt: skip
    hook.status = 500
    happened(database)
    (first,) = sent(database, both)
    assert first.channels == ("mail",)
    hook.status = 200
    (second,) = sent(database, both, NOW + 2 * MINUTE)
    assert set(second.channels) == {"hook", "mail"}
    assert len(postbox.letters) == 1


def test_a_sender_that_died_is_replaced_and_two_do_not_send_the_same(
    database: Database, routes: Routes, hook: Hook
) -> None:
    # Mutation: no hold (`not_before = NULL`) in claim_alerts
    happened(database)
    with database.transaction() as connection:
        assert len(alerts.claim(connection, most=5, now=NOW)) == 1  # and then it dies
    assert sent(database, routes) == []
    assert len(sent(database, routes, NOW + HOLD)) == 1


def test_a_late_sender_does_not_overwrite_what_another_did(database: Database) -> None:
    # Mutation: drop `AND attempts = %(attempts)s`
    happened(database)
    with database.transaction() as connection:
        (slow,) = alerts.claim(connection, most=1, now=NOW)
    with database.transaction() as connection:
        (fast,) = alerts.claim(connection, most=1, now=NOW + HOLD)
        assert alerts.settle(connection, fast, delivered=["hook"], problem=None, now=NOW + HOLD)
        assert not alerts.settle(connection, slow, delivered=[], problem="timeout", now=NOW + HOLD)
    assert row(database).sent_at == NOW + HOLD


# --- Mutes -----------------------------------------------------------------------------------------------------------


def test_a_muted_source_is_told_when_the_mute_ends_if_it_goes_on(
    database: Database, routes: Routes, hook: Hook
) -> None:
    # Mutation: drop the NOT EXISTS over mutes
    until = NOW + timedelta(hours=5)
    with database.transaction() as connection:
        mutes.put(connection, source="shop", until=until, pauses=False, reason="x", by_whom="me", now=NOW)
    happened(database)
    happened(database, source="lab")
    assert [each.source for each in sent(database, routes)] == ["lab"]
    happened(database, until)
    assert [each.source for each in sent(database, routes, until)] == ["shop"]


def test_a_mute_can_be_ended(database: Database) -> None:
    with database.transaction() as connection:
        assert not mutes.end(connection, "shop")
        mutes.put(connection, source="shop", until=NOW + MINUTE, pauses=True, reason="x", by_whom="me", now=NOW)
        assert mutes.active(connection, NOW)["shop"].pauses
        assert mutes.end(connection, "shop", NOW)
        assert mutes.active(connection, NOW) == {}


# --- Four kinds of channels, real receivers --------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script> & <!channel> \u202egnp.exe\x00\x1b[31m\r\nBcc: all@example.org " + "x" * 5_000


def mail(postbox: Postbox, **more: Any) -> dict[str, Any]:
    return {
        "kind": "email", "host": "127.0.0.1", "port": postbox.port, "security": "none",
        "sender": "collector@example.org", "to": ["data@example.org"],
    } | more  # fmt: skip


def through(database: Database, table: Mapping[str, Any], **more: Any) -> notify.Delivered:
    happened(database, **more)
    (done,) = sent(database, channels.parse({"default": ["it"], "channels": {"it": table}}))
    return done


def test_a_webhook_gets_json_and_its_token(database: Database, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", hook.url)
    monkeypatch.setenv("TOKEN", "s3cret")
    done = through(database, {"kind": "webhook", "url_env": "URL", "token_env": "TOKEN"}, title=HOSTILE, body=HOSTILE)
    assert done.problem is None
    (post,) = hook.posts
    assert post.headers["Authorization"] == "Bearer s3cret"
    assert post.headers["Content-Type"] == "application/json"
    value = post.value
    assert set(value) == {"source", "cause", "title", "body", "first_at", "last_at", "count"}
    assert (len(value["title"]), len(value["body"])) == (200, 1_500)
    assert "\n" not in value["title"]
    assert not set(value["title"] + value["body"]) & set("\x00\x1b\r\u202e")


def test_slack_gets_text_in_which_nothing_is_markup(
    database: Database, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Mutation: drop the escaping
    monkeypatch.setenv("URL", hook.url)
    through(database, {"kind": "slack", "url_env": "URL"}, title=HOSTILE)
    text = hook.posts[0].value["text"]
    assert "&lt;!channel&gt;" in text
    assert "<" not in text


def test_mail_is_plain_text_and_its_title_no_header_injection(database: Database, postbox: Postbox) -> None:
    through(database, mail(postbox), title=HOSTILE, body="body\nof two lines\n.\nand a dot")
    (letter,) = postbox.letters
    assert letter["To"] == "data@example.org"
    assert letter["Bcc"] is None
    assert "Bcc: all@example.org" in letter["Subject"]
    assert letter.get_content_type() == "text/plain"
    assert letter["Auto-Submitted"] == "auto-generated"
    assert "of two lines\n.\nand a dot" in letter.get_content().replace("\r\n", "\n")


def test_a_refused_recipient_is_a_problem(database: Database, postbox: Postbox) -> None:
    postbox.refuses = {"gone@example.org"}
    done = through(database, mail(postbox, to=["data@example.org", "gone@example.org"]))
    assert done.problem == "it: 1 recipients were refused"


def test_the_log_is_a_channel(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    happened(database, title="shop: schema_holds failed")
    with caplog.at_level(logging.ERROR, logger="collector.alerts"):
        sent(database, channels.load(None))
    assert "shop: schema_holds failed" in caplog.text


@pytest.mark.parametrize("kind", ["webhook", "slack"])
def test_no_secret_is_in_a_problem(
    database: Database, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Mutation: str(error) in _post
    for address in ("http://127.0.0.1:9/T0P/S3CRET", "ftp://host/S3CRET", "http://[S3CRET/", "http://h\nS3CRET/", ""):
        monkeypatch.setenv("URL", address)
        done = through(database, {"kind": kind, "url_env": "URL"}, cause=address.partition("S3")[0] or "unset")
        assert done.problem
        assert "S3CRET" not in done.problem + caplog.text


def test_no_secret_is_in_the_problem_of_a_mail(
    database: Database, postbox: Postbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", "S3CRET")
    done = through(database, mail(postbox, user="me", password_env="PASSWORD"))  # noqa: S106  a name
    assert done.problem == "it: SMTPNotSupportedError"
    assert through(database, mail(postbox, security="starttls"), cause="d").problem == "it: SMTPNotSupportedError"


def test_a_redirect_is_not_followed(database: Database, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    # Mutation: the default opener
    monkeypatch.setenv("URL", hook.url)
    hook.status = 302
    assert through(database, {"kind": "webhook", "url_env": "URL"}).problem == "it: answered 302"
    assert [post.path for post in hook.posts] == ["/alerts"]


def test_owners_get_theirs_and_the_rest_goes_to_the_default() -> None:
    made = {name: {"kind": "log"} for name in ("a", "b", "c")}
    routes = channels.parse({"default": ["c"], "owners": {"team:x": ["a", "b"], "team:y": ["b"]}, "channels": made})

    def names(*owners: str) -> list[str]:
        return [channel.name for channel in routes.of(owners)]

    assert names("team:x", "team:y") == ["a", "b"]
    assert names("team:y", "team:unknown") == ["b"]
    assert names("team:unknown") == ["c"]
    assert names() == ["c"]


def test_every_channel_can_be_tried(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", hook.url)
    made = {"good": {"kind": "webhook", "url_env": "URL"}, "bad": {"kind": "slack", "url_env": "NOT_THERE"}}
    ended = notify.try_channels(channels.parse({"channels": made}))
    assert ended == {"log": None, "good": None, "bad": "bad: the variable NOT_THERE is not set"}


# --- The file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1", "'x' is unknown"),
        ("default = 'log'", "default is no list of texts"),
        ("default = []", "default names no channel"),
        ("default = ['gone']", "no channel is called 'gone'"),
        ("[owners]\nteam = ['gone']", "no channel is called 'gone'"),
        ("[channels.a]\nkind = 'pigeon'", "channels.a.kind is 'pigeon'"),
        ("[channels.a]\nkind = 'slack'", "channels.a lacks url_env"),
        ("[channels.a]\nkind = 'slack'\nurl_env = 'https://hooks/x'", "the secret itself stays out"),
        ("[channels.a]\nkind = 'slack'\nurl_env = 'U'\nurl = 'x'", "channels.a: 'url' is unknown"),
        ("[channels.a]\nkind = 'email'\nhost = 'h'\nsender = 'x'\nto = ['a@b']", "'x' is no e-mail address"),
        ("[channels.a]\nkind = 'email'\nhost = 'h'\nsender = 'a@b'\nto = []", "channels.a.to is empty"),
        ("[channels.a]\nkind = 'email'\nhost = 'h'\nport = true\nsender = 'a@b'\nto = ['a@b']", "port is no number"),
        ("[channels.a]\nkind = 'email'\nhost = 'h'\nuser = 'u'\nsender = 'a@b'\nto = ['a@b']", "go together"),
        ("[channels.a]\nkind = 'email'\nhost = 'h'\nsecurity='x'\nsender = 'a@b'\nto = ['a@b']", "starttls, tls, none"),
        ("channels = 1", "channels is no table"),
        ("[", "alerts.toml:"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_entry(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        channels.load(file)
    assert problem in str(raised.value)
    assert str(raised.value).startswith("COLLECTOR_ALERTS: ")
    assert "https://hooks/x" not in str(raised.value)


def test_a_missing_file_is_an_error_and_none_is_the_log(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        channels.load(tmp_path / "none.toml")
    assert [channel.name for channel in channels.load(None).of(())] == ["log"]


def test_the_file_on_the_page_is_a_good_one() -> None:
    page = Path(__file__).parents[2] / "docs" / "freshness-and-alerts.md"
    (text,) = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    routes = channels.parse(tomllib.loads(text))
    assert [channel.name for channel in routes.of([OWNER])] == ["prices-chat", "oncall"]
