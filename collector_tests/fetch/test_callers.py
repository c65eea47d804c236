"""Rule 13: the egress proxy knows its own browser's connections from those of anybody else on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collector_assets.fetch import callers, chromium
from collector_assets.fetch.callers import Callers

CONNECTS = """
import socket, sys, subprocess
code = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code, sys.argv[1]], stdin=sys.stdin)
child.wait()
"""
"""A process whose child connects, as a browser's network service does."""


@pytest.fixture(params=["the kernel's table", "psutil"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of looking: Linux has a table of sockets, elsewhere psutil asks the system."""
    if request.param == "psutil":
        monkeypatch.setattr(callers, "_TABLE", Path("/nowhere"))
    elif not callers._TABLE.exists():
        pytest.skip("no such table here")


@contextmanager
def connected() -> Iterator[tuple[int, int, int]]:
    """A process with a child that is connected to us: its pid, the child's port and ours."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = server.getsockname()[1]
        command = [sys.executable, "-I", "-S", "-c", CONNECTS, str(ours)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            connection, (_, theirs) = server.accept()
            try:
                yield process.pid, theirs, ours
            finally:
                process.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]
                connection.close()


@pytest.mark.usefixtures("way")
class TestConnections:
    def test_of_a_child_are_ours(self):
        with connected() as (pid, theirs, ours):
            whose = Callers()
            whose.root = pid
            assert whose.are_ours(theirs, ours)
            assert whose.are_ours(theirs, ours), "the second time by the process that is known"

    def test_of_another_process_are_not(self):
        """Rule 13."""
        # Mutation: any socket of a process counts as the one that was looked for.
        with connected() as (_, theirs, ours), connected() as (other, *_):
            whose = Callers()
            whose.root = other
            assert not whose.are_ours(theirs, ours)

    def test_of_anybody_are_not_before_there_is_a_browser(self):
        with connected() as (_, theirs, ours):
            assert not Callers().are_ours(theirs, ours)

    def test_that_are_over_are_nobodys(self):
        with connected() as (pid, theirs, ours):
            whose = Callers()
            whose.root = pid
        assert not whose.are_ours(theirs, ours)


class TestFind:
    def test_takes_the_one_without_a_window_first_and_the_newest(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(chromium, "NAMES", ())
        monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))

        def installed(name: str) -> Path:
            program = tmp_path / name
            program.parent.mkdir(parents=True)
            program.touch(mode=0o755)
            return program

        window = installed("chromium-1200/chrome-linux/chrome")
        assert chromium.find() == window
        older = installed("chromium_headless_shell-1199/chrome-linux/headless_shell")
        assert chromium.find() == older
        newer = installed("chromium_headless_shell-1200/chrome-headless-shell-linux64/chrome-headless-shell")
        assert chromium.find() == newer
