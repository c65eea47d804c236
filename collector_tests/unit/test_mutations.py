"""The list of mutations is true to the code: every rule is in it, every edit fits, every test exists."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

from collector_tests.mutations import ROOT, RULES, Mutation, load

MUTATIONS = load()
every = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)


def test_every_rule_has_a_mutation() -> None:
    assert sorted({mutation.rule for mutation in MUTATIONS}) == list(RULES)


def test_no_guard_is_named_twice() -> None:
    assert [name for name, times in Counter(mutation.name for mutation in MUTATIONS).items() if times > 1] == []


@every
def test_edits_fit_the_code(mutation: Mutation) -> None:
    """Each `old` is in its file exactly once, is changed, and what is left is still Python."""
    texts: dict[str, str] = {}
    for edit in mutation.edits:
        before = texts.get(edit.file) or (ROOT / edit.file).read_text("utf-8")
        texts[edit.file] = edit.changed(before)
        assert texts[edit.file] != before
    for file, text in texts.items():
        if file.endswith(".py"):
            compile(text, file, "exec", dont_inherit=True)


@every
def test_the_test_exists_and_names_the_rule(mutation: Mutation) -> None:
    file, *names = mutation.test.partition("[")[0].split("::")
    docstrings = _docstrings(ROOT / file)
    assert "::".join(names) in docstrings
    told = " ".join(docstrings["::".join(names[: depth + 1])] for depth in range(len(names)))
    assert mutation.rule in _rules_of(told), f"say `Rule {mutation.rule}` in its docstring"


def _rules_of(text: str) -> set[int]:
    """The numbers in `Rule 4`, `Rules 1, 3 and 10`."""
    lists: list[str] = re.findall(r"\b[Rr]ules? (\d+(?:(?:, | and )\d+)*)", text)
    return {int(number) for found in lists for number in re.findall(r"\d+", found)}


@functools.cache
def _docstrings(path: Path) -> dict[str, str]:
    """Test functions and their classes, by node id without the file, with what their docstrings say."""
    found: dict[str, str] = {}

    def visit(parent: str, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                name = f"{parent}{node.name}"
                found[name] = ast.get_docstring(node) or ""
                if isinstance(node, ast.ClassDef):
                    visit(f"{name}::", node.body)

    visit("", ast.parse(path.read_text("utf-8")).body)
    return found
