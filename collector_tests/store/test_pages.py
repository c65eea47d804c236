"""The page store: rows in, rows out, and the way from a row to what an extractor reads."""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pandera.pandas as pa
import pytest
from psycopg import errors

from collector_assets import pages
from collector_assets.contract import Daily, Source
from collector_assets.database import Database, statements
from collector_assets.decoding import DecodingError
from collector_assets.outcome import Outcome
from collector_assets.page import Location, StoredResponse
from collector_assets.pages import NewPage, StoredPage
from collector_assets.request import Lease
from collector_assets.window import Window
from collector_tests.fixtures.frontier import NOON, START, Work, open_work, request, requests

SOURCE = Source(
    name="shop",
    start_urls=("http://shop.localhost/",),
    extract=lambda _page: [],
    schema=pa.DataFrameSchema({"sku": pa.Column(str)}),
    entity="sku",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    max_decoded_bytes=1_000_000,
)
DAY = Window(key="2026-01-29", start=START, end=START + timedelta(days=1))


@pytest.fixture
def work(database: Database) -> Work:
    return open_work(database)


def page_for(lease: Lease, **changes: Any) -> NewPage:
    """A good page of a claim."""
    whole = NewPage(
        window_start=START,
        source="shop",
        request_id=lease.request_id,
        attempt=lease.attempt,
        fence=lease.fence,
        kind=lease.kind,
        url=lease.url,
        final_url=lease.url,
        outcome=Outcome.OK,
        status=200,
        content_type="text/html",
        content_encoding="",
        etag='"1"',
        last_modified=None,
        requested_at=NOON,
        fetched_at=NOON + timedelta(seconds=1),
        location=Location(file="shop/a.warc.gz", offset=300, length=40, payload_digest=bytes(range(32)), url=lease.url),
        body_bytes=1_000,
        truncated=None,
        flags=(),
        late=False,
        warc_date=NOON,
    )
    return replace(whole, **changes)


def insert(work: Work, rows: Sequence[NewPage]) -> list[int]:
    with work.database.transaction() as connection:
        return pages.insert(connection, rows)


def to_read(work: Work, **more: Any) -> list[StoredPage]:
    arguments = {"source": "shop", "window_start": START, "kinds": ["detail"]} | more
    with work.database.transaction() as connection:
        return pages.for_reading(connection, **arguments)


def counts(work: Work) -> pages.PageCounts:
    with work.database.transaction() as connection:
        return pages.count(connection, "shop", START)


def test_page_is_read_with_everything_known_of_its_request(work: Work) -> None:
    work.add(
        [
            request(
                "a", lane="travel", entity="upc-1", hints={"price": "1 €"}, referrer="http://shop.localhost/", depth=2
            )
        ]
    )
    [lease] = work.claim()
    new = page_for(lease, late=True, flags=("trailing_bytes", "encoding_suspect"), content_type="text/html; charset=x")
    [page_id] = insert(work, [new])
    work.fetched(lease)
    assert to_read(work) == [
        StoredPage(
            page_id=page_id,
            request_id=lease.request_id,
            attempt=1,
            kind="detail",
            url=lease.url,
            final_url=lease.url,
            status=200,
            content_type="text/html; charset=x",
            requested_at=new.requested_at,
            fetched_at=new.fetched_at,
            location=new.location,
            body_bytes=1_000,
            flags=("trailing_bytes", "encoding_suspect"),
            late=True,
            lane="travel",
            entity="upc-1",
            hints={"price": "1 €"},
            referrer="http://shop.localhost/",
            depth=2,
            state="fetched",
            request_outcome="ok",
        )
    ]


def test_claim_leaves_one_page(work: Work) -> None:
    """The row of a claim is written once, however often its batch is repeated after a lost COMMIT."""
    # Mutation: drop ON CONFLICT … DO NOTHING in insert_pages -> UniqueViolation here.
    work.add(requests(2))
    first, second = work.claim(2)
    assert len(insert(work, [page_for(first)])) == 1
    assert len(insert(work, [page_for(first, status=500), page_for(second)])) == 1
    assert [page.status for page in to_read(work)] == [200, 200]


def test_no_rows_no_statement(work: Work) -> None:
    assert insert(work, []) == []


