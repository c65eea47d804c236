"""Store of requests: what there is to fetch, who holds what, and how each one ended (rules 1-6, 15, 20).

Every function takes an open connection and works inside the caller's transaction. `now` is the database clock unless
it is given. The life of a request:

    add -> candidate -> (admitted inside `claim`) queued -> leased -> fetched -> done | failed(read)
                                                    ^         |-> done | failed(fetch) | skipped
                                                    +---------+   retry, redirect, snooze, release, expired lease

What a person puts back (`selected.put_back`) is a candidate again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, LiteralString, TypeAlias, assert_never

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from collector_assets import lanes
from collector_assets.database import Connection, statements
from collector_assets.errors import UnknownWindow
from collector_assets.outcome import Outcome
from collector_assets.request import Fence, Lease, NewRequest, RequestId
from collector_assets.storable import clean_json, clean_text

SQL: Final = statements("frontier")
MOST_ADMITTED: Final = 1_000
"""Candidates that one claim admits at most: bounds the work under the window's lock, not the capacity."""
LONGEST_WORKER_NAME: Final = 200


# --- Adding ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of a batch of new requests; the three add up to it."""

    new: int
    known: int
    """There already, in whatever state, or twice in the batch."""
    over_bound: int
    """Not inserted, because the window holds `max_requests`."""


def add(
    connection: Connection,
    *,
    source: str,
    window_start: datetime,
    requests: Sequence[NewRequest],
    edition: int,
    max_attempts: int,
    max_requests: int,
) -> Added:
    """Accept requests as candidates, each unique key once; ids follow the order given (rule 1).

    Raises `UnknownWindow`. Writers of one window wait for each other at its row, so no order of keys can deadlock.
    """
    values: dict[str, Any] = {"source": source, "window_start": window_start}
    planned = _lock_window(connection, values).planned
    if not requests:
        return Added(new=0, known=0, over_bound=0)
    room = max(0, max_requests - planned)
    values |= _columns(requests) | {"edition": edition, "max_attempts": max_attempts, "room": room}
    row: Any = connection.execute(SQL["add_requests"], values).fetchone()
    new, fresh = row
    over_bound = max(0, fresh - room)
    return Added(new=new, known=len(requests) - new - over_bound, over_bound=over_bound)


def known(connection: Connection, source: str, window_start: datetime, unique_keys: Collection[bytes]) -> set[bytes]:
    """Which of these unique keys the window has already."""
    values = {"source": source, "window_start": window_start, "unique_keys": list(unique_keys)}
    rows: list[Any] = connection.execute(SQL["known_keys"], values).fetchall()
    return {bytes(unique_key) for (unique_key,) in rows}


def chain_starts(connection: Connection, window_start: datetime, ids: Sequence[RequestId]) -> list[NewRequest]:
    """The requests with which the chains of these listings begin."""
    with connection.cursor(row_factory=class_row(NewRequest)) as cursor:
        return cursor.execute(SQL["chain_starts"], {"window_start": window_start, "ids": list(ids)}).fetchall()


def reopen(connection: Connection, source: str, window_start: datetime, requests: Sequence[NewRequest]) -> int:
    """Make those of these requests candidates again that ended when their chain had started over less often."""
    values = {
        "source": source, "window_start": window_start, "unique_keys": [r.unique_key for r in requests],
        "restarts": [r.restarts for r in requests],
    }  # fmt: skip
    return connection.execute(SQL["reopen_requests"], values).rowcount


