"""Kind HTTP of the field cases: sites that throttle, and sites that are down for a while."""

from __future__ import annotations

from collector_assets import budget
from collector_assets.collect import Ending
from collector_assets.contract import Budget, Link, replace, seconds
from collector_tests.collect.conftest import QUICK, TOMORROW, Hands, ends

SHOP, OTHER = "http://shop.localhost:8765", "http://books.localhost:8765"
SERIAL = replace(QUICK, budget=Budget(gap=seconds(0), slots=1), patience=seconds(0))


def test_http_18_429_with_plain_retry_after(hands: Hands) -> None:
    """The host pauses for 120 s from the receipt, at no attempt; others go on; a restarted worker waits too."""
    starts = [Link(f"{SHOP}/catalogue/page-1.html?{number}", kind="detail") for number in range(50)]
    others = [Link(f"{OTHER}/catalogue/page-1.html?{number}", kind="detail") for number in range(5)]
    fifty = replace(SERIAL, start_urls=(*starts, *others), scope=("shop.localhost", "books.localhost"))
    hands.site.misbehave("retry_after", prefix="/catalogue/", arg="429/120", host="shop.localhost", times=1)
    hands.open(fifty)
    collected = hands.collect(fifty)
    assert (collected.ending, collected.outcomes) == (Ending.WAITING, {"throttled": 1, "ok": 5})
    assert 110 <= (collected.next_due_in_s or 0) <= 120
    assert hands.column("SELECT max(attempts) FROM requests WHERE state = 'queued'") == [0]
    assert hands.collect(fifty).sent == 0, "another worker"
    assert hands.row(fifty).superseded_at is None
    with hands.database.transaction() as connection:
        assert budget.closed(connection, ["books.localhost"]) == {}
        (closed_for_s,) = budget.closed(connection, ["shop.localhost"]).values()
    assert 100 <= closed_for_s <= 120
    time_passes(hands)
    assert hands.collect(fifty).outcomes == {"ok": 50}
    assert hands.column("SELECT DISTINCT attempts FROM requests") == [1]


def test_http_20_maintenance_503_with_a_friendly_page(hands: Hands) -> None:
    """All 40 pages answer 503 for two runs, then 200: nothing fails for good, `latest` stays, the third run goes on."""
    hands.whole(QUICK)
    details = hands.rows("SELECT url, entity, lane FROM requests WHERE kind = 'detail' ORDER BY request_id LIMIT 40")
    starts = tuple(Link(url, kind="detail", entity=entity, lane=lane) for url, entity, lane in details)
    forty = replace(SERIAL, start_urls=starts, expect=replace(SERIAL.expect, min_records=40))
    hands.publish(QUICK)
    before = hands.rows(LATEST)
    hands.site.misbehave("status", prefix="/catalogue/", arg="503")
    hands.open(forty, TOMORROW)
    for run in (1, 2):
        assert hands.collect(forty, TOMORROW).ending is Ending.WAITING
        assert ends(hands.status(forty, TOMORROW)) == {
            "planned": 40, "done": 0, "failed": 0, "skipped": 0, "outstanding": 40,
        }  # fmt: skip
        assert hands.rows(LATEST) == before, "nothing is removed"
        assert hands.column("SELECT incidents FROM budget_keys") == [run]
        time_passes(hands)
    assert hands.column("SELECT published_at FROM windows ORDER BY window_start")[1] is None, "it ages, and says so"
    hands.site.behave()
    assert hands.collect(forty, TOMORROW).outcomes.keys() <= {"ok", "not_modified"}
    hands.read(forty, TOMORROW)
    assert ends(hands.status(forty, TOMORROW))["done"] == 40
    assert hands.publish(forty, TOMORROW).total == 60


LATEST = "SELECT entity, data, removed_at, last_seen_at FROM latest ORDER BY entity"


def time_passes(hands: Hands) -> None:
    """Until the key is open again, and what waited for it is due."""
    hands.do("UPDATE budget_keys SET closed_until = now() WHERE closed_until IS NOT NULL")
    hands.do("UPDATE requests SET not_before = now() WHERE not_before IS NOT NULL")
