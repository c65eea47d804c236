"""Rules 4, 6, 10, 12 and 15 where answers are put away: bytes first, then everything in one transaction or nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from warcio.archiveiterator import ArchiveIterator

from collector_assets import frontier, windows
from collector_assets.contract import Source, replace, seconds
from collector_assets.deposit import Answered, Depositor, Stored
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome
from collector_assets.request import Lease
from collector_tests.collect.conftest import QUICK, TODAY, Hands

PAGE = b"<html><h1>A page</h1></html>"
LONG_GONE = datetime(2001, 1, 1, tzinfo=UTC)


def answer_to(lease: Lease, *, body: bytes = PAGE, ended_ago_s: float = 0.0) -> Answered:
    """A good answer, by a worker whose wall clock is wrong by decades."""
    return Answered(
        lease=lease,
        answer=Response(
            outcome=Outcome.OK, reason="", url=lease.url, final_url=lease.url, http_version="1.1", status=200,
            status_text="OK", headers=((b"Content-Type", b"text/html"),), body=body, truncated=None, request_headers=(),
            requested_at=LONG_GONE, fetched_at=LONG_GONE + timedelta(seconds=1),
            ended_at=time.monotonic() - ended_ago_s, ip="127.0.0.1",
        ),
    )  # fmt: skip


def claim(hands: Hands, count: int, *, kind: str = "detail", lease: timedelta = timedelta(minutes=1)) -> list[Lease]:
    with hands.database.transaction() as connection:
        leases = frontier.claim(
            connection, source="shop", window_start=TODAY.start, budget_key="shop.localhost", worker="ours",
            count=count, lease=lease, kinds=[kind], lane_weights={"*": 1}, discovering=("listing",), interleave=None,
        )  # fmt: skip
    return sorted(leases, key=lambda lease: lease.request_id)


def store(hands: Hands, batch: Sequence[Answered], source: Source = QUICK) -> Stored:
    with closing(hands.archive.writer("shop", TODAY.key)) as writer:
        depositor = Depositor(
            source=source, window=hands.row(source), database=hands.database, archive=hands.archive, writer=writer
        )
        return depositor.store(batch)


# --- The fence -------------------------------------------------------------------------------------------------------


def test_late_result_is_not_stored_and_counted(hands: Hands) -> None:
    """Rule 4: one of three leases went to another worker; its page is left out, and the window says so."""
    hands.discover(QUICK)
    leases = claim(hands, 3)
    hands.do("UPDATE requests SET fence = nextval('fences') WHERE request_id = %s", leases[1].request_id)
    stored = store(hands, [answer_to(lease) for lease in leases])
    assert (stored.refused, stored.outcomes) == (1, {"ok": 2})
    kept = hands.column("SELECT request_id FROM pages WHERE kind = 'detail' ORDER BY 1")
    assert kept == [leases[0].request_id, leases[2].request_id]
    assert hands.row(QUICK).late_results == 1


def test_links_of_a_late_result_are_not_followed(hands: Hands) -> None:
    """Rule 4: a listing whose lease expired adds nothing."""
    hands.open(QUICK)
    (lease,) = claim(hands, 1, kind="listing", lease=timedelta(milliseconds=1))
    listing = b'<article class="product_pod"><h3><a href="/catalogue/a_1/index.html">A</a></h3></article>'
    stored = store(hands, [answer_to(lease, body=listing)])
    assert (stored.refused, stored.found) == (1, 0)
    assert hands.status(QUICK).counts.planned == 1


# --- One transaction -------------------------------------------------------------------------------------------------


def test_page_and_state_are_written_together_or_not_at_all(hands: Hands) -> None:
    """Rule 10: a failure between the result and its page rolls both back."""
    hands.discover(QUICK)
    leases = claim(hands, 2)
    with hands.refusing("pages", "kind <> 'detail'"), pytest.raises(psycopg.errors.CheckViolation):
        store(hands, [answer_to(lease) for lease in leases])
    counts = hands.status(QUICK).counts.by_kind("detail")
    assert (counts.leased, counts.fetched) == (2, 0)
    assert hands.column("SELECT count(*) FROM pages WHERE kind = 'detail'") == [0]
    assert store(hands, [answer_to(lease) for lease in leases]).outcomes == {"ok": 2}


def test_bytes_come_first(hands: Hands) -> None:
    """Rule 10: a commit that fails has its bytes in the archive already, in records that no row points at."""
    hands.discover(QUICK)
    leases = claim(hands, 2)
    before = archived(hands)
    with hands.refusing("pages", "kind <> 'detail'"), pytest.raises(psycopg.errors.CheckViolation):
        store(hands, [answer_to(lease) for lease in leases])
    assert len(archived(hands) - before) == 2


def archived(hands: Hands) -> set[str]:
    """The record ids of the responses in the archive."""
    found = set()
    for path in hands.folder.rglob("*.warc.gz"):
        with path.open("rb") as file:
            found |= {r.rec_headers["WARC-Record-ID"] for r in ArchiveIterator(file) if r.rec_type == "response"}
    return found


def test_listing_is_done_in_the_transaction_that_inserts_its_links(hands: Hands) -> None:
    """Rule 15: when its links cannot be written, the listing is not done and its page is not there."""
    with hands.refusing("requests", "kind <> 'detail'"), pytest.raises(psycopg.errors.CheckViolation):
        hands.discover(replace(QUICK, lease=seconds(1)))
    assert hands.status(QUICK).counts.done == 0
    assert hands.column("SELECT count(*) FROM pages") == [0]
    time.sleep(1.1)  # the lease of a worker that stopped
    hands.discover(QUICK)
    counts = hands.status(QUICK).counts
    assert (counts.by_kind("listing").done, counts.by_kind("detail").candidate) == (3, 60)


# --- The database says no --------------------------------------------------------------------------------------------


def test_worker_stops_when_the_database_refuses_a_write(hands: Hands) -> None:
    """Rule 12: it raises, sends no more, and the work is collected again once its leases have run out."""
    hands.discover(QUICK)
    seen = len(hands.arrivals())
    hands.site.misbehave("delay", prefix="/catalogue/", arg="0.05")
    with hands.refusing("pages", "kind <> 'detail'"), pytest.raises(psycopg.errors.CheckViolation):
        hands.collect(replace(QUICK, lease=seconds(1)))
    sent = len(hands.arrivals()) - seen
    assert 0 < sent < 60
    assert hands.column("SELECT count(*) FROM pages WHERE kind = 'detail'") == [0]
    hands.site.behave()
    time.sleep(1.1)
    hands.collect(QUICK)
    assert hands.status(QUICK).counts.by_kind("detail").fetched == 60
    assert hands.column("SELECT max(attempts), count(*) FROM requests GROUP BY kind ORDER BY 1 DESC LIMIT 1") == [2]


def test_worker_stops_when_the_last_write_fails(hands: Hands) -> None:
    """Rule 12: also where no other answer is on its way that would meet the error."""
    # Mutation: drop `add_done_callback` in `Outbox._deposit`: the page is asked for again once its lease has run out.
    with hands.refusing("pages", "kind <> 'listing'"), pytest.raises(psycopg.errors.CheckViolation):
        hands.discover(replace(QUICK, lease=seconds(2), patience=seconds(10)))
    assert len([each for each in hands.arrivals() if "robots" not in each.path]) == 1


# --- Time ------------------------------------------------------------------------------------------------------------


def test_pages_are_dated_by_the_database_and_never_before_they_arrived(hands: Hands) -> None:
    """Rules 6 and 19: whatever the worker's clock says; an answer that waited for its deposit is dated back."""
    hands.discover(QUICK)
    leases = claim(hands, 2)
    with hands.database.transaction() as connection:
        before = windows.clock(connection)
    store(hands, [answer_to(leases[0]), answer_to(leases[1], ended_ago_s=3.0)])
    fresh, waited = hands.column("SELECT fetched_at FROM pages WHERE kind = 'detail' ORDER BY request_id")
    assert timedelta(0) <= fresh - before < timedelta(seconds=2)
    assert timedelta(seconds=2.9) < fresh - waited < timedelta(seconds=3.1)
    assert hands.column("SELECT DISTINCT fetched_at - requested_at FROM pages WHERE kind = 'detail'") == [
        timedelta(seconds=1)
    ]
