"""`process`: what becomes of stored pages, in real Postgres."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pandera.pandas as pa
import pytest
from pandera.engines.pandas_engine import Decimal as ExactDecimal

from collector_assets import process, windows
from collector_assets.contract import Daily, Expect, Kind, Link, Page, Record, Source, Unreadable, attempt, replace
from collector_assets.errors import UnknownWindow
from collector_assets.process import findings
from collector_assets.request import Fence
from collector_assets.staging import Totals
from collector_assets.verdicts import newest
from collector_tests.fixtures.stored import FIRST_DAY, Stored


class Item(pa.DataFrameModel):
    """A thing with a price."""

    sku: str
    price: ExactDecimal = pa.Field(ge=0)

    class Config(pa.DataFrameModel.Config):
        """Prices come as text."""

        coerce = True


class Offer(pa.DataFrameModel):
    """Who sells it."""

    sku: str
    seller: str


def extract(page: Page) -> Iterator[Any]:
    """The rows of the body; it may ask for trouble."""
    for row in page.json():
        if row == "raise":
            raise LookupError("no price on the page")
        yield Record(row.pop("_type"), row) if isinstance(row, dict) and "_type" in row else row


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


def next_page(page: Page) -> Iterator[Link]:
    yield Link(page.url + "next", kind="listing")


def item(sku: str | None, price: Any = "1.50", **more: Any) -> dict[str, Any]:
    return {"sku": sku, "price": price, **more}


def everything(stored: Stored) -> dict[str, list[Any]]:
    """Every row that `process` writes, with what tells whether it was touched."""
    return {
        table: sorted(map(str, stored.rows(f"SELECT xmin, ctid, t.* FROM {table} AS t")))  # noqa: S608
        for table in ("observations", "rejects", "readings", "verdicts", "requests", "windows")
    }


# --- Records and rejects ---------------------------------------------------------------------------------------------


def test_records_become_observations_with_their_origin(stored: Stored) -> None:
    row = stored.window(SOURCE)
    at = FIRST_DAY + timedelta(hours=7)
    [(request_id, _)] = stored.add(SOURCE, row, [[item("a", "51.70"), item("b", 2)]], fetched_at=at, late=True)
    report = stored.process(SOURCE, row)
    assert (report.pages, report.records, report.rejects, report.new_observations) == (1, {"record": 2}, 0, 2)
    assert report.verdict.passed
    found = stored.rows("SELECT entity, data, request_id, collected_at, late FROM observations ORDER BY entity")
    assert found == [
        ("a", {"sku": "a", "price": 51.7}, request_id, at, True),
        ("b", {"sku": "b", "price": 2}, request_id, at, True),
    ]
    assert stored.rows("SELECT data ->> 'price' FROM observations ORDER BY entity") == [("51.7",), ("2",)]
    assert stored.states(row) == [("done", None, "ok")]


def test_processing_twice_changes_nothing(stored: Stored) -> None:
    """Rule 14: not one row version, not even a lock; it sends nothing either, having nothing to send with.

    Mutation: drop the `IS DISTINCT FROM` condition of `observations.update_changed`; or always insert the verdict.
    """
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item("a"), item("b", -1)], [item("c"), item("a")], ["raise"], []])
    first = stored.process(SOURCE, row)
    before = everything(stored)
    again = stored.process(SOURCE, row, chunk=1)
    after = everything(stored)
    assert after == before
    assert (again.new_observations, again.changed, again.gone, again.requests_moved) == (0, 0, 0, 0)
    assert again.verdict == first.verdict
    assert again.preview == first.preview


def test_the_smallest_request_id_keeps_the_entity(stored: Stored) -> None:
    """Rule 14: of two records of one entity; the other is a reject `duplicate_entity`.

    Mutation: `ORDER BY request_id DESC` in `mark_duplicates`.
    """
    row = stored.window(SOURCE)
    [(first, _), (second, _)] = stored.add(SOURCE, row, [[item("a", 1), item("a", 2)], [item("a", 3), item("b", 4)]])
    report = stored.process(SOURCE, row)
    assert stored.rows("SELECT entity, (data ->> 'price')::int, request_id FROM observations ORDER BY entity") == [
        ("a", 1, first),
        ("b", 4, second),
    ]
    assert stored.rows("SELECT request_id, ordinal, entity, reasons -> 0 ->> 'check' FROM rejects ORDER BY 1, 2") == [
        (first, 1, "a", "duplicate_entity"),
        (second, 0, "a", "duplicate_entity"),
    ]
    assert {f.check: f.passed for f in report.verdict.findings}["entities_unique"] is False


def test_every_row_is_a_record_or_a_reject_with_all_reasons(stored: Stored) -> None:
    """Rule 15: nothing disappears.

    Mutation: `MAX_REASONS = 1` in validation.py; or return from `Extraction._take` for an unknown type.
    """
    row = stored.window(SOURCE)
    bodies = [[item("a"), item(None, -5), 7, {"_type": "ghost", "sku": "x"}, item("n\0ul", "x")]]
    stored.add(SOURCE, row, bodies)
    report = stored.process(SOURCE, row)
    assert (report.records, report.rejects) == ({"record": 1}, 4)
    assert [[(r["column"], r["check"]) for r in reject.reasons] for reject in report.reject_examples] == [
        [("price", "greater_than_or_equal_to(0)"), ("sku", "entity_is_given")],
        [(None, "is_a_mapping")],
        [(None, "record_type_is_declared")],
        [("price", "is_decimal")],
    ]
    assert stored.rows("SELECT records, rejects FROM readings") == [(1, 4)]


def test_one_broken_page_costs_one_page(stored: Stored) -> None:
    """Rule 15: extract() raises, bytes cannot be decoded, a record is gone; the others go on.

    Mutation: let `Extraction._items` raise.
    """
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item("a"), "raise"], b"no json", [item("b")], [], [item("c", -1)], [item("d")]])
    stored.do("UPDATE pages SET payload_digest = sha256('else') WHERE page_id = (SELECT max(page_id) FROM pages)")
    report = stored.process(SOURCE, row)
    assert stored.rows("SELECT entity FROM observations") == [("b",)]
    read = stored.rows("SELECT outcome, reason, records, rejects FROM readings ORDER BY page_id")
    assert [(outcome, records, rejects) for outcome, _, records, rejects in read] == [
        ("extraction_failed", 0, 0), ("extraction_failed", 0, 0), ("ok", 1, 0), ("no_records", 0, 0),
        ("all_rejected", 0, 1), ("extraction_failed", 0, 0),
    ]  # fmt: skip
    assert read[0][1].startswith("LookupError: no price on the page (test_process.py:")
    assert read[1][1].startswith("JSONDecodeError")
    assert read[4][1] == "1 of 1 rejected; first: price greater_than_or_equal_to(0) is broken by -1"
    assert read[5][1].startswith("broken record")
    assert report.outcomes == {"extraction_failed": 3, "ok": 1, "no_records": 1, "all_rejected": 1}
    assert stored.states(row)[2:5] == [
        ("done", None, "ok"), ("failed", "read", "no_records"), ("failed", "read", "all_rejected"),
    ]  # fmt: skip


def test_what_cannot_be_decoded_is_an_outcome(stored: Stored) -> None:
    row = stored.window(SOURCE)
    taken = stored.add(SOURCE, row, [[item("a")], [item("b")]])
    stored.do("DELETE FROM pages")
    urls = [f"http://shop.localhost:8765/{number}" for number in range(2)]
    stored.store(SOURCE, row, taken[:1], urls[:1], [b"\x1f\x8bnot gzip"], headers={"content-encoding": "gzip"})
    stored.store(SOURCE, row, taken[1:], urls[1:], [[item("b")]])
    report = stored.process(SOURCE, row)
    assert report.outcomes == {"undecodable": 1, "ok": 1}
    assert stored.states(row) == [("failed", "read", "undecodable"), ("done", None, "ok")]


def test_an_empty_page_is_fine_where_the_kind_says_so(stored: Stored) -> None:
    source = replace(SOURCE, extract=None, kinds={"detail": Kind(extract=extract, may_be_empty=True)})
    row = stored.window(source)
    stored.add(source, row, [[], [item("a")]])
    stored.process(source, row)
    assert stored.states(row) == [("done", None, "ok")] * 2


def test_a_discovering_page_waits_for_its_links(stored: Stored) -> None:
    """Rule 15: reading its records neither ends a listing whose links are not in, nor hides that they are not.

    Mutation: `return True` in `Extraction._moves`.
    """
    source = replace(SOURCE, extract=None, kinds={"listing": Kind(discover=next_page, extract=extract)})
    row = stored.window(source)
    stored.add(source, row, [[item("a")], [item("b")], []], kind="listing")
    first, second, _ = (request_id for (request_id,) in stored.rows("SELECT request_id FROM requests ORDER BY 1"))
    stored.do("UPDATE requests SET state = 'done', outcome = 'ok' WHERE request_id > %s", second)
    stored.do(
        "UPDATE requests SET state = 'failed', failed_phase = 'read', outcome = 'discovery_failed', reason = 'it did'"
        " WHERE request_id = %s", second,
    )  # fmt: skip
    stored.process(source, row)
    assert stored.states(row) == [
        ("fetched", None, "ok"), ("failed", "read", "discovery_failed"), ("failed", "read", "no_records"),
    ]  # fmt: skip
    assert stored.rows("SELECT count(*) FROM observations") == [(2,)]
    assert first < second


def test_only_the_newest_good_page_of_a_request_is_read(stored: Stored) -> None:
    row = stored.window(SOURCE)
    [(request_id, fence)] = stored.add(SOURCE, row, [[item("a", 1), item("old")]])
    stored.process(SOURCE, row)
    url = "http://shop.localhost:8765/0"
    stored.store(SOURCE, row, [(request_id, Fence(fence + 1))], [url], [[item("a", 2)]])
    report = stored.process(SOURCE, row)
    assert (report.changed, report.gone) == (1, 1)
    assert stored.rows("SELECT entity, data -> 'price' FROM observations") == [("a", 2)]
    assert stored.rows("SELECT count(*) FROM readings") == [(1,)]


# --- Several types, combine ------------------------------------------------------------------------------------------


def test_several_record_types_have_entities_of_their_own(stored: Stored) -> None:
    source = replace(
        SOURCE, schema=None, records={"item": Item, "offer": Offer}, entity={"item": "sku", "offer": "seller"}
    )
    row = stored.window(source)
    offers = [{"_type": "offer", "sku": "a", "seller": seller} for seller in ("x", "y")]
    stored.add(source, row, [[{"_type": "item", **item("a")}, *offers], [item("b")]])
    report = stored.process(source, row)
    assert report.records == {"item": 1, "offer": 2}
    assert report.reject_examples[0].reasons[0]["check"] == "record_type_is_declared"
    assert stored.rows("SELECT record_type, entity FROM observations ORDER BY 1, 2") == [
        ("item", "a"), ("offer", "x"), ("offer", "y"),
    ]  # fmt: skip


def join(entity: str, rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    """All fields of an entity's rows, the sum of their prices; breaks where a row says so."""
    assert all(type(row.get("price")) in (Decimal, type(None)) for row in rows)
    if any("break" in row for row in rows):
        raise ValueError("these do not belong together")
    total = sum((row["price"] for row in rows if "price" in row), Decimal(0))
    return {"sku": "other" if any("rename" in row for row in rows) else entity, "price": total}


