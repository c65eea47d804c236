"""One window's pass 1 over a sitemap, in a process of its own: prints how much its memory grew, in MiB."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from collector_assets import discover
from collector_assets.archive import LocalArchive
from collector_assets.contract import replace
from collector_assets.database import Database
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_tests.collect.conftest import TODAY, USER_AGENT
from collector_tests.collect.test_sitemaps import LISTED


def peak_mib() -> int:
    """What this process held at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main(dsn: str, site: str, folder: str, sitemap: str) -> None:
    """Read everything that the sitemap lists into the frontier."""
    database, before = Database(dsn), peak_mib()
    discover.run(
        source=replace(LISTED, sitemaps=(sitemap,), max_requests=10_000_000),
        window=TODAY,
        database=database,
        archive=LocalArchive(Path(folder)),
        fetcher=lambda: HttpFetcher(user_agent=USER_AGENT, egress=DemoSiteOnly(site), connections=4),
    )
    database.close()
    sys.stdout.write(str(peak_mib() - before))


if __name__ == "__main__":
    main(*sys.argv[1:])
