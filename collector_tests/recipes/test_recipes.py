"""Each recipe collects the demo site from end to end, and is short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collector_assets import registry
from collector_assets.contract import Source
from collector_tests.collect.conftest import LONG_AGO, QUICK, TODAY, TOMORROW, Hands, day
from collector_tests.recipes import FOLDER

FILES = sorted(FOLDER.glob("*.py"))
LATER = day(TOMORROW.end)
Recipe = Callable[[str], Source]


def test_every_recipe_loads_and_is_named_as_its_file() -> None:
    found = registry.load((FOLDER,), bundled=False, entry_points=False)
    assert registry.check(found) == ()
    assert {file.stem for file in FILES} <= {each.file.rpartition("/")[2].removesuffix(".py") for each in found.loaded}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recipe_is_at_most_sixty_lines(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= 60


@pytest.fixture
def warehouse(hands: Hands, worker_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hands]:
    """A table of somebody else's."""
    monkeypatch.setenv("WAREHOUSE_DSN", worker_dsn)
    hands.do("CREATE TABLE watchlist (slug text, asked_by text, since timestamptz)")
    yield hands
    hands.do("DROP TABLE watchlist")


def test_list_from_a_database(warehouse: Hands, recipe: Recipe) -> None:
    warehouse.discover(QUICK)
    slugs = warehouse.column("SELECT split_part(url, '/', 5) FROM requests WHERE kind = 'detail' LIMIT 3")
    for slug in slugs:
        warehouse.do("INSERT INTO watchlist VALUES (%s, 'anna', '2026-01-01')", slug)
    warehouse.do("INSERT INTO watchlist VALUES ('not-yet_9', 'bert', '2100-01-01')")
    source = recipe("list_from_a_database")
    status = warehouse.whole(source)
    assert (status.counts.done, [each.row_count for each in status.inputs]) == (3, [3])
    warehouse.publish(source)
    assert set(warehouse.column("SELECT data->>'asked_by' FROM latest")) == {"anna"}


def test_only_new_items(hands: Hands, recipe: Recipe) -> None:
    source = recipe("only_new_items")
    assert hands.whole(source).counts.done == 3 + 60
    hands.publish(source)
    second = hands.whole(source, TOMORROW).counts
    assert (second.by_kind("listing").done, second.by_kind("book").done, second.skipped) == (1, 0, 20)
    hands.do("DELETE FROM known WHERE unique_key IN "
             "(SELECT unique_key FROM requests WHERE kind = 'book' ORDER BY request_id LIMIT 2)")  # fmt: skip
    third = hands.whole(source, LATER).counts
    assert (third.by_kind("listing").done, third.by_kind("book").done, third.skipped) == (2, 2, 38)
    assert hands.publish(source, LATER).total == 60


def test_date_addressed_archive(hands: Hands, recipe: Recipe) -> None:
    """A window of years ago is collected in truth: not late, and with the notices of its day."""
    source = recipe("date_addressed_archive")
    for window in (LONG_AGO, day(LONG_AGO.end)):
        assert hands.whole(source, window).pages.late == 0
        hands.publish(source, window)
    assert source.is_window_named
    assert [arrival.path for arrival in hands.arrivals("gazette.localhost") if "gazette" in arrival.path] == [
        "/gazette/2020/01/29.json", "/gazette/2020/01/30.json",
    ]  # fmt: skip
    numbers = hands.column("SELECT entity FROM latest ORDER BY 1")
    assert numbers == [f"202001{date}-{number}" for date in (29, 30) for number in (1, 2, 3)]


def test_from_sitemaps(hands: Hands, recipe: Recipe) -> None:
    source = recipe("from_sitemaps")
    status = hands.whole(source, TODAY)
    assert status.counts.by_kind("book").done == 60
    assert [(link.reason, link.count) for link in status.rejected_links] == [("no_sitemap_kind", 3)]
    assert hands.publish(source).total == 60
