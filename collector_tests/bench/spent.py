"""What a contender used, counted in its own process; and the peak of memory, sampled from outside."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import psutil

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 600.0
SAMPLE_S = 0.05
LOOK_FOR_CHILDREN_S = 0.25
MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Time on the clock and on the processors."""

    seconds: float
    cpu_s: float
    """Of this process and of its children that have ended."""
    postgres_cpu_s: float


class Stopwatch:
    """From now to `stop()`; `postgres` is the pid of a server whose work counts, too."""

    def __init__(self, postgres: int | None = None) -> None:
        self._postgres = postgres
        self._server, self._cpu, self._started = _server_cpu_s(postgres), _own_cpu_s(), time.perf_counter()

    def stop(self) -> Spent:
        seconds = time.perf_counter() - self._started
        cpu_s, server = _own_cpu_s() - self._cpu, _server_cpu_s(self._postgres) - self._server
        return Spent(seconds=seconds, cpu_s=cpu_s, postgres_cpu_s=server)


def _own_cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _server_cpu_s(pid: int | None) -> float:
    """Every process of the server; those that have ended are in their parent's sum of children."""
    if pid is None:
        return 0.0
    total = 0.0
    for process in _tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
            total += (times.children_user + times.children_system) if process.pid == pid else 0.0
    return total


def _tree(pid: int) -> list[psutil.Process]:
    """A process and all below it. Linux knows whose children are whose; psutil looks at all the processes there are."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if not Path(f"/proc/{pid}/task/{pid}/children").exists():
            return [process, *process.children(recursive=True)]
        return [process, *(each for child in _children(pid) for each in _tree(child))]
    return []


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    return []


def report(spent: Spent, **facts: object) -> None:
    """A contender's last word."""
    sys.stdout.write(json.dumps({**asdict(spent), **facts}) + "\n")


# --- From outside ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one contender."""

    facts: dict[str, Any]
    """What it reported."""
    whole_s: float
    """The whole process, with its interpreter and its imports."""
    whole_cpu_s: float
    peak_mb: float
    """Resident memory of its process tree."""
    postgres_peak_mb: float
    """Of the server's processes; what they share is counted once (PSS)."""

    @property
    def seconds(self) -> float:
        return self.facts["seconds"]

    @property
    def pages_per_s(self) -> float:
        return self.facts["records"] / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Per page."""
        return self.facts["cpu_s"] * 1e3 / self.facts["records"]

    @property
    def all_cpu_ms(self) -> float:
        """Per page, Postgres included."""
        return self.cpu_ms + self.facts["postgres_cpu_s"] * 1e3 / self.facts["records"]


def run(
    module: str, arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, postgres: int | None = None
) -> Run:
    """Run a contender in a process of its own; its report, or RuntimeError with its last words."""
    values = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    values["PYTHONPATH"] = str(Path(__file__).with_name("deployed"))  # the environment of a deployment, not of tests
    used, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.{module}", *arguments],
        cwd=ROOT,
        env=values | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with _Sampler(process.pid) as own, _Sampler(postgres, shared=True) as server:
        try:
            said, complained = process.communicate(timeout=TIMEOUT_S)
        except BaseException:
            process.kill()
            process.communicate()
            raise
    whole_s, now = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = said.splitlines()
    if process.returncode or not lines:
        raise RuntimeError(f"{module} ended with code {process.returncode}:\n{complained[-4000:]}")
    return Run(
        facts=json.loads(lines[-1]),
        whole_s=whole_s,
        whole_cpu_s=now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime,
        peak_mb=own.peak / MB,
        postgres_peak_mb=server.peak / MB,
    )


class _Sampler:
    """The peak of the memory of a process tree, looked at from a thread."""

    def __init__(self, pid: int | None, *, shared: bool = False) -> None:
        self.peak = 0
        self._pid, self._shared = pid, shared
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        if self._pid is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._pid is not None:
            self._thread.join()

    def _watch(self) -> None:
        # What is shared takes long to count: ten processes cost about 5 ms.
        every_s = LOOK_FOR_CHILDREN_S if self._shared else SAMPLE_S
        processes, look_at = _tree(self._pid or 0), 0.0
        while not self._over.wait(every_s):
            if (now := time.monotonic()) >= look_at:
                processes, look_at = _tree(self._pid or 0), now + LOOK_FOR_CHILDREN_S
            self.peak = max(self.peak, sum(self._sizes(processes)))

    def _sizes(self, processes: Sequence[psutil.Process]) -> Iterator[int]:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                yield process.memory_full_info().pss if self._shared else process.memory_info().rss
