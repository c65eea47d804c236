"""Rule 18: "not seen" is not "removed"; and what is removed is marked, whatever the order of publications."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from collector_assets.contract import Expect, FromFile, Link, replace
from collector_assets.windows import WindowRow
from collector_tests.fixtures.stored import FIRST_DAY, Stored
from collector_tests.store.test_publish import SOURCE, at, collected

ANY = replace(SOURCE, expect=Expect(min_records=1, max_reject_rate=0.5, max_removed_rate=1, max_error_rate=0.5))


def seen(stored: Stored, *days: str, source: Any = ANY) -> list[WindowRow]:
    """A window for each word, which holds its letters, published in their order."""
    rows = [collected(stored, number, dict.fromkeys(each, 1), source=source) for number, each in enumerate(days)]
    for row in rows:
        stored.publish(source, row)
    return rows


def removed(stored: Stored) -> dict[str, datetime]:
    return dict(stored.rows("SELECT entity, removed_at FROM latest WHERE removed_at IS NOT NULL ORDER BY entity"))


def end(stored: Stored, row: WindowRow, state: str, outcome: str, *, entity: str | None = None, like: int = 0) -> None:
    """One more request of a window, that ended so; with the unique key of the request with that id, or of its own."""
    phase = "fetch" if state == "failed" else None
    stored.do(
        "INSERT INTO requests (window_start, source, unique_key, kind, entity, url, budget_key, max_attempts, state,"
        " failed_phase, outcome, reason, finished_at) SELECT %s, %s, coalesce((SELECT unique_key FROM requests WHERE"
        " request_id = %s), %s), 'detail', %s, 'http://shop.localhost:8765/x', 'shop.localhost', 3, %s, %s, %s,"
        " 'so', %s",
        row.window.start, row.source, like, f"{state} {outcome}".encode(), entity, state, phase, outcome,
        row.window.start + timedelta(hours=10),
    )  # fmt: skip


def request_of(stored: Stored, entity: str) -> int:
    return stored.rows("SELECT min(request_id) FROM observations WHERE entity = %s", entity)[0][0]


# --- By windows that show everything ---------------------------------------------------------------------------------


def test_what_two_whole_windows_in_a_row_do_not_show_is_removed_and_comes_back_when_it_is_seen(stored: Stored) -> None:
    """Rule 18: since the first of them; history keeps it; the view and the report say it."""
    rows = seen(stored, "abc", "ab")
    assert removed(stored) == {}, "once is not seen"
    third = collected(stored, 2, {"a": 1, "b": 1})
    report = stored.publish(ANY, third)
    assert (report.removed, report.returned, report.there, report.partial) == (1, 0, 2, "")
    assert removed(stored) == {"c": at(1)}
    assert stored.rows("SELECT sku, removed_at FROM latest_things WHERE removed_at IS NOT NULL") == [("c", at(1))]
    assert stored.rows("SELECT count(*) FROM observations WHERE entity = 'c'") == [(1,)]
    back = collected(stored, 3, {"a": 1, "c": 1})
    report = stored.publish(ANY, back)
    assert (report.returned, report.there, removed(stored)) == (1, 3, {})
    assert len(rows) == 2


def test_publishing_again_changes_no_mark_and_no_row(stored: Stored) -> None:
    rows = seen(stored, "abc", "ab", "ab")
    before = stored.rows("SELECT xmin, ctid FROM latest ORDER BY entity")
    report = stored.publish(ANY, rows[-1])
    assert (report.removed, removed(stored)) == (0, {"c": at(1)})
    assert stored.rows("SELECT xmin, ctid FROM latest ORDER BY entity") == before


def test_one_window_is_enough_where_the_source_says_so(stored: Stored) -> None:
    seen(stored, "abc", "ab", source=replace(ANY, removed_after=1))
    assert removed(stored) == {"c": at(1)}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_the_order_of_publications_does_not_matter(stored: Stored, order: tuple[int, ...]) -> None:
    """Rule 18: an old window that is published late neither removes what newer ones show nor revives what is gone."""
    days = ("abc", "ab", "bd", "b")
    rows = [collected(stored, number, dict.fromkeys(each, 1), source=ANY) for number, each in enumerate(days)]
    for number in order:
        stored.publish(ANY, rows[number])
    assert removed(stored) == {"a": at(2), "c": at(1)}, "d is missing once"


def test_an_old_window_read_again_revives_nothing_that_newer_ones_do_not_show(stored: Stored) -> None:
    """The extractor finds c in the second window now; the third and fourth still do not show it."""
    rows = seen(stored, "abc", "ab", "ab", "ab")
    assert removed(stored) == {"c": at(1)}
    better = replace(ANY, extractor_version="2", extract=lambda _: ({"sku": each, "price": 1} for each in "abc"))
    stored.process(better, rows[1])
    stored.publish(better, rows[1])
    assert removed(stored) == {"c": at(2)}


# --- What does not remove --------------------------------------------------------------------------------------------


def test_a_window_that_is_not_whole_removes_nothing(stored: Stored) -> None:
    """Rule 18: outstanding or failed requests, a bound, a trap, a listing that was not read, late pages, superseded.

    Mutation: `partial = ""` in `publish._mark_removed`.
    """
    seen(stored, "abc", "ab")
    listing = replace(ANY, discover=lambda _: iter(()), extract=ANY.extract)
    spoilt = {
        "outstanding": "UPDATE requests SET state = 'queued' WHERE window_start = %s",
        "of 1 requests failed": "UPDATE requests SET state = 'failed', failed_phase = 'read', outcome = 'no_records',"
        " reason = 'x' WHERE window_start = %s",
        "stopped discovery": "UPDATE windows SET bound_reached = 'max_requests' WHERE window_start = %s",
        "superseded": "UPDATE windows SET superseded_at = now() WHERE window_start = %s",
        "late": "UPDATE pages SET late = true WHERE window_start = %s",
        "led on and on": "INSERT INTO rejected_links (source, window_start, reason, count, example)"
        " VALUES ('things', %s, 'trap_suspected', 1, 'x')",
        "lead to others": "UPDATE requests SET state = 'skipped', outcome = 'unwanted', kind = 'listing'"
        " WHERE window_start = %s",
    }  # fmt: skip
    for number, (why, statement) in enumerate(spoilt.items(), start=2):
        row = collected(stored, number, {"a": 1, "b": 1}, source=ANY)
        stored.do(statement, row.window.start)
        assert why in stored.publish(listing, row).partial
        assert removed(stored) == {}
    stored.publish(ANY, collected(stored, 9, {"a": 1, "b": 1}, source=ANY))
    assert removed(stored) == {"c": at(1)}


@pytest.mark.parametrize(
    "source",
    [
        replace(ANY, coverage="incremental"),
        replace(ANY, start_urls=("http://shop.localhost:8765/{window.key}",)),
        replace(
            ANY, start=lambda _, given: (Link(row["url"]) for row in given["watched"]),
            inputs={"watched": FromFile("watched.csv")},
        ),
    ],
    ids=["incremental", "named windows", "started from rows"],
)  # fmt: skip
def test_a_source_whose_windows_do_not_show_everything_removes_nothing(stored: Stored, source: Any) -> None:
    """Rule 18: what nobody asked for is not missing.

    Mutation: `return True` in `Source.shows_everything`.
    """
    seen(stored, "abc", "ab", "ab", source=source)
    assert removed(stored) == {}


def test_a_window_of_another_reach_says_nothing(stored: Stored) -> None:
    """Rule 18, PAG-07: a narrower scope is no evidence, however often.

    Mutation: drop `AND w.reach = seen.reach` in `mark_removed`.
    """
    seen(stored, "abc")
    narrow = replace(ANY, start_urls=("http://shop.localhost:8765/only/",))
    for number in (1, 2):
        stored.publish(narrow, collected(stored, number, {"a": 1}, source=narrow))
    assert removed(stored) == {}


@pytest.mark.parametrize(
    ("state", "outcome"),
    [("failed", "timeout"), ("failed", "gone"), ("skipped", "robots_disallowed"), ("skipped", "soft_gone")],
)
@pytest.mark.parametrize("named", ["by its request", "by its entity"])
def test_a_window_that_leaves_it_open_removes_only_the_others(
    stored: Stored, state: str, outcome: str, named: str
) -> None:
    """Rule 18: no failed request names the entity, by its name or by the address at which it was.

    Mutation: drop either `NOT EXISTS` in `mark_removed`.
    """
    seen(stored, "a", "abcd")
    like = request_of(stored, "c") if named == "by its request" else 0
    entity = "c" if named == "by its entity" else None
    for number in (2, 3):
        # In the fixture a page holds all entities: only c's own request may carry the key of that page.
        row = collected(stored, number, {"a": 1}, source=ANY)
        if like:
            stored.do("UPDATE observations SET request_id = 0 WHERE entity IN ('b', 'd')")
        end(stored, row, state, outcome, entity=entity, like=like)
        assert stored.publish(ANY, row).partial == ""
    assert removed(stored) == {"b": at(2), "d": at(2)}


def test_a_reject_that_names_it_leaves_it_open(stored: Stored) -> None:
    """Its record did not pass: it is there, and nobody knows how it is."""
    seen(stored, "abc")
    for number in (1, 2):
        stored.publish(ANY, collected(stored, number, {"a": 1, "b": -1, "d": 1}, source=ANY))
    assert removed(stored) == {"c": at(1)}


def test_a_verdict_that_is_withdrawn_takes_its_word_back(stored: Stored) -> None:
    """A window whose records do not count any more says nothing about what is missing."""
    rows = seen(stored, "abc", "ab", "ab")
    stored.process(replace(ANY, expect=Expect(min_records=9)), rows[2])
    stored.publish(ANY, rows[0])
    assert removed(stored) == {}


def test_too_many_at_once_are_held_back_until_somebody_says_that_it_is_right(stored: Stored) -> None:
    """PAG-07: the guard against a site that shows half of itself."""
    careful = replace(ANY, expect=Expect(min_records=1, max_removed_rate=0.5))
    rows = seen(stored, "abcde", "ab", "ab", source=careful)
    report = stored.publish(careful, rows[-1])
    assert (report.held_back, report.there, removed(stored)) == (3, 5, {})
    report = stored.publish(ANY, rows[-1])
    assert (report.removed, report.there) == (3, 2)


# --- By a page that says so ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["gone", "gone_confirmed"])
def test_what_its_own_page_says_is_gone_is_removed_at_once(stored: Stored, outcome: str) -> None:
    seen(stored, "ab")
    row = collected(stored, 1, {"a": 1}, source=ANY)
    end(stored, row, "skipped", outcome, like=request_of(stored, "b"))
    stored.do("UPDATE observations SET request_id = 0 WHERE entity = 'a'")
    stored.publish(ANY, row)
    assert removed(stored) == {"b": FIRST_DAY + timedelta(days=1, hours=10)}


def test_gone_is_taken_back_when_it_is_seen_later_and_is_not_heard_of_an_older_window(stored: Stored) -> None:
    first = collected(stored, 0, {"a": 1}, source=ANY)
    end(stored, first, "skipped", "gone", entity="b")
    stored.publish(ANY, collected(stored, 1, {"a": 1, "b": 1}, source=ANY))
    stored.publish(ANY, first)
    assert removed(stored) == {}


def test_a_source_that_turns_incremental_has_nothing_removed(stored: Stored) -> None:
    rows = seen(stored, "abc", "ab", "ab")
    report = stored.publish(replace(ANY, coverage="incremental"), rows[-1])
    assert (report.returned, removed(stored)) == (1, {})
