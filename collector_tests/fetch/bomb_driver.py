"""Answers, from the first byte to a page that was read, in a process of its own: what each came to and what it cost.

`python -m collector_tests.fetch.bomb_driver TOTAL_S HOST:PORT …` says it as JSON, a line for each address.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collector_assets.contract import Kind
from collector_assets.deposit import fresh_page
from collector_assets.fetch import FetchRequest, NotSent, Response
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_assets.inspection import inspected
from collector_assets.outcome import Outcome
from collector_assets.page import Page
from collector_assets.request import NewRequest
from collector_assets.sitemap import Sitemap
from collector_assets.sources.shop import SHOP
from collector_assets.window import Window

NOW = datetime(2026, 1, 29, tzinfo=UTC)
DAY = Window(key="2026-01-29", start=NOW, end=NOW + timedelta(days=1))
URL = "http://shop.localhost/"
KIND = Kind(extract=lambda _: ())


@dataclass(slots=True, kw_only=True)
class Cost:
    """One answer."""

    outcome: str = ""
    decoded: int = 0
    read: str = ""
    seconds: float = 0.0
    grown: int = 0
    """Bytes of memory at the peak, beyond what was there before."""


def memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    found = re.search(name + r":\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


async def meet(address: str, total_s: float, cost: Cost) -> None:
    """Fetch, and see it as the deposit and the extraction see it.

    Nothing is returned: asyncio formats the result of a main task, and that of a large one takes its size many times.
    """
    fetcher = HttpFetcher(user_agent="bombs/1 (+tests@example.org)", egress=DemoSiteOnly(address), connections=1)
    asked = FetchRequest(url=URL, connect_s=total_s, read_s=total_s, total_s=total_s, max_bytes=SHOP.max_bytes)
    answer = await fetcher.fetch(asked, lambda: True)
    await fetcher.close()
    assert not isinstance(answer, NotSent)
    if isinstance(answer, Response):
        answer = inspected(answer, KIND, limit=SHOP.max_decoded_bytes).answer
    cost.outcome = answer.outcome
    if isinstance(answer, Response) and answer.outcome is Outcome.OK:
        look_into(answer, cost)


def look_into(answer: Response, cost: Cost) -> None:
    """Decode and read a good page."""
    asked = NewRequest(unique_key=b"", kind="listing", lane="*", url=URL, budget_key="")
    try:
        page = fresh_page(asked, answer, DAY, SHOP)
        cost.decoded = len(page.body)
        cost.read = read(page)
    except Exception as error:  # noqa: BLE001  what it says is what is asked
        cost.read = f"{type(error).__name__}: {error}"[:200]


def read(page: Page) -> str:
    """What an extractor of its type would do first."""
    if page.body.startswith(b"<?xml"):
        return f"{sum(1 for _ in Sitemap(page.open(), now=NOW))} entries"
    if page.body.startswith(b"["):
        return str(page.json())[:100]
    return f"{len(page.tree.css('a'))} links"


def cost_of(address: str, total_s: float) -> Cost:
    """What the answer at the address costs."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    cost, before, began = Cost(), memory("VmRSS"), time.monotonic()
    asyncio.run(meet(address, total_s, cost))
    cost.seconds, cost.grown = time.monotonic() - began, memory("VmHWM") - before
    return cost


if __name__ == "__main__":
    for place in sys.argv[2:]:
        sys.stdout.write(json.dumps(asdict(cost_of(place, float(sys.argv[1])))) + "\n")
