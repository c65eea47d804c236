"""Use case: fetch again on purpose, within a window and with a reason. Sends nothing itself.

The pages of earlier attempts stay archived; `records` reads the newest good page of each request, so what was read
before counts until the new page is there and `records` ran. A page that cannot be fetched any more leaves it in place.
"""

from __future__ import annotations

from typing import Final

from collector_assets import put_back
from collector_assets.database import Database
from collector_assets.put_back import PutBack, Wish
from collector_assets.selected import Group

ENDED: Final = frozenset({"fetched", "done", "failed", "skipped"})


def run(wish: Wish, database: Database) -> PutBack:
    """Put back the selected requests that have ended; what is on its way is fetched anyway and left alone.

    Raises what `put_back.run` raises.
    """
    return put_back.run("recollect", wish, database, takes=_ended)


def _ended(group: Group) -> bool:
    return group.state in ENDED
