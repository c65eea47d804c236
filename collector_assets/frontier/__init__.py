"""Store of requests: what there is to fetch, who holds what, and how each one ended (rules 1-6, 15, 20).

Every function takes an open connection and works inside the caller's transaction. `now` is the database clock unless
it is given. The life of a request:

    add -> candidate -> (admitted inside `claim`) queued -> leased -> fetched -> done | failed(read)
                                                    ^         |-> done | failed(fetch) | skipped
                                                    +---------+   retry, redirect, snooze, release, expired lease

What a person puts back (`selected.put_back`) is a candidate again.

`adding.py` accepts, `claiming.py` admits and hands out (whose turn it is: `turns.py`), `finishing.py` writes what
`result.py` says, `counting.py` and `outlook.py` look. The statements are in `sql/frontier.sql`.
"""

from __future__ import annotations

from collector_assets.frontier.adding import Added, add, chain_starts, known, reopen
from collector_assets.frontier.claiming import LONGEST_WORKER_NAME, claim, renew, take_back_expired
from collector_assets.frontier.counting import CountRow, Counts, counts
from collector_assets.frontier.finishing import Read, finish, mark_read
from collector_assets.frontier.outlook import Due, HeldUp, due, held_up, in_use
from collector_assets.frontier.result import Done, Failed, Fetched, Moved, Released, Result, Retry, Skipped, Snoozed

__all__ = [
    "LONGEST_WORKER_NAME", "Added", "CountRow", "Counts", "Done", "Due", "Failed", "Fetched", "HeldUp", "Moved", "Read",
    "Released", "Result", "Retry", "Skipped", "Snoozed", "add", "chain_starts", "claim", "counts", "due", "finish",
    "held_up", "in_use", "known", "mark_read", "renew", "reopen", "take_back_expired",
]  # fmt: skip
