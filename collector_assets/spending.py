"""Store: what windows have spent on rendering services, counted before each call so that no cap is ever passed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from collector_assets.database import Connection, statements

SQL: Final = statements("spending")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What the calls of one window to one service are counted under, and what one of them may cost."""

    source: str
    window_start: datetime
    service: str
    price: Decimal
    cap: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a window has spent on one service."""

    service: str
    calls: int
    amount: Decimal


def spend(connection: Connection, account: Account) -> bool:
    """Count one more call; False, and nothing is counted, where that would pass the cap."""
    return connection.execute(SQL["spend"], _values(account)).fetchone() is not None


def give_back(connection: Connection, account: Account) -> None:
    """A call that was counted was not made."""
    connection.execute(SQL["give_back"], _values(account))


def of_window(connection: Connection, source: str, window_start: datetime) -> list[Spent]:
    """What a window has spent so far."""
    rows: list[Any] = connection.execute(SQL["spent"], {"source": source, "window_start": window_start}).fetchall()
    return [Spent(service=service, calls=calls, amount=amount) for service, calls, amount in rows]


def _values(account: Account) -> dict[str, Any]:
    return {
        "source": account.source,
        "window_start": account.window_start,
        "service": account.service,
        "price": account.price,
        "cap": account.cap,
    }
