"""The demo site's lab: six candidates, one of them twice, each with a known end.

good and retry end done (after one and two attempts), bad and stale are rejected, exhaust never answers
(three attempts): five requests, eight HTTP requests, two records.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import pandas as pd
import pandera.pandas as pa

from collector_assets.contract import Budget, Daily, Expect, Kind, Link, Page, Source, hours, seconds


class Observation(pa.DataFrameModel):
    """A value that the lab observed."""

    name: str = pa.Field(description="The candidate")
    value: int = pa.Field(ge=0, le=1_000_000, description="What it measured; no unit")
    observed_at: Annotated[pd.DatetimeTZDtype, "us", "UTC"] = pa.Field(description="When it was measured, says the lab")
    age_s: float = pa.Field(ge=-1, le=300, description="How old the observation was when it was fetched, in seconds")
    """How old the observation was when it was fetched. One from the future is as wrong as a stale one; a second is
    what the site's clock and ours may differ by."""

    class Config(pa.DataFrameModel.Config):
        """A column that the schema does not name is an error."""

        strict = True
        coerce = True


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The one observation of a page."""
    seen = page.json()
    observed_at = datetime.fromisoformat(seen["observed_at"])
    yield {
        "name": seen["name"],
        "value": seen["value"],
        "observed_at": observed_at,
        "age_s": (page.fetched_at - observed_at).total_seconds(),
    }


SOURCE = Source(
    name="lab",
    description="The demo lab: JSON candidates with known ends, one for each kind of trouble.",
    start_urls=(
        Link("http://lab.localhost:8765/items/good.json", kind="item", entity="good"),
        Link("http://lab.localhost:8765/items/retry.json", kind="item", entity="retry"),
        Link("http://lab.localhost:8765/items/bad.json", kind="item", entity="bad"),
        Link("http://lab.localhost:8765/items/stale.json", kind="item", entity="stale"),
        Link("http://lab.localhost:8765/items/exhaust.json", kind="item", entity="exhaust"),
        Link("http://lab.localhost:8765/items/good.json?again", kind="item", entity="good"),
    ),
    kinds={"item": Kind(extract=extract, dedupe="entity")},
    schema=Observation,
    entity="name",
    revised_at="observed_at",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.2), slots=1),
    capacity=20,
    max_bytes=64 * 1024,
    max_attempts=3,
    retry_wait=seconds(1),
    lease=seconds(15),
    expect=Expect(min_records=2, max_records=2, max_error_rate=0.6, max_reject_rate=0.5),
    freshness=hours(26),
)
