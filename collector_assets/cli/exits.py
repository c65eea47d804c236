"""Exit codes: what a script may rely on. 0 is done."""

from __future__ import annotations

DISAPPOINTED, MUST_CHANGE, UNAVAILABLE, REFUSED, INTERRUPTED = 1, 2, 3, 4, 130
