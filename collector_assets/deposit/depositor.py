"""The answers of one source's window are put away: archived and judged, then committed with their states (rule 10)."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from collector_assets import conduct, frontier, links, pages, remember, start_over, windows
from collector_assets.archive import Archive, ArchiveWriter, Exchange, Location
from collector_assets.contract import Source
from collector_assets.database import Connection, Database
from collector_assets.deposit.adding import add_found
from collector_assets.deposit.answered import Answered, outcome_of
from collector_assets.deposit.ending import Endings
from collector_assets.deposit.judged import Judged
from collector_assets.deposit.judging import Judge
from collector_assets.deposit.keeping import exchange_of, page_row
from collector_assets.deposit.looking import seen
from collector_assets.deposit.second_look import confirmed, with_holders
from collector_assets.fetch import NoResponse, Response
from collector_assets.outcome import Outcome
from collector_assets.politeness import Wait
from collector_assets.retry import Backoff


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What one batch came to."""

    outcomes: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    """Results whose lease had moved on: not stored, counted."""
    found: int = 0
    """New requests found on the pages."""
    wire_bytes: int = 0
    late: int = 0
    halted: frozenset[str] = frozenset()
    """Origins that were halted by it."""
    closed_for_s: Mapping[str, float] = field(default_factory=dict)
    """Budget keys that have trouble, and for how long each is closed."""


class Depositor:
    """Stores the answers of one source's window."""

    def __init__(
        self,
        *,
        source: Source,
        window: windows.WindowRow,
        database: Database,
        archive: Archive,
        writer: ArchiveWriter,
    ) -> None:
        self._source, self._window, self._database = source, window, database
        self._archive, self._writer = archive, writer
        self._chance = random.Random()  # noqa: S311  jitter, not a secret
        self._judging = Judge(source=source, window=window.window, archive=archive)
        backoff = Backoff(first=source.retry_wait)
        self._endings = Endings(source=source, window=window, backoff=backoff, chance=self._chance)

    def store(self, batch: Sequence[Answered]) -> Stored:
        """Archive, then commit; every write carries its fence. An error leaves the batch to its leases' expiry."""
        return self.commit(self.prepare(batch))

    def prepare(self, batch: Sequence[Answered]) -> list[Judged]:
        """Archive the answers and decide about each; nothing of it counts before `commit`.

        One batch at a time; another one may be committed meanwhile.
        """
        batch = [self._inspect(item) for item in batch]
        # Archive before completing: a crash in between costs one fetch, the other order costs a page.
        responses = [item for item in batch if isinstance(item.answer, Response)]
        hides_cookies = self._source.session is not None
        exchanges = [exchange_of(item.answer, item.lease, item.told, hides_cookies=hides_cookies) for item in responses]
        places = self._writer.append(exchanges) if responses else []
        located = {
            item.lease.request_id: (place, exchange)
            for item, place, exchange in zip(responses, places, exchanges, strict=True)
        }
        return [self._judge(item, *located.get(item.lease.request_id, (None, None))) for item in batch]

    def commit(self, judged: list[Judged]) -> Stored:
        """Rows and states of a prepared batch, in one transaction."""
        with self._database.transaction() as connection:
            return self._commit(connection, judged)

    def _inspect(self, item: Answered) -> Answered:
        """The answer, judged by its bytes too: before it is archived, because a cut one is archived with a mark."""
        if not isinstance(item.answer, Response):
            return item
        answer = seen(self._source, self._window.window, item.lease, item.answer)
        return item if answer is item.answer else replace(item, answer=answer)

    # `_judge` and `_result` are methods because sitemaps are judged and end otherwise: `unfold.UnfoldingDepositor`.

    def _judge(self, item: Answered, location: Location | None, exchange: Exchange | None) -> Judged:
        return self._judging.judge(item, location, exchange)

    def _end(self, item: Judged, note: conduct.Note) -> frontier.Result:
        return self._result(item, note) if item.was_asked else self._endings.of_withheld(item, note.now)

    def _result(self, item: Judged, note: conduct.Note) -> frontier.Result:
        return self._endings.of_answer(item, note)

    def _commit(self, connection: Connection, judged: list[Judged]) -> Stored:
        row, window_start = self._window, self._window.window.start
        judged = confirmed(connection, self._source, judged)
        found = [item.found for item in judged if item.found is not None]
        if found or any(item.restarts for item in judged):
            windows.lock(connection, row.source, window_start)
        judged = with_holders(connection, judged)
        # The monotonic reading first: `fetched_at` may then be late by a round trip, but never before the arrival.
        reading = time.monotonic()
        note = conduct.take_note(
            connection, self._source, [_as_conduct(item, reading) for item in judged if item.was_asked], self._chance
        )
        applied = frontier.finish(connection, window_start, [self._end(item, note) for item in judged])
        refused = len(judged) - len(applied)
        if refused:
            windows.count_late_results(connection, row.source, window_start, refused)
        kept = [item for item in judged if item.answered.lease.request_id in applied]
        rows = [
            page_row(self._source, row, item, item.location, note.now, reading)
            for item in kept
            if item.location is not None
        ]
        pages.insert(connection, rows)
        remember.note(
            connection, self._source, window_start, [(item.answered.lease, item.outcome) for item in kept], note.now
        )
        over = start_over.starts(connection, window_start, [item.answered.lease for item in kept if item.restarts])
        found = [*(item.found for item in kept if item.found is not None), *over]
        new = self._add_found(connection, found) + start_over.reopen(connection, self._source, window_start, found)
        return Stored(
            outcomes=Counter(item.outcome.value for item in kept if not isinstance(item.answered.answer, Wait)),
            refused=refused,
            found=new,
            wire_bytes=sum(row.body_bytes for row in rows),
            late=sum(row.late for row in rows),
            halted=note.halted,
            closed_for_s={key: left.total_seconds() for key, left in note.closed.items()},
        )

    def _add_found(self, connection: Connection, found: list[links.Found]) -> int:
        if not found:
            return 0
        return add_found(connection, self._source, self._window, found)


def _as_conduct(item: Judged, reading: float) -> conduct.Answer:
    """The answer as it tells about the site; a declared status keeps its own outcome there, but is no refusal."""
    lease, answer = item.answered.lease, item.answered.answer
    assert isinstance(answer, Response | NoResponse)  # noqa: S101  the site was asked
    received_ago_s, took_s = max(0.0, reading - answer.ended_at), 0.0
    if isinstance(answer, Response):
        took_s = max(0.0, (answer.fetched_at - answer.requested_at).total_seconds())
    return conduct.Answer(
        origin=item.answered.origin,
        budget_key=lease.budget_key,
        request_id=lease.request_id,
        outcome=item.outcome if item.outcome in (Outcome.BLOCKED, Outcome.NO_SESSION) else outcome_of(item.answered),
        reason=item.reason,
        is_declared=item.answered.declared is not None,
        sent_ago_s=received_ago_s + took_s,
        received_ago_s=received_ago_s,
        asked=item.answered.later.wait if item.answered.later else None,
    )
