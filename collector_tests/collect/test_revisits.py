"""Conditional requests through the use cases: what did not change is not sent again, and the record set stays whole."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg.errors import ForeignKeyViolation
from warcio.archiveiterator import ArchiveIterator

from collector_assets import frontier, recollect
from collector_assets.contract import Source, replace
from collector_assets.demo.catalogue import book
from collector_assets.deposit import Answered, Depositor, Stored
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome
from collector_assets.put_back import Wish
from collector_assets.request import Lease
from collector_assets.revisits import EarlierPages
from collector_assets.selection import Selection
from collector_tests.collect.conftest import QUICK, TODAY, TOMORROW, Hands, day, ends

AFTER = day(TOMORROW.end)
CHANGED = [n for n in range(1, 61) if book(n, seed="demo", edition=2).changed_in == 2]
PAGES = "SELECT outcome, status, revisit_of IS NOT NULL, count(*) FROM pages WHERE window_start = %s GROUP BY 1, 2, 3"


def both(hands: Hands, source: Source = QUICK) -> None:
    """Two windows, the second as far as `latest`."""
    for window in (TODAY, TOMORROW):
        hands.whole(source, window)
        hands.publish(source, window)


def pages_of(hands: Hands, window: Any = TOMORROW) -> dict[tuple[str, int, bool], int]:
    """Pages of a window: by outcome, status and whether they are revisits."""
    return {(outcome, status, is_revisit): n for outcome, status, is_revisit, n in hands.rows(PAGES, window.start)}


def statuses(hands: Hands, since: int) -> list[int | None]:
    return [arrival.status for arrival in hands.arrivals()[since:]]


def test_second_window_of_an_unchanged_shop_moves_no_body(hands: Hands) -> None:
    """HTTP-23, and the accept of issue C: 0 body bytes, every page a revisit, 60 records, `last_seen_at` moved."""
    hands.whole(QUICK)
    hands.publish(QUICK)
    sent, before = (
        len(hands.arrivals()),
        hands.rows("SELECT entity, data, changed_at, last_seen_at FROM latest ORDER BY 1"),
    )
    status = hands.whole(QUICK, TOMORROW)
    hands.publish(QUICK, TOMORROW)
    assert statuses(hands, sent) == [304] * 63
    assert pages_of(hands) == {("not_modified", 304, True): 63}
    assert hands.column("SELECT sum(body_bytes) FROM pages WHERE window_start = %s", TOMORROW.start) == [0]
    assert ends(status) == {"planned": 63, "done": 63, "failed": 0, "skipped": 0, "outstanding": 0}
    assert hands.column("SELECT count(*) FROM observations WHERE window_start = %s", TOMORROW.start) == [60]
    after = hands.rows("SELECT entity, data, changed_at, last_seen_at FROM latest ORDER BY 1")
    assert [row[:3] for row in after] == [row[:3] for row in before]
    assert all(new[3] > old[3] for new, old in zip(after, before, strict=True))


def test_a_page_that_changed_comes_whole_and_the_rest_does_not(hands: Hands) -> None:
    hands.whole(QUICK)
    hands.site.switch(edition=2)
    hands.whole(QUICK, TOMORROW)
    found = pages_of(hands)
    assert found[("ok", 200, False)] >= len(CHANGED)
    assert found[("not_modified", 304, True)] >= 60 - len(CHANGED)
    prices = "SELECT (data ->> 'price')::numeric FROM observations WHERE window_start = %s AND entity = %s"
    new = book(CHANGED[0], seed="demo", edition=2)
    assert hands.column(prices, TOMORROW.start, new.upc) == [new.price]


def test_a_chain_of_revisits_ends_at_the_page_that_holds_the_bytes(hands: Hands) -> None:
    both(hands)
    hands.whole(QUICK, AFTER)
    assert pages_of(hands, AFTER) == {("not_modified", 304, True): 63}
    query = "SELECT DISTINCT revisit_window FROM pages WHERE revisit_of IS NOT NULL"
    assert hands.column(query) == [TODAY.start]
    assert hands.column("SELECT count(*) FROM observations WHERE window_start = %s", AFTER.start) == [60]


def test_the_same_bytes_from_a_site_without_validators_are_stored_once(hands: Hands) -> None:
    """The body comes again, and is compared: an identical payload digest is a revisit too."""
    hands.site.misbehave("no_validators", prefix="/")
    hands.whole(QUICK)
    stored = sum(file.stat().st_size for file in hands.folder.rglob("*.warc.gz"))
    hands.whole(QUICK, TOMORROW)
    assert pages_of(hands) == {("ok", 200, True): 63}
    both_windows = sum(file.stat().st_size for file in hands.folder.rglob("*.warc.gz"))
    assert both_windows - stored < stored / 2
    assert hands.column("SELECT count(*) FROM observations WHERE window_start = %s", TOMORROW.start) == [60]


@pytest.mark.parametrize(
    ("do", "profile"), [(None, "server-not-modified"), ("no_validators", "identical-payload-digest")]
)
def test_a_revisit_record_says_what_it_refers_to(hands: Hands, do: str | None, profile: str) -> None:
    """WARC 1.1 §6.7, read by another reader: the record that it names by id, URI and date is there."""
    if do:
        hands.site.misbehave(do, prefix="/")
    for window in (TODAY, TOMORROW):
        hands.whole(QUICK, window)
    responses, revisits = {}, []
    for record in warc_records(hands.folder):
        if record.rec_type == "response":
            responses[record.rec_headers.get_header("WARC-Record-ID")] = record.rec_headers
        elif record.rec_type == "revisit":
            revisits.append((record.rec_headers, record.http_headers))
    assert len(revisits) == len(responses) == 63
    for said, http in revisits:
        named = responses[said.get_header("WARC-Refers-To")]
        assert said.get_header("WARC-Profile") == f"http://netpreserve.org/warc/1.1/revisit/{profile}"
        assert said.get_header("WARC-Refers-To-Target-URI") == named.get_header("WARC-Target-URI")
        assert said.get_header("WARC-Refers-To-Date") == named.get_header("WARC-Date")
        assert said.get_header("WARC-Payload-Digest") == named.get_header("WARC-Payload-Digest")
        assert http.get_statuscode() == ("304" if do is None else "200")


def warc_records(folder: Path) -> list[Any]:
    found = []
    for file in sorted(folder.rglob("*.warc.gz")):
        with file.open("rb") as stream:
            found += list(ArchiveIterator(stream, check_digests="raise"))  # pyright: ignore[reportArgumentType]
    return found


def test_what_a_304_confirms_is_judged_as_the_source_says_today(hands: Hands) -> None:
    """HTTP-22 meets HTTP-23: a marker that was declared since is looked for in the page that is held."""
    hands.whole(QUICK)
    hands.whole(replace(QUICK, soft_gone="article.product_page"), TOMORROW)
    assert pages_of(hands) == {("not_modified", 304, True): 3, ("soft_gone", 304, True): 60}


# --- When nothing is compared ----------------------------------------------------------------------------------------


def test_a_source_may_say_no(hands: Hands) -> None:
    both(hands, replace(QUICK, conditional=False))
    assert pages_of(hands) == {("ok", 200, False): 63}


@pytest.mark.parametrize(
    "changed",
    [{"headers": {"Accept-Language": "de"}}, {"edition": 2}],
    ids=["headers", "edition"],
)
def test_another_request_for_the_same_page_is_not_conditional(hands: Hands, changed: dict[str, Any]) -> None:
    """Rule 10: a revisit points at the bytes of its own request and of no other."""
    # Mutation: drop the comparison of headers, or of editions, in earlier_pages
    hands.whole(QUICK)
    hands.whole(replace(QUICK, **changed), TOMORROW)
    assert pages_of(hands) == {("ok", 200, False): 63}


def test_a_page_that_could_not_be_read_is_sent_again(hands: Hands) -> None:
    """What we hold of it is of no use: perhaps the site has mended it and says nothing of that."""
    # Mutation: drop the condition on the state in earlier_pages
    hands.site.switch(redesign=1)
    hands.whole(QUICK)
    assert hands.status(QUICK).counts.failed_read == 60
    hands.whole(QUICK, TOMORROW)
    assert pages_of(hands) == {("not_modified", 304, True): 3, ("ok", 200, False): 60}


def test_a_site_that_cannot_be_asked_conditionally_is_asked_plainly(hands: Hands) -> None:
    """412 to a GET is against RFC 9110, and comes all the same."""
    quick = replace(QUICK, retry_wait=QUICK.retry_wait / 100)
    hands.whole(quick)
    hands.site.misbehave("status", prefix="/catalogue/page-1.html", arg="412", times=1)
    discovered = hands.discover(quick, TOMORROW)
    assert discovered.collected.outcomes == {"condition_failed": 1, "ok": 1, "not_modified": 2}


def test_a_source_that_asks_itself_reads_its_own_answer(hands: Hands) -> None:
    """A 304 to a condition of the source's own is no page of ours."""
    asking = replace(QUICK, headers={"If-Modified-Since": "Fri, 01 Jan 2027 00:00:00 GMT"}, max_attempts=1)
    for window in (TODAY, TOMORROW):
        hands.discover(asking, window)
    assert pages_of(hands) == {("unexpected_status", 304, False): 1}


