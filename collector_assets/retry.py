"""How long a request waits before its next attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits that double: `first`, 2 x `first`, 4 x … up to `most`, each stretched by up to `jitter` of itself.

    Jitter only lengthens, so that "1 s then 2 s" is a promise to the site.
    """

    first: timedelta = timedelta(seconds=1)
    most: timedelta = timedelta(minutes=5)
    jitter: float = 0.25

    def wait(self, attempt: int, chance: random.Random) -> timedelta:
        """The wait after the `attempt`-th attempt (1, 2, …) failed."""
        plain = min(self.first.total_seconds() * 2.0 ** min(attempt - 1, 60), self.most.total_seconds())
        return timedelta(seconds=plain * (1 + self.jitter * chance.random()))
