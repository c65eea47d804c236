"""What a person gets wrong: one clear line that names the thing and the fix, a non-zero exit, nothing half done."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from collector_assets.database import Database

GOOD = """
from collector_assets.contract import replace
from collector_assets.sources.shop import SHOP
SOURCE = replace(SHOP, name="{name}")
"""
WRONG_FIELD = """
from collector_assets.contract import replace
from collector_assets.sources.shop import SHOP
SOURCE = replace(SHOP, name="typo", capacty=5)
"""
FOREIGN = """
from collector_assets.contract import replace
from collector_assets.sources.shop import SHOP
SOURCE = replace(SHOP, name="foreign", start_urls=("https://shop.example/catalogue/page-1.html",))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sources").mkdir()
    return tmp_path


def collector(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COLLECTOR_")}
    given: Mapping[str, str] = {
        "COLLECTOR_STATE": str(folder / "state"),
        "COLLECTOR_SOURCES": str(folder / "sources"),
        "DAGSTER_HOME": str(Path(__file__).parents[2]),
        **environment,
    }
    command = [sys.executable, "-m", "collector_assets.cli", *words]
    return subprocess.run(command, env={**kept, **given}, capture_output=True, text=True, timeout=100, check=False)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The single line on stderr of a failed command."""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


def test_a_wrong_field_names_file_field_and_the_likely_one(folder: Path) -> None:
    (folder / "sources" / "typo.py").write_text(WRONG_FIELD)
    (folder / "sources" / "good.py").write_text(GOOD.format(name="good"))
    done = collector(folder, "sources", "--check")
    assert done.returncode == 2
    assert "typo.py" in one_line(done)
    assert "capacty" in one_line(done)
    assert "capacity" in one_line(done)
    assert "good" in done.stdout, "the good file beside it is still listed"


def test_two_sources_of_one_name_name_both_files(folder: Path) -> None:
    (folder / "sources" / "a.py").write_text(GOOD.format(name="twin"))
    (folder / "sources" / "b.py").write_text(GOOD.format(name="twin"))
    done = collector(folder, "sources", "--check")
    assert done.returncode == 2
    assert "a.py" in one_line(done)
    assert "b.py" in one_line(done)


def test_an_unreachable_database_is_named_without_its_password(folder: Path) -> None:
    done = collector(folder, "status", COLLECTOR_DSN="postgresql://me:hush@127.0.0.1:1/nowhere")
    assert done.returncode == 3
    assert "nowhere" in one_line(done)
    assert "127.0.0.1" in one_line(done)
    assert "hush" not in done.stderr + done.stdout


def test_a_source_on_the_web_needs_a_contact(folder: Path, database: Database) -> None:
    (folder / "sources" / "foreign.py").write_text(FOREIGN)
    done = collector(folder, "collect", "foreign", "2026-11-28", COLLECTOR_DSN=database.dsn)
    assert done.returncode == 2
    assert "COLLECTOR_CONTACT" in one_line(done)
    assert_untouched(database)


def test_an_unwritable_archive_is_named(folder: Path, database: Database) -> None:
    in_the_way = folder / "a_file"
    in_the_way.touch()
    archive = str(in_the_way / "archive")
    done = collector(folder, "collect", "shop", "2026-11-28", COLLECTOR_DSN=database.dsn, COLLECTOR_ARCHIVE=archive)
    assert done.returncode == 2
    assert archive in one_line(done)
    assert "COLLECTOR_ARCHIVE" in one_line(done)
    assert_untouched(database)


@pytest.mark.parametrize("key", ["2019-01-01", "yesterday", "2126-01-01"])
def test_a_window_that_does_not_exist_is_refused_with_an_example(folder: Path, database: Database, key: str) -> None:
    done = collector(folder, "collect", "shop", key, COLLECTOR_DSN=database.dsn)
    assert done.returncode == 2
    assert key in one_line(done)
    assert "2026-01-01" in one_line(done), "from when on there are windows"
    assert_untouched(database)


def test_work_on_a_window_that_nobody_opened(folder: Path, database: Database) -> None:
    done = collector(folder, "work", "shop", "2026-11-28", COLLECTOR_DSN=database.dsn)
    assert done.returncode == 2
    assert "never opened" in one_line(done)


def test_an_unknown_source_lists_those_there_are(folder: Path, database: Database) -> None:
    done = collector(folder, "collect", "shopp", "2026-11-28", COLLECTOR_DSN=database.dsn)
    assert done.returncode == 2
    assert "shop" in one_line(done)
    assert "lab" in one_line(done)


def test_a_wrong_setting_names_the_variable(folder: Path) -> None:
    done = collector(folder, "sources", COLLECTOR_DEMO_SOURCES="perhaps")
    assert done.returncode == 2
    assert "COLLECTOR_DEMO_SOURCES" in one_line(done)


def test_an_old_database_asks_for_migrate(folder: Path, fresh_dsn: str) -> None:
    done = collector(folder, "status", COLLECTOR_DSN=fresh_dsn)
    assert done.returncode == 2
    assert "collector migrate" in one_line(done)


def assert_untouched(database: Database) -> None:
    with database.transaction() as connection:
        for statement in ("SELECT count(*) FROM windows", "SELECT count(*) FROM requests"):
            assert connection.execute(statement).fetchone() == (0,)