def _columns(requests: Sequence[NewRequest]) -> dict[str, list[Any]]:
    return {
        "unique_keys": [r.unique_key for r in requests],
        "kinds": [r.kind for r in requests],
        "lanes": [clean_text(r.lane) for r in requests],
        "priorities": [r.priority for r in requests],
        "entities": [_clean(r.entity) for r in requests],
        "urls": [clean_text(r.url) for r in requests],
        "budget_keys": [clean_text(r.budget_key) for r in requests],
        "methods": [r.method for r in requests],
        "bodies": [r.body for r in requests],
        "headers": [_json(r.headers) for r in requests],
        "secrets": [json.dumps(list(r.secrets)) if r.secrets else None for r in requests],
        "hints": [_json(r.hints) for r in requests],
        "depths": [r.depth for r in requests],
        "referrers": [_clean(r.referrer) for r in requests],
        "barren": [r.barren for r in requests],
        "above": [r.above for r in requests],
        "known_runs": [r.known_run for r in requests],
        "found_on": [r.found_on for r in requests],
        "restarts": [r.restarts for r in requests],
        "known": [r.is_known for r in requests],
    }


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(clean_json(value), ensure_ascii=False) if value else "{}"


def _clean(text: str | None) -> str | None:
    return None if text is None else clean_text(text)


# --- Claiming --------------------------------------------------------------------------------------------------------


def claim(
    connection: Connection,
    *,
    source: str,
    window_start: datetime,
    budget_key: str,
    worker: str,
    count: int,
    lease: timedelta,
    kinds: Sequence[str] | None,
    lane_weights: Mapping[str, int],
    discovering: Sequence[str],
    interleave: tuple[int, int] | None,
    now: datetime | None = None,
) -> list[Lease]:
    """Hold at most `count` requests for `lease`, in the order in which they should be sent; each is one attempt.

    Takes back expired leases of the window first and admits candidates up to its capacity. `kinds` are those that this
    pass drains (all when None); `interleave` weighs (discovering kinds, others) against each other. Raises
    `UnknownWindow`.
    """
    if count < 1:
        return []
    scope = {
        "source": source,
        "window_start": window_start,
        "kinds": None if kinds is None else list(kinds),
        "now": now,
    }
    window = _lock_window(connection, scope)
    sharing = _Sharing(
        connection, scope, window.turns, lane_weights=lane_weights, discovering=discovering, interleave=interleave
    )
    _admit(connection, scope, sharing, window.capacity)
    ids = sharing.take("claim", "best_queued", count, {"budget_key": budget_key})
    sharing.save()
    values = scope | {"ids": ids, "worker": clean_text(worker)[:LONGEST_WORKER_NAME], "lease": lease}
    return _leases(connection, values) if ids else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _LockedWindow:
    capacity: int
    planned: int
    turns: dict[str, dict[str, int]]


def _lock_window(connection: Connection, values: Mapping[str, Any]) -> _LockedWindow:
    """The window, whose row is ours from here to the end of the transaction."""
    with connection.cursor(row_factory=class_row(_LockedWindow)) as cursor:
        found = cursor.execute(SQL["lock_window"], values).fetchone()
    if found is None:
        raise UnknownWindow(values["source"], values["window_start"].isoformat(), "it was never opened")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Active:
    """What counts against the capacity."""

    active: int
    foreign_queued: int
    expired: int


def _count_active(connection: Connection, scope: dict[str, Any]) -> _Active:
    """Queued and leased requests, after expired leases were taken back."""
    with connection.cursor(row_factory=class_row(_Active)) as cursor:
        (found,) = cursor.execute(SQL["count_active"], scope)
        if found.expired and connection.execute(SQL["take_back_expired"], scope).rowcount:
            (found,) = cursor.execute(SQL["count_active"], scope)
    return found


def _admit(connection: Connection, scope: dict[str, Any], sharing: _Sharing, capacity: int) -> None:
    """Candidates become queued while queued + leased < capacity; work of other passes makes room (rule 2)."""
    found = _count_active(connection, scope)
    room = capacity - found.active
    ids = sharing.take("admit", "best_candidates", min(room + found.foreign_queued, MOST_ADMITTED), {})
    if not ids:
        return
    if len(ids) > room:
        connection.execute(SQL["send_back_foreign"], scope | {"count": len(ids) - room})
    connection.execute(SQL["admit_requests"], scope | {"ids": ids})


