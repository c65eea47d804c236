"""Put a batch of answers where they are safe: bytes into the archive first, then rows and states in one transaction.

A crash between the two leaves an unreferenced record, never a row that points at missing bytes (rule 10).

`answered.py` is what came of a request, `judged.py` what was decided about it. `looking.py` looks at the bytes,
`judging.py` decides before the transaction, `second_look.py` in it, where the database knows more. `ending.py` says
what becomes of the request, `keeping.py` what the archive and `pages` keep, `adding.py` brings in the links,
`reasons.py` has the words. `depositor.py` does all that, in its order.
"""

from __future__ import annotations

from collector_assets.deposit.adding import add_found
from collector_assets.deposit.answered import Answered, answered_of, blocked_of, outcome_of
from collector_assets.deposit.depositor import Depositor, Stored
from collector_assets.deposit.judged import Judged
from collector_assets.deposit.keeping import exchange_of
from collector_assets.deposit.looking import follow, fresh_page, seen, texts
from collector_assets.deposit.reasons import explain

__all__ = [
    "Answered", "Depositor", "Judged", "Stored", "add_found", "answered_of", "blocked_of", "exchange_of", "explain",
    "follow", "fresh_page", "outcome_of", "seen", "texts",
]  # fmt: skip
