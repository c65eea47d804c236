"""One budget key in a worker's hands: the slots held on it, the leases waiting for them, the requests under way.

Slots are held over a turn and renewed by the heartbeat; leases are claimed a moment ahead, in small batches: no round
trip per page, and a kill -9 costs few attempts (rule 3).

`desk.py` holds the slots and sends in them; `claims.py` has the leases until then: claimed ahead, or waiting for a
robots.txt or the session. `shift.py` is what the desks of one worker share.
"""

from __future__ import annotations

from collector_assets.desk.desk import Desk
from collector_assets.desk.shift import Shift

__all__ = ["Desk", "Shift"]
