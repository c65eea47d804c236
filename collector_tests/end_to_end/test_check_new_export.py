"""`export`, `check` and `new`, as they are typed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from collector_assets.database import Database
from collector_assets.demo import DemoSite
from collector_tests.collect.conftest import QUICK, Hands
from collector_tests.end_to_end.test_bad_input import collector, one_line


class Owner:
    """Somebody at a shell, with the demo site and a database."""

    def __init__(self, hands: Hands, folder: Path) -> None:
        self.hands, self.folder = hands, folder

    def types(self, *words: str, exits: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        """`collector …`, which must end with this code."""
        ours = {
            "COLLECTOR_DSN": self.hands.database.dsn, "COLLECTOR_ARCHIVE": str(self.hands.folder),
            "COLLECTOR_DEMO_SITE": self.hands.site.address,
        }  # fmt: skip
        done = collector(self.folder, *words, **ours | environment)
        assert done.returncode == exits, done.stderr + done.stdout
        return done

    def asks(self, *words: str, exits: int = 0, **environment: str) -> Any:
        return json.loads(self.types(*words, "--json", exits=exits, **environment).stdout)


@pytest.fixture
def owner(database: Database, site: DemoSite, tmp_path: Path) -> Owner:
    (tmp_path / "sources").mkdir()
    return Owner(Hands(database=database, site=site, folder=tmp_path / "archive"), tmp_path)


# --- export ----------------------------------------------------------------------------------------------------------


def test_a_published_shop_is_exported_in_every_format(owner: Owner, tmp_path: Path) -> None:
    owner.hands.whole(QUICK)
    owner.hands.publish(QUICK)
    for suffix in ("csv", "jsonl", "parquet"):
        done = owner.asks("export", "shop", "--to", str(tmp_path / f"shop.{suffix}"))
        assert (done["rows"], done["misfits"]) == (60, {})
    found = pd.read_parquet(tmp_path / "shop.parquet")
    again = pd.read_csv(tmp_path / "shop.csv", dtype=str, keep_default_na=False)
    assert list(found["upc"]) == list(again["upc"])
    assert [str(price) for price in found["price"]] == [f"{float(price):.2f}" for price in again["price"]]
    assert "60 rows" in owner.types("export", "shop", "--to", str(tmp_path / "shop.csv"), "--history").stdout


def test_what_cannot_be_exported_is_one_line(owner: Owner, tmp_path: Path) -> None:
    said = one_line(owner.types("export", "shop", "--to", str(tmp_path / "shop.doc"), exits=2))
    assert ".csv, .jsonl, .parquet" in said
    said = one_line(owner.types("export", "shopp", "--to", str(tmp_path / "shop.csv"), exits=2))
    assert "no source is called 'shopp'" in said
    said = one_line(owner.types("export", "shop", "--to", str(tmp_path / "x.csv"), "--record-type", "book", exits=2))
    assert "no record type 'book'" in said
    assert not (tmp_path / "x.csv").exists()


# --- check -----------------------------------------------------------------------------------------------------------

EVERY_STAGE = [
    "robots",
    "budget",
    "fetch",
    "decode",
    "extract",
    "schema",
    "reject_rate_within_limit",
    "entities_unique",
]
BROKEN = """
from collector_assets.contract import replace
from collector_assets.sources.shop import SHOP

def discover(page):
    raise ValueError("no cards here")

SOURCE = replace(SHOP, name="broken_shop", discover=discover)
"""
CHANGED = """
from collector_assets.contract import replace
from collector_assets.sources.shop import SHOP
from collector_assets.sources.templates.book_shop import extract as as_before

def extract(page):
    for row in as_before(page):
        yield {**row, "rating": 9, "currency": "\x1b[2J"}

