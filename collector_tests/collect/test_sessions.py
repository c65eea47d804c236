"""Sessions: a login for all workers of a window, its cookies and tokens, its end, and what is written down of it."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pandera.pandas as pa
import pytest

from collector_assets import html, trial, visit
from collector_assets.collect import Ending
from collector_assets.contract import (
    Budget,
    ClientCredentials,
    Daily,
    Kind,
    Link,
    Page,
    Secret,
    Session,
    Source,
    replace,
    seconds,
)
from collector_assets.demo.members import CLIENT_ID, CLIENT_SECRET, MEMBER, PASSWORD, PRICES
from collector_assets.errors import ContractError, LoginFailed
from collector_assets.links import of_starts
from collector_tests.collect.conftest import TODAY, TOMORROW, Hands
from collector_tests.fixtures.hidden import archived, everything_in_the_database

SHOP = "http://shop.localhost:8765"
HOST = "shop.localhost"
FIELDS = {"user": Secret("SHOP_USER"), "password": Secret("SHOP_PASSWORD")}
BY_FORM = Session(page=f"{SHOP}/login", form="form#login", fields=FIELDS, proof="a.logout")
BY_TOKEN = Session(
    token=ClientCredentials(
        url=f"{SHOP}/oauth/token", client_id=Secret("SHOP_CLIENT"), client_secret=Secret("SHOP_CLIENT_SECRET")
    )
)


class Price(pa.DataFrameModel):
    """What members pay."""

    item: int = pa.Field(description="Number")
    price: str = pa.Field(description="GBP")


def members(page: Page) -> Iterator[Link]:
    """Every item."""
    for link in html.all(page, "main a, ul a"):
        yield Link(html.absolute(page, html.attribute(link, "href")), kind="item")


def item(page: Page) -> Iterator[dict[str, object]]:
    """The one item of a page."""
    yield {"item": int(page.url.rpartition("/")[2]), "price": html.text(html.one(page, "p.price")).lstrip("£")}


def more(page: Page) -> Iterator[Link]:
    """The next page of the API."""
    if following := page.json()["next"]:
        yield Link(following, kind="prices")


def prices(page: Page) -> Iterator[dict[str, object]]:
    """Prices on a page of the API."""
    yield from page.json()["prices"]


PAGES = Source(
    name="members",
    start_urls=(f"{SHOP}/members/",),
    session=BY_FORM,
    kinds={"list": Kind(discover=members), "item": Kind(extract=item)},
    schema=Price,
    entity="item",
    extractor_version="1",
    window=Daily(start="2020-01-01"),
    budget=Budget(gap=seconds(0), slots=4),
    patience=seconds(0),
)
API = replace(
    PAGES, name="member_prices", start_urls=(f"{SHOP}/members/prices",), session=BY_TOKEN,
    kinds={"prices": Kind(discover=more, extract=prices)},
)  # fmt: skip


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_USER", MEMBER)
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    monkeypatch.setenv("SHOP_CLIENT", CLIENT_ID)
    monkeypatch.setenv("SHOP_CLIENT_SECRET", CLIENT_SECRET)


def asked(hands: Hands) -> Counter[str]:
    """How often each of these was asked for."""
    return Counter(f"{each.method} {each.path.partition('?')[0]}" for each in hands.arrivals(HOST, robots=True))


def logins(hands: Hands) -> int:
    return asked(hands)["POST /login"]


def later(hands: Hands, seconds: float) -> None:
    """What is written down about sessions, and what waits, grows older."""
    ago = timedelta(seconds=seconds)
    hands.do(
        "UPDATE sessions SET denied_at = denied_at - %s, next_try_at = next_try_at - %s, begun_at = begun_at - %s,"
        " valid_until = valid_until - %s, over_at = ARRAY(SELECT at - %s FROM unnest(over_at) AS at)", *[ago] * 5
    )  # fmt: skip
    hands.do("UPDATE requests SET not_before = not_before - %s", ago)


# --- Logging in ------------------------------------------------------------------------------------------------------


def test_one_login_opens_the_pages_behind_it_for_both_passes(hands: Hands) -> None:
    """The form is fetched, filled in with its hidden fields, sent, followed; every page goes out with the cookie."""
    status = hands.whole(PAGES)
    assert (status.counts.done, status.counts.failed) == (1 + PRICES, 0)
    seen = [f"{each.method} {each.path}" for each in hands.arrivals(HOST, robots=True)]
    # robots.txt first, then the form, its answer, where that leads; the list again, as a page of the source.
    assert seen[:5] == ["GET /robots.txt", "GET /login", "POST /login", "GET /members/", "GET /members/"]
    assert (logins(hands), asked(hands)["GET /login"]) == (1, 1)
    assert hands.publish(PAGES).total == PRICES


def test_a_link_logs_in_where_there_is_no_form(hands: Hands) -> None:
    """A POST of the source's own; what the site answers to it, without the token of a form, says what is wrong."""
    link = Link(f"{SHOP}/login", body={**FIELDS, "csrf": "none"})
    with pytest.raises(LoginFailed, match=r"answered 400 Bad Request; check SHOP_USER and SHOP_PASSWORD"):
        hands.whole(replace(PAGES, session=Session(login=link, proof="a.logout")))