def decimals(page: Page) -> Iterator[Any]:
    for row in extract(page):
        yield row | {"price": Decimal(row["price"])} if isinstance(row, dict) and "price" in row else row


def test_combine_joins_the_rows_of_an_entity_over_pages(stored: Stored) -> None:
    """The newest page, the smallest request id, late if one was; pages are done when the combined record passed."""
    source = replace(SOURCE, extract=decimals, combine=join)
    row = stored.window(source)
    at = FIRST_DAY + timedelta(hours=9)
    [(first, _)] = stored.add(source, row, [[item("a", "1.10"), item("b", -5)]], fetched_at=at + timedelta(hours=1))
    stored.add(source, row, [[{"sku": "a", "price": "2.20"}, {"sku": None}]], fetched_at=at, late=True)
    stored.add(source, row, [[item("c", "1", **{"break": 1})], [item("d", "1", rename=1)], [5]])
    report = stored.process(source, row, chunk=2)
    newest_page = stored.rows("SELECT page_id FROM pages WHERE request_id = %s", first)[0][0]
    found = "SELECT entity, data ->> 'price', request_id, page_id, collected_at, late FROM observations"
    assert stored.rows(found) == [("a", "3.3", first, newest_page, at + timedelta(hours=1), True)]
    checks = "SELECT entity, reasons -> 0 ->> 'check' FROM rejects ORDER BY entity NULLS LAST, reasons -> 0 ->> 'check'"
    assert stored.rows(checks) == [
        ("b", "greater_than_or_equal_to(0)"), ("c", "combine"), ("d", "combine_keeps_the_entity"),
        (None, "entity_is_given"), (None, "is_a_mapping"),
    ]  # fmt: skip
    read = stored.rows("SELECT outcome, records, rejects FROM readings ORDER BY request_id")
    assert read == [("ok", 1, 1), ("ok", 1, 1), *[("all_rejected", 0, 1)] * 3]
    assert {f.check: f.passed for f in report.verdict.findings}["stages_agree"]
    before = everything(stored)
    stored.process(source, row, chunk=100)
    assert everything(stored)["observations"] == before["observations"]
    assert everything(stored)["rejects"] == before["rejects"]


