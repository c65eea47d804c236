"""What was judged is looked at once more inside the transaction: the database knows of other days and of removals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from collector_assets import pages, soft_gone
from collector_assets.contract import Source
from collector_assets.database import Connection
from collector_assets.deposit.judged import Judged
from collector_assets.outcome import Outcome


def confirmed(connection: Connection, source: Source, judged: list[Judged]) -> list[Judged]:
    """What said "gone" on another day too, and nothing else in between, is gone."""
    saying = {item.answered.lease.url for item in judged if item.outcome is Outcome.SOFT_GONE}
    if not saying:
        return judged
    since = pages.soft_gone_since(connection, source.name, saying, soft_gone.ANOTHER_DAY)
    return [_told_twice(item, since) if item.outcome is Outcome.SOFT_GONE else item for item in judged]


def _told_twice(item: Judged, since: Mapping[str, datetime]) -> Judged:
    """Gone, if its address said so on another day."""
    if (first := since.get(item.answered.lease.url)) is None:
        return item
    return replace(item, outcome=Outcome.GONE_CONFIRMED, reason=f"said so on {first:%Y-%m-%d %H:%M} UTC too")


def with_holders(connection: Connection, judged: list[Judged]) -> list[Judged]:
    """Keep the bytes that revisits point at; where they were removed meanwhile, ask again."""
    held = [item.answered.lease.earlier for item in judged if item.is_revisit]
    if not held:
        return judged
    there = pages.lock_holders(connection, [earlier for earlier in held if earlier])
    return [item if _has_bytes(item, there) else _lost(item, "its page was removed") for item in judged]


def _has_bytes(item: Judged, there: set[int]) -> bool:
    earlier = item.answered.lease.earlier
    return not item.is_revisit or (earlier is not None and earlier.page_id in there)


def _lost(item: Judged, why: str) -> Judged:
    reason = f"unchanged since an earlier fetch, but {why}"
    return replace(item, outcome=Outcome.REVISIT_LOST, reason=reason, found=None, is_revisit=False)
