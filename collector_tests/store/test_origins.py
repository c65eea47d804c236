"""Origins as they treat us: counts, halts, resumes (rule 9)."""

from __future__ import annotations

from collector_assets import origins
from collector_assets.database import Database
from collector_tests.fixtures.frontier import KEY

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
