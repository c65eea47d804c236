"""How fast a source may ask."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets.contract.lengths import seconds
from collector_assets.contract.refusing import STRICT, Refusing


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Budget(Refusing):
    """How fast a source may ask. All sources on one budget key share it: the greatest gap, the fewest slots."""

    gap: timedelta = Field(
        default=seconds(1),
        ge=timedelta(0),
        description="pause from the end of a response to the next request, per slot",
    )
    slots: int = Field(
        default=1,
        ge=1,
        le=256,
        description="requests to the budget key under way at once, over all processes and hosts",
    )
    weight: float = Field(default=1, gt=0, description="share of the budget among the sources on one key")
    per: Literal["domain", "host"] = Field(
        default="domain", description="what the budget key is; all sources of one domain must agree"
    )
    longest_gap: timedelta = Field(
        default=seconds(60),
        ge=timedelta(0),
        description="the longest Crawl-delay of a robots.txt that is kept; a longer one stops the step with a message",
    )