def test_a_304_that_nobody_asked_for_is_no_page(hands: Hands) -> None:
    hands.site.misbehave("unmodified", prefix="/catalogue/")
    hands.discover(QUICK)
    assert pages_of(hands, TODAY) == {("unexpected_status", 304, False): 1}


def test_a_304_whose_length_lies_is_read_at_once(hands: Hands) -> None:
    """HTTP-23: nobody waits for the 500 bytes that a 304 declares."""
    hands.whole(QUICK)
    hands.site.misbehave("unmodified", prefix="/catalogue/")
    hands.whole(replace(QUICK, max_attempts=1), TOMORROW)
    assert set(pages_of(hands)) <= {("not_modified", 304, True), ("ok", 200, False)}
    assert hands.column("SELECT count(*) FROM observations WHERE window_start = %s", TOMORROW.start) == [60]
    etags = "SELECT DISTINCT etag FROM pages WHERE window_start = %s AND kind = 'detail'"
    assert hands.column(etags, TOMORROW.start) == ['"as-before"']


def test_what_the_archive_lost_is_asked_for_plainly(hands: Hands) -> None:
    """Rule 10: never when the body is gone."""
    # Mutation: in EarlierPages.held keep what the archive does not confirm
    hands.whole(QUICK)
    for file in hands.folder.rglob("*.warc.gz"):
        file.unlink()
    hands.whole(QUICK, TOMORROW)
    assert pages_of(hands) == {("ok", 200, False): 63}


