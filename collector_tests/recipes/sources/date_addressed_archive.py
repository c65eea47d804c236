"""A gazette whose addresses name the day: every window can truly be collected later, years back too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import pandas as pd
import pandera.pandas as pa

from collector_assets.contract import Budget, Daily, Expect, Kind, Page, Source, seconds


class Notice(pa.DataFrameModel):
    """One notice of a day."""

    number: str = pa.Field(str_matches=r"^\d{8}-\d+$", description="What the gazette calls it")
    subject: str = pa.Field(description="What it is about")
    day: Annotated[pd.DatetimeTZDtype, "us", "UTC"] = pa.Field(description="The day it was published")

    class Config(pa.DataFrameModel.Config):
        """Texts become times."""

        coerce = True


def extract(page: Page) -> Iterator[dict[str, object]]:
    """The notices of the window's day; a page of another day is an error."""
    seen = page.json()
    if seen["day"] != f"{page.window.start:%F}":
        raise ValueError(f"the page of {page.window.key} shows {seen['day']}")
    for notice in seen["notices"]:
        yield notice | {"day": page.window.start}


SOURCE = Source(
    name="date_addressed_archive",
    # In braces: window.start, window.end (with :FORMAT, in the schedule's time zone), window.key.
    start_urls=("http://gazette.localhost:8765/gazette/{window.start:%Y/%m/%d}.json",),
    kinds={"day": Kind(extract=extract)},
    coverage="incremental",  # each window shows notices of its own
    expect=Expect(min_records=1, max_records=500),
    schema=Notice,
    entity="number",
    revised_at="day",
    extractor_version="1",
    window=Daily(start="2020-01-01"),
    budget=Budget(gap=seconds(0.05)),
)
