"""Use case: send the alerts that are due, each once, to the channels of the source's owners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from collector_assets import alerts
from collector_assets.alerts import Pending
from collector_assets.channels import Channel, Message, Routes, Undelivered
from collector_assets.database import Database

MOST: Final = 20
"""Messages of one call: a storm over many sources trickles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What became of one message."""

    source: str
    cause: str
    channels: tuple[str, ...]
    problem: str | None


def run(routes: Routes, database: Database, *, most: int = MOST, now: datetime | None = None) -> Iterator[Delivered]:
    """Send at most `most` messages. No transaction is open while one is sent; a crash may send one of them twice."""
    for _ in range(most):
        # One by one: what is claimed and not sent yet would be late by as long as all the others take.
        with database.transaction() as connection:
            claimed = alerts.claim(connection, most=1, now=now)
        for pending in claimed:
            had, problem = _send(pending, routes.of(pending.owners))
            with database.transaction() as connection:
                alerts.settle(connection, pending, delivered=had, problem=problem, now=now)
            yield Delivered(source=pending.source, cause=pending.cause, channels=tuple(had), problem=problem)
        if not claimed:
            return


def try_channels(routes: Routes) -> dict[str, str | None]:
    """One test message through every channel; by channel, why it did not arrive."""
    now = datetime.now(UTC)
    message = Message(
        source="collector", cause="test", title="collector: a test message", count=1, first_at=now, last_at=now,
        body="Alerts of sources arrive here. Nothing has to be done.",
    )  # fmt: skip
    return {name: _sent(channel, message) for name, channel in routes.channels.items()}


def _send(pending: Pending, channels: tuple[Channel, ...]) -> tuple[list[str], str | None]:
    """The channels that have it now, and what was wrong with the others."""
    message = Message(
        source=pending.source, cause=pending.cause, title=pending.title, body=pending.body,
        first_at=pending.first_at.astimezone(UTC), last_at=pending.last_at.astimezone(UTC), count=pending.count,
    )  # fmt: skip
    had, problems = list(pending.delivered), list[str]()
    for channel in channels:
        if channel.name in had:
            continue
        if problem := _sent(channel, message):
            problems.append(problem)
        else:
            had.append(channel.name)
    return had, "; ".join(problems) or None


def _sent(channel: Channel, message: Message) -> str | None:
    try:
        channel.send(message)
    except Undelivered as undelivered:
        return str(undelivered)
    return None
