"""Six shops that promise data of today; a test makes each break its promise for a reason of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from collector_assets.contract import Budget, Daily, Link, Source, hours, replace, seconds
from collector_assets.sources.templates.book_shop import Book, discover, extract
from collector_assets.window import Window

PAGES = 12


def _stale(name: str, description: str, **more: object) -> Source:
    host = name.replace("_", "-")
    start_urls = (f"http://{host}.localhost:8765/catalogue/page-1.html?on={{window.key}}",)
    return replace(_SHOP, **{"name": name, "description": description, "start_urls": start_urls} | more)


_SHOP = Source(
    name="stale",
    description="A shop that promises data of today.",
    start_urls=("http://stale.localhost:8765/catalogue/page-1.html?on={window.key}",),
    discover=discover,
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0.05), slots=2),
    freshness=hours(26),
    max_attempts=1,
)


def _known(host: str) -> dict[str, object]:
    """Its pages without asking for a listing first."""

    def start(window: Window, _inputs: Any) -> Iterator[Link]:
        for number in range(PAGES):
            yield Link(f"http://{host}:8765/catalogue/{number}/index.html?on={window.key}", kind="detail")

    return {"start_urls": (), "start": start, "scope": (host,)}


SOURCES = (
    _stale("stale_refused", "It refuses us.", refusal_limit=1),
    _stale("stale_gone", "It does not answer any more."),
    _stale("stale_redesigned", "Its pages have another layout."),
    _stale(
        "stale_slow", "It allows a page in four hours.",
        budget=Budget(gap=hours(4), slots=1), **_known("stale-slow.localhost"),
    ),
    _stale("stale_waiting", "It asks to come back in an hour.", **_known("stale-waiting.localhost")),
    _stale("stale_unscheduled", "Nobody has turned its schedule on."),
)  # fmt: skip
