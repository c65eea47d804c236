"""What makes a listing suspicious, and what does not."""

from __future__ import annotations

import io

import pytest

from collector_assets import traps
from collector_assets.traps import Trail

AT = "https://shop.example"


@pytest.mark.parametrize(
    ("page", "link", "sign"),
    [
        ("/x/a/a/", "/x/a/a/a/", "repeats a"),
        ("/x/a/b/a/b/", "/x/a/b/a/b/a/b/", "repeats a/b"),
        ("/x?a=1&a=1", "/x?a=1&a=1&a=1", "repeats a=1"),
        ("/login?next=/login?next=/login", "/login?next=/login?next=/login?next=/login", "repeats next=/login"),
        ("/x?u=%252F", "/x?u=%25252F", "escaped again and again: shop.example/x"),
    ],
)
def test_an_address_that_grows_by_itself(page: str, link: str, sign: str) -> None:
    assert traps.growth(AT + link, AT + page) == sign


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("/", "/a/a/a/"),  # odd, but not grown
        ("/x/a/", "/x/a/a/"),
        ("/x/a/a/a/b", "/x/a/a/a/c"),  # a sibling
        ("/x/a/a/a/", "/x/a/a/"),  # back
        ("/2026/11/11/", "/2026/11/11/11/"),
        ("/x?f=a", "/x?f=a&f=b&f=c"),
        ("/x?u=%2F", "/x?u=%252F"),
        ("/x?next=%252F", "/y?other=1&next=%252F&more=2"),
    ],
)
def test_an_address_that_is_only_odd_or_long(page: str, link: str) -> None:
    assert traps.growth(AT + link, AT + page) == ""


def test_a_very_long_address_costs_little() -> None:
    assert traps.growth(f"{AT}/{4_000 * 'a/'}", f"{AT}/{3_999 * 'a/'}") == ""
    assert traps.growth(f"{AT}/{30 * 'a/'}", f"{AT}/{29 * 'a/'}") == "repeats a"


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        (f"{AT}/cal?m=2026-11&view", "shop.example/cal?m&view"),
        (f"{AT}/2026/list/item-7/", "shop.example/*/list/*/"),
        (f"{AT}/cal/2026/Nov/", "shop.example/cal/*/"),
        (f"{AT}/cal/m%C3%A4rz/market", "shop.example/cal/*/market"),
        (f"{AT}/page/2/page/3/page/4/", "shop.example/page/*/"),
        (f"{AT}/2026/11/29", "shop.example/*"),
        (f"{AT}/{'ab/' * 3_000}", "shop.example/ab"),
        (AT + "/", "shop.example/"),
        ("http://shop.localhost:8765/p", "shop.localhost:8765/p"),
    ],
)
def test_pattern_keeps_words_and_forgets_numbers_and_values(url: str, pattern: str) -> None:
    assert traps.pattern(url) == pattern


def test_deeper_is_a_folder_below() -> None:
    assert traps.is_deeper(f"{AT}/a/b/c", f"{AT}/a/x?y=/")
    assert not traps.is_deeper(f"{AT}/a/c", f"{AT}/a/b")
    assert not traps.is_deeper(f"{AT}/ab/c", f"{AT}/a/c")


def test_trail_counts_what_shows_nothing_new() -> None:
    trail = Trail().after(b"1").after(b"2")
    assert trail.barren == 0
    trail = trail.after(None).after(b"1").after(b"2")
    assert (trail.barren, trail.recent) == (3, (b"1", b"2"))
    assert trail.after(b"3").barren == 0


def test_trail_remembers_a_bounded_number() -> None:
    trail = Trail()
    for number in range(1_000):
        trail = trail.after(b"%d" % number)
    assert len(trail.recent) == traps.REMEMBERED


def test_a_stream_has_the_digest_of_its_bytes() -> None:
    assert traps.digest_of_stream(io.BytesIO(b"page")) == traps.digest(b"page")


def test_a_set_of_items_has_one_digest_whatever_its_order() -> None:
    assert traps.digest_of([b"a", b"b", b"a"]) == traps.digest_of([b"b", b"a"])
    assert traps.digest_of([]) is None


@pytest.mark.parametrize(
    ("chain", "all_around", "ends"),
    [(20, 20, True), (19, 19, False), (19, 199, False), (5, 200, True), (4, 1_000, False)],
)
def test_a_way_ends_by_its_length_or_by_very_many_of_its_kind(chain: int, all_around: int, ends: bool) -> None:  # noqa: FBT001
    assert traps.leads_nowhere(chain, Trail(barren=all_around), 20) is ends
