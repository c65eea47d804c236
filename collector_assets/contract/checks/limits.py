"""Weights, counts and times that belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector_assets.contract.lengths import FOREVER
from collector_assets.errors import ContractError, NotBuiltYet

if TYPE_CHECKING:
    from collector_assets.contract.source import Source


def check_lanes(source: Source) -> None:
    """No lane starves."""
    for lane, weight in source.lanes.items():
        if weight < 1:
            raise ContractError(
                "lanes",
                f"lane {lane!r} weighs {weight}; a weight is at least 1, or its work would starve",
                source=source.name,
            )


def check_times(source: Source) -> None:
    """Bounds and deadlines are not the wrong way round."""
    if source.expect.max_records is not None and source.expect.max_records < source.expect.min_records:
        raise ContractError("expect.max_records", "is less than min_records", source=source.name)
    if source.total_timeout < max(source.connect_timeout, source.read_timeout):
        raise ContractError("total_timeout", "is shorter than connect_timeout or read_timeout", source=source.name)


def check_built(source: Source) -> None:
    """Refuse what a later issue brings to life, by name."""
    later = {
        "retention.requests": source.retention.requests != FOREVER,
    }  # fmt: skip
    for field, is_used in later.items():
        if is_used:
            raise NotBuiltYet(f"source {source.name!r}: {field}", "C")
