"""How long things are kept."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets.contract.lengths import FOREVER, days
from collector_assets.contract.refusing import STRICT, Refusing


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Retention(Refusing):
    """How long things are kept after their window ended; `collector retain` discards what is older."""

    raw_pages: timedelta = Field(
        default=FOREVER,
        ge=days(1),
        description="WARC files and rows of pages, also since they were fetched; bytes that newer pages did not change "
        "from are kept with those",
    )
    requests: timedelta = Field(default=FOREVER, gt=timedelta(0), description="rows of the frontier (a later release)")
    rejects: timedelta = Field(default=FOREVER, gt=timedelta(0), description="quarantine")
    history: timedelta = Field(
        default=FOREVER, gt=timedelta(0), description="observations; what `latest` stands on is kept"
    )
