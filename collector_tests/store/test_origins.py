"""Origins as they treat us: counts, halts, resumes (rule 9)."""

from __future__ import annotations

from datetime import timedelta

from collector_assets import frontier, origins, resumes
from collector_assets.database import Database
from collector_tests.fixtures.frontier import KEY, START, name_of, open_work, request

SHOP, API = f"http://{KEY}:8765", f"http://api.{KEY}:8765"


def test_what_was_never_in_trouble_has_no_row(database: Database) -> None:
    with database.transaction() as connection:
        seen = origins.look(connection, [SHOP], [KEY])
        assert (seen.origins, seen.budget_keys) == (set(), set())
        assert origins.listed(connection) == []
        assert origins.halted(connection) == set()


def test_trouble_of_origins_and_of_budget_keys_is_seen_at_a_glance(database: Database) -> None:
    with database.transaction() as connection:
        assert origins.locked(connection, {SHOP: KEY})[SHOP].refusals == 0
        origins.count_refusals(connection, SHOP, 2)
        connection.execute("INSERT INTO budget_keys (budget_key, per, unavailable) VALUES (%s, 'domain', 1)", [KEY])
    with database.transaction() as connection:
        seen = origins.look(connection, [SHOP, API], [KEY, "other.localhost"])
        assert (seen.origins, seen.budget_keys) == ({SHOP}, {KEY})
        seen = origins.look(connection, [API], [])
        assert (seen.origins, seen.budget_keys) == (set(), set())
        assert origins.locked(connection, {SHOP: KEY})[SHOP].refusals == 2


def test_a_halt_holds_for_one_origin_until_a_person_resumes_it(database: Database) -> None:
    with database.transaction() as connection:
        origins.locked(connection, {SHOP: KEY, API: KEY})
        assert origins.halt(connection, SHOP, source="shop", reason="refused: 403, 3 in a row")
        assert not origins.halt(connection, SHOP, source="other", reason="again")
    with database.transaction() as connection:
        assert origins.halted(connection) == {SHOP}
        assert [row.origin for row in origins.listed(connection)] == [SHOP, API]
        assert not origins.resume(connection, API, reason="a mistake", by_whom="ana")
        assert origins.resume(connection, SHOP, reason="they wrote us a key", by_whom="ana")
    with database.transaction() as connection:
        assert origins.halted(connection) == set()
        row = next(each for each in origins.listed(connection) if each.origin == SHOP)
    assert (row.halted_reason, row.resumed_reason, row.resumed_by) == (
        "refused: 403, 3 in a row", "they wrote us a key", "ana"
    )  # fmt: skip


def halt(database: Database, origin: str) -> None:
    with database.transaction() as connection:
        origins.locked(connection, {origin: KEY})
        origins.halt(connection, origin, source="shop", reason="refused: 403, 3 in a row")


def test_what_waits_for_a_halted_origin_is_neither_admitted_nor_claimed(database: Database) -> None:
    """Rule 9: nobody can take it, whatever it has heard."""
    # Mutation: best_queued without the condition on halted origins.
    work = open_work(database)
    work.add([request(f"shop-{number}") for number in range(3)])
    assert work.claim(1)
    work.add([request(f"api-{number}", url=f"{API}/api-{number}") for number in range(3)])
    halt(database, SHOP)
    assert sorted(map(name_of, work.claim(10))) == ["api-0", "api-1", "api-2"]
    with database.transaction() as connection:
        due = frontier.due(connection, "shop", START)
        (held,) = frontier.held_up(connection, "shop", START)
    assert (due.by_key, due.to_fetch, due.halted) == ({}, 6, 2)
    assert (held.origin, held.requests, held.reason) == (SHOP, 2, "refused: 403, 3 in a row")


def test_a_queue_full_of_what_is_halted_makes_room(database: Database) -> None:
    """The capacity holds, and other origins are not held up by what nobody may send."""
    work = open_work(database, capacity=3)
    work.add([request(f"shop-{number}") for number in range(5)])
    assert len(work.claim(1)) == 1
    halt(database, SHOP)
    work.add([request(f"api-{number}", url=f"{API}/api-{number}") for number in range(5)])
    assert len(work.claim(10)) == 2
    with database.transaction() as connection:
        counts = frontier.counts(connection, "shop", START)
    assert (counts.queued + counts.leased, counts.candidate) == (3, 7)


def test_a_request_under_way_is_at_the_origin_where_a_redirect_led(database: Database) -> None:
    work = open_work(database)
    work.add([request("moved")])
    (lease,) = work.claim(1)
    chain = {"url": f"{API}/moved"}
    work.finish(frontier.Moved(lease.request_id, lease.fence, chain=chain, budget_key=KEY, reason="302"))
    halt(database, API)
    assert work.claim(1) == []


def test_a_window_is_not_resumed_for_what_is_halted_or_closed(database: Database) -> None:
    """Five resumes in vain would be the last; after the halt the window goes on."""
    work = open_work(database, names_window=True)
    work.add([request("shop-0")])

    def due() -> list[str]:
        with database.transaction() as connection:
            return [window.source for window in resumes.due(connection, ["shop"], rest=timedelta(0))]

    assert due() == ["shop"]
    halt(database, SHOP)
    assert due() == []
    with database.transaction() as connection:
        origins.resume(connection, SHOP, reason="settled", by_whom="ana")
        connection.execute(
            "INSERT INTO budget_keys (budget_key, per, closed_until, closed_reason)"
            " VALUES (%s, 'domain', now() + interval '1 hour', '429')",
            [KEY],
        )
    assert due() == []
    with database.transaction() as connection:
        connection.execute("UPDATE budget_keys SET closed_until = now()")
    assert due() == ["shop"]
