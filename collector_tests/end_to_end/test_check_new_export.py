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
        done = collector(
            self.folder, *words, COLLECTOR_DSN=self.hands.database.dsn, COLLECTOR_ARCHIVE=str(self.hands.folder),
            COLLECTOR_DEMO_SITE=self.hands.site.address, **environment,
        )  # fmt: skip
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
