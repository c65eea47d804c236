"""Where the requests of a window are; nothing disappears (rule 20)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg.rows import class_row

from collector_assets.database import Connection, statements

SQL: Final = statements("frontier")


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