def test_two_workers_log_in_once(hands: Hands) -> None:
    """Rule 9: whoever comes first logs in; the others wait for that."""
    # Mutation: in `sessions.standing` leave out `Claimed`, and in claim_session the guard of the claim.
    starts = tuple(Link(f"{SHOP}/members/{number}", kind="item") for number in range(1, PRICES + 1))
    source = replace(PAGES, start_urls=starts, budget=Budget(gap=seconds(0), slots=8))
    hands.open(source)
    hands.know_robots(source)
    hands.site.misbehave("delay", prefix="/login", arg="0.8")
    problems: list[BaseException] = []

    def work() -> None:
        try:
            hands.collect(source)
        except BaseException as error:  # noqa: BLE001  told by the assertion
            problems.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert problems == []
    assert logins(hands) == 1
    assert hands.status(source).counts.fetched == PRICES


def test_each_window_has_a_session_of_its_own(hands: Hands) -> None:
    hands.discover(PAGES)
    hands.discover(PAGES, TOMORROW)
    assert logins(hands) == 2
    assert hands.column("SELECT generation FROM sessions ORDER BY window_start") == [1, 1]


def test_robots_txt_may_forbid_the_login(hands: Hands) -> None:
    hands.site.switch(host=HOST, robots="User-agent: *\nDisallow: /login\n")
    with pytest.raises(LoginFailed, match=r"not logged in at http://shop\.localhost:8765/login: .*Disallow: /login"):
        hands.discover(PAGES)
    assert asked(hands) == {"GET /robots.txt": 1}


def test_a_login_that_does_not_work_yet_waits_and_charges_nothing(hands: Hands) -> None:
    hands.site.misbehave("status", prefix="/login", arg="500", times=1)
    assert hands.discover(PAGES).collected.ending is Ending.WAITING
    assert hands.rows("SELECT state, outcome, attempts, snoozes FROM requests") == [("queued", "no_session", 0, 0)]
    assert asked(hands)["GET /login"] == 1
    hands.discover(PAGES)  # not yet
    assert asked(hands)["GET /login"] == 1
    later(hands, 60)
    assert hands.whole(PAGES).counts.done == 1 + PRICES


# --- Not let in ------------------------------------------------------------------------------------------------------


