"""No way of naming a forbidden address makes the fetcher connect to it (rule 13)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from collector_assets import urls
from collector_assets.fetch import FetchRequest, NoResponse, NotSent, Response
from collector_assets.fetch.http import HttpFetcher
from collector_assets.outcome import Outcome
from collector_tests.fetch.conftest import always
from collector_tests.fixtures.stranger import HOME, Resolver, Stranger
from collector_tests.hostile.conftest import Canary
from collector_tests.hostile.targets import ADDRESSES, HIDDEN, HOSTS, SPELLINGS

End = Response | NoResponse | NotSent


def asked(url: str) -> FetchRequest:
    return FetchRequest(url=url, connect_s=1, read_s=5, total_s=5, max_bytes=10_000)


def fetched(by: HttpFetcher, targets: Iterable[str]) -> dict[str, End]:
    """How the requests ended, one after the other."""

    async def whole() -> dict[str, End]:
        try:
            return {each: await by.fetch(asked(each), always) for each in targets}
        finally:
            await by.close()

    return asyncio.run(whole())


def is_refused(end: End) -> bool:
    """By the guard, or by the client because it is no URL: in both cases before a look-up and a connection."""
    harmless = (Outcome.DESTINATION_REFUSED, Outcome.FETCHER_ERROR)
    return isinstance(end, NoResponse) and end.outcome in harmless and not end.sent


def let_through(canary: Canary, ends: dict[str, End]) -> dict[str, End]:
    """Those that were not refused."""
    canary.targets += len(ends)
    return {target: end for target, end in ends.items() if not is_refused(end)}


def test_a_url_that_nobody_parsed_is_refused(canary: Canary):
    """Rule 13. The guard stands alone: what comes here was parsed long before, as a rule."""
    # Mutation: drop `self._egress.check(...)` from `Connector.connect`.
    ends = fetched(Resolver().fetcher(), [f"http://{spelling}:{canary.port}/" for spelling in SPELLINGS])

    assert let_through(canary, ends) == {}


def test_a_url_as_a_link_gives_it_is_refused(canary: Canary, stranger: Stranger):
    links = [urls.resolve(f"http://{each}:{canary.port}/", f"{stranger.origin}/") for each in SPELLINGS]
    ends = fetched(Resolver().fetcher(), [link.url for link in links if isinstance(link, urls.WebAddress)])

    assert let_through(canary, ends) == {}
    assert len(ends) > 50  # many spellings are one address


def test_a_name_with_such_an_address_is_refused(canary: Canary):
    # Mutation: `if True` for `verdict.allowed` in `Guard._may_use`.
    for ip in ADDRESSES:
        assert let_through(canary, fetched(Resolver([ip]).fetcher(), [f"http://evil.example:{canary.port}/"])) == {}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_name_with_such_an_address_beside_a_good_one_is_refused(canary: Canary, is_first: object):
    """Rule 13."""
    for ip in ADDRESSES:
        answer = [ip, HOME] if is_first else [HOME, ip]
        assert let_through(canary, fetched(Resolver(answer).fetcher(), [f"http://evil.example:{canary.port}/"])) == {}


def test_a_name_that_answers_so_the_second_time_is_refused(canary: Canary, stranger: Stranger):
    """Rule 13. DNS rebinding: another look-up is another judgement, and none is between that and connecting."""
    good = stranger.page("/", Connection="close")
    for ip in ADDRESSES:
        ends = fetched(Resolver([HOME], [ip]).fetcher(), [good, f"http://site.example:{canary.port}/"])
        assert isinstance(ends.pop(good), Response)
        assert let_through(canary, ends) == {}


@pytest.mark.parametrize("host", HOSTS)
def test_a_link_that_hides_its_host_is_refused_or_leads_home(canary: Canary, stranger: Stranger, host: str):
    hidden = [each.format(host=f"{host}:{canary.port}") for each in HIDDEN]
    links = [urls.resolve(each, f"{stranger.origin}/a/b") for each in hidden]
    ends = fetched(Resolver().fetcher(), [link.url for link in links if isinstance(link, urls.WebAddress)])

    assert all(urls.host(url) == "site.example" for url in let_through(canary, ends))
    assert sum(map(is_refused, ends.values())) >= 5
