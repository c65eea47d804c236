"""No page before its robots.txt, as the site sees it: statuses, redirects, waits, Crawl-delay (rules 7 and 9)."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest

from collector_assets import listing, robots_files, visit
from collector_assets.collect import Ending
from collector_assets.contract import Budget, Link, replace, seconds
from collector_assets.demo.arrivals import violations
from collector_assets.errors import ContractError
from collector_assets.links import of_starts
from collector_assets.politeness import Forbidden
from collector_tests.collect.conftest import LONG_AGO, QUICK, TODAY, Hands

SHOP = "http://shop.localhost:8765"
PAGES = tuple(Link(f"{SHOP}/catalogue/page-{number}.html", kind="detail") for number in (1, 2, 3))
THREE = replace(QUICK, start_urls=PAGES, patience=seconds(0))
"""Three pages and nothing behind them."""


def site_says(hands: Hands, text: str, host: str = "shop.localhost") -> None:
    hands.site.switch(host=host, robots=text)


def paths(hands: Hands, host: str = "shop.localhost") -> list[str]:
    return [arrival.path for arrival in hands.arrivals(host, robots=True)]


def states(hands: Hands) -> Counter[tuple[str, str | None, int]]:
    return Counter(hands.rows("SELECT state, outcome, attempts FROM requests"))


def later(hands: Hands, seconds: float) -> None:
    """What is written down about robots.txt, and what waits, grows older."""
    ago = timedelta(seconds=seconds)
    hands.do(
        "UPDATE robots_files SET fetched_at = fetched_at - %s, failing_since = failing_since - %s,"
        " next_try_at = next_try_at - %s", ago, ago, ago
    )  # fmt: skip
    hands.do("UPDATE requests SET not_before = not_before - %s", ago)
    hands.do("UPDATE budget_keys SET closed_until = closed_until - %s", ago)


# --- Before the first page -------------------------------------------------------------------------------------------


def test_robots_txt_is_the_first_request_and_is_asked_for_once(hands: Hands) -> None:
    """Rule 7: it is a request like any other, before any page, with the gap of the key; 63 pages need one."""
    # Mutation: in Politeness.permit return Permit("") for an origin that is not known
    polite = replace(QUICK, budget=Budget(gap=seconds(0.02), slots=2))
    hands.discover(polite)
    hands.collect(polite)
    seen = hands.arrivals(robots=True)
    assert [arrival.path for arrival in seen].count("/robots.txt") == 1
    assert seen[0].path == "/robots.txt"
    assert len(seen) == 64
    assert violations(seen, gap=0.02, slots=2) == []


def test_workers_share_what_one_of_them_asked(hands: Hands) -> None:
    """Rule 7: one fetches it, the others wait for it; the file is in the database, not in a worker."""
    many = replace(THREE, start_urls=tuple(Link(f"{SHOP}/echo?{n}", kind="detail") for n in range(40)))
    hands.site.misbehave("delay", prefix="/robots.txt", arg="0.3")
    hands.open(many)
    workers = [threading.Thread(target=hands.collect, args=(replace(many, patience=seconds(5)),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert states(hands) == {("fetched", "ok", 1): 40}
    assert paths(hands).count("/robots.txt") == 1


def test_what_it_forbids_is_skipped_unsent_and_pages_keep_the_rule(hands: Hands) -> None:
    """The outcome is robots_disallowed, no attempt is counted, and each page row says what allowed it."""
    # Mutation: in deposit/keeping.py page_row leave robots_rule out
    site_says(hands, "User-agent: *\nDisallow: /catalogue/\nAllow: /catalogue/page-1\n")
    hands.open(THREE)
    collected = hands.collect(THREE)
    assert collected.outcomes == {"ok": 1, "robots_disallowed": 2}
    assert paths(hands) == ["/robots.txt", "/catalogue/page-1.html"]
    assert states(hands) == {("fetched", "ok", 1): 1, ("skipped", "robots_disallowed", 0): 2}
    assert hands.column("SELECT DISTINCT robots_rule FROM pages") == ["Allow: /catalogue/page-1"]
    reasons = hands.column("SELECT DISTINCT reason FROM requests WHERE state = 'skipped'")
    assert reasons == [f"{SHOP}/robots.txt: Disallow: /catalogue/"]
    status = hands.status(THREE)
    assert (status.counts.planned, status.counts.skipped, status.counts.outstanding) == (3, 2, 1)


def test_group_of_our_own_token_counts(hands: Hands) -> None:
    """The token is that of the User-Agent which is sent: `collector-tests/1 (+…)`."""
    site_says(hands, "User-agent: *\nDisallow: /\n\nUser-agent: Collector-Tests\nDisallow: /catalogue/page-2\n")
    hands.open(THREE)
    assert hands.collect(THREE).outcomes == {"ok": 2, "robots_disallowed": 1}


# --- What the status means -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 410, 400])
def test_file_that_is_not_there_allows_everything(hands: Hands, status: int) -> None:
    hands.site.misbehave("status", prefix="/robots.txt", arg=str(status))
    hands.open(THREE)
    assert hands.collect(THREE).outcomes == {"ok": 3}
    assert hands.column("SELECT DISTINCT robots_rule FROM pages") == [f"no robots.txt ({status})"]


def test_empty_file_allows_everything(hands: Hands) -> None:
    hands.site.misbehave("empty_200", prefix="/robots.txt")
    hands.open(THREE)
    assert hands.collect(THREE).outcomes == {"ok": 3}


@pytest.mark.parametrize("status", [401, 403])
def test_refused_file_forbids_everything_unless_the_source_follows_the_rfc(hands: Hands, status: int) -> None:
    # Mutation: in Politeness._of_file leave out the guard `if self._source.robots_refused == "allow"`
    hands.site.misbehave("status", prefix="/robots.txt", arg=str(status))
    hands.open(THREE)
    assert hands.collect(THREE).outcomes == {"robots_disallowed": 3}
    assert paths(hands) == ["/robots.txt"]
    [reason] = hands.column("SELECT DISTINCT reason FROM requests")
    assert f"answered {status}" in reason
    assert "robots_refused" in reason
    brave = replace(THREE, name="brave", robots_refused="allow")
    hands.open(brave)
    assert hands.collect(brave).outcomes == {"ok": 3}
    assert paths(hands).count("/robots.txt") == 1, "the answer is shared, what it means is the source's"


@pytest.mark.parametrize("misbehaviour", ["status/500", "status/503", "status/429", "drop", "short_body", "garbage"])
def test_file_that_cannot_be_had_lets_everything_wait(hands: Hands, misbehaviour: str) -> None:
    """Rule 9: nothing is sent, nothing is lost, no attempt is counted, and the step says why (unknown means no)."""
    # Mutation: in robots._MEANINGS_BY_CLASS add 5: "absent"
    name, _, argument = misbehaviour.partition("/")
    hands.site.misbehave(name, prefix="/robots.txt", arg=argument, times=1)
    hands.open(THREE)
    collected = hands.collect(THREE)
    assert (collected.ending, collected.outcomes, collected.sent) == (Ending.WAITING, {}, 0)
    assert collected.next_due_in_s == pytest.approx(60, abs=20), "a 429 closes the key, with jitter"
    assert "/robots.txt" in " ".join(collected.troubles)
    assert paths(hands) == ["/robots.txt"]
    # What a closed key finds waiting is given back as it was.
    assert set(states(hands)) <= {("queued", "robots_unreachable", 0), ("queued", None, 0)}
    later(hands, 80)
    assert hands.collect(THREE).outcomes == {"ok": 3}
    assert paths(hands).count("/robots.txt") == 2


def test_tries_back_off(hands: Hands) -> None:
    """A minute, two, four, up to an hour."""
    hands.site.misbehave("status", prefix="/robots.txt", arg="503")
    hands.open(THREE)
    waits = []
    for _ in range(3):
        waits.append(round((hands.collect(THREE).next_due_in_s or 0) / 60))
        later(hands, waits[-1] * 60 + 5)
    assert waits == [1, 2, 4]
    assert paths(hands) == ["/robots.txt"] * 3


def test_retry_after_of_a_robots_txt_is_kept(hands: Hands) -> None:
    """Where it asks for longer than we would have waited."""
    # Mutation: in Politeness._read leave `least` out
    hands.site.misbehave("retry_after", prefix="/robots.txt", arg="503/600")
    hands.open(THREE)
    assert hands.collect(THREE).next_due_in_s == pytest.approx(600, abs=30)


@pytest.mark.parametrize(("answer", "wait"), [("429/300", 300), ("503/300", 300), ("429/nonsense", 60)])
def test_an_answer_to_robots_txt_closes_the_key_as_any_other_does(hands: Hands, answer: str, wait: float) -> None:
    """Rule 9: also for the other hosts of the domain, and for the worker itself at once.

    Mutation: drop `_heed` in `Politeness._hop`.
    """
    hands.site.misbehave("retry_after", prefix="/robots.txt", host="shop.localhost", arg=answer)
    other = "http://other.shop.localhost:8765"
    starts = (*PAGES, Link(f"{other}/catalogue/page-1.html", kind="detail"))
    both = replace(THREE, start_urls=starts, budget=Budget(gap=seconds(0), slots=1))
    hands.open(both)
    collected = hands.collect(both)
    assert collected.ending is Ending.WAITING
    [closed] = [each for each in listing.troubles(hands.database) if each.state == "closed"]
    assert (closed.name, closed.for_s) == ("shop.localhost", pytest.approx(wait, rel=0.3))
    assert "/robots.txt answered" in closed.why
    seen = hands.site.arrivals(robots=True)
    told = next(each for each in seen if each.status in (429, 503))
    assert [each.path for each in seen if each.arrived > told.ended] == []


def test_what_is_known_of_robots_txt_is_listed(hands: Hands) -> None:
    """`collector origins`: what cannot be had or is refused; with --all every origin."""
    site_says(hands, "User-agent: *\nCrawl-delay: 0.5\n")
    hands.know_robots(THREE)
    assert listing.troubles(hands.database) == []
    [known] = listing.troubles(hands.database, is_all=True)
    assert (known.name, known.state) == (SHOP, "robots")
    assert known.robots.startswith("rules (200), ")
    assert known.robots.endswith(" UTC; Crawl-delay 0.5 s")
    hands.site.misbehave("status", prefix="/robots.txt", arg="500")
    later(hands, 13 * 3600)
    hands.know_robots(THREE)
    [failing] = listing.troubles(hands.database)
    assert "answered 500" in failing.why
    assert "1 tries failed, the next is due at" in failing.robots


def test_good_copy_serves_while_a_new_one_cannot_be_had(hands: Hands) -> None:
    """Within 24 hours; after that nobody knows (RFC 9309 §2.4)."""
    # Mutation: in robots_files._while_failing drop `and good_for > 0`
    site_says(hands, "User-agent: *\nDisallow: /catalogue/page-3\n")
    hands.know_robots(THREE)
    hands.site.misbehave("status", prefix="/robots.txt", arg="500")
    later(hands, 13 * 3600)
    hands.open(THREE)
    assert hands.collect(THREE).outcomes == {"ok": 2, "robots_disallowed": 1}
    assert paths(hands).count("/robots.txt") == 2, "after half a day it was asked for"
    later(hands, 12 * 3600)
    again = replace(THREE, name="again")
    hands.open(again)
    assert hands.collect(again).ending is Ending.WAITING


def test_file_that_is_unreachable_for_a_month_is_as_good_as_absent(hands: Hands) -> None:
    """RFC 9309 §2.3.1.4, with ten tries at least in that time; the last good copy would go on."""
    # Mutation: in robots_files._while_failing drop `and file.failures >= UNREACHABLE_TRIES`
    hands.site.misbehave("status", prefix="/robots.txt", arg="500")
    hands.open(THREE)
    hands.collect(THREE)
    later(hands, 31 * 86_400)
    assert hands.collect(THREE).ending is Ending.WAITING, "two tries are no month of trying"
    hands.do("UPDATE robots_files SET failures = 10")
    hands.do("UPDATE requests SET not_before = NULL")
    assert hands.collect(THREE).outcomes == {"ok": 3}
    assert hands.column("SELECT DISTINCT robots_rule FROM pages") == ["no robots.txt (unreachable for long)"]


def test_window_that_is_over_does_not_wait_for_ever(hands: Hands) -> None:
    """After end + grace attempts count; what is out of them is failed(fetch), to be replayed."""
    hands.site.misbehave("status", prefix="/robots.txt", arg="500")
    over = replace(THREE, start_urls=PAGES[:1], max_attempts=2)
    hands.open(over, LONG_AGO)
    for _ in range(4):
        hands.collect(over, LONG_AGO)
        later(hands, 3600)
    assert states(hands) == {("failed", "robots_unreachable", 2): 1}
    assert set(paths(hands)) == {"/robots.txt"}


# --- Redirects -------------------------------------------------------------------------------------------------------


def test_redirected_file_speaks_for_the_origin_that_was_asked(hands: Hands) -> None:
    """And for no other; each hop under the budget of its own domain."""
    site_says(hands, "User-agent: *\nDisallow: /catalogue/page-2\n", host="other.localhost")
    to = "http://other.localhost:8765/robots.txt"
    hands.site.misbehave("redirect", prefix="/robots.txt", arg=f"301/{to}", host="shop.localhost")
    hands.open(THREE)
    assert hands.collect(THREE).outcomes == {"ok": 2, "robots_disallowed": 1}
    assert paths(hands, "other.localhost") == ["/robots.txt"]
    assert sorted(hands.column("SELECT budget_key FROM budget_keys")) == ["other.localhost", "shop.localhost"]
    assert hands.rows("SELECT origin, url FROM robots_files") == [(SHOP, to)]


def test_five_redirects_are_followed_and_no_more(hands: Hands) -> None:
    """Beyond them the file counts as absent, which is noted (RFC 9309 §2.3.1.2)."""
    for hop in range(5):
        prefix = "/robots.txt" if not hop else f"/hop/{hop}"
        hands.site.misbehave("redirect", prefix=prefix, arg=f"302/hop/{hop + 1}")
    hands.open(THREE)
    hands.collect(THREE)
    [five] = [file for file in _files(hands) if file.origin == SHOP]
    assert (five.answer, five.status) == ("absent", 404)
    assert paths(hands)[:6] == ["/robots.txt", *(f"/hop/{hop}" for hop in range(1, 6))]
    hands.site.misbehave("redirect", prefix="/hop/5", arg="302/hop/6")
    hands.do("DELETE FROM robots_files")
    hands.know_robots(THREE)
    [six] = _files(hands)
    assert (six.answer, six.status) == ("absent", 302)
    assert "more than 5 redirects" in six.notes[0]
    assert "/hop/6" not in paths(hands)


@pytest.mark.parametrize("target", ["302/http://[", "302/ftp://shop.localhost/robots.txt"])
def test_redirect_to_nowhere_is_no_answer(hands: Hands, target: str) -> None:
    hands.site.misbehave("redirect", prefix="/robots.txt", arg=target)
    hands.open(THREE)
    assert hands.collect(THREE).ending is Ending.WAITING
    assert "leads nowhere" in (_files(hands)[0].problem or "")


# --- Origins ---------------------------------------------------------------------------------------------------------


def test_each_origin_has_its_own_file(hands: Hands) -> None:
    """Scheme, host and port (RFC 9309 §2.3): what one forbids says nothing about the other."""
    # Mutation: in politeness._origin return the registrable domain
    site_says(hands, "User-agent: *\nDisallow: /\n", host="closed.shop.localhost")
    site_says(hands, "", host="bare.shop.localhost")
    hosts = ("shop.localhost:8765", "closed.shop.localhost:8765", "bare.shop.localhost:8765", "shop.localhost:8081")
    origins = replace(
        THREE, start_urls=tuple(Link(f"http://{host}/echo", kind="detail") for host in hosts), scope=("shop.localhost",)
    )
    hands.open(origins)
    assert hands.collect(origins).outcomes == {"ok": 3, "robots_disallowed": 1}
    found = {file.origin: file.answer for file in _files(hands)}
    assert found == {
        "http://shop.localhost:8765": "rules", "http://shop.localhost:8081": "rules",
        "http://closed.shop.localhost:8765": "rules", "http://bare.shop.localhost:8765": "absent",
    }  # fmt: skip


# --- Crawl-delay -----------------------------------------------------------------------------------------------------


def test_crawl_delay_is_the_floor_of_the_gap(hands: Hands) -> None:
    """Rule 9: between any two requests of the key, the robots.txt itself among them, whatever slots there are."""
    # Mutation: in Key.gap_s leave crawl_delay_s out
    # Mutation: in Key.width leave crawl_delay_s out
    site_says(hands, "User-agent: *\nCrawl-delay: 0.3\n")
    hands.open(THREE)
    assert hands.collect(THREE).outcomes == {"ok": 3}
    seen = hands.arrivals(robots=True)
    assert len(seen) == 4
    assert violations(seen, gap=0.3, slots=1) == []


def test_crawl_delay_binds_every_source_of_the_key(hands: Hands) -> None:
    """Rule 9: two workers of two sources, one of which never saw a delay in its own contract."""
    site_says(hands, "User-agent: *\nCrawl-delay: 0.2\n")
    twin = replace(THREE, name="twin", start_urls=tuple(Link(f"{SHOP}/echo?{n}", kind="detail") for n in range(3)))
    for source in (THREE, twin):
        hands.open(source)
    workers = [threading.Thread(target=hands.collect, args=(source,)) for source in (THREE, twin)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seen = hands.arrivals(robots=True)
    assert len(seen) == 7
    assert violations(seen, gap=0.2, slots=1) == []


def test_crawl_delay_beyond_the_limit_stops_the_step_with_a_message(hands: Hands) -> None:
    """Rule 9: never silently cut; the message names the field, and nothing but robots.txt was sent."""
    # Mutation: in Politeness._remember leave the check out
    site_says(hands, "User-agent: *\nCrawl-delay: 86400\n")
    hands.open(THREE)
    with pytest.raises(ContractError, match=r"budget\.longest_gap.*86400 s.*Crawl-delay"):
        hands.collect(THREE)
    assert paths(hands) == ["/robots.txt"]
    assert states(hands) == {("queued", None, 0): 3}
    assert hands.column("SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL") == [0]


# --- Outside a window ------------------------------------------------------------------------------------------------


def test_single_visit_asks_first_too(hands: Hands) -> None:
    """`check` and `new` send what the robots.txt allows and nothing else."""
    site_says(hands, "User-agent: *\nDisallow: /catalogue/\n")
    request = of_starts(THREE, PAGES).requests[0]
    answer = visit.run(
        replace(THREE, patience=seconds(5)), TODAY, request, database=hands.database, fetcher=hands.fetcher
    )
    assert isinstance(answer, Forbidden)
    assert "Disallow: /catalogue/" in answer.reason
    assert paths(hands) == ["/robots.txt"]


def _files(hands: Hands) -> list[robots_files.Listed]:
    with hands.database.transaction() as connection:
        return robots_files.listed(connection)