def _leases(connection: Connection, values: dict[str, Any]) -> list[Lease]:
    with connection.cursor(row_factory=class_row(Lease)) as cursor:
        by_id = {lease.request_id: lease for lease in cursor.execute(SQL["claim_requests"], values)}
    return [by_id[request_id] for request_id in values["ids"] if request_id in by_id]


class _Sharing:
    """The round robins of a window during one claim: read once, written once."""

    def __init__(
        self,
        connection: Connection,
        scope: dict[str, Any],
        turns: dict[str, dict[str, int]],
        *,
        lane_weights: Mapping[str, int],
        discovering: Sequence[str],
        interleave: tuple[int, int] | None,
    ) -> None:
        self._connection, self._scope = connection, scope
        self._lane_weights, self._discovering, self._interleave = lane_weights, frozenset(discovering), interleave
        self._group_weights: dict[str, int] = {lanes.ALL: 1}
        if interleave:
            self._group_weights = {lanes.DISCOVERING: interleave[0], lanes.OTHER: interleave[1]}
        self._turns = self._saved = turns

    def take(
        self, ring: str, statement: Literal["best_queued", "best_candidates"], count: int, values: dict[str, Any]
    ) -> list[int]:
        """At most `count` ids of what the statement finds, lanes and groups of kinds in their turn."""
        if count < 1:
            return []
        rows: list[Any] = self._connection.execute(SQL[statement], self._scope | values | {"count": count}).fetchall()
        taken, self._turns = lanes.take_turns(
            self._queues(rows), count=count, ring=ring,
            group_weights=self._group_weights, lane_weights=self._lane_weights, before=self._turns,
        )  # fmt: skip
        return taken

    def save(self) -> None:
        """Write what changed."""
        if self._turns != self._saved:
            self._connection.execute(SQL["write_turns"], self._scope | {"turns": Jsonb(self._turns)})

    def _queues(self, rows: list[Any]) -> dict[str, dict[str, list[int]]]:
        """The kinds of a group merged lane by lane: higher priority first, then older."""
        found: dict[str, dict[str, list[tuple[int, int]]]] = {}
        for kind, lane, ids, priorities in rows:
            queue = found.setdefault(self._group(kind), {}).setdefault(lane, [])
            queue.extend((-priority, request_id) for request_id, priority in zip(ids, priorities, strict=True))
        return {
            group: {lane: [i for _, i in sorted(queue)] for lane, queue in of.items()} for group, of in found.items()
        }

    def _group(self, kind: str) -> str:
        if self._interleave is None:
            return lanes.ALL
        return lanes.DISCOVERING if kind in self._discovering else lanes.OTHER


def take_back_expired(
    connection: Connection, source: str | None = None, window_start: datetime | None = None, now: datetime | None = None
) -> int:
    """Queue again, or fail at the last attempt, what is leased by somebody who is gone; how many."""
    values = {"source": source, "window_start": window_start, "now": now}
    return connection.execute(SQL["take_back_expired"], values).rowcount


def renew(
    connection: Connection,
    held: Sequence[tuple[RequestId, Fence]],
    window_start: datetime,
    lease: timedelta,
    now: datetime | None = None,
) -> set[RequestId]:
    """Prolong leases to `lease` from now; the requests that are still ours. The others are lost: drop them."""
    if not held:
        return set()
    ids, fences = zip(*held, strict=True)
    values = {"window_start": window_start, "ids": list(ids), "fences": list(fences), "now": now}
    connection.execute(SQL["lock_leases"], values)
    return _ids(connection.execute(SQL["renew_leases"], values | {"lease": lease}))


