"""Each recipe collects the demo site from end to end, and is short."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collector_assets import cases, registry, trial
from collector_assets.contract import Source, replace
from collector_assets.demo.members import MEMBER, PASSWORD, PRICES
from collector_tests.collect.conftest import FAST, LONG_AGO, QUICK, TODAY, TOMORROW, Hands, day
from collector_tests.recipes import FOLDER

FILES = sorted(FOLDER.glob("*.py"))
LOADED = registry.load((FOLDER,), bundled=False, entry_points=False)
SOURCES = {each.source.name: each.source for each in LOADED.loaded}
CASES = [case for name in SOURCES for case in cases.find(FOLDER / "cases" / name)]
LATER = day(TOMORROW.end)
Recipe = Callable[[str], Source]


def test_every_recipe_loads_and_is_named_as_its_file() -> None:
    assert registry.check(LOADED) == ()
    named = {
        Path(each.file).stem: each.source.name for each in LOADED.loaded if not each.source.name.startswith("books_")
    }
    assert named == {file.stem: file.stem for file in FILES if file.stem != "fourteen_sites"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recipe_is_at_most_sixty_lines(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) <= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_page_yields_what_its_case_says(case: Path) -> None:
    """As the author of a recipe tests it: no site, no database."""
    assert cases.differences(SOURCES[case.parent.name], case) == {}


def test_every_recipe_has_a_case_of_each_kind_of_its_pages() -> None:
    """Of sites of one shape one is enough, and sitemaps are read by code of ours."""
    shown = {(case.parent.name, json.loads((case / cases.FACTS).read_text("utf-8"))["kind"]) for case in CASES}
    tested = {name for name, _ in shown}
    assert {each.file for each in LOADED.loaded if each.source.name in tested} == set(map(str, FILES))
    assert {(name, kind) for name in tested for kind in SOURCES[name].kind_map} - shown == {
        ("from_sitemaps", "sitemap")
    }


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a member of the demo site."""
    monkeypatch.setenv("SHOP_USER", MEMBER)
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)


@pytest.mark.parametrize("name", sorted({file.stem for file in FILES} - {"fourteen_sites", "list_from_a_database"}))
def test_collector_check_is_content_with_a_recipe(hands: Hands, recipe: Recipe, name: str) -> None:
    """What people see first who copy one. A page that holds a part of an entity says that others bring the rest."""
    source = recipe(name)
    window = LONG_AGO if source.is_window_named else TODAY
    done = trial.of_site(
        source, window, url=None, kind=None, database=hands.database, fetcher=hands.fetcher
    )  # fmt: skip
    stages = [stage for page in done for stage in page.stages]
    assert [stage for stage in stages if stage.verdict is trial.Verdict.FAILED] == []
    (schema,) = [stage for stage in stages if stage.name == "schema"]
    is_part = name == "one_entity_three_pages"
    assert ("what other pages of their entities bring" in schema.message) is is_part
    assert bool(done[-1].records) is not is_part


def test_login(hands: Hands, recipe: Recipe) -> None:
    source = recipe("login")
    assert hands.whole(source).counts.done == 1 + PRICES
    logins = [each for each in hands.arrivals("members.localhost") if each.method == "POST"]
    assert [each.path for each in logins] == ["/login"]
    assert hands.publish(source).total == PRICES


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


def test_list_and_detail(hands: Hands, recipe: Recipe) -> None:
    source = recipe("list_and_detail")
    status = hands.whole(source)
    assert (status.counts.by_kind("listing").done, status.counts.by_kind("detail").done) == (3, 60)
    assert hands.publish(source).total == 60
    assert hands.column("SELECT (data->>'place')::int FROM latest ORDER BY 1") == list(range(1, 61))


