"""The rules of design.md §5, each with the change to the code under which its test must fail.

`*.toml` beside this file lists them: a guard, the edits that remove it, the test that notices. `make mutants` makes
each edit in a copy of the tree and runs that one test; `unit/test_mutations.py` keeps the list true to the code.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RULES = tuple(range(1, 24))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One replacement; `old` is in the file exactly once."""

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Change the file under `root`; StaleEdit when the code has moved on."""
        path = root / self.file
        path.write_text(self.changed(path.read_text("utf-8")), "utf-8")

    def changed(self, text: str) -> str:
        """The text with the guard removed."""
        if (found := text.count(self.old)) != 1:
            raise StaleEdit(f"{self.file}: found {found} times instead of once:\n{self.old}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A guard removed, and the test that must notice."""

    rule: int
    guard: str
    test: str
    edits: tuple[Edit, ...]
    """More than one where a guard is kept twice and either alone would still hold."""
    seconds: int = 60
    """How long the test may take; a guard whose absence shows as waiting for ever has been noticed then."""

    @property
    def name(self) -> str:
        return f"{self.rule}: {self.guard}"


class StaleEdit(Exception):
    """The text to replace is not there, or there more than once."""


def load() -> tuple[Mutation, ...]:
    """All of them, by rule."""
    folder = Path(__file__).parent
    found = [mutation for file in sorted(folder.glob("*.toml")) for mutation in _read(file)]
    return tuple(sorted(found, key=lambda mutation: mutation.rule))


def _read(file: Path) -> Iterator[Mutation]:
    entries: list[dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))["mutation"]
    for entry in entries:
        edits = tuple(Edit(**edit) for edit in entry.pop("edits"))
        yield Mutation(edits=edits, **entry)
