"""WARC-06: what was blocked is archived with its outcome, and never read as content."""

from __future__ import annotations

import pytest
from warcio.archiveiterator import ArchiveIterator

from collector_assets.contract import Budget, Kind, Link, replace, seconds
from collector_assets.errors import OriginHalted
from collector_assets.sources.shop import extract
from collector_tests.collect.conftest import QUICK, Hands

SITE = "http://shop.localhost:8765"
MIXED = replace(
    QUICK, discover=None, extract=None, kinds={"detail": Kind(extract=extract)}, budget=Budget(gap=seconds(0), slots=1),
    start_urls=(
        Link(f"{SITE}/catalogue/page-1.html?1", kind="detail"),
        Link(f"{SITE}/catalogue/page-2.html", kind="detail"),
        Link(f"{SITE}/misbehave/challenge/200", kind="detail"),
    ),
)  # fmt: skip


def test_warc_06_blocked_pages_in_the_archive(hands: Hands) -> None:
    """A redirect to an "unblock" host that ends in 200, a challenge with 200; then the extractor runs again."""
    unblock = "302/http://unblock.shop.localhost:8765/misbehave/chunked"
    hands.site.misbehave("redirect", prefix="/catalogue/page-2.html", arg=unblock)
    hands.open(MIXED)
    hands.collect(MIXED)
    pages = hands.rows("SELECT status, outcome FROM pages")
    assert sorted(pages) == [(200, "blocked"), (200, "blocked"), (200, "ok"), (302, "redirect")]
    outcomes = []
    for file in sorted(hands.folder.rglob("*.warc.gz")):
        with file.open("rb") as stream:
            outcomes += [
                record.rec_headers.get_header("Collector-Outcome")
                for record in ArchiveIterator(stream)
                if record.rec_type == "response"
            ]
    assert sorted(map(str, outcomes)) == ["None", "blocked", "blocked", "redirect"]
    assert (hands.read(MIXED).pages, hands.read(replace(MIXED, extractor_version="2")).pages) == (1, 1)


def test_warc_06_an_outcome_is_corrected_without_touching_the_archive(hands: Hands) -> None:
    """The page's row decides: a page that was taken for a refusal is read once its row says so."""
    good = replace(MIXED, start_urls=MIXED.start_urls[:1])
    hands.open(good)
    hands.collect(good)
    hands.do("UPDATE pages SET outcome = 'blocked'")
    assert hands.read(good).pages == 0
    hands.do("UPDATE pages SET outcome = 'ok'")
    assert hands.read(good).pages == 1


def test_warc_06_three_in_a_row_halt_the_origin(hands: Hands) -> None:
    links = [Link(f"{SITE}/misbehave/challenge/200?{number}", kind="detail") for number in range(5)]
    blocked = replace(MIXED, start_urls=tuple(links))
    hands.open(blocked)
    with pytest.raises(OriginHalted):
        hands.collect(blocked)
    assert len(hands.arrivals()) == 3
