"""Recollect: what has ended is fetched again on purpose; what was read before counts until it is read again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from collector_assets import frontier, listing, recollect, report
from collector_assets.contract import Daily, Expect, Source
from collector_assets.errors import VerdictRefused
from collector_assets.outcome import Outcome
from collector_assets.put_back import PutBack, Wish
from collector_assets.selection import Selection
from collector_assets.windows import WindowRow
from collector_tests.fixtures.stored import Stored
from collector_tests.store.test_process import Item, extract

SOURCE = Source(
    name="things",
    start_urls=("http://shop.localhost:8765/",),
    extract=extract,
    schema=Item,
    entity="sku",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    expect=Expect(min_records=1, max_reject_rate=0.5),
)


def again(stored: Stored, row: WindowRow, selection: Selection, **more: Any) -> PutBack:
    values: dict[str, Any] = {"everything": False, "reason": "corrected today", "by": "ada", "dry_run": False} | more
    wish = Wish(source=SOURCE, window=row.window.key, selection=selection, **values)
    return recollect.run(wish, stored.database)


def fetch(stored: Stored, row: WindowRow, *bodies: Any, gone: bool = False) -> None:
    """Fetch what was put back, in the order of ids; with `gone` the site has no such page any more."""
    with stored.database.transaction() as connection:
        leases = frontier.claim(
            connection, source=SOURCE.name, window_start=row.window.start, budget_key="shop.localhost", worker="test",
            count=100, lease=timedelta(minutes=5), kinds=None, lane_weights={"*": 1}, discovering=[], interleave=None,
        )  # fmt: skip
    mine = [(lease.request_id, lease.fence) for lease in leases]
    at = row.window.start + timedelta(hours=15)
    if not gone:
        stored.store(SOURCE, row, mine, [lease.url for lease in leases], bodies, fetched_at=at)
    with stored.database.transaction() as connection:
        results = [
            frontier.Failed(*each, "fetch", Outcome.GONE, "410 Gone") if gone else frontier.Fetched(*each)
            for each in mine
        ]
        frontier.finish(connection, row.window.start, results)


def prices(stored: Stored) -> dict[str, str]:
    return dict(stored.rows("SELECT entity, data ->> 'price' FROM latest ORDER BY entity"))


@pytest.fixture
def published(stored: Stored) -> WindowRow:
    """A window with two things and a reject, in `latest`."""
    row = stored.window(SOURCE)
    bodies = [[{"sku": "a", "price": "1"}], [{"sku": "b", "price": "2"}], [{"sku": "c", "price": "-3"}]]
    stored.add(SOURCE, row, bodies)
    stored.process(SOURCE, row)
    stored.publish(SOURCE, row)
    return row


def test_a_page_is_found_by_the_entity_that_was_read_from_it(stored: Stored, published: WindowRow) -> None:
    # Mutation: drop the observations from group_selected's entities
    done = again(stored, published, Selection(entities=("b",)))
    assert (done.requests, done.were) == (1, {"done ok": 1})
    assert [state for state, _, _ in stored.states(published)] == ["done", "candidate", "failed"]


def test_a_page_is_found_by_the_entity_of_its_reject(stored: Stored, published: WindowRow) -> None:
    # Mutation: drop the rejects from group_selected's entities
    done = again(stored, published, Selection(entities=("c",)))
    assert done.were == {"failed(read) all_rejected": 1}


def test_the_newest_page_is_read_and_the_older_one_stays_archived(stored: Stored, published: WindowRow) -> None:
    """Rules 15 and 17: a corrected page becomes a new observation, and `latest` follows."""
    # Mutation: ORDER BY request_id, page_id in pages_for_reading -> the old page is read again
    again(stored, published, Selection(entities=("b",)))
    fetch(stored, published, [{"sku": "b", "price": "20"}])
    assert prices(stored) == {"a": "1", "b": "2"}
    reading = stored.process(SOURCE, published)
    assert (reading.records_total, reading.changed, reading.new_observations) == (2, 1, 0)
    assert stored.publish(SOURCE, published).updated == 1
    assert prices(stored) == {"a": "1", "b": "20"}
    assert stored.rows("SELECT count(*), count(DISTINCT request_id) FROM pages") == [(4, 3)]


def test_the_verdict_stands_until_the_pages_are_read_again(stored: Stored, published: WindowRow) -> None:
    """Rule 16: `publish` goes by the newest verdict, and a recollect is none."""
    again(stored, published, Selection(), everything=True)
    assert stored.publish(SOURCE, published).unchanged == 2
    fetch(stored, published, [{"sku": "a", "price": "-1"}], [{"sku": "b", "price": "-2"}], [{"sku": "c", "price": "3"}])
    assert stored.publish(SOURCE, published).unchanged == 2
    assert not stored.process(SOURCE, published).verdict.passed
    with pytest.raises(VerdictRefused, match="reject_rate_within_limit"):
        stored.publish(SOURCE, published)
    assert prices(stored) == {"a": "1", "b": "2"}


def test_a_page_that_is_gone_by_now_leaves_what_was_read(stored: Stored, published: WindowRow) -> None:
    """Rule 15: the request failed in fetching; its last good page is read as before."""
    again(stored, published, Selection(entities=("b",)))
    fetch(stored, published, gone=True)
    stored.process(SOURCE, published)
    stored.publish(SOURCE, published)
    assert prices(stored) == {"a": "1", "b": "2"}
    assert stored.states(published)[1] == ("failed", "fetch", "gone")


def test_reading_in_between_moves_nothing_that_waits(stored: Stored, published: WindowRow) -> None:
    """Rule 15: a candidate is not judged by its old page."""
    again(stored, published, Selection(), everything=True)
    assert stored.process(SOURCE, published).requests_moved == 0
    assert {state for state, _, _ in stored.states(published)} == {"candidate"}


def test_everything_that_ended_is_put_back_and_planned_stays(stored: Stored, published: WindowRow) -> None:
    """Rule 20: the same requests, counted as before."""
    # Mutation: recollect.ENDED without "done"
    stored.add(SOURCE, published, [[{"sku": "d", "price": "4"}]])
    before = report.run(SOURCE, published.window.key, stored.database).status.counts
    done = again(stored, published, Selection(), everything=True)
    after = report.run(SOURCE, published.window.key, stored.database).status.counts
    assert (done.requests, done.left_alone) == (4, {})
    assert done.were == {"done ok": 2, "failed(read) all_rejected": 1, "fetched ok": 1}
    assert (before.planned, after.planned, after.to_fetch) == (4, 4, 4)
    twice = again(stored, published, Selection(), everything=True)
    assert (twice.requests, twice.left_alone, twice.also_to_fetch) == (0, {"candidate": 4}, 4)


def test_the_report_says_what_is_left_to_do(stored: Stored, published: WindowRow) -> None:
    first = report.run(SOURCE, published.window.key, stored.database)
    assert first.remarks == ("1 pages gave no record: mend extract, raise extractor_version, materialize records",)
    assert [(case["column"], case["count"]) for case in first.reject_reasons] == [("price", 1)]
    assert (first.rejects, first.unread, first.latest.entities) == (1, 0, 2)
    assert first.latest.newest_window == published.window.key

    again(stored, published, Selection(entities=("b",)))
    waiting = report.run(SOURCE, None, stored.database)
    assert "1 requests are still to be fetched: materialize raw_pages" in waiting.remarks
    assert waiting.oldest_waiting is not None
    assert [each.reason for each in waiting.interventions] == ["corrected today"]

    fetch(stored, published, [{"sku": "b", "price": "20"}])
    fetched = report.run(SOURCE, None, stored.database)
    # Mutation: unread_pages without DISTINCT ON's order by page_id -> the old page was read
    assert fetched.unread == 1
    assert any("materialize records, then latest" in remark for remark in fetched.remarks)


def test_each_reject_is_listed_with_every_failure_case(stored: Stored) -> None:
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[{"sku": "a", "price": "-1"}, {"sku": None, "price": "x"}], [{"sku": "b", "price": "2"}]])
    stored.process(SOURCE, row)
    found = listing.quarantine(SOURCE, row.window.key, stored.database, limit=10)
    assert found.total == 2
    assert [{case["column"] for case in each.reasons} for each in found.rows] == [{"price"}, {"sku", "price"}]
    assert listing.quarantine(SOURCE, row.window.key, stored.database, limit=1).rows == found.rows[:1]


def test_requests_are_listed_by_what_they_have_in_common(stored: Stored, published: WindowRow) -> None:
    found = listing.requests(SOURCE, published.window.key, Selection(states=("done",)), stored.database, limit=1)
    assert (found.total, found.places, len(found.rows)) == (2, {"done ok": 2}, 1)
    (row,) = listing.requests(
        SOURCE, published.window.key, Selection(outcomes=("all_rejected",)), stored.database, limit=5
    ).rows
    assert (row.state, row.failed_phase) == ("failed", "read")
