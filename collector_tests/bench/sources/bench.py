"""Sources of the benchmark: the demo shop without a gap, and a window in which there is nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from collector_assets.contract import Budget, Expect, Link, replace, seconds
from collector_assets.sources.shop import SHOP
from collector_assets.window import Window

BENCH = replace(
    SHOP,
    name="bench",
    description="The demo shop as fast as it answers.",
    budget=Budget(gap=seconds(0), slots=32),
    in_flight=32,
    capacity=2_000,
    max_requests=20_000,
    expect=Expect(min_records=1, max_error_rate=0.0, max_reject_rate=0.0),
)


def nothing(_window: Window, _inputs: Any) -> Iterator[Link]:
    """No start at all."""
    yield from ()


EMPTY = replace(
    BENCH,
    name="bench_empty",
    description="A window without a request.",
    start_urls=(),
    start=nothing,
    scope=("shop.localhost",),
    expect=Expect(min_records=0),
)

SOURCES = (BENCH, EMPTY)
