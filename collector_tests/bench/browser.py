"""`make bench-browser`: pages in a browser, the usual way against ours, on the same books; docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich.console import Console

from collector_assets.demo import DemoSite
from collector_tests.bench.__main__ import _postgres
from collector_tests.bench.browser_pages import FORMS
from collector_tests.bench.spent import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- make bench-browser -->\n", "<!-- end of make bench-browser -->\n"
LEAST_FASTER = 3.0
SAMPLE_S = 0.2
out = Console(highlight=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one way."""

    pages_per_s: float
    cpu_ms: float
    """Of the whole process tree, per page, its start included."""
    peak_mb: float
    """Of the whole process tree, what is shared counted once (PSS)."""
    digest: str


class _Tree(threading.Thread):
    """Memory and processor time of a process and all that it starts, looked at from outside."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak, self.cpu = 0, dict[tuple[int, float], float]()
        self._pid, self._over = pid, threading.Event()

    def run(self) -> None:
        while not self._over.wait(SAMPLE_S):
            with suppress(psutil.Error):
                root, held = psutil.Process(self._pid), 0
                for each in (root, *root.children(recursive=True)):
                    with suppress(psutil.Error):
                        times = each.cpu_times()
                        self.cpu[each.pid, each.create_time()] = times.user + times.system
                        held += each.memory_full_info().pss
                self.peak = max(self.peak, held)

    def stop(self) -> None:
        self._over.set()
        self.join()


def run(module: str, arguments: Sequence[str]) -> Run:
    """One way in a process of its own."""
    command = [sys.executable, "-m", f"{__package__}.{module}", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tree = _Tree(process.pid)
    tree.start()
    try:
        said, complained = process.communicate(timeout=600)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    finally:
        tree.stop()
    if process.returncode:
        raise RuntimeError(f"{module} ended with code {process.returncode}:\n{complained[-4000:]}")
    facts: dict[str, Any] = json.loads(said.splitlines()[-1])
    pages = facts["records"]
    found = Run(
        pages_per_s=pages / facts["seconds"], cpu_ms=1e3 * sum(tree.cpu.values()) / pages, peak_mb=tree.peak / 1e6,
        digest=facts["digest"],
    )  # fmt: skip
    out.print(
        f"{module} {arguments[3]}: {found.pages_per_s:.2f} pages/s, {found.cpu_ms:.0f} ms, {found.peak_mb:.0f} MB"
    )
    return found


def main() -> int:
    """Both ways on both forms, one after the other; nothing else of ours runs meanwhile."""
    wish = argparse.ArgumentParser(description=__doc__)
    wish.add_argument("--pages", type=int, default=200)
    wish.add_argument("--pairs", type=int, default=3)
    wish.add_argument("--out", type=Path, default=PAGE)
    given = wish.parse_args()
    logging.disable(logging.WARNING)
    place = ROOT / ".collector"
    place.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=place))
    pairs: dict[str, list[tuple[Run, Run]]] = {form: [] for form in FORMS}
    try:
        with DemoSite(keeps_log=False, switches={"books": given.pages}, warm=("shop.localhost",)) as site:
            for number in range(given.pairs):
                for form in FORMS:
                    pairs[form].append(_pair(site.address, form, given.pages, folder, is_first=number % 2 == 0))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    block = _block(pairs, given.pages)
    out.print(block)
    page = given.out.read_text("utf-8")
    kept = re.sub(f"{BEGIN}.*?{END}", "", page, flags=re.DOTALL).rstrip("\n")
    given.out.write_text(f"{kept}\n\n{BEGIN}{block}{END}", "utf-8")
    return 0 if all(_faster(each) >= LEAST_FASTER for each in pairs.values()) else 1


def _pair(site: str, form: str, pages: int, folder: Path, *, is_first: bool) -> tuple[Run, Run]:
    """Ours and the usual way, in turns the other one first; both must come to the same records."""
    common = ["--site", site, "--form", form, "--pages", str(pages)]

    def ours() -> Run:
        with _postgres(folder) as (state, server):
            return run("browser_ours", [*common, "--dsn", server.dsn, "--archive", str(state / "archive")])

    def direct() -> Run:
        return run("browser_direct", common)

    if is_first:
        pair = ours(), direct()
    else:
        usual = direct()
        pair = ours(), usual
    assert pair[0].digest == pair[1].digest, f"{form}: not the same records"
    return pair


def _faster(pairs: Sequence[tuple[Run, Run]]) -> float:
    return median(ours.pages_per_s / direct.pages_per_s for ours, direct in pairs)


def _block(pairs: dict[str, list[tuple[Run, Run]]], pages: int) -> str:
    """The part of the page."""
    rows = ["| pages | way | pages/s | CPU per page | peak memory |", "|---|---|---|---|---|"]
    for form, runs in pairs.items():
        for name, which in (("ours, the whole path", 0), ("Playwright, directly", 1)):
            found = [pair[which] for pair in runs]
            rows.append(
                f"| {form} | {name} | {median(each.pages_per_s for each in found):.1f} | "
                f"{median(each.cpu_ms for each in found):.0f} ms | {median(each.peak_mb for each in found):.0f} MB |"
            )
    faster = ", ".join(f"{_faster(runs):.1f} × on {form} pages" for form, runs in pairs.items())
    is_held = all(_faster(each) >= LEAST_FASTER for each in pairs.values())
    where = f"{datetime.now(UTC):%Y-%m-%d}, {len(os.sched_getaffinity(0))} cores, Playwright {version('playwright')}"
    verdict = "holds" if is_held else "**does not hold**"
    return f"""## Pages in a browser

Written by `make bench-browser`; {where}, load average at the end {os.getloadavg()[1]:.1f}. {pages} books in
each run, medians of {len(pairs["static"])} interleaved pairs, no gap. **{faster}** the pages a second of the usual way;
at least {LEAST_FASTER:g} × {verdict}.

{chr(10).join(rows)}

* *static*: the shop's own pages; *script*: the same books built by a script from a JSON API. Both ways come to the same
  fields of the same books (a digest is compared), in the same Chromium, without pictures, fonts and styles.
* *Playwright, directly*: one page, `goto` after `goto`, `wait_for_selector`, a locator per field, a `route()` handler.
* *Ours*: `discover`, `collect`, `process`, `publish` on a new embedded Postgres and archive, three pages open.
* CPU and memory are of the whole process tree (Python, Node, Chromium; shared memory once), starts included; of ours
  without Postgres.
"""


if __name__ == "__main__":
    sys.exit(main())
