"""The commands of the person who owns a source, as they are typed, on a window that was collected from the site."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from collector_assets.contract import replace
from collector_assets.database import Database
from collector_assets.demo import DemoSite
from collector_assets.demo.catalogue import book
from collector_assets.sources.shop import SHOP
from collector_tests.collect.conftest import QUICK, TODAY, Hands
from collector_tests.end_to_end.test_bad_input import collector

WHY = ("--reason", "the publisher corrected it")
CHANGED = next(n for n in range(1, 61) if book(n, seed="demo", edition=2).changed_in == 2)


class Owner:
    """Somebody at a shell, and the window that they look at."""

    def __init__(self, hands: Hands, folder: Path) -> None:
        self.hands, self.folder = hands, folder

    def types(self, verb: str, *words: str, exits: int = 0) -> subprocess.CompletedProcess[str]:
        """`collector VERB shop WINDOW …`, which must end with this code."""
        done = collector(
            self.folder, verb, SHOP.name, TODAY.key, *words, COLLECTOR_DSN=self.hands.database.dsn,
            COLLECTOR_ARCHIVE=str(self.hands.folder), COLLECTOR_DEMO_SITE=self.hands.site.address, USER="ada",
        )  # fmt: skip
        assert done.returncode == exits, done.stderr + done.stdout
        return done

    def asks(self, verb: str, *words: str, exits: int = 0) -> Any:
        return json.loads(self.types(verb, *words, "--json", exits=exits).stdout)


@pytest.fixture
def owner(database: Database, site: DemoSite, tmp_path: Path) -> Owner:
    return Owner(Hands(database=database, site=site, folder=tmp_path / "archive"), tmp_path)


def test_failed_requests_are_found_replayed_and_fetched(owner: Owner) -> None:
    """Rule 15: the site's log has exactly what was chosen."""
    hands = owner.hands
    hands.site.misbehave("status", prefix="/catalogue/", arg="404", every=10)
    hands.whole(QUICK)
    hands.site.behave()

    found = owner.asks("requests", "--state", "failed(fetch)", "--limit", "2")
    assert (found["total"], len(found["requests"])) == (6, 2)
    assert list(found["places"].values()) == [6]
    chosen = [str(row["request_id"]) for row in found["requests"]]
    ids = [word for each in chosen for word in ("--id", each)]

    dry = owner.asks("replay", *ids, *WHY, "--dry-run")
    assert (dry["requests"], dry["intervention"]) == (2, None)
    done = owner.asks("replay", *ids, *WHY)
    assert (done["requests"], done["attempts"]) == (2, SHOP.max_attempts)
    assert "raw_pages" in done["next_step"]

    sent = len(hands.arrivals())
    assert owner.asks("work")["sent"] == 2
    assert Counter(arrival.path for arrival in hands.arrivals()[sent:]) == Counter(
        row["url"].partition(":8765")[2] for row in found["requests"]
    )
    assert owner.asks("requests", "--state", "failed(fetch)")["total"] == 4


def test_a_corrected_page_is_recollected_by_its_entity(owner: Owner) -> None:
    """Rule 17: from the command to `latest`."""
    hands = owner.hands
    hands.whole(QUICK)
    hands.publish(QUICK)
    hands.site.switch(edition=2)
    old, new = (book(CHANGED, seed="demo", edition=edition) for edition in (1, 2))
    sent = len(hands.arrivals())

    assert owner.asks("recollect", "--entity", old.upc, *WHY)["were"] == {"done ok": 1}
    assert any("still to be fetched" in remark for remark in owner.asks("report")["remarks"])
    owner.types("work")
    hands.read(QUICK)
    hands.publish(QUICK)

    assert len(hands.arrivals()) == sent + 1
    price = "SELECT (data ->> 'price')::numeric FROM latest WHERE entity = %s"
    assert hands.column(price, old.upc) == [new.price] != [old.price]
    (kept,) = owner.asks("report")["interventions"]
    assert (kept["verb"], kept["reason"], kept["requests"]) == ("recollect", WHY[1], 1)
    assert "@" in kept["by_whom"]


def test_the_report_reads_like_a_report_card(owner: Owner) -> None:
    hands = owner.hands
    hands.whole(QUICK)
    text = owner.types("report").stdout
    assert "60 records hold" in text
    assert "materialize latest" in text
    hands.publish(QUICK)
    found = owner.asks("report")
    assert found["remarks"] == []
    assert found["verdict"]["passed"]
    assert found["latest"]["entities"] == 60
    assert {row["budget_key"] for row in found["budget"]} == {"shop.localhost"}
    assert "nothing to do" in owner.types("report").stdout


def test_rejects_are_listed_case_by_case(owner: Owner) -> None:
    hands = owner.hands
    hands.discover(QUICK)
    hands.collect(QUICK)
    hands.read(replace(QUICK, extract=nameless, extractor_version="2"))
    found = owner.asks("rejects", "--limit", "3")
    assert (found["total"], len(found["rejects"])) == (60, 3)
    cases = {(case["column"], case["check"], case["value"]) for case in found["rejects"][0]["reasons"]}
    assert ("rating", "less_than_or_equal_to(5)", "9") in cases
    assert "3 of 60 records, 3 failure cases" in owner.types("rejects", "--limit", "3").stdout


def nameless(page: Any) -> Any:
    """Books with a rating that cannot be."""
    from collector_assets.sources.templates.book_shop import extract  # noqa: PLC0415

    for row in extract(page):
        yield {**row, "rating": 9}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("replay", *WHY), 2, "nothing is selected"),
        (("replay", "--all", "--reason", " "), 2, "a reason"),
        (("replay", "--outcome", "time_out", *WHY), 2, "no outcome is called 'time_out'"),
        (("replay", "--id", "1", *WHY), 4, "only failed(fetch) is replayed"),
        (("recollect", "--id", "999999", *WHY), 2, "no request 999999"),
        (("recollect", "--kind", "book", *WHY), 2, "no kind is called 'book'"),
        (("requests", "--state", "lost"), 2, "no state is called 'lost'"),
    ],
)
def test_a_wish_that_cannot_be_meant_is_one_line(owner: Owner, words: tuple[str, ...], code: int, said: str) -> None:
    owner.hands.open(QUICK)
    owner.hands.do("UPDATE requests SET request_id = 1, state = 'done', outcome = 'ok'")
    done = owner.types(*words, exits=code)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert owner.hands.column("SELECT count(*) FROM interventions") == [0]


def test_nothing_that_fits_is_not_what_you_want(owner: Owner) -> None:
    owner.hands.open(QUICK)
    assert "no request fits" in owner.types("replay", "--all", *WHY, exits=1).stdout


def test_what_a_site_wrote_cannot_move_the_terminal(owner: Owner) -> None:
    # Mutation: show.table without _plain
    owner.hands.open(QUICK)
    hostile = "\x1b[2J\x1b]0;mine\x07 [red]x[/red] \u202egnp.exe"
    owner.hands.do(
        "UPDATE requests SET state = 'failed', failed_phase = 'fetch', outcome = 'timeout', reason = %s", hostile
    )
    said = owner.types("requests").stdout
    assert not set("\x1b\x07\u202e") & set(said)
    assert "[red]" in said
