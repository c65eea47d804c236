"""What must hold of a window."""

from __future__ import annotations

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets.contract.refusing import STRICT, Refusing


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Expect(Refusing):
    """What must hold of a window."""

    min_records: int = Field(default=1, ge=0, description="fewer records fail the window's verdict")
    max_records: int | None = Field(default=None, ge=0, description="more records fail the window's verdict")
    max_error_rate: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="failed / planned requests, and unreadable / all pages; above it a check is an ERROR",
    )
    max_reject_rate: float = Field(
        default=0.02, ge=0, le=1, description="rejects / (records + rejects); above it the verdict fails"
    )
    max_removed_rate: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="share of the entities in `latest` that may be marked as removed at once; above it none is, and a "
        "check warns",
    )
