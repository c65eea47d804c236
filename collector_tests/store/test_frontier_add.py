"""What enters the frontier (rule 1)."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

from collector_assets import frontier
from collector_assets.database import Database
from collector_assets.request import Secret, stored_headers
from collector_tests.fixtures.frontier import NOON, START, name_of, open_work, request, requests


def test_unique_key_is_accepted_once_also_after_completion(database: Database):
    """Rule 1."""
    # Mutation: drop the anti-join and ON CONFLICT from add_requests -> UniqueViolation.
    work = open_work(database)
    assert work.add(requests(3)) == frontier.Added(new=3, known=0, over_bound=0)
    work.fetched(*work.claim(3))
    assert work.add(requests(4)) == frontier.Added(new=1, known=3, over_bound=0)
    assert work.counts().planned == 4
    assert work.counts().fetched == 3


def test_new_window_is_new_work(database: Database):
    """Rule 1."""
    open_work(database).add(requests(3))
    assert open_work(database, start=NOON).add(requests(3)).new == 3


def test_key_twice_in_a_batch_is_one_request_the_first(database: Database):
    """Case DBQ-07: a listing that links an item twice breaks nothing."""
    # Mutation: drop DISTINCT ON (g.unique_key) from add_requests -> it takes two places.
    work = open_work(database)
    twice = [request("book", lane="first"), request("other"), request("book", lane="second")]
    assert work.add(twice, max_requests=2) == frontier.Added(new=2, known=1, over_bound=0)
    assert work.rows()["book"].lane == "first"


def test_known_keys_use_up_no_identity_value(database: Database):
    """Case DBQ-09: the sequence moves by what was inserted, not by what was seen."""
    # Mutation: drop the WHERE NOT EXISTS from add_requests -> the sequence runs ahead by 50 a batch.
    work = open_work(database)
    for _ in range(20):
        work.add(requests(50))
    work.add(requests(51))
    ids = sorted(row.request_id for row in work.rows().values())
    assert ids[-1] - ids[0] == 50


def test_many_writers_of_one_key_make_one_row_and_no_error(database: Database):
    """Case DBQ-10, rule 1: twenty threads find the same new URL at once."""
    work = open_work(database)
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda _: work.add([request("book")]), range(20)))
    assert sum(a.new for a in added) == 1
    assert sum(a.known for a in added) == 19


def test_overlapping_batches_in_any_order_do_not_deadlock(database: Database):
    """Case DBQ-08, rule 6: eight writers, 500 random overlapping keys each."""
    work = open_work(database)
    every = requests(1_000)
    batches = [random.Random(seed).sample(every, 500) for seed in range(8)]  # noqa: S311  reproducible
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(work.add, batches))
    wanted = {r.unique_key for batch in batches for r in batch}
    assert sum(a.new for a in added) == len(wanted) == work.counts().planned


def test_bound_keeps_the_rest_out_and_counts_it(database: Database):
    work = open_work(database)
    assert work.add(requests(8), max_requests=5) == frontier.Added(new=5, known=0, over_bound=3)
    assert set(work.rows()) == {f"detail-*-{n}" for n in range(5)}
    assert work.add(requests(7), max_requests=6) == frontier.Added(new=1, known=5, over_bound=1)
    assert work.add(requests(2), max_requests=6) == frontier.Added(new=0, known=2, over_bound=0)


def test_bound_holds_with_many_writers(database: Database):
    """Rule 6: planned is one counted row, changed under its lock."""
    # Mutation: drop FOR NO KEY UPDATE from lock_window -> more than 100 planned.
    work = open_work(database)
    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(lambda n: work.add(requests(40, lane=str(n)), max_requests=100), range(8)))
    assert sum(a.new for a in added) == work.counts().planned == 100
    assert sum(a.over_bound for a in added) == 8 * 40 - 100


def test_requests_are_numbered_in_the_order_given(database: Database):
    work = open_work(database)
    work.add([request(f"page-{n}") for n in (5, 3, 9, 1)])
    assert list(work.rows()) == ["page-5", "page-3", "page-9", "page-1"]


def test_everything_that_a_link_said_comes_back_with_its_lease(database: Database):
    work = open_work(database)
    given = request(
        "form",
        kind="listing",
        lane="travel",
        priority=7,
        entity="upc-1",
        method="POST",
        body=b"\x00\xff",
        headers=stored_headers({"Accept": "text/html", "X-Token": Secret("SHOP_TOKEN", "Bearer ")}),
        hints={"price": 5, "nested": {"a": [1, None]}},
        depth=2,
        referrer="http://shop.localhost:8765/",
    )
    work.add([given], max_attempts=5)
    (lease,) = work.claim()
    for field in (
        "kind",
        "lane",
        "url",
        "budget_key",
        "method",
        "body",
        "headers",
        "hints",
        "entity",
        "depth",
        "referrer",
    ):
        assert getattr(lease, field) == getattr(given, field), field
    assert (lease.attempt, lease.max_attempts) == (1, 5)


def test_text_that_postgres_refuses_is_cleaned(database: Database):
    """Cases DBQ-01, DBQ-03: one poisonous link costs no batch."""
    work = open_work(database)
    bad = request("bad", entity="a\0b", hints={"t\0": ["\ud83d", float("nan")]}, referrer="x\0")
    assert work.add([bad, request("good")]).new == 2
    lease, _ = work.claim(2)
    assert name_of(lease) == "bad"
    assert (lease.entity, lease.referrer, lease.hints) == ("ab", "x", {"t": ["\ufffd", None]})


def test_nothing_to_add_is_nothing(database: Database):
    work = open_work(database)
    assert work.add([]) == frontier.Added(new=0, known=0, over_bound=0)
    assert work.start == START
