"""What a window spends on rendering services: never more than its cap, whoever spends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from collector_assets import spending
from collector_assets.database import Database
from collector_assets.spending import Account, Spent

START = datetime(2026, 3, 29, tzinfo=UTC)
ACCOUNT = Account(source="shop", window_start=START, service="firecrawl", price=Decimal("0.1"), cap=Decimal("0.3"))


def spend(database: Database, account: Account = ACCOUNT) -> bool:
    with database.transaction() as connection:
        return spending.spend(connection, account)


def spent(database: Database, account: Account = ACCOUNT) -> list[Spent]:
    with database.transaction() as connection:
        return spending.of_window(connection, account.source, account.window_start)


def test_calls_are_counted_up_to_the_cap_to_the_last_digit(database: Database) -> None:
    # Mutation: count as float, where 0.1 + 0.1 + 0.1 is more than 0.3.
    assert [spend(database) for _ in range(5)] == [True, True, True, False, False]
    assert spent(database) == [Spent(service="firecrawl", calls=3, amount=Decimal("0.3"))]


def test_many_at_once_never_pass_the_cap(database: Database) -> None:
    """Rule 7: what costs is capped, over all processes."""
    # Mutation: leave out `WHERE s.spent + excluded.spent <= %(cap)s::numeric`.
    with ThreadPoolExecutor(8) as threads:
        ends = list(threads.map(lambda _: spend(database, replace(ACCOUNT, cap=Decimal(2))), range(60)))

    assert sum(ends) == 20
    assert spent(database) == [Spent(service="firecrawl", calls=20, amount=Decimal(2))]


def test_a_call_that_is_dearer_than_the_cap_is_not_made(database: Database) -> None:
    assert not spend(database, replace(ACCOUNT, cap=Decimal("0.05")))
    assert spent(database) == []


def test_what_is_given_back_can_be_spent(database: Database) -> None:
    account = replace(ACCOUNT, cap=Decimal("0.1"))
    assert spend(database, account)
    with database.transaction() as connection:
        spending.give_back(connection, account)
    assert spend(database, account)
    assert not spend(database, account)


def test_each_window_source_and_service_has_its_own(database: Database) -> None:
    account = replace(ACCOUNT, cap=Decimal("0.1"))
    others = (
        replace(account, window_start=START + timedelta(days=1)), replace(account, source="other"),
        replace(account, service="alterlab"),
    )  # fmt: skip
    assert [spend(database, each) for each in (account, *others, account)] == [True, True, True, True, False]


def test_a_cap_that_was_raised_is_heeded_at_once(database: Database) -> None:
    assert spend(database, replace(ACCOUNT, cap=Decimal("0.1")))
    assert not spend(database, replace(ACCOUNT, cap=Decimal("0.1")))
    assert spend(database, replace(ACCOUNT, cap=Decimal("0.2")))
