"""Links that stayed out, counted; what listings showed lately; which keys are known."""

from __future__ import annotations

from collector_assets import frontier, rejected_links, trails
from collector_assets.database import Connection, Database
from collector_assets.rejected_links import RejectedLinks
from collector_assets.traps import Trail
from collector_tests.fixtures.frontier import NOON, START, open_work, request, requests


def count(connection: Connection, reason: str, detail: str, number: int = 1) -> None:
    rejected_links.count(
        connection, "shop", START, reason=reason, detail=detail, number=number, example=f"{detail}:x", referrer="here"
    )


def test_each_detail_of_a_reason_is_counted_apart_and_keeps_its_first_example(database: Database) -> None:
    open_work(database)
    with database.transaction() as connection:
        count(connection, "not_a_web_address", "mailto", 2)
        count(connection, "not_a_web_address", "tel")
        count(connection, "out_of_scope", "")
        count(connection, "not_a_web_address", "mailto", 3)
        assert rejected_links.listed(connection, "shop", START) == [
            RejectedLinks(reason="not_a_web_address", detail="mailto", count=5, example="mailto:x", referrer="here"),
            RejectedLinks(reason="not_a_web_address", detail="tel", count=1, example="tel:x", referrer="here"),
            RejectedLinks(reason="out_of_scope", detail="", count=1, example=":x", referrer="here"),
        ]


def test_details_that_a_site_makes_up_do_not_fill_the_table(database: Database) -> None:
    open_work(database)
    with database.transaction() as connection:
        for number in range(150):
            count(connection, "trap_suspected", f"pattern-{number}\0")
        count(connection, "trap_suspected", "pattern-7")
        found = {each.detail: each.count for each in rejected_links.listed(connection, "shop", START)}
    assert len(found) == 101
    assert (found[""], found["pattern-7"]) == (50, 2)


def test_a_trail_is_kept_per_window_and_pattern(database: Database) -> None:
    open_work(database)
    open_work(database, start=NOON)
    kept = {"a/b\0": Trail(barren=3, recent=(b"1", b"2")), "a/c": Trail()}
    with database.transaction() as connection:
        trails.write(connection, "shop", START, kept)
        trails.write(connection, "shop", START, {"a/c": Trail(recent=(b"3",))})
        found = trails.read(connection, "shop", START, ["a/b\0", "a/c", "a/d"])
        assert found == {"a/b\0": kept["a/b\0"], "a/c": Trail(recent=(b"3",)), "a/d": Trail()}
        assert trails.read(connection, "shop", NOON, ["a/c"]) == {"a/c": Trail()}


def test_known_keys_are_those_of_the_window(database: Database) -> None:
    work, later = open_work(database), open_work(database, start=NOON)
    work.add(requests(2))
    keys = [each.unique_key for each in (*requests(2), request("other"))]
    with database.transaction() as connection:
        assert frontier.known(connection, "shop", START, keys) == set(keys[:2])
        assert frontier.known(connection, "shop", NOON, keys) == set()
    later.add(requests(1))


def test_a_request_comes_back_with_what_its_listing_said(database: Database) -> None:
    work = open_work(database)
    work.add([request("way", kind="listing", barren=4, above=b"digest")])
    (lease,) = work.claim()
    assert (lease.barren, lease.above) == (4, b"digest")
