"""Importing a source imports no Dagster and no driver: child processes and the command line start fast."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import collector_assets.sources

FORBIDDEN = ("aiohttp", "dagster", "playwright", "psycopg", "psycopg2", "psycopg_pool", "uvloop")
FILES = sorted(Path(collector_assets.sources.__file__).parent.rglob("*.py"))
ROOT = Path(collector_assets.__file__).parents[1]
MODULES = [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in FILES]


def imported_with(module: str) -> list[str]:
    code = f"import json, sys, {module}; print(json.dumps([name for name in {FORBIDDEN!r} if name in sys.modules]))"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    return json.loads(child.stdout)


@pytest.mark.parametrize("module", [*MODULES, "collector_assets.registry", "collector_assets.contract_page"])
def test_no_driver_comes_along(module: str) -> None:
    assert imported_with(module) == []


def test_contract_comes_without_pandas() -> None:
    code = "import sys, collector_assets.contract; print('pandas' in sys.modules)"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    assert child.stdout == "False\n"
