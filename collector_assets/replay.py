"""Use case: put requests that failed in fetching back, with a new budget of attempts and a reason. Sends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from collector_assets import put_back
from collector_assets.database import Database
from collector_assets.errors import ReplayRefused
from collector_assets.put_back import PutBack, Wish
from collector_assets.selected import Group


def run(wish: Wish, database: Database) -> PutBack:
    """Put back exactly the selected requests that are failed(fetch); what else is selected is left alone (rule 15).

    Raises what `put_back.run` raises; `ReplayRefused` when a request is named by its id that is not failed(fetch).
    """
    return put_back.run("replay", wish, database, takes=_failed_in_fetching, object_to=_refuse)


def _failed_in_fetching(group: Group) -> bool:
    return (group.state, group.failed_phase) == ("failed", "fetch")


def _refuse(others: Sequence[Group]) -> NoReturn:
    first = others[0]
    more = sum(len(group.ids) for group in others) - 1
    raise ReplayRefused(
        f"request {first.ids[0]} is {first.place}{f' (and {more} more are not failed(fetch))' if more else ''}: only "
        "failed(fetch) is replayed; `records` reads failed(read) again, and `recollect` fetches again what was fetched"
    )