def test_newest_good_page_of_a_request_is_read(work: Work) -> None:
    """Of several good pages the newest counts; a bad one never does."""
    # Mutation: ORDER BY request_id, page_id (without DESC) in pages_for_reading -> status 200.
    work.add(requests(1))
    [lease] = work.claim()
    insert(work, [page_for(lease)])
    insert(work, [page_for(lease, fence=lease.fence + 1, attempt=2, status=203)])
    insert(work, [page_for(lease, fence=lease.fence + 2, attempt=3, status=404, outcome=Outcome.GONE)])
    assert [page.status for page in to_read(work)] == [203]


def test_pages_come_in_request_order_in_parts(work: Work) -> None:
    work.add([*requests(7), *requests(3, kind="listing")])
    leases = work.claim(10)
    insert(work, [page_for(lease) for lease in reversed(leases)])
    seen: list[int] = []
    while part := to_read(work, after_request_id=seen[-1] if seen else 0, limit=3):
        assert len(part) <= 3
        seen += [page.request_id for page in part]
    assert seen == sorted(lease.request_id for lease in leases if lease.kind == "detail")
    assert len(to_read(work, kinds=["detail", "listing"])) == 10
    assert to_read(work, kinds=[]) == []
    assert to_read(work, source="other") == []
    assert to_read(work, window_start=START + timedelta(days=1)) == []


def test_text_of_a_site_is_made_storable(work: Work) -> None:
    work.add(requests(1))
    [lease] = work.claim()
    insert(work, [page_for(lease, content_type="text/html\0", etag="a\0b", last_modified="\ud800")])
    assert to_read(work)[0].content_type == "text/html"


def test_row_without_bytes_is_refused(work: Work) -> None:
    """Rule 10: no row that could point at nothing."""
    # Mutation: drop CHECK (warc_length > 0) in migration 0001.
    work.add(requests(1))
    [lease] = work.claim()
    nothing = replace(page_for(lease).location, length=0)
    with pytest.raises(errors.CheckViolation):
        insert(work, [page_for(lease, location=nothing)])


def test_counts_of_a_window(work: Work) -> None:
    empty = counts(work)
    assert (empty.pages, empty.ok_by_kind, empty.stored_bytes, empty.warc_files) == (0, {}, 0, ())
    assert empty.first_fetched_at is None
    work.add([*requests(2), *requests(1, kind="listing")])
    first, second, listing = sorted(work.claim(3), key=lambda lease: lease.kind)
    other = replace(page_for(second).location, file="shop/b.warc.gz")
    later = NOON + timedelta(minutes=5)
    insert(work, [page_for(first), page_for(second, location=other, fetched_at=later), page_for(listing)])
    insert(
        work, [page_for(first, fence=first.fence + 100), page_for(second, fence=1, outcome=Outcome.GONE, status=404)]
    )
    found = counts(work)
    assert found.pages == 5
    assert found.ok_by_kind == {"detail": 2, "listing": 1}
    assert found.stored_bytes == 5_000
    assert (found.first_fetched_at, found.last_fetched_at) == (NOON + timedelta(seconds=1), later)
    assert found.warc_files == ("shop/a.warc.gz", "shop/b.warc.gz")


MANY = """
INSERT INTO requests (window_start, source, unique_key, kind, url, budget_key, max_attempts)
SELECT %(start)s, 'shop', sha256(n::text::bytea), 'detail', 'http://shop.localhost/' || n, 'shop.localhost', 3
FROM generate_series(1, 20000) AS n;
"""
THEIR_PAGES = """
INSERT INTO pages (window_start, source, request_id, attempt, fence, kind, url, final_url, outcome, status,
    requested_at, fetched_at, warc_file, warc_offset, warc_length, warc_date, payload_digest, body_bytes)
SELECT window_start, source, request_id, 1, 1, kind, url, url, 'ok', 200, now(), now(), 'a', 1, 1, now(), '', 1
FROM requests
"""


def test_next_part_is_found_by_index_without_sorting_the_window(database: Database) -> None:
    """Each part costs the same, however many pages the window has."""
    values = {"source": "shop", "window_start": START, "kinds": ["detail"], "after_request_id": 9_000, "limit": 500}
    with database.transaction() as connection:
        connection.execute(MANY.encode(), {"start": START})
        connection.execute(THEIR_PAGES.encode())
        connection.execute("ANALYZE pages, requests")
        explained = connection.execute(f"EXPLAIN {statements('pages')['pages_for_reading']}", values).fetchall()
        plan = "\n".join(str(line) for (line,) in explained)
        connection.execute("DELETE FROM pages")
    assert "good_pages_by_request" in plan
    assert "Seq Scan" not in plan, plan
    assert "Sort" not in plan, plan


