"""Whose turn it is in a window: its lanes and groups of kinds share claims and admissions by weight (rule 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from psycopg.types.json import Jsonb

from collector_assets import lanes
from collector_assets.database import Connection, statements

SQL: Final = statements("frontier")


class Sharing:
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
