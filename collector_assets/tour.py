"""`collector demo`: the lab and the shop for one window, as real Dagster runs, and the shop again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector_assets import forget, latest, observations, rejects, selected, windows
from collector_assets.contract import Source
from collector_assets.demo import DemoSite
from collector_assets.demo.arrivals import min_gap
from collector_assets.graph import runs
from collector_assets.graph.runs import RunSummary
from collector_assets.status import window_status

if TYPE_CHECKING:
    import dagster as dg

    from collector_assets.database import Database

LAB_HOST, SHOP_HOST = "lab.localhost", "shop.localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """What happened, for the tables and for summary.json."""

    summary: dict[str, Any]
    runs: tuple[tuple[str, RunSummary], ...]

    @property
    def succeeded(self) -> bool:
        """Every run complete, and the repetition without a request."""
        rerun = self.summary["rerun"]
        return all(run.is_complete for _, run in self.runs) and not rerun["http_requests"] and not rerun["new_records"]


def take(
    *, defs: dg.Definitions, lab: Source, shop: Source, database: Database, site: DemoSite, folder: Path,
    say: Callable[[str], None],
) -> Tour:  # fmt: skip
    """Begin afresh, collect, collect again; writes `summary.json` into `folder`."""
    for source in (lab, shop):
        forget.run(source, database)
        runs.forget_assets(source)
    window = runs.newest_window(lab)
    say(f"collecting the lab, window {window}: six candidates, two workers")
    lab_run, helped = _with_a_second_worker(lab, window, lambda: runs.collect_window(defs, lab, window))
    say(f"collecting the shop, window {window}: three listing pages, sixty books")
    shop_run = runs.collect_window(defs, shop, window)
    shop_part = shop_summary(database, shop, window)
    sent, records = len(_visits(site, SHOP_HOST)), _records(database, shop, window)
    say("collecting the shop again: nothing should be sent")
    again = runs.collect_window(defs, shop, window)
    summary = {
        "window": window,
        "lab": {**lab_summary(database, lab, window, site), "sent_by_the_second_worker": helped},
        "shop": shop_part,
        "rerun": {
            "http_requests": len(_visits(site, SHOP_HOST)) - sent,
            "new_records": _records(database, shop, window) - records,
        },
        "runs": [lab_run.run_id, shop_run.run_id, again.run_id],
        "checks": _check_counts(lab_run, shop_run, again),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", "utf-8")
    return Tour(summary=summary, runs=(("lab", lab_run), ("shop", shop_run), ("shop again", again)))


def lab_summary(database: Database, lab: Source, window: str, site: DemoSite) -> dict[str, Any]:
    """How each candidate ended, and what the site's own log says."""
    status, arrivals = window_status(database, lab.name, window), _visits(site, LAB_HOST)
    with database.transaction() as connection:
        requests = selected.listed(connection, lab.name, status.row.window.start, limit=100)
    gap = min_gap(arrivals)
    return {
        "requests": status.counts.planned,
        "http_requests": len(arrivals),
        "records": _records(database, lab, window),
        "min_gap_s": None if gap is None else round(gap, 3),
        "outcomes": {str(request.entity): [request.state, request.attempts] for request in requests},
    }


def shop_summary(database: Database, shop: Source, window: str) -> dict[str, Any]:
    """The 60/60/60 of the stages."""
    status = window_status(database, shop.name, window)
    details = status.counts.by_kind("detail")
    with database.transaction() as connection:
        start = status.row.window.start
        rows = selected.listed(connection, shop.name, start, limit=100_000)
        in_latest, rejected = latest.extent(connection, shop.name, start), rejects.count(connection, shop.name, start)
    return {
        "listing_pages": status.counts.by_kind("listing").planned,
        "frontier": details.planned,
        "raw_pages": status.pages.ok_by_kind.get("detail", 0),
        "records": _records(database, shop, window),
        "latest": in_latest.total,
        "unique_urls": len({row.url for row in rows if row.kind == "detail"}),
        "rejects": rejected,
    }


def _records(database: Database, source: Source, window: str) -> int:
    """Observations of the window that count."""
    with database.transaction() as connection:
        row = windows.find(connection, source.name, window)
        return sum(observations.count(connection, source.name, row.window.start).values()) if row else 0


def _visits(site: DemoSite, host: str) -> list[Any]:
    return site.arrivals(host=host)


def _check_counts(*done: RunSummary) -> Mapping[str, int]:
    results = [check.passed for run in done for check in run.checks]
    return {"passed": sum(results), "failed": len(results) - sum(results)}


def _with_a_second_worker(source: Source, window: str, work: Callable[[], RunSummary]) -> tuple[RunSummary, int]:
    """Run with one more pair of hands, and what they sent: `collector work` in a process of its own."""
    command = [sys.executable, "-m", "collector_assets.cli", "work", source.name, window, "--wait", "60", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as second:  # noqa: S603  this program
        try:
            done = work()
            said, _ = second.communicate(timeout=30)  # nothing is left to fetch: it ends by itself
        finally:
            second.kill()
    return done, json.loads(said)["sent"] if second.returncode == 0 else 0
