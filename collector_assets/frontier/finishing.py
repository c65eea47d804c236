"""The ends of attempts and the judgements on pages are written, those of late workers refused (rules 4 and 15)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, LiteralString, assert_never

from collector_assets.database import Connection, statements
from collector_assets.frontier.columns import as_json, clean, ids_of
from collector_assets.frontier.result import Done, Failed, Fetched, Moved, Released, Result, Retry, Skipped, Snoozed
from collector_assets.outcome import Outcome
from collector_assets.request import RequestId
from collector_assets.storable import clean_text

SQL: Final = statements("frontier")


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
    if not ids_of(connection.execute(SQL["lock_leases"], scope | every)):
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
    applied = ids_of(_execute_each(connection, SQL["finish_requests"], values)) if values else set[RequestId]()
    return applied | (ids_of(connection.execute(SQL["move_requests"], scope | _moves(moved))) if moved else set())


def _moves(moved: Sequence[Moved]) -> dict[str, list[Any]]:
    return {
        "ids": [r.request_id for r in moved],
        "fences": [r.fence for r in moved],
        "chains": [as_json(r.chain) for r in moved],
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
        groups.setdefault((read.state, str(read.outcome), clean(read.reason)), []).append(read.request_id)
    values = [
        scope | {"state": state, "outcome": outcome, "reason": reason, "ids": ids}
        for (state, outcome, reason), ids in groups.items()
    ]
    with connection.cursor() as cursor:
        cursor.executemany(SQL["mark_read"], values)
        return cursor.rowcount