def unreadable(page: Page) -> Iterator[Any]:
    """Rows whose price is "?" cannot be read; those that are "?" as a whole cannot either."""
    for row in page.json():
        yield attempt(_priced, row)


def _priced(row: Any) -> dict[str, Any]:
    if row == "?":
        raise Unreadable("missing", "no row here")
    return row | {"price": attempt(Decimal, row["price"]) if row["price"] != "?" else Unreadable("ambiguous", "two")}


@pytest.mark.parametrize("more", [{}, {"combine": join}], ids=["one type", "combine"])
def test_what_cannot_be_read_rejects_its_row_alone(stored: Stored, more: dict[str, Any]) -> None:
    source = replace(SOURCE, extract=unreadable, **more)
    row = stored.window(source)
    stored.add(source, row, [[item("a"), item("b", "?"), "?", item("c")]])
    assert stored.process(source, row).records == {"record": 2}
    reasons = "SELECT reasons -> 0 ->> 'column', reasons -> 0 ->> 'check' FROM rejects ORDER BY ordinal"
    assert stored.rows(reasons) == [("price", "ambiguous"), (None, "missing")]


def test_a_row_of_no_type_that_cannot_be_read_keeps_its_reason(stored: Stored) -> None:
    types = {"schema": None, "records": {"item": Item, "offer": Offer}, "entity": {"item": "sku", "offer": "seller"}}
    source = replace(SOURCE, extract=unreadable, **types)
    row = stored.window(source)
    stored.add(source, row, [["?"]])
    assert stored.process(source, row).reject_examples[0].reasons[0]["check"] == "missing"


