"""The demo site in a process of its own, and the means to control it."""

from __future__ import annotations

import http.client
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from .arrivals import Arrival, parsed
from .switches import DemoError

CONTROL = {"Host": "control.localhost"}
START_SECONDS = 60.0
STOP_SECONDS = 5.0


class DemoSite:
    """A demo site that runs while this value is entered (or between start() and stop()).

    It stops by itself when this process dies.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log: Path | None = None,
        keeps_log: bool = True,
        switches: Mapping[str, object] | None = None,
        warm: Sequence[str] = (),
    ) -> None:
        """`port` 0 takes a free one; `warm` names hosts whose pages are rendered before the first request."""
        self._arguments = ["--host", host, "--port", str(port), "--with-parent"]
        self._arguments += ["--log", str(log)] if log else []
        self._arguments += [] if keeps_log else ["--no-log"]
        for name, value in (switches or {}).items():
            self._arguments += ["--switch", f"{name}={value}"]
        for each in warm:
            self._arguments += ["--warm", each]
        self._process: subprocess.Popen[str] | None = None
        self.address = ""  # "127.0.0.1:40123" once started

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Return when the site answers; DemoError with its own words when it cannot run."""
        root = str(Path(__file__).resolve().parents[2])  # the child runs this code, wherever it is started
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed in _ended)
        process = self._process = subprocess.Popen(  # noqa: S603  (this program)
            [sys.executable, "-m", "collector_assets.demo", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        line = _first_line(process)
        if not line.startswith("demo site on http://"):
            said = self._ended(process)
            raise DemoError(said.rpartition("\n")[2].removeprefix("demo site: ") or "the demo site did not start")
        self.address = line.strip().removeprefix("demo site on http://")

    def stop(self) -> None:
        """Stop the process; what it logged is complete. What it complained of goes to our stderr."""
        if self._process is not None and (said := self._ended(self._process)):
            sys.stderr.write(f"{said}\n")

    def _ended(self, process: subprocess.Popen[str]) -> str:
        """End the process and return what it wrote to its stderr."""
        self._process = None
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()
        with self._errors:
            self._errors.seek(0)
            return self._errors.read().strip()

    @property
    def url(self) -> str:
        """Where it listens; virtual hosts go by the Host header."""
        return f"http://{self.address}"

    @property
    def pid(self) -> int:
        """The process id, for measuring and killing it."""
        if self._process is None:
            raise DemoError("the demo site is not running")
        return self._process.pid

    def arrivals(self, *, host: str | None = None, robots: bool = False) -> list[Arrival]:
        """The requests that have ended since the last reset, in order of arrival; of one host, if named.

        Those for /robots.txt are there where `robots` says so: they are asked for when nobody knows the file, which
        is no matter of what is collected.
        """
        found = parsed(self._control("GET", "/arrivals"))
        return [
            each for each in found if (host is None or each.host == host) and (robots or each.path != "/robots.txt")
        ]

    def switch(self, *, host: str | None = None, **switches: object) -> None:
        """Change switches for all hosts that have none of their own, or for one host."""
        self._change({"hosts": {host: switches}} if host else {"switches": switches})

    def misbehave(self, do: str, **rule: object) -> None:
        """Add a rule: `misbehave("delay", prefix="/catalogue/", arg="0.2")`; fields as in `switches.Rule`."""
        rules = self.state()["misbehave"]
        self._change({"misbehave": [*rules, {"do": do, **rule}]})

    def behave(self) -> None:
        """Drop all rules."""
        self._change({"misbehave": []})

    def reset(self) -> None:
        """As just started: no arrivals, no counters, the first switches and rules."""
        self._control("POST", "/reset")

    def state(self) -> dict[str, Any]:
        """Switches, hosts and rules in force, and the number of open connections (this one included)."""
        return json.loads(self._control("GET", "/state"))

    def _change(self, wish: Mapping[str, object]) -> None:
        self._control("POST", "/switch", json.dumps(wish))

    def _control(self, method: str, path: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            connection.request(method, path, body, CONTROL)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise DemoError(json.loads(content)["error"])
        return content


def _first_line(process: subprocess.Popen[str]) -> str:
    """What the site says first; empty when it ended or said nothing in time."""
    if process.stdout is None:
        return ""
    readable, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    return process.stdout.readline() if readable else ""