# --- Finishing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fetched:
    """The page is archived; reading it comes next."""

    request_id: RequestId
    fence: Fence


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do: a discovering page whose links are in the frontier."""

    request_id: RequestId
    fence: Fence


@dataclass(frozen=True, slots=True)
class Failed:
    """Ended for good, in fetching or in reading."""

    request_id: RequestId
    fence: Fence
    phase: Literal["fetch", "read"]
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Tried again after `wait`; failed(fetch) with this reason when that was the last attempt."""

    request_id: RequestId
    fence: Fence
    wait: timedelta
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Put back until `wait` from now; the attempt does not count."""

    request_id: RequestId
    fence: Fence
    wait: timedelta
    outcome: Outcome | None = None
    reason: str = ""
    was_sent: bool = False
    """The site was asked and said "later": counted in `snoozes`, so that there is an end to it."""
    forgets_redirects: bool = False
    """From its own address again, wherever redirects had led."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Redirected: queued again at once, at the next address of `chain`; the attempt does not count again."""

    request_id: RequestId
    fence: Fence
    chain: Mapping[str, Any]
    budget_key: str
    """Of the next address."""
    reason: str


@dataclass(frozen=True, slots=True)
class Released:
    """Put back unsent; the attempt does not count."""

    request_id: RequestId
    fence: Fence


@dataclass(frozen=True, slots=True)
class Skipped:
    """Not wanted after all."""

    request_id: RequestId
    fence: Fence
    outcome: Outcome
    reason: str
    counts: bool = True
    """As an attempt: not when nothing was sent, nor when it may have to be asked again."""


Result: TypeAlias = Fetched | Done | Failed | Retry | Snoozed | Moved | Released | Skipped


def finish(
    connection: Connection, window_start: datetime, results: Sequence[Result], now: datetime | None = None
) -> set[RequestId]:
    """Write the ends of attempts; the requests to which they were applied.

    A result whose lease moved on or expired is refused and changes nothing (rule 4): leave its page out of the same
    transaction, and count it with `windows.count_late_results`, last.
    """
    if not results:
        return set()
    scope = {"window_start": window_start, "now": now}
    every = {"ids": [r.request_id for r in results], "fences": [r.fence for r in results]}
    if not _ids(connection.execute(SQL["lock_leases"], scope | every)):
        return set()
    groups: dict[_Ending, list[Result]] = {}
    moved: list[Moved] = []
    for result in results:
        if isinstance(result, Moved):
            moved.append(result)
        else:
            groups.setdefault(_ending(result), []).append(result)
    values = [
        scope | asdict(ending) | {"ids": [r.request_id for r in alike], "fences": [r.fence for r in alike]}
        for ending, alike in groups.items()
    ]
    applied = _ids(_execute_each(connection, SQL["finish_requests"], values)) if values else set[RequestId]()
    return applied | (_ids(connection.execute(SQL["move_requests"], scope | _moves(moved))) if moved else set())