def test_earlier_pages_are_found_by_index(database: Database) -> None:
    """A claim of a later window costs the same, however many pages there are."""
    values: dict[str, Any] = {"window_start": START + timedelta(days=1)}
    with database.transaction() as connection:
        for day in (START, START + timedelta(days=1)):
            connection.execute(MANY.encode(), {"start": day})
        connection.execute(THEIR_PAGES.encode() + b"WHERE window_start = %s", [START])
        ids: list[Any] = connection.execute(
            "SELECT request_id FROM requests WHERE window_start = %s LIMIT 256", [DAY.end]
        ).fetchall()
        values["request_ids"] = [request_id for (request_id,) in ids]
        for analyzed in (False, True):
            if analyzed:
                connection.execute("ANALYZE pages, requests")
            explained = connection.execute(f"EXPLAIN {statements('pages')['earlier_pages']}", values).fetchall()
            plan = "\n".join(str(line) for (line,) in explained)
            assert "Seq Scan" not in plan, plan
            assert "pages_by_url" in plan or not analyzed, plan  # of an unknown table one index is as good as another
        found = pages.earlier(connection, DAY.end, values["request_ids"])
        connection.execute("DELETE FROM pages")
    assert len(found) == 256


def test_writing_rows_is_cheap(work: Work) -> None:
    """About 0.04 ms of our CPU for a row on the machine where it was measured; four times that fails."""
    work.add(requests(300))
    rows = [page_for(lease) for lease in work.claim(300)]
    costs = []
    with work.database.transaction() as connection:
        for n in range(5):
            batch = [replace(row, fence=row.fence + 1_000 * n) for row in rows]
            before = time.process_time()
            pages.insert(connection, batch)
            costs.append((time.process_time() - before) / len(rows))
    assert min(costs) < 0.000_2


# --- From a row to a page --------------------------------------------------------------------------------------------


def a_stored_page(**changes: Any) -> StoredPage:
    whole = StoredPage(
        page_id=1,
        request_id=1,  # pyright: ignore[reportArgumentType]
        attempt=1,
        kind="detail",
        url="http://shop.localhost/1",
        final_url="http://shop.localhost/1?final",
        status=200,
        content_type="text/html",
        requested_at=NOON,
        fetched_at=NOON,
        location=Location(file="a", offset=1, length=1, payload_digest=b"", url="http://shop.localhost/1"),
        body_bytes=1,
        flags=("length_mismatch_verified",),
        late=False,
        lane="travel",
        entity="e",
        hints={"a": 1},
        referrer="http://shop.localhost/",
        depth=1,
        state="fetched",
        request_outcome=None,
    )
    return replace(whole, **changes)


def a_response(body: bytes, *headers: tuple[str, str], truncated: str | None = None) -> StoredResponse:
    return StoredResponse(
        status=200, headers=headers, body=body, url="http://shop.localhost/1", truncated=truncated, fetched_at=NOON
    )


def test_page_has_the_decoded_body_and_what_was_known() -> None:
    response = a_response(
        gzip.compress(b"<p>hello</p>") + b"\0", ("Content-Encoding", "gzip"), ("X-A", "1"), ("x-a", "2")
    )
    page = pages.page_of(a_stored_page(), response, DAY, SOURCE)
    assert page.body == b"<p>hello</p>"
    assert page.headers == {"content-encoding": "gzip", "x-a": "1, 2"}
    assert page.flags == {"trailing_bytes", "length_mismatch_verified"}
    assert (page.url, page.final_url) == ("http://shop.localhost/1", "http://shop.localhost/1?final")
    assert (page.kind, page.entity, page.lane, page.referrer) == ("detail", "e", "travel", "http://shop.localhost/")
    assert (page.hints, page.window, page.fetched_at, page.status) == ({"a": 1}, DAY, NOON, 200)


def test_http_07_decoding_is_bounded_at_reading() -> None:
    bomb = a_response(gzip.compress(bytes(10_000_000)), ("Content-Encoding", "gzip"))
    with pytest.raises(DecodingError) as raised:
        pages.page_of(a_stored_page(), bomb, DAY, SOURCE)
    assert raised.value.outcome is Outcome.TOO_LARGE


def test_warc_05_cut_page_is_not_read() -> None:
    # Mutation: drop the check of response.truncated in page_of -> half a page is read as a whole one.
    with pytest.raises(DecodingError) as raised:
        pages.page_of(a_stored_page(), a_response(b"<p>half", truncated="time"), DAY, SOURCE)
    assert raised.value.outcome is Outcome.TRUNCATED
