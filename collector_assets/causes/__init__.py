"""Whether a source is fresh, and if it is not, why: a pure decision over facts (rules 19, 22, 23).

Fresh means: the newest window that counts began less than `freshness` ago. When the pages were fetched, and which
window was collected last, does not matter: a back-filled old window changes nothing here.

`facts.py` is what is known, `judgement.py` what comes out. `judging.py` decides: what a person did or must do, then the
newest window that was opened (`newest.py`), then the one that should have been (`due.py`).
"""

from __future__ import annotations

from collector_assets.causes.facts import Attempts, Facts, Halt, Objection, Pace, Run, Scheduling, Span, Standing
from collector_assets.causes.judgement import Cause, Judgement
from collector_assets.causes.judging import fresh, judge
from collector_assets.causes.words import length, shown

__all__ = [
    "Attempts", "Cause", "Facts", "Halt", "Judgement", "Objection", "Pace", "Run", "Scheduling", "Span", "Standing",
    "fresh", "judge", "length", "shown",
]  # fmt: skip
