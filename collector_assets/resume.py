"""Use case: which unfinished windows go on now (rule 23): oldest first, a bounded number of times in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from collector_assets import mutes, resumes
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.mutes import Mute
from collector_assets.resumes import Resumable

REST: Final = timedelta(minutes=2)
"""Between two resumes of a window: a run needs seconds to start, and a step waits for its own patience first."""
MOST_IN_VAIN: Final = 5
"""Resumes without progress; then a person must look."""


def choose(
    sources: Iterable[Source],
    *,
    database: Database,
    is_free: Callable[[Resumable], bool],
    most: int,
    now: datetime | None = None,
) -> Iterator[Resumable]:
    """At most `most` windows that the caller must resume now; no two callers get the same.

    `is_free` says whether no run waits for the window or works on it. Paused sources rest.
    """
    with database.transaction() as connection:
        paused = {name for name, mute in mutes.active(connection, now).items() if mute.pauses}
        names = [source.name for source in sources if source.name not in paused]
        found = resumes.due(connection, names, rest=REST, now=now)
    taken: set[str] = set()
    for window in found:
        # One run works on a source at a time; the younger ones wait here instead of in the queue.
        if len(taken) < most and window.source not in taken and is_free(window) and _claim(database, window, now):
            taken.add(window.source)
            yield window


def pause_of(database: Database, source: str) -> Mute | None:
    """The pause of a source, if one holds: nothing is started for it by itself."""
    with database.transaction() as connection:
        mute = mutes.active(connection).get(source)
    return mute if mute and mute.pauses else None


def _claim(database: Database, window: Resumable, now: datetime | None) -> bool:
    with database.transaction() as connection:
        return resumes.claim(connection, window, rest=REST, most=MOST_IN_VAIN, now=now) is not None