# --- Verdict ---------------------------------------------------------------------------------------------------------


def counted(stored: Stored, source: Source) -> str | None:
    return stored.rows("SELECT counted_version FROM windows WHERE source = %s", source.name)[0][0]


def test_the_version_that_last_passed_counts(stored: Stored) -> None:
    """Rule 17: a fail of another version leaves it alone, a fail of its own withdraws it.

    Mutation: set the version whatever the verdict says, in `process._count`; or never withdraw.
    """
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item("a")]])
    assert stored.process(SOURCE, row).verdict.passed
    assert counted(stored, SOURCE) == "1"
    strict = replace(SOURCE, extractor_version="2", expect=Expect(min_records=5))
    assert not stored.process(strict, row).verdict.passed
    assert counted(stored, SOURCE) == "1"
    assert not stored.process(replace(strict, extractor_version="1"), row).verdict.passed
    assert counted(stored, SOURCE) is None
    assert stored.rows("SELECT extractor_version, passed FROM verdicts ORDER BY verdict_id") == [
        ("1", True), ("2", False), ("1", False),
    ]  # fmt: skip


def test_re_extraction_moves_requests_between_done_and_failed_read_only(stored: Stored) -> None:
    """Rule 15.

    Mutation: drop the condition on `r.state` in `frontier.mark_read`.
    """
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item("a")], [item("b", -1)], [item("c")]])
    stored.do(
        "UPDATE requests SET state = 'failed', failed_phase = 'fetch', outcome = 'timeout', reason = 'lost'"
        " WHERE request_id = (SELECT max(request_id) FROM requests)"
    )
    stored.process(SOURCE, row)
    lost = ("failed", "fetch", "timeout")
    assert stored.states(row) == [("done", None, "ok"), ("failed", "read", "all_rejected"), lost]

    def better(page: Page) -> Iterator[Any]:
        yield from (record for record in extract(page) if record["sku"] != "a" and record.update(price=1) is None)

    stored.process(replace(SOURCE, extractor_version="2", extract=better), row)
    assert stored.states(row) == [("failed", "read", "no_records"), ("done", None, "ok"), lost]
    stored.process(SOURCE, row)
    assert stored.states(row) == [("done", None, "ok"), ("failed", "read", "all_rejected"), lost]


