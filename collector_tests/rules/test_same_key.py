"""Rule 1 for two that find the same link in the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from collector_assets import frontier
from collector_assets.database import Database
from collector_tests.fixtures.frontier import open_work, request, wait_for_blocked


def test_second_finder_of_a_key_waits_and_then_knows_it(database: Database) -> None:
    """Rule 1: whoever comes second while the first has not committed adds nothing, and it is no error."""
    work = open_work(database)
    with ThreadPoolExecutor(1) as pool:
        with database.transaction() as connection:
            first = frontier.add(
                connection,
                source=work.source,
                window_start=work.start,
                requests=[request("book")],
                edition=1,
                max_attempts=3,
                max_requests=10,
            )
            second = pool.submit(work.add, [request("book")])
            wait_for_blocked(database, 1)
        assert first == frontier.Added(new=1, known=0, over_bound=0)
        assert second.result() == frontier.Added(new=0, known=1, over_bound=0)
