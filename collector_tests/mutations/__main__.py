"""`python -m collector_tests.mutations [--rule N] [--only WORDS] [--jobs 1]`: remove each guard, see its test fail.

First every test named must pass as it is. Then, mutation by mutation: a copy of the tree, the edits, that one test.
Exit 1 when a mutation survives, when the test could not run, or when an edit no longer fits the code.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from collector_tests.mutations import ROOT, Mutation, StaleEdit, load

LEFT_OUT = (".git", ".venv", ".collector", "__pycache__", ".hypothesis", ".*_cache", "dist", "build")
START_S = 60
"""What a session may need beside its test: imports, Postgres, the demo site."""


NOT_A_JUDGEMENT = (
    "SyntaxError", "UndefinedColumn", "NameError", "ImportError", "IndeterminateDatatype", "ProgrammingError",
)  # fmt: skip
"""Errors of the mutation itself."""


class Verdict(StrEnum):
    """What became of a mutation."""

    KILLED = "killed"
    SURVIVED = "survived"
    BROKEN = "broken"
    """The test failed, but not by judging: it could not be collected, set up, or its SQL is no SQL."""
    STALE = "stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One test session."""

    returncode: int | None
    """Nothing: it did not end and was killed."""
    output: str
    seconds: float

    @property
    def errors(self) -> list[str]:
        """What pytest says about failures, without its margin."""
        return [line[1:].strip() for line in self.output.splitlines() if line.startswith("E  ")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A mutation, what became of it, and by which words."""

    mutation: Mutation
    verdict: Verdict
    because: str
    seconds: float


def main() -> int:
    """Run what was asked for; 0 when every guard was missed by its test."""
    arguments = _arguments()
    chosen = _chosen(arguments)
    console = Console(width=None if sys.stdout.isatty() else 200)
    if not chosen:
        console.print("no such mutation")
        return 2
    tests = sorted({mutation.test for mutation in chosen})
    with _copy_of(ROOT) as snapshot:  # one state of the code for the whole run, whatever is written meanwhile
        console.print(f"{len(tests)} tests as they are …")
        with _copy_of(snapshot) as tree:
            whole = _pytest(tree, tests, seconds=max(m.seconds for m in chosen), limit=START_S * 2 + 30 * len(tests))
        if whole.returncode != 0:
            console.print(escape(whole.output), "[red]the tests must pass before a guard is removed")
            return 1
        with ThreadPoolExecutor(arguments.jobs) as pool:
            tried = pool.map(lambda mutation: _try(mutation, snapshot), chosen)
            results = [_told(console, result) for result in tried]
    console.print(_table(results))
    return 0 if all(result.verdict is Verdict.KILLED for result in results) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m collector_tests.mutations", description=__doc__)
    parser.add_argument("--rule", type=int, action="append", help="only this rule; may be repeated")
    parser.add_argument("--only", default="", help="only mutations whose guard or test holds these words")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    return parser.parse_args()


def _chosen(arguments: argparse.Namespace) -> list[Mutation]:
    return [
        mutation
        for mutation in load()
        if (not arguments.rule or mutation.rule in arguments.rule)
        and arguments.only.lower() in f"{mutation.guard} {mutation.test}".lower()
    ]


def _try(mutation: Mutation, snapshot: Path) -> Result:
    """One mutation in a tree of its own."""
    with _copy_of(snapshot) as tree:
        try:
            for edit in mutation.edits:
                edit.apply(tree)
        except (StaleEdit, OSError) as error:
            return Result(mutation=mutation, verdict=Verdict.STALE, because=str(error), seconds=0.0)
        ran = _pytest(tree, [mutation.test], seconds=mutation.seconds, limit=mutation.seconds + START_S)
    verdict, because = _judge(ran)
    return Result(mutation=mutation, verdict=verdict, because=because, seconds=ran.seconds)


def _judge(ran: Ran) -> tuple[Verdict, str]:
    errors = ran.errors
    because = errors[0] if errors else (ran.output.strip().splitlines() or [""])[-1]
    if ran.returncode is None:
        return Verdict.KILLED, "did not end"
    if ran.returncode == 0:
        return Verdict.SURVIVED, because
    if "\nFAILED " not in ran.output or any(word in because for word in NOT_A_JUDGEMENT):
        return Verdict.BROKEN, because
    return Verdict.KILLED, because


@contextmanager
def _copy_of(root: Path) -> Iterator[Path]:
    """The tree again, without what it makes itself; byte code is compiled anew, so no edit can be overlooked."""
    folder = Path(tempfile.mkdtemp(prefix="collector-mutant-"))
    try:
        yield Path(shutil.copytree(root, folder / "tree", ignore=shutil.ignore_patterns(*LEFT_OUT)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pytest(tree: Path, tests: Sequence[str], *, seconds: int, limit: int) -> Ran:
    """These tests of a tree, with its own packages before those that are installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(tree), "CI": "1", "COLUMNS": "200"}
    command = [
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short", "--timeout", str(seconds),
        "-m", "", *tests,
    ]  # fmt: skip
    began = time.monotonic()
    session = subprocess.Popen(
        command, cwd=tree, env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        output, _ = session.communicate(timeout=limit)
        returncode: int | None = session.returncode
    except subprocess.TimeoutExpired:
        os.killpg(session.pid, signal.SIGKILL)
        output, returncode = session.communicate()[0], None
    return Ran(returncode=returncode, output=output, seconds=time.monotonic() - began)


def _told(console: Console, result: Result) -> Result:
    colour = "green" if result.verdict is Verdict.KILLED else "red"
    console.print(f"[{colour}]{result.verdict:8}[/] {result.seconds:4.0f} s  {escape(result.mutation.name)}")
    if result.verdict is not Verdict.KILLED:
        console.print(f"           {escape(result.mutation.test)}\n           {escape(result.because)}")
    return result


def _table(results: Sequence[Result]) -> Table:
    table = Table("rule", "guard removed", "test", "", "because", title="Guards removed")
    for result in results:
        mutation = result.mutation
        test = mutation.test.removeprefix("collector_tests/").replace("::", " ")
        table.add_row(str(mutation.rule), mutation.guard, escape(test), result.verdict, escape(result.because[:120]))
    return table


if __name__ == "__main__":
    sys.exit(main())