def test_a_listing_whose_bytes_are_broken_is_asked_for_again_without_condition(hands: Hands) -> None:
    """A 304 is worth what is held: links cannot be read from it, so the next attempt asks plainly."""
    quick = replace(QUICK, retry_wait=QUICK.retry_wait / 100)
    hands.whole(quick)
    for file in hands.folder.rglob("*.warc.gz"):
        file.write_bytes(bytes(file.stat().st_size))
    discovered = hands.discover(quick, TOMORROW)
    assert discovered.collected.outcomes == {"revisit_lost": 3, "ok": 3}
    assert discovered.collected.found == 62


def test_bytes_that_were_removed_under_way_are_asked_for_again(hands: Hands) -> None:
    """Rule 10: the page that a 304 confirms was removed between claim and commit; no row points at nothing."""
    # Mutation: `with_holders` returns what it was given -> the foreign key refuses the batch.
    hands.whole(QUICK)
    hands.open(QUICK, TOMORROW)
    with hands.database.transaction() as connection:
        claimed = frontier.claim(
            connection, source="shop", window_start=TOMORROW.start, budget_key="shop.localhost", worker="ours",
            count=1, lease=timedelta(minutes=1), kinds=["listing"], lane_weights={"*": 1}, discovering=("listing",),
            interleave=None,
        )  # fmt: skip
        earlier = EarlierPages(source=QUICK, window_start=TOMORROW.start, archive=hands.archive)
        (lease,) = earlier.of(connection, claimed)
    assert lease.earlier is not None
    hands.do("DELETE FROM pages WHERE window_start = %s", TODAY.start)
    stored = store(hands, [Answered(lease=lease, answer=not_modified(lease))])
    assert (stored.outcomes, stored.found) == ({"revisit_lost": 1}, 0)
    assert pages_of(hands) == {("revisit_lost", 304, False): 1}
    hands.discover(QUICK, TOMORROW)
    assert pages_of(hands)[("ok", 200, False)] == 3


def not_modified(lease: Lease) -> Response:
    now = datetime.now(UTC)
    return Response(
        outcome=Outcome.UNEXPECTED_STATUS, reason="304 Not Modified", url=lease.url, final_url=lease.url,
        http_version="1.1", status=304, status_text="Not Modified", headers=(), body=b"", truncated=None,
        request_headers=(), requested_at=now, fetched_at=now, ended_at=time.monotonic(), ip="127.0.0.1",
    )  # fmt: skip


def store(hands: Hands, batch: list[Answered]) -> Stored:
    with closing(hands.archive.writer("shop", TOMORROW.key)) as writer:
        depositor = Depositor(
            source=QUICK,
            window=hands.row(QUICK, TOMORROW),
            database=hands.database,
            archive=hands.archive,
            writer=writer,
        )
        return depositor.store(batch)


def test_a_recollect_is_a_plain_request(hands: Hands) -> None:
    both(hands)
    sent = len(hands.arrivals())
    wish = Wish(
        source=QUICK, window=TOMORROW.key, selection=Selection(kinds=("detail",)), everything=False,
        reason="looked wrong", by="ada", dry_run=False,
    )  # fmt: skip
    recollect.run(wish, hands.database)
    hands.collect(QUICK, TOMORROW)
    assert statuses(hands, sent) == [200] * 60


# --- What is kept ----------------------------------------------------------------------------------------------------


def test_bytes_that_a_revisit_needs_are_not_removed(hands: Hands) -> None:
    """Retention never deletes bytes that live revisits need."""
    both(hands)
    with pytest.raises(ForeignKeyViolation, match="revisit_has_its_bytes"):
        hands.do("DELETE FROM pages WHERE window_start = %s", TODAY.start)
    hands.do("DELETE FROM pages WHERE window_start = %s", TOMORROW.start)
    hands.do("DELETE FROM pages WHERE window_start = %s", TODAY.start)