def test_search_form(hands: Hands, recipe: Recipe) -> None:
    """A search a town, the rest of what two of them find behind another form, and everything of it by POST."""
    source = recipe("search_form")
    assert hands.whole(source).counts.by_kind("results").done == 5 + 2
    sent = [(arrival.method, arrival.status) for arrival in hands.arrivals("register.localhost")]
    assert sent == [("GET", 200)] + [("POST", 200)] * 7
    assert hands.publish(source).total == 24
    assert hands.rows("SELECT data->>'town', count(*) FROM latest GROUP BY 1 ORDER BY 1") == [
        ("Ayr", 6), ("Bath", 3), ("Cork", 5), ("Dover", 6), ("Exeter", 4),
    ]  # fmt: skip
    again = hands.whole(source, TOMORROW)
    assert (again.counts.by_kind("results").done, hands.publish(source, TOMORROW).total) == (7, 24)


def test_csv_download(hands: Hands, recipe: Recipe) -> None:
    source = recipe("csv_download")
    assert hands.whole(source).counts.by_kind("file").done == 1
    assert hands.publish(source).total == 60
    assert all("?" not in title for title in hands.column("SELECT data->>'title' FROM latest"))
    # A login page in place of the file is no list without prices.
    hands.site.misbehave("say", prefix="/downloads/prices", arg='{"body": "PGh0bWw+PGZvcm0+", "type": "text/csv"}')
    counts = hands.whole(source, TOMORROW).counts
    assert [(row["kind"], row["outcome"]) for row in counts.outcome_table() if row["state"] != "done"] == [
        ("file", "unexpected_type")
    ]


def test_several_record_types(hands: Hands, recipe: Recipe) -> None:
    source = recipe("several_record_types")
    hands.whole(source)
    assert hands.publish(source).total == 72 + 48
    assert hands.rows("SELECT record_type, count(*) FROM latest GROUP BY 1 ORDER BY 1") == [
        ("filing", 72), ("person", 48),
    ]  # fmt: skip


def test_one_entity_three_pages(hands: Hands, recipe: Recipe) -> None:
    """A company of which a page is missing is a reject that says which columns it lacks; the others pass."""
    source = recipe("one_entity_three_pages")
    hands.site.misbehave("status", prefix="/register/C0007/figures", arg="404")
    status = hands.whole(source)
    assert (status.counts.by_kind("part").done, status.counts.failed_fetch) == (24 * 3 - 3, 1)
    assert hands.column("SELECT entity FROM rejects") == ["C0007"]
    assert hands.column("SELECT jsonb_array_elements(reasons)->>'column' FROM rejects") == ["employees", "turnover"]
    hands.site.behave()
    assert hands.whole(source, TOMORROW).counts.failed == 0
    assert hands.publish(source, TOMORROW).total == 24
    (whole,) = hands.column("SELECT data FROM latest WHERE entity = 'C0007'")
    assert sorted(whole) == ["employees", "name", "number", "town", "turnover"]


def test_fourteen_sites(hands: Hands) -> None:
    """Each with a window, a budget and records of its own; three of them are collected here."""
    sites = [replace(SOURCES[name], budget=FAST) for name in SOURCES if name.startswith("books_")]
    assert len(sites) == len({site.domain for site in sites}) == 14
    for source in sites[:3]:
        status = hands.whole(source)
        assert (status.counts.failed, hands.publish(source).total) == (0, 9)
    assert hands.rows("SELECT source, count(*) FROM latest GROUP BY 1 ORDER BY 1") == [
        ("books_ayr", 9), ("books_bath", 9), ("books_cork", 9),
    ]  # fmt: skip


@pytest.mark.parametrize("status", ["410", "200"])
def test_json_api_with_cursor(hands: Hands, recipe: Recipe, status: str) -> None:
    """The cursor of the fifth page expires: the chain starts over, and what the window has is not there twice."""
    source = recipe("json_api_with_cursor")
    hands.site.misbehave("expire_cursors", prefix="/api/", every=5, times=1, arg=status)
    counts = hands.whole(source).counts
    assert (counts.done, counts.skipped, counts.failed) == (4 + 8, 1, 0)
    assert [row["outcome"] for row in counts.outcome_table() if row["state"] == "skipped"] == ["chain_restarted"]
    assert [arrival.path.count("cursor") for arrival in hands.arrivals("register.localhost")] == [
        0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1,
    ]  # fmt: skip
    assert hands.publish(source).total == 72
    assert hands.column("SELECT count(*) FROM rejects") == [0]
