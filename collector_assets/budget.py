"""The request budget of a key: slots as short leases, shared by every process of every source (rules 7 and 8).

Each function takes an open transaction and locks the key's row first; several keys in one transaction: in the order
of the keys. What is decided is in `sharing.py`, what a holder may do in `permission.py`; this is the store.

A turn ends with `acquire(…, returned=…)`: the holder is then among the waiters at the moment when the slot is given to
the one that should have it, and gets it back at once when that is the holder itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, cast

from psycopg.rows import class_row

from collector_assets import sharing
from collector_assets.closing import Closing
from collector_assets.database import Connection, statements
from collector_assets.errors import ContractError
from collector_assets.permission import Grant, Held, Returned, SlotState
from collector_assets.sharing import Key, Share, Slot, Waiter
from collector_assets.window import utc

SQL: Final = statements("budget")

TURN: Final = timedelta(seconds=1)
DEMAND_LIVES_FOR: Final = timedelta(seconds=30)
"""How long a demand binds the others after its source last declared, acquired or renewed."""
WAITER_LIVES_FOR: Final = timedelta(seconds=1)
"""How long a turn is kept for a waiter that stopped asking: four times the longest `retry_in_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one source asks of one budget key."""

    budget_key: str
    per: Literal["domain", "host"]
    source: str
    gap: timedelta
    slots: int
    weight: float
    deadline: timedelta
    """The longest that a request may take from its first byte sent; a dead holder's slot waits it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquired:
    """What a holder got; `retry_in_s` says when to ask for the rest."""

    grants: tuple[Grant, ...]
    gap_s: float
    slots: int
    """How many slots the key has now."""
    retry_in_s: float
    closed_for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """What a holder still has, by slot; a slot that is missing is lost."""

    slots: Mapping[int, SlotState]
    gap_s: float
    closed_for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One source's part of one key, for people."""

    budget_key: str
    per: str
    source: str
    is_live: bool
    gap_s: float
    slots: int
    weight: float
    served: float
    holding: int
    expired: int
    waiting: int
    closed_for_s: float
    closed_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedKey:
    """A key on which nobody sends for a while."""

    budget_key: str
    for_s: float
    reason: str


def declare(
    connection: Connection, demand: Demand, live_for: timedelta = DEMAND_LIVES_FOR, *, now: datetime | None = None
) -> None:
    """Write down what the source asks; `ContractError` when a live source differs on domain or host."""
    values = {
        "budget_key": demand.budget_key, "per": demand.per, "source": demand.source,
        "gap_s": demand.gap.total_seconds(), "slots": demand.slots, "weight": demand.weight,
        "live_for": live_for, "now": now,
    }  # fmt: skip
    connection.execute(SQL["open_key"], values)
    key = _locked(connection, demand.budget_key, now)
    others = [share.source for share in key.shares if share.source != demand.source]
    if key.per != demand.per and others:
        problem = f"{demand.per!r} for {demand.budget_key}, but as {key.per!r} in {', '.join(others)}: all must agree"
        raise ContractError("budget.per", problem, source=demand.source)
    own = key.share(demand.source)
    connection.execute(SQL["set_per"], values)
    connection.execute(SQL["add_slots"], values)
    connection.execute(SQL["declare"], values | {"served": own.served if own else sharing.level(key, demand.source)})


def acquire(
    connection: Connection,
    *,
    demand: Demand,
    holder: str,
    want: int,
    lease: timedelta,
    turn: timedelta = TURN,
    returned: Sequence[Returned] = (),
    now: datetime | None = None,
) -> Acquired:
    """Up to `want` more slots, after those `returned`; with fewer, the holder is in the queue and asks again.

    A grant may come before the slot is ready, so that the handover costs nothing. Asking in vain is one statement
    without a lock or a write; a holder that asks for no more must `stop_waiting`, or its turn is kept for a second.
    """
    if returned:
        give_back(connection, budget_key=demand.budget_key, holder=holder, returned=returned, now=now)
    key = _read(connection, demand.budget_key, now)
    if key and _is_waiting(key, demand, holder, want) and not _allotted(key, holder):
        return _acquired(key, ())
    key = _join(connection, demand, holder, want, now)
    chosen = _allotted(key, holder)
    grants = _grant(connection, demand, holder, chosen, key, lease, turn, now) if chosen else ()
    place = {"budget_key": demand.budget_key, "holder": holder, "now": now}
    missing = _missing(key, holder, want) - len(grants)
    if missing <= 0:
        connection.execute(SQL["stop_waiting"], place)
    elif grants:
        connection.execute(SQL["wait_again"], place | {"wanted": missing})
    return _acquired(key, grants)


def renew(
    connection: Connection,
    *,
    budget_key: str,
    holder: str,
    held: Sequence[Held],
    lease: timedelta,
    deadline: timedelta,
    now: datetime | None = None,
) -> Renewed:
    """Extend the leases of the slots held, charge what was sent, and hear what the key is like now.

    A lease that ended is refused even when nobody took the slot: a holder that came too late once (stopped, cut off)
    acquires anew, so that there is one rule for the holder, for the others and for whoever reads the log.
    """
    _lock(connection, budget_key)
    report = _report(budget_key, holder, held, now)
    connection.execute(SQL["charge"], report)
    kept = connection.execute(SQL["renew"], report | {"lease": lease, "deadline": deadline}).fetchall()
    key = _read(connection, budget_key, now)
    if key is None:
        return Renewed(slots={}, gap_s=0.0, closed_for_s=0.0)
    leaving, is_wanted = sharing.surplus(key), key.is_wanted_by_others(holder)
    states = {}
    for slot, held_for_s, turn_for_s in cast("list[tuple[int, float, float]]", kept):
        states[slot] = SlotState(
            held_for_s=held_for_s,
            turn_for_s=0.0 if slot in leaving else max(0.0, turn_for_s),
            must_yield=is_wanted or slot in leaving,
        )
    return Renewed(slots=states, gap_s=key.gap_s, closed_for_s=key.closed_for)


def give_back(
    connection: Connection,
    *,
    budget_key: str,
    holder: str,
    returned: Sequence[Returned],
    now: datetime | None = None,
) -> None:
    """Free slots with nothing in flight and charge what was sent on them; what is no longer ours stays as it is."""
    _lock(connection, budget_key)
    report = _report(budget_key, holder, returned, now)
    connection.execute(SQL["charge"], report)
    connection.execute(SQL["give_back"], report | {"ended_ago_s": [slot.ended_ago_s for slot in returned]})


def stop_waiting(connection: Connection, *, budget_key: str, holder: str, now: datetime | None = None) -> None:
    """Leave the queue: nothing more to send here for now."""
    _lock(connection, budget_key)
    connection.execute(SQL["stop_waiting"], {"budget_key": budget_key, "holder": holder, "now": now})


# --- Closing (rule 9) -------------------------------------------------------------------------------------------------


def locked_closings(connection: Connection, budget_keys: Collection[str]) -> dict[str, Closing]:
    """What these keys remember of trouble, under their locks; a key that nobody declared is missing."""
    rows: list[Any] = connection.execute(SQL["lock_closings"], {"budget_keys": sorted(budget_keys)}).fetchall()
    return {
        key: Closing(
            until=until and utc(until), reason=reason, incidents=incidents, unavailable=unavailable,
            unavailable_request=request,
        )
        for key, until, reason, incidents, unavailable, request in rows
    }  # fmt: skip


def write_closing(connection: Connection, budget_key: str, closing: Closing) -> None:
    """Make the key remember this; the caller holds its lock. Whoever holds a slot hears of it at the next renewal."""
    connection.execute(SQL["write_closing"], asdict(closing) | {"budget_key": budget_key})


def closed(
    connection: Connection, budget_keys: Collection[str] | None = None, *, now: datetime | None = None
) -> dict[str, float]:
    """The keys (of these, or of all) that are closed now, and for how many seconds; locks nothing."""
    values = {"budget_keys": None if budget_keys is None else list(budget_keys), "now": now}
    rows: list[Any] = connection.execute(SQL["closed_keys"], values).fetchall()
    return {key: for_s for key, for_s, _ in rows}


def closings(connection: Connection, *, now: datetime | None = None) -> list[ClosedKey]:
    """The keys that are closed now, for people."""
    rows: list[Any] = connection.execute(SQL["closed_keys"], {"budget_keys": None, "now": now}).fetchall()
    return [ClosedKey(budget_key=key, for_s=for_s, reason=reason) for key, for_s, reason in rows]


def status(connection: Connection, *, now: datetime | None = None) -> list[Status]:
    """Every source's part of every key."""
    with connection.cursor(row_factory=class_row(Status)) as cursor:
        return cursor.execute(SQL["status"], {"now": now}).fetchall()


# --- Steps -----------------------------------------------------------------------------------------------------------


def _lock(connection: Connection, budget_key: str) -> None:
    connection.execute(SQL["lock_key"], {"budget_key": budget_key})


def _locked(connection: Connection, budget_key: str, now: datetime | None) -> Key:
    """The key under its lock, with the slots of the dead back."""
    _lock(connection, budget_key)
    key = _read(connection, budget_key, now)
    if key and any(slot.holder is not None and slot.is_free for slot in key.slots):
        connection.execute(SQL["take_back"], {"budget_key": budget_key, "now": now})
        key = _read(connection, budget_key, now)
    return key or Key(per="", closed_for=0.0, slots=(), shares=(), waiters=())


def _read(connection: Connection, budget_key: str, now: datetime | None) -> Key | None:
    row = connection.execute(SQL["read_key"], {"budget_key": budget_key, "now": now}).fetchone()
    if row is None:
        return None
    per, closed_for, slots, shares, waiters, delay = cast("tuple[str, float, _Rows, _Rows, _Rows, float]", row)
    return Key(
        per=per,
        closed_for=closed_for,
        slots=tuple(Slot(**slot) for slot in slots),
        shares=tuple(Share(**share) for share in shares),
        waiters=tuple(Waiter(**waiter) for waiter in waiters),
        crawl_delay_s=delay,
    )


_Rows = list[dict[str, Any]]


def _missing(key: Key, holder: str, want: int) -> int:
    """How many slots the holder may still wait for: not more than there are."""
    return max(0, min(want, key.width - key.holding(holder)))


def _is_waiting(key: Key, demand: Demand, holder: str, want: int) -> bool:
    """Whether the holder's place in the queue and its source's demand need no write yet."""
    share, waiter = key.share(demand.source), key.waiter(holder)
    return (
        share is not None
        and waiter is not None
        and share.live_for > DEMAND_LIVES_FOR.total_seconds() / 2
        and waiter.live_for > WAITER_LIVES_FOR.total_seconds() / 2
        and waiter.wanted == _missing(key, holder, want)
    )


def _join(connection: Connection, demand: Demand, holder: str, want: int, now: datetime | None) -> Key:
    """The locked key with the holder in its queue; a demand that died is declared again."""
    key = _locked(connection, demand.budget_key, now)
    if key.share(demand.source) is None:
        declare(connection, demand, now=now)
        key = _locked(connection, demand.budget_key, now)
    place = {"budget_key": demand.budget_key, "source": demand.source, "holder": holder, "now": now}
    level = sharing.level(key, demand.source)
    connection.execute(SQL["keep_demand"], place | {"served": level, "live_for": DEMAND_LIVES_FOR})
    if missing := _missing(key, holder, want):
        connection.execute(SQL["wait"], place | {"wanted": missing, "live_for": WAITER_LIVES_FOR})
    return _locked(connection, demand.budget_key, now)


def _allotted(key: Key, holder: str) -> list[Slot]:
    return [slot for slot, waiter in sharing.allot(key, sharing.grantable(key)) if waiter == holder]


def _grant(
    connection: Connection,
    demand: Demand,
    holder: str,
    chosen: Collection[Slot],
    key: Key,
    lease: timedelta,
    turn: timedelta,
    now: datetime | None,
) -> tuple[Grant, ...]:
    values = {
        "budget_key": demand.budget_key, "holder": holder, "source": demand.source, "deadline": demand.deadline,
        "slots": [slot.slot for slot in chosen], "gap_s": key.gap_s, "lease": lease, "turn": turn, "now": now,
    }  # fmt: skip
    rows = connection.execute(SQL["grant"], values).fetchall()
    must_yield = key.is_wanted_by_others(holder)
    return tuple(
        Grant(
            slot=slot, fence=fence, ready_in_s=ready_in_s, held_for_s=held_for_s, turn_for_s=turn_for_s,
            must_yield=must_yield,
        )
        for slot, fence, ready_in_s, held_for_s, turn_for_s in cast("list[tuple[int, int, float, float, float]]", rows)
    )  # fmt: skip


def _acquired(key: Key, grants: tuple[Grant, ...]) -> Acquired:
    return Acquired(
        grants=grants,
        gap_s=key.gap_s,
        slots=key.width,
        retry_in_s=sharing.retry_in(key),
        closed_for_s=key.closed_for,
    )


def _report(
    budget_key: str, holder: str, slots: Sequence[Held] | Sequence[Returned], now: datetime | None
) -> dict[str, object]:
    return {
        "budget_key": budget_key, "holder": holder, "now": now, "live_for": DEMAND_LIVES_FOR,
        "slots": [slot.slot for slot in slots],
        "fences": [slot.fence for slot in slots],
        "served": [slot.served for slot in slots],
    }  # fmt: skip
