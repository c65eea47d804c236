"""Four processes, two sources, one domain: what the site says holds for all of them, judged by its log (rules 7, 9)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from subprocess import Popen

import pytest

from collector_assets.demo import DemoSite
from collector_assets.demo.arrivals import Arrival, violations
from collector_tests.fixtures.workers import WINDOW, Crew

GAP = 0.02
DELAY = 0.05
HEARD_WITHIN_S = 1.3
"""A second until the next renewal, and what a busy machine adds."""


def changes(name: str) -> str:
    return (
        f'name="{name}", start_urls=("http://polite.localhost:8765/catalogue/page-1.html",), '
        f"budget=Budget(gap=seconds({GAP}), slots=1), in_flight=2, retry_wait=seconds(0.1), patience=seconds(90)"
    )


def crews(crew: Callable[[str], Crew]) -> tuple[Crew, Crew]:
    both = crew(changes("first")), crew(changes("second"))
    for each in both:
        each.open()
    return both


def ended(*workers: Popen[str]) -> list[tuple[int, str]]:
    """Exit codes, and all they said."""
    words = [(" ".join(worker.communicate(timeout=300)), worker.returncode) for worker in workers]
    return [(code, said) for said, code in words]


def too_early(arrivals: Sequence[Arrival], seconds: float) -> list[tuple[float, str]]:
    """Requests that came before so many seconds had passed since a 429."""
    told = [each for each in arrivals if each.status == 429]
    return [
        (each.arrived - answer.ended, each.path)
        for answer in told
        for each in arrivals
        if answer.ended <= each.arrived < answer.ended + seconds
    ]


TROUBLES = (
    # Each incident in a row doubles the least wait (closing.py): three now and three later come to a minute.
    {"do": "retry_after", "prefix": "/catalogue/", "arg": "429/1", "every": 19, "times": 3},
    {"do": "flaky", "prefix": "/catalogue/", "arg": "1", "every": 7},
    # Books alone: a listing that leads back to the first one would end the chain.
    {"do": "redirect", "prefix": "/catalogue/t", "arg": "302/catalogue/page-1.html", "every": 3},
)


def misbehaves(site: DemoSite, *rules: Mapping[str, object]) -> None:
    """Nothing but these."""
    site.behave()
    for rule in rules:
        site.misbehave(**rule)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("books", [20, pytest.param(300, marks=[pytest.mark.chaos, pytest.mark.timeout(900)])])
def test_every_trouble_at_once_keeps_to_the_rules(crew: Callable[[str], Crew], books: int) -> None:
    """Rules 7, 9, the accept of issue C: 0 violations in the whole log, robots.txt included, and silence after 403.

    Crawl-delay (more than the sources' gap), 429 with Retry-After, 503 that are tried again, redirects; in the middle
    the site refuses us; resumed, the rest is collected, under the same troubles.
    """
    both = crews(crew)
    site = both[0].site
    site.switch(books=books, robots=f"User-agent: *\nCrawl-delay: {DELAY}\n")
    misbehaves(site, *TROUBLES)
    workers = [each.work() for each in both for _ in range(2)]
    both[0].wait_until(lambda: len(site.arrivals()) > books, seconds=300)
    misbehaves(site, {"do": "status", "prefix": "/", "arg": "403"})
    for code, said in ended(*workers):
        assert code == 4, said
    refused = [each for each in site.arrivals() if each.status == 403]
    assert all(each.arrived <= refused[2].ended + HEARD_WITHIN_S for each in site.arrivals())
    sent = len(site.arrivals(robots=True))
    assert [code for code, _ in ended(*(each.work() for each in both for _ in range(2)))] == [4] * 4
    assert len(site.arrivals(robots=True)) == sent

    misbehaves(site, *TROUBLES)
    ends = ended(both[0].start("resume", "http://polite.localhost:8765", "--reason", "they know us now"))
    why = ("--outcome", "refused", "--reason", "they know us now")
    ends += ended(*(each.start("replay", each.source.name, WINDOW.key, *why) for each in both if failed(each)))
    ends += ended(*(each.work() for each in both for _ in range(2)))
    assert [code for code, _ in ends] == [0] * len(ends), ends
    arrivals = site.arrivals(robots=True)
    assert violations(arrivals, gap=DELAY, slots=1) == []
    assert too_early(arrivals, 1.0) == []
    assert {429, 503, 302, 200, 403} == {each.status for each in arrivals}
    assert sum(each.path == "/robots.txt" for each in arrivals) == 1
    for each in both:
        counts = each.status().counts
        assert (counts.to_fetch, counts.failed, counts.planned) == (0, 0, books + -(-books // 20))


def failed(crew: Crew) -> int:
    return crew.status().counts.failed


def test_after_a_series_of_403_no_process_sends_anything(crew: Callable[[str], Crew]) -> None:
    """Rule 9: two sources, four processes; then a fifth; they end with a refusal and say what to do."""
    first, second = crews(crew)
    site = first.site
    site.switch(books=20)
    workers = [each.work() for each in (first, second) for _ in range(2)]
    first.wait_until(lambda: len(site.arrivals()) > 4)
    site.misbehave("status", prefix="/", arg="403")
    for code, said in ended(*workers):
        assert code == 4, said
        assert "collector resume http://polite.localhost:8765 --reason" in said
    refused = [each for each in site.arrivals() if each.status == 403]
    third = refused[2].ended
    assert all(each.arrived <= third + HEARD_WITHIN_S for each in site.arrivals())
    sent = len(site.arrivals())
    assert ended(second.work(), first.work())[0][0] == 4
    assert len(site.arrivals()) == sent
    listed = first.start("origins", "--json").communicate(timeout=30)[0]
    assert [(row["name"], row["state"]) for row in json.loads(listed)] == [("http://polite.localhost:8765", "halted")]
    site.behave()
    words = ("resume", "http://polite.localhost:8765", "--reason", "they know us now")
    resumed = first.start(*words)
    assert ended(resumed)[0][0] == 0
    assert [code for code, _ in ended(first.work(), second.work())] == [0, 0]
