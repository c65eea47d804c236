"""What a source asks of a budget key and of a fetcher, and how long the answer of the first holds."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, Final, TypeVar

from collector_assets import budget, redirects, retry_after, revisits
from collector_assets.contract import Source
from collector_assets.fetch import FetchRequest, Response
from collector_assets.request import Lease, NewRequest, loaded_headers
from collector_assets.retry_after import RetryAfter

T = TypeVar("T")

SLOT_LEASE: Final = timedelta(seconds=3)
LOOK_AGAIN_S: Final = 0.5
"""How often something that waits looks again."""


def demand_of(source: Source, key: str) -> budget.Demand:
    """What the source asks of a budget key."""
    limits = source.budget
    return budget.Demand(
        budget_key=key,
        per=limits.per,
        source=source.name,
        gap=limits.gap,
        slots=limits.slots,
        weight=limits.weight,
        deadline=source.total_timeout,
    )


def request_of(source: Source, asked: Lease | NewRequest) -> FetchRequest:
    """What is sent, within the source's deadlines and limits; under a condition where a page of it is held."""
    standing = redirects.standing(asked)
    headers = loaded_headers(standing.headers)
    if isinstance(asked, Lease) and asked.earlier:
        headers |= revisits.conditions(asked)
    return FetchRequest(
        url=standing.url,
        kind=asked.kind,
        method=standing.method,
        headers=headers,
        body=standing.body,
        secrets=standing.secrets,
        cookies=standing.cookies,
        connect_s=source.connect_timeout.total_seconds(),
        read_s=source.read_timeout.total_seconds(),
        total_s=source.total_timeout.total_seconds(),
        max_bytes=source.max_bytes_of(asked.kind),
    )


def later_of(answer: Response) -> RetryAfter | None:
    """When the answer asks us to come back, if it does."""
    fields = [(name.lower(), value.decode("latin-1")) for name, value in answer.headers]
    values = [value for name, value in fields if name == b"retry-after"]
    date = next((value for name, value in fields if name == b"date"), None)
    return retry_after.read(values, date=date, received_at=answer.fetched_at)


async def to_its_end(step: Coroutine[Any, Any, T]) -> T:
    """The step; a cancellation waits for its end: slots that it took must be known to be given back."""
    task = asyncio.ensure_future(step)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