def test_a_wrong_password_fails_at_once_with_one_message(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 9: it says which URL and what to check, and does not hammer the login: one try, whoever asks, a minute."""
    # Mutation: in `sessions.standing` leave out `Denied`.
    monkeypatch.setenv("SHOP_PASSWORD", "wrong-password-1815")
    with pytest.raises(LoginFailed) as failed:
        hands.discover(PAGES)
    assert str(failed.value) == (
        "source 'members': not logged in at http://shop.localhost:8765/login: 'a.logout' (proof) is not on the page "
        "after it, 'Log in'; check SHOP_USER and SHOP_PASSWORD in the environment, and that the proof is on every page "
        "of who is logged in. Then materialize again"
    )
    with pytest.raises(LoginFailed, match="check SHOP_USER"):
        hands.discover(PAGES)
    assert logins(hands) == 1
    assert hands.rows("SELECT state, attempts FROM requests") == [("queued", 0)]
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    later(hands, 61)
    assert hands.whole(PAGES).counts.done == 1 + PRICES
    assert "wrong-password-1815" not in everything_in_the_database(hands)


def test_a_missing_password_sends_nothing_but_the_form(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_PASSWORD")
    with pytest.raises(LoginFailed, match="SHOP_PASSWORD is not set in the environment"):
        hands.discover(PAGES)
    assert logins(hands) == 0


def test_a_form_that_is_not_there_is_said(hands: Hands) -> None:
    with pytest.raises(LoginFailed, match=r"'form#sign-in' \(form\): "):
        hands.discover(replace(PAGES, session=replace(BY_FORM, form="form#sign-in")))


def test_a_login_that_lets_nobody_in_is_no_login(hands: Hands) -> None:
    """Without a proof a wrong password is found by the first page, and fails there: no second try."""
    hands.site.misbehave("status", prefix="/members/", arg="401", every=2)  # the page itself, not that after the login
    with pytest.raises(LoginFailed, match="logged in, and not let in: answered 401"):
        hands.discover(replace(PAGES, session=replace(BY_FORM, proof=None)))
    assert logins(hands) == 1


# --- Over ------------------------------------------------------------------------------------------------------------


def test_a_session_that_ends_is_begun_again_and_no_attempt_is_charged(hands: Hands) -> None:
    """Rule 3: in mid-window; pages that came without the session are asked for again under the next one."""
    # Mutation: in `Membership.heeded` return the answer as it is.
    hands.site.switch(session_pages=15)
    one_by_one = replace(PAGES, budget=Budget(gap=seconds(0)))
    status = hands.whole(one_by_one)
    assert (status.counts.done, status.counts.failed) == (1 + PRICES, 0)
    assert logins(hands) == 3
    assert hands.column("SELECT DISTINCT attempts FROM requests") == [1]
    assert hands.column("SELECT count(*) FROM pages WHERE outcome = 'no_session'") == [2]
    assert hands.column("SELECT refusals FROM origins") in ([], [0])


def test_a_session_that_ends_again_and_again_waits(hands: Hands) -> None:
    """Rule 9: two logins more in an hour, and then the window waits: the site does not want so many pages of us."""
    # Mutation: in `sessions.standing` leave out the pause after MOST_OVER.
    hands.site.switch(session_pages=5)
    one_by_one = replace(PAGES, budget=Budget(gap=seconds(0)))
    hands.discover(one_by_one)
    assert hands.collect(one_by_one).ending is Ending.WAITING
    assert logins(hands) == 3
    assert hands.column("SELECT reason FROM requests WHERE state = 'queued' AND outcome = 'no_session' LIMIT 1") == [
        "no login now: 3 sessions were over within 60 minutes"
    ]
    later(hands, 3_601)
    hands.collect(one_by_one)
    assert logins(hands) == 3 + 3


def test_a_page_without_the_proof_ends_the_session(hands: Hands) -> None:
    """Rule 9: a good page, status 200, that shows somebody who is not logged in."""
    # Mutation: in `why_over` leave the proof out.
    hands.discover(PAGES)
    stranger = base64.b64encode(b"<!DOCTYPE html><title>Item 7</title><p>For members only").decode()
    hands.site.misbehave("say", prefix="/members/7", arg=json.dumps({"body": stranger}), times=1)
    hands.collect(PAGES)
    assert logins(hands) == 2
    hands.read(PAGES)
    assert hands.status(PAGES).counts.done == 1 + PRICES


def test_cookies_that_pages_set_go_on_to_the_next_and_into_the_row(hands: Hands) -> None:
    """A site that sets another session id with each page: one login all the same, and the next run goes on from it."""
    # Mutation: in `Membership._learn` forget what was set.
    hands.site.switch(session_rotates=1)
    one_by_one = replace(PAGES, budget=Budget(gap=seconds(0)))
    hands.discover(one_by_one)
    hands.collect(one_by_one)
    assert (logins(hands), hands.column("SELECT is_over FROM sessions")) == (1, [False])
    hands.read(one_by_one)
    assert hands.status(one_by_one).counts.done == 1 + PRICES


# --- Tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("auth", ["header", "body"])
def test_a_token_goes_along_to_the_api(hands: Hands, auth: str) -> None:
    token = BY_TOKEN.token
    assert token is not None
    status = hands.whole(replace(API, session=Session(token=replace(token, auth=auth, scope="prices:read"))))
    assert (status.counts.done, asked(hands)["POST /oauth/token"]) == (3, 1)
    assert hands.publish(API).total == PRICES


def test_a_token_is_fetched_anew_before_it_expires(hands: Hands) -> None:
    """And not counted as a session that was over."""
    # Mutation: in `sessions.standing` take a row for live whatever `good_for_s` says.
    hands.discover(API)
    later(hands, 3_600 - 29)
    hands.do("UPDATE requests SET state = 'queued', attempts = 0, finished_at = NULL")
    hands.collect(API)
    assert asked(hands)["POST /oauth/token"] == 2
    assert hands.rows("SELECT generation, over_at FROM sessions") == [(2, [])]


def test_a_token_that_is_not_taken_any_more_is_fetched_anew(hands: Hands) -> None:
    hands.site.misbehave("status", prefix="/members/prices", arg="401", times=1, every=2)
    status = hands.whole(API)
    assert (status.counts.done, asked(hands)["POST /oauth/token"]) == (3, 2)


def test_a_wrong_client_secret_is_said_in_the_words_of_the_server(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_CLIENT_SECRET", "wrong")
    with pytest.raises(LoginFailed, match=r"answered 401: invalid_client .*; check SHOP_CLIENT and SHOP_CLIENT_SECRET"):
        hands.discover(API)
    assert asked(hands)["POST /oauth/token"] == 1
    assert f"{CLIENT_ID};" not in everything_in_the_database(hands)


def test_a_token_goes_to_no_other_host(hands: Hands) -> None:
    """Rule 11: another host of the scope does not get it, unless the source names it."""
    # Mutation: in `let_in.carried` leave out `token_hosts`.
    other = Link("http://other.shop.localhost:8765/echo", kind="prices")
    hands.discover(replace(API, start_urls=(f"{SHOP}/members/prices", other), scope=(HOST,), session=_for(HOST)))
    assert "Bearer" not in archived(hands).decode("utf-8", "replace").partition("/echo")[2].partition("WARC/1.1")[0]
    assert b'"authorization"' not in archived(hands).lower()


def _for(*hosts: str) -> Session:
    assert BY_TOKEN.token is not None
    return Session(token=replace(BY_TOKEN.token, hosts=hosts))


# --- What is written down --------------------------------------------------------------------------------------------


def test_nothing_of_a_session_is_written_down_where_it_should_not(
    hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 11, its exception: no password, cookie or token in the archive, a log, or a table but `sessions`."""
    # Mutation: in `exchange_of` keep the headers as they are.
    caplog.set_level(logging.DEBUG)
    hands.site.switch(session_rotates=1, session_pages=20)
    hands.whole(replace(PAGES, budget=Budget(gap=seconds(0))))
    hands.whole(API)
    live = [cookie["value"] for (jar,) in hands.rows("SELECT cookies FROM sessions") for cookie in jar]
    live += [token for (token,) in hands.rows("SELECT token FROM sessions") if token]
    assert len(live) >= 2
    passwords = [PASSWORD, CLIENT_SECRET, "analytical%2Fengine%2B1843", "not%2Fso%2Bsecret%3D1843"]
    database, archive = everything_in_the_database(hands), archived(hands).decode("utf-8", "replace")
    for value in passwords:
        assert value not in database + archive + caplog.text
    hands.do("DELETE FROM sessions")
    for value in live:
        assert value not in everything_in_the_database(hands) + archive + caplog.text
    assert "Set-Cookie: sid={cookie}; Path=/; HttpOnly" in archive
    assert "Cookie: {cookies}" in archive
    assert "Authorization: Bearer {credentials}" in archive


# --- Outside a window ------------------------------------------------------------------------------------------------


def test_a_page_is_tried_under_a_login_too(hands: Hands) -> None:
    """`collector check`: one login, nothing of it kept."""
    (request,) = of_starts(PAGES, PAGES.starts(TODAY)).requests
    source = replace(PAGES, patience=seconds(10))
    session = visit.log_in(source, TODAY, database=hands.database, fetcher=hands.fetcher)
    assert isinstance(session, visit.Opened)
    answer = visit.run(source, TODAY, request, database=hands.database, fetcher=hands.fetcher, session=session)
    assert isinstance(answer, visit.Answer)
    assert answer.got.outcome == "ok"
    assert (logins(hands), hands.rows("SELECT * FROM sessions")) == (1, [])


def test_every_stage_of_a_page_is_tried_under_one_login(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    source = replace(PAGES, patience=seconds(10))
    first, second = trial.of_site(
        source, TODAY, url=None, kind=None, database=hands.database, fetcher=hands.fetcher
    )  # fmt: skip
    assert [stage.name for stage in first.stages][:2] == ["login", "robots"]
    assert second.records == [{"item": 1, "price": second.records[0]["price"]}]
    assert logins(hands) == 1
    monkeypatch.setenv("SHOP_USER", "nobody")
    (failed,) = trial.of_site(source, TODAY, url=None, kind=None, database=hands.database, fetcher=hands.fetcher)
    assert [(stage.name, stage.verdict) for stage in failed.stages] == [("login", trial.Verdict.FAILED)]


# --- What a source may say -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("session", "problem"),
    [
        (Session(proof="a"), "give one of login, page and token"),
        (replace(BY_FORM, token=BY_TOKEN.token), "give one of login, page and token"),
        (replace(BY_FORM, fields={}), "page and fields belong together"),
        (replace(BY_FORM, page="/login"), "is not an absolute"),
        (replace(BY_FORM, page="https://me:word@shop.localhost/login"), "without a password"),
        (replace(BY_FORM, proof="a[["), "proof: 'a\\[\\[' is not a CSS selector"),
    ],
)
def test_a_session_that_cannot_be_meant_is_refused(session: Session, problem: str) -> None:
    with pytest.raises(ContractError, match=problem) as refused:
        replace(PAGES, session=session)
    assert "me:word" not in str(refused.value)


def test_a_session_is_not_for_a_browser() -> None:
    with pytest.raises(ContractError, match="a browser has Browser.storage_state"):
        replace(PAGES, kinds={"list": Kind(discover=members), "item": Kind(extract=item, fetcher="browser")})
