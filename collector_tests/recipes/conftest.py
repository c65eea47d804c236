"""What every recipe is collected with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from collector_assets.contract import Budget, Source, replace, seconds
from collector_assets.registry import load_one
from collector_tests.collect.conftest import hands
from collector_tests.recipes import FOLDER

__all__ = ["hands"]


@pytest.fixture
def recipe() -> Callable[[str], Source]:
    """A recipe by its file's name, without its pauses."""

    def load(name: str) -> Source:
        return replace(load_one(f"{FOLDER / name}.py::{name}"), budget=Budget(gap=seconds(0), slots=8))

    return load
