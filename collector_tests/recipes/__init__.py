"""Worked sources, one file each in `sources/`, as `docs/recipes.md` shows them, and a test of each."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "sources"