def test_the_verdict_is_written_with_its_rows_or_not_at_all(stored: Stored) -> None:
    """Rule 16: in their transaction.

    Mutation: `connection.execute("COMMIT")` before `verdicts.add` in `process._settle`.
    """
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item("a")]])
    stored.do("ALTER TABLE verdicts ADD CONSTRAINT no_more CHECK (false) NOT VALID")
    try:
        with pytest.raises(Exception, match="no_more"):
            stored.process(SOURCE, row)
    finally:
        stored.do("ALTER TABLE verdicts DROP CONSTRAINT no_more")
    for table in ("observations", "readings", "verdicts"):
        assert stored.rows(f"SELECT count(*) FROM {table}") == [(0,)]  # noqa: S608
    assert stored.states(row) == [("fetched", None, "ok")]
    assert counted(stored, SOURCE) is None


def test_a_page_that_comes_in_while_reading_fails_the_verdict(stored: Stored) -> None:
    """`stages_agree`: every good page is read, or the window's verdict says how many were not."""
    row = stored.window(SOURCE)
    [(request_id, fence)] = stored.add(SOURCE, row, [[item("a")]])

    def meanwhile(_done: int, _total: int) -> None:
        stored.store(SOURCE, row, [(request_id, Fence(fence + 1))], ["http://shop.localhost:8765/0"], [[item("b")]])

    report = stored.process(SOURCE, row, progress=meanwhile)
    assert [f.check for f in report.verdict.objections] == ["stages_agree"]
    assert stored.process(SOURCE, row).verdict.passed


def test_no_records_fail_the_window_unless_it_may_be_empty(stored: Stored) -> None:
    """DF-03: a source that may be empty writes nothing and passes."""
    row = stored.window(SOURCE)
    assert [f.check for f in stored.process(SOURCE, row).verdict.objections] == ["record_count_expected"]
    report = stored.process(replace(SOURCE, expect=Expect(min_records=0)), row)
    assert report.verdict.passed
    assert (report.pages, report.records, report.preview) == (0, {"record": 0}, [])


def totals(**more: Any) -> Totals:
    values = {
        "pages": 10, "unread": 0, "yielded": 100, "accounted": 100, "rejects": 0, "duplicates": 0, "cleaned": 0,
        "records": {"record": 100}, "outcomes": {"ok": 10}, "flags": {}, "reasons": [], "problems": [],
    }  # fmt: skip
    return Totals(**values | more)


@pytest.mark.parametrize(
    ("seen", "failed"),
    [
        (totals(), {}),
        (totals(pages=100, outcomes={"ok": 95, "extraction_failed": 5}), {"pages_readable": "WARN"}),
        (totals(pages=100, outcomes={"ok": 94, "no_records": 6}), {"pages_readable": "ERROR"}),
        (totals(pages=100, outcomes={"ok": 10, "all_rejected": 90}), {}),
        (totals(records={"record": 98}, rejects=2), {"schema_holds": "WARN"}),
        (totals(records={"record": 97}, rejects=3), {"schema_holds": "ERROR", "reject_rate_within_limit": "ERROR"}),
        (totals(records={"record": 98}, rejects=2, duplicates=2), {"entities_unique": "WARN"}),
        (totals(records={"record": 9}), {"record_count_expected": "ERROR"}),
        (totals(records={"record": 500}), {"record_count_expected": "ERROR"}),
        (totals(unread=1), {"stages_agree": "ERROR"}),
        (totals(accounted=99), {"stages_agree": "ERROR"}),
    ],
)
def test_findings_say_what_must_hold(seen: Totals, failed: dict[str, str]) -> None:
    found = findings(seen, Expect(min_records=10, max_records=400, max_reject_rate=0.02))
    assert {finding.check: finding.severity for finding in found if not finding.passed} == failed
    assert [finding.check for finding in found] == [
        "pages_readable", "schema_holds", "reject_rate_within_limit", "record_count_expected", "entities_unique",
        "stages_agree",
    ]  # fmt: skip


