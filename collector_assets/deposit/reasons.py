"""Why a request ended as it did: one bounded line."""

from __future__ import annotations

import traceback
from typing import Final

from collector_assets.request import Lease
from collector_assets.storable import clean_text

REASON_LIMIT: Final = 500


def explain(error: BaseException) -> str:
    """One bounded line: what was raised, and where in the source file."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    return clean_text(f"{type(error).__name__}: {error}"[: REASON_LIMIT - 80] + where)


def at_hop(lease: Lease, reason: str) -> str:
    """The reason, and where in a chain of redirects it happened."""
    return f"{reason} (redirected, at {lease.address[:200]})" if reason and lease.chain else reason