def _moves(moved: Sequence[Moved]) -> dict[str, list[Any]]:
    return {
        "ids": [r.request_id for r in moved],
        "fences": [r.fence for r in moved],
        "chains": [_json(r.chain) for r in moved],
        "budget_keys": [clean_text(r.budget_key) for r in moved],
        "reasons": [clean_text(r.reason) for r in moved],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """What a result does to its request; equal ones are written together."""

    state: str
    failed_phase: str | None = None
    outcome: str | None = None
    reason: str | None = None
    wait: timedelta | None = None
    is_retry: bool = False
    gives_back: bool = False
    snoozes: bool = False
    forgets_redirects: bool = False


def _ending(result: Fetched | Done | Failed | Retry | Snoozed | Released | Skipped) -> _Ending:
    match result:
        case Fetched() | Done():
            return _Ending(state="fetched" if isinstance(result, Fetched) else "done", outcome=str(Outcome.OK))
        case Failed(phase=phase, outcome=outcome, reason=reason):
            return _Ending(state="failed", failed_phase=phase, outcome=str(outcome), reason=clean_text(reason))
        case Skipped(outcome=outcome, reason=reason, counts=counts):
            return _Ending(state="skipped", outcome=str(outcome), reason=clean_text(reason), gives_back=not counts)
        case Retry(wait=wait, outcome=outcome, reason=reason):
            return _Ending(state="queued", outcome=str(outcome), reason=clean_text(reason), wait=wait, is_retry=True)
        case Snoozed(wait=wait, outcome=outcome, reason=reason, was_sent=was_sent, forgets_redirects=forgets_redirects):
            said = {
                "outcome": outcome and str(outcome),
                "reason": clean_text(reason),
                "forgets_redirects": forgets_redirects,
            }
            return _Ending(state="queued", **said, wait=wait, gives_back=True, snoozes=was_sent)
        case Released():
            return _Ending(state="queued", gives_back=True)
    assert_never(result)


def _execute_each(connection: Connection, statement: LiteralString, values: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """The rows that the statement returns for each set of values, without waiting in between."""
    with connection.cursor() as cursor:
        cursor.executemany(statement, values, returning=True)
        for result in cursor.results():
            yield from result


@dataclass(frozen=True, slots=True)
class Read:
    """The judgement on a fetched page."""

    request_id: RequestId
    state: Literal["done", "failed"]
    outcome: Outcome
    reason: str | None
    """Must be given with "failed"."""


def mark_read(
    connection: Connection, window_start: datetime, results: Sequence[Read], now: datetime | None = None
) -> int:
    """Move fetched, done and failed(read) requests to done or failed(read); how many changed.

    Any other state is left alone: reading never touches what failed in fetching (rule 15). Twice changes nothing.
    """
    if not results:
        return 0
    scope = {"window_start": window_start, "now": now}
    connection.execute(SQL["lock_readable"], scope | {"ids": [r.request_id for r in results]})
    groups: dict[tuple[str, str, str | None], list[RequestId]] = {}
    for read in results:
        groups.setdefault((read.state, str(read.outcome), _clean(read.reason)), []).append(read.request_id)
    values = [
        scope | {"state": state, "outcome": outcome, "reason": reason, "ids": ids}
        for (state, outcome, reason), ids in groups.items()
    ]
    with connection.cursor() as cursor:
        cursor.executemany(SQL["mark_read"], values)
        return cursor.rowcount


# --- Looking ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRow:
    """Requests of one kind in one place."""

    kind: str
    state: str
    failed_phase: str | None
    outcome: str | None
    requests: int
    attempts: int
    retries: int
    """Attempts after the first."""
    oldest_waiting_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Where the requests of a window are; planned = done + failed + skipped + outstanding, always (rule 20)."""

    rows: tuple[CountRow, ...]

    def _sum(self, *states: str, phase: str | None = None) -> int:
        return sum(r.requests for r in self.rows if r.state in states and phase in {None, r.failed_phase})

    @property
    def planned(self) -> int:
        """Every request that the window ever accepted."""
        return sum(row.requests for row in self.rows)

    @property
    def candidate(self) -> int:
        """Known, not admitted yet."""
        return self._sum("candidate")

    @property
    def queued(self) -> int:
        """Admitted; may wait for its time."""
        return self._sum("queued")

    @property
    def leased(self) -> int:
        """Held by a worker."""
        return self._sum("leased")

    @property
    def fetched(self) -> int:
        """Archived, not read yet."""
        return self._sum("fetched")

    @property
    def done(self) -> int:
        """Ended well."""
        return self._sum("done")

    @property
    def failed(self) -> int:
        """Ended badly, in fetching or in reading."""
        return self._sum("failed")

    @property
    def failed_fetch(self) -> int:
        """Ended badly in fetching: may be replayed."""
        return self._sum("failed", phase="fetch")

    @property
    def failed_read(self) -> int:
        """Fetched, but not one good record: may be read again."""
        return self._sum("failed", phase="read")

    @property
    def skipped(self) -> int:
        """Not wanted."""
        return self._sum("skipped")

    @property
    def to_fetch(self) -> int:
        """What pass 1 or pass 2 must still fetch."""
        return self._sum("candidate", "queued", "leased")

    @property
    def to_read(self) -> int:
        """What `records` must still read."""
        return self.fetched

    @property
    def outstanding(self) -> int:
        """What has not ended."""
        return self.to_fetch + self.to_read

    @property
    def attempts(self) -> int:
        """Attempts of all requests together."""
        return sum(row.attempts for row in self.rows)

    @property
    def retries(self) -> int:
        """Attempts after a request's first."""
        return sum(row.retries for row in self.rows)

    @property
    def oldest_waiting_at(self) -> datetime | None:
        """When the oldest request that waits to be sent was added."""
        return min((row.oldest_waiting_at for row in self.rows if row.oldest_waiting_at), default=None)

    def by_kind(self, *kinds: str) -> Counts:
        """The same for some kinds."""
        return Counts(rows=tuple(row for row in self.rows if row.kind in kinds))

    def outcome_table(self) -> list[dict[str, Any]]:
        """Rows for a person: kind, state ("failed(fetch)" …), outcome, requests."""
        return [
            {
                "kind": row.kind,
                "state": f"failed({row.failed_phase})" if row.failed_phase else row.state,
                "outcome": row.outcome or "",
                "requests": row.requests,
            }
            for row in self.rows
        ]


def counts(connection: Connection, source: str, window_start: datetime) -> Counts:
    """Count the whole window: one pass over its requests, so ask it every few seconds, not in a loop."""
    values = {"source": source, "window_start": window_start}
    with connection.cursor(row_factory=class_row(CountRow)) as cursor:
        return Counts(rows=tuple(cursor.execute(SQL["count_requests"], values)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What a claim would find."""

    by_key: Mapping[str, int]
    """Budget key -> requests that can be claimed now, candidates for which there is room included."""
    next_due_in: float | None
    """Seconds until the next wait or lease of somebody else ends; None when there is none."""
    to_fetch: int
    """Everything of these kinds that is not fetched yet, whoever holds it."""
    halted: int
    """Of these, what waits for origins that are halted."""


def due(
    connection: Connection,
    source: str,
    window_start: datetime,
    kinds: Sequence[str] | None = None,
    now: datetime | None = None,
) -> Due:
    """What a pass over these kinds (all when None) can do now, and when to look again. Raises `UnknownWindow`."""
    values = {
        "source": source,
        "window_start": window_start,
        "kinds": None if kinds is None else list(kinds),
        "now": now,
    }
    outlook: Any = connection.execute(SQL["outlook"], values).fetchone()
    if outlook is None:
        raise UnknownWindow(source, window_start.isoformat(), "it was never opened")
    to_fetch, halted, room, next_due_in = outlook
    by_key: list[Any] = connection.execute(SQL["due_by_key"], values | {"room": room}).fetchall()
    return Due(by_key=dict(by_key), next_due_in=next_due_in, to_fetch=to_fetch, halted=halted)


def in_use(connection: Connection, source: str, window_start: datetime) -> str:
    """Why the window's pages are needed as they are; empty when they are not."""
    row: Any = connection.execute(SQL["is_in_use"], {"source": source, "window_start": window_start}).fetchone()
    is_held, is_unread = row
    return "a worker holds requests of it" if is_held else "pages of it are not read yet" if is_unread else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUp:
    """What waits for a halted origin."""

    origin: str
    halted_at: datetime
    reason: str
    requests: int


def held_up(
    connection: Connection, source: str, window_start: datetime, kinds: Sequence[str] | None = None
) -> list[HeldUp]:
    """The halted origins for which requests of these kinds (all when None) wait, the one that holds up most first."""
    values = {"source": source, "window_start": window_start, "kinds": None if kinds is None else list(kinds)}
    with connection.cursor(row_factory=class_row(HeldUp)) as cursor:
        return cursor.execute(SQL["work_by_halt"], values).fetchall()


def _ids(rows: Iterable[Any]) -> set[RequestId]:
    return {RequestId(row[0]) for row in rows}