# --- Around it -------------------------------------------------------------------------------------------------------


def test_a_report_has_at_most_ten_of_anything(stored: Stored) -> None:
    """Rule 21: the graph shows what the report holds, so a window of any size is a handful of rows.

    Mutation: raise `EXAMPLES`, or drop the LIMIT of `list_rejects`, `preview_observations` or `totals`.
    """
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item(f"s{n}"), item(f"r{n}", f"x{n}"), {"sku": n, f"f{n}": 1}] for n in range(30)])
    report = stored.process(SOURCE, row)
    assert len(report.preview) == len(report.reject_examples) == 10
    (schema,) = [finding for finding in report.verdict.findings if finding.check == "schema_holds"]
    assert len(schema.details["reasons"]) <= 10
    verdict = newest_verdict(stored)
    assert len(str(verdict)) < 5_000


def newest_verdict(stored: Stored) -> object:
    with stored.database.transaction() as connection:
        return newest(connection, SOURCE.name, FIRST_DAY)


def test_a_window_that_was_never_opened_is_refused_and_nothing_is_written(stored: Stored) -> None:
    row = stored.window(SOURCE)
    stored.do("DELETE FROM windows")
    with pytest.raises(UnknownWindow):
        stored.process(SOURCE, row)
    assert stored.rows("SELECT count(*) FROM verdicts") == [(0,)]


def test_reading_holds_no_lock_and_no_transaction(stored: Stored) -> None:
    """Rule 6: others collect into the window while it is read; the lock is taken for the last statements only."""
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item(str(n))] for n in range(4)])
    seen: list[int] = []

    def look(_done: int, _total: int) -> None:
        with stored.database.transaction() as connection:
            windows.lock(connection, SOURCE.name, FIRST_DAY)
        # Of this database alone: others on the server are at work meanwhile.
        writing = "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND datname = current_database()"
        seen.extend(n for (n,) in stored.rows(writing))

    stored.process(SOURCE, row, chunk=2, progress=look)
    assert seen == [0, 0]


def test_two_readers_of_one_window_end_in_the_same_rows(stored: Stored) -> None:
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item(str(n)), item(f"x{n}", -1)] for n in range(40)])
    threads = [threading.Thread(target=stored.process, args=(SOURCE, row), kwargs={"chunk": 7}) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert stored.rows("SELECT count(*) FROM observations") == [(40,)]
    assert stored.rows("SELECT count(*) FROM rejects") == [(40,)]
    assert stored.rows("SELECT count(*) FROM verdicts") == [(1,)]


def test_a_page_of_very_many_rows_leaves_in_pieces(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded memory: and half of it is nothing, when the other half breaks."""
    monkeypatch.setattr("collector_assets.extraction.ROWS_AT_ONCE", 100)
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item(str(n)) for n in range(1_000)], [item(f"x{n}") for n in range(999)] + ["raise"]])
    report = stored.process(SOURCE, row)
    assert (report.records, report.outcomes) == ({"record": 1_000}, {"ok": 1, "extraction_failed": 1})


def test_the_report_knows_how_far_it_is(stored: Stored) -> None:
    row = stored.window(SOURCE)
    stored.add(SOURCE, row, [[item(str(n))] for n in range(5)])
    seen: list[tuple[int, int]] = []
    stored.process(SOURCE, row, chunk=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 5), (4, 5), (5, 5)]
    assert process.EXAMPLES == 10