SOURCE = replace(SHOP, name="shop_nine", extract=extract)
"""
FOREIGN = """
from collector_assets.contract import replace
from collector_assets.sources.shop import SHOP
SOURCE = replace(SHOP, name="foreign", start_urls=("https://shop.example/catalogue/page-1.html",))
"""
KEPT = """
SELECT 'windows' FROM windows UNION ALL SELECT 'requests' FROM requests UNION ALL SELECT 'pages' FROM pages
UNION ALL SELECT 'observations' FROM observations UNION ALL SELECT 'rejects' FROM rejects
UNION ALL SELECT 'latest' FROM latest
"""


def stages(page: Any) -> dict[str, str]:
    return {stage["name"]: stage["verdict"] for stage in page["stages"]}


def test_a_check_follows_the_first_start_to_a_record_and_keeps_nothing(owner: Owner) -> None:
    """Rule 7 holds for it: two requests, one after the other, with the gap between them."""
    # Mutation: in errand.Errand.ready return True at once
    done = owner.asks("check", "shop")
    listing, detail = done["pages"]
    assert done["passed"]
    assert stages(listing) == dict.fromkeys(["robots", "budget", "fetch", "decode", "discover"], "passed")
    assert stages(detail) == dict.fromkeys(EVERY_STAGE, "passed")
    assert detail["records"][0]["currency"] == "GBP"
    arrivals = owner.hands.arrivals()
    assert [arrival.path for arrival in arrivals] == ["/catalogue/page-1.html", detail["url"].partition(":8765")[2]]
    assert owner.hands.rows(KEPT) == []
    assert not list(owner.hands.folder.rglob("*.warc.gz"))
    assert owner.hands.column("SELECT count(*) FROM budget_slots WHERE holder IS NOT NULL") == [0]
    assert owner.hands.column("SELECT count(*) FROM budget_waiters") == [0]


def test_one_page_is_checked_by_its_url(owner: Owner) -> None:
    url = "http://shop.localhost:8765/catalogue/page-2.html"
    said = owner.types("check", "shop", url, "--kind", "listing").stdout
    assert "20 to detail, 1 to listing" in said
    assert len(owner.hands.arrivals()) == 1
    said = one_line(owner.types("check", "shop", url, "--kind", "book", exits=2))
    assert "no kind 'book'; it has listing, detail" in said
    said = one_line(owner.types("check", "shop", "https://elsewhere.example/", exits=2))
    assert "out_of_scope" in said


@pytest.mark.parametrize(
    ("misbehaviour", "arg", "stage", "says"),
    [("status", "404", "fetch", "gone"), ("reset", "", "fetch", "connection_lost"), ("status", "503", "fetch", "unav")],
)
def test_a_page_that_does_not_come_fails_in_fetching(
    owner: Owner, misbehaviour: str, arg: str, stage: str, says: str
) -> None:
    owner.hands.site.misbehave(misbehaviour, prefix="/catalogue/page-1", arg=arg)
    done = owner.asks("check", "shop", exits=1)
    (page,) = done["pages"]
    assert stages(page) == {"robots": "passed", "budget": "passed", stage: "FAILED"}
    assert says in page["stages"][-1]["message"]


def test_the_source_s_own_errors_name_their_stage_and_line(owner: Owner) -> None:
    (owner.folder / "sources" / "broken_shop.py").write_text(BROKEN)
    (owner.folder / "sources" / "shop_nine.py").write_text(CHANGED)
    (page,) = owner.asks("check", "broken_shop", exits=1)["pages"]
    assert page["stages"][-1]["verdict"] == "FAILED"
    assert "ValueError: no cards here (broken_shop.py:6)" in page["stages"][-1]["message"]

    done = owner.types("check", "shop_nine", exits=1).stdout
    assert "1 of 1 rows are rejected" in done
    assert "rating: less_than_or_equal_to(5) (9)" in done
    assert "100.0% rejected" in done
    assert "\x1b" not in done


def test_a_stored_page_is_checked_without_a_request(owner: Owner) -> None:
    # Mutation: in cli.authoring.check drop `if archived`
    said = one_line(owner.types("check", "shop", "--archived", exits=2))
    assert "no good page of kind detail is stored" in said
    owner.hands.whole(QUICK)
    sent = len(owner.hands.arrivals())
    (page,) = owner.asks("check", "shop", "--archived")["pages"]
    assert stages(page) == dict.fromkeys(EVERY_STAGE[3:], "passed")
    (again,) = owner.asks("check", "shop", page["url"], "--archived")["pages"]
    assert again == page
    (listing,) = owner.asks("check", "shop", "--archived", "--kind", "listing")["pages"]
    assert stages(listing) == {"decode": "passed", "discover": "passed"}
    assert len(owner.hands.arrivals()) == sent


def test_what_is_inside_is_refused_and_says_so(owner: Owner) -> None:
    (owner.folder / "sources" / "foreign.py").write_text(FOREIGN.replace("https://shop.example", "http://10.0.0.1"))
    assert "COLLECTOR_CONTACT" in one_line(owner.types("check", "foreign", exits=2))
    (page,) = owner.asks("check", "foreign", exits=1, COLLECTOR_CONTACT="data@example.org")["pages"]
    assert "10.0.0.1 is private: only a source that names it" in page["stages"][-1]["message"]


# --- new -------------------------------------------------------------------------------------------------------------

SHOP = "http://begun.localhost:8765/catalogue/"


def test_a_new_listing_holds_at_once_and_collects(owner: Owner) -> None:
    done = owner.asks("new", "begun", f"{SHOP}page-1.html")
    assert (done["shape"], done["records"], done["links"]) == ("cards", 20, 1)
    file, case = Path(done["file"]), Path(done["case"])
    assert file == owner.folder / "sources" / "begun.py"
    assert {path.name for path in case.iterdir()} == {"page.html", "page.json", "links.json", "records.json"}
    assert file.read_text().count("# DECIDE") == done["to_decide"] > 3
    warc, _, offset = done["warc"].rpartition(":")
    assert (owner.hands.folder / warc).is_file()
    assert int(offset) > 0, "after the warcinfo record"
    assert len(owner.hands.arrivals("begun.localhost")) == 1

    assert owner.asks("check", "begun", "--cases")["differences"] == {"listing": {}}
    assert len(owner.hands.arrivals("begun.localhost")) == 1
    assert owner.asks("check", "begun")["passed"]
    problems = owner.asks("sources")["problems"]
    assert problems == []


def test_a_new_detail_page_holds_at_once(owner: Owner) -> None:
    (page,) = [page for page in owner.asks("check", "shop")["pages"] if page["kind"] == "detail"]
    said = owner.types("new", "one_book", page["url"].replace("shop.localhost", "begun.localhost")).stdout
    assert "taken for detail" in said
    assert "collector check one_book --cases" in said
    (record,) = json.loads((owner.folder / "sources/cases/one_book/detail/records.json").read_text("utf-8"))
    assert record["upc"] == page["records"][0]["upc"]
    assert "holds" in owner.types("check", "one_book", "--cases").stdout


def test_json_and_an_unknown_page_can_be_begun_with(owner: Owner) -> None:
    done = owner.asks("new", "good_lab", "http://lab.localhost:8765/items/good.json")
    assert (done["shape"], Path(done["case"], "body.json").is_file()) == ("objects", True)
    done = owner.asks("new", "fine", "http://shop.localhost:8765/misbehave/gzip_body")
    assert (done["shape"], done["records"]) == ("bare", 1)
    assert b"Everything is fine" in Path(done["case"], "page.html").read_bytes(), "decoded"
    assert all(owner.asks("check", name, "--cases")["passed"] for name in ("good_lab", "fine"))


@pytest.mark.parametrize(
    ("name", "url", "code", "says"),
    [
        ("Begun", f"{SHOP}page-1.html", 2, "must be lower case letters"),
        ("multi", f"{SHOP}page-1.html", 2, "must be lower case letters"),
        ("shop", f"{SHOP}page-1.html", 2, "already taken by"),
        ("begun", "begun.localhost/catalogue", 2, "not an absolute http(s) URL"),
        ("begun", f"{SHOP}nowhere.html", 2, "gone: 404"),
        ("begun", "https://shop.example/", 2, "COLLECTOR_CONTACT"),
    ],
)
def test_what_cannot_be_begun_leaves_nothing(owner: Owner, name: str, url: str, code: int, says: str) -> None:
    assert says in one_line(owner.types("new", name, url, exits=code))
    assert list((owner.folder / "sources").iterdir()) == []


def test_what_is_inside_cannot_be_begun_with(owner: Owner) -> None:
    done = owner.types("new", "begun", "http://169.254.169.254/latest/", exits=4, COLLECTOR_CONTACT="data@example.org")
    assert "169.254.169.254 is link-local: no source may go there" in one_line(done)
    assert list((owner.folder / "sources").iterdir()) == []


@pytest.mark.parametrize("there", ["begun.py", "cases/begun"])
def test_nothing_is_overwritten(owner: Owner, there: str) -> None:
    # Mutation: drop begin._refuse_what_is_there
    path = owner.folder / "sources" / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    said = one_line(owner.types("new", "begun", f"{SHOP}page-1.html", exits=2))
    assert f"{there}: is already there" in said
    assert path.read_text() == "mine"
    assert owner.hands.arrivals("begun.localhost") == [], "before anything is sent"


def test_without_a_source_folder_it_goes_into_one_and_says_so(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(owner.folder)
    (owner.folder / "sources").rmdir()
    said = owner.types("new", "begun", f"{SHOP}page-1.html", COLLECTOR_SOURCES="").stdout
    assert f"export COLLECTOR_SOURCES={owner.folder / 'sources'}" in said
    assert (owner.folder / "sources" / "begun.py").is_file()


# --- check --cases ---------------------------------------------------------------------------------------------------


def test_cases_that_differ_say_what_and_are_accepted(owner: Owner) -> None:
    owner.types("new", "begun", f"{SHOP}page-1.html")
    records = owner.folder / "sources/cases/begun/listing/records.json"
    whole = records.read_text("utf-8")
    records.write_text(json.dumps(json.loads(whole)[1:]), "utf-8")
    said = owner.types("check", "begun", "--cases", exits=1).stdout
    assert "DIFFERS" in said
    assert "listing records, expected: " in said
    assert owner.asks("check", "begun", "--cases", "--accept")["passed"]
    assert records.read_text("utf-8") == whole


def test_cases_of_the_bundled_sources_are_those_of_the_tests(owner: Owner) -> None:
    done = owner.asks("check", "books", "--cases")
    assert done["passed"]
    assert {"detail", "redesigned_detail"} <= set(done["differences"])
    said = one_line(owner.types("check", "nobody", "--cases", exits=2))
    assert "no source is called 'nobody'" in said


def test_a_source_without_cases_says_where_they_would_be(owner: Owner) -> None:
    (owner.folder / "sources" / "broken_shop.py").write_text(BROKEN)
    said = one_line(owner.types("check", "broken_shop", "--cases", exits=2))
    assert "sources/cases/broken_shop: holds no case" in said
