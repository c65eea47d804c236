"""The local stack of a command: Postgres (embedded unless a DSN is given), migrations, and Dagster's environment."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from psycopg import conninfo

from collector_assets import embedded
from collector_assets.database import migrate, require_current
from collector_assets.errors import ConfigurationError

PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>
UI_START_S = 120.0
STOP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What a command runs on."""

    dsn: str
    dagster_url: str
    state: Path
    is_embedded: bool

    def environment(self) -> dict[str, str]:
        """What Dagster and child processes need to find the same stack."""
        return {
            "COLLECTOR_DSN": self.dsn,
            "COLLECTOR_DAGSTER_URL": self.dagster_url,
            "COLLECTOR_STATE": str(self.state),
            "DAGSTER_HOME": str(dagster_home()),
            "DAGSTER_DISABLE_TELEMETRY": "1",
        }


@contextmanager
def running(*, state: Path, dsn: str | None, dagster_url: str | None) -> Iterator[Stack]:
    """The stack while a command needs it; the embedded database is migrated, a given one must be current."""
    state = state.absolute()
    _prepare(state)
    if dsn is not None:
        require_current(dsn)
        yield Stack(dsn=dsn, dagster_url=dagster_url or _sqlalchemy(dsn), state=state, is_embedded=False)
        return
    with embedded.running(state) as postgres:
        migrate(postgres.dsn)
        yield Stack(dsn=postgres.dsn, dagster_url=postgres.dagster_dsn, state=state, is_embedded=True)


def dagster_home() -> Path:
    """The folder with dagster.yaml: DAGSTER_HOME, the current folder, or the checkout this package runs from."""
    given = os.environ.get("DAGSTER_HOME")
    folders = [Path(given)] if given else [Path.cwd(), Path(__file__).resolve().parents[1]]
    for folder in folders:
        if (folder / "dagster.yaml").is_file():
            return folder.absolute()
    raise ConfigurationError(
        "DAGSTER_HOME",
        f"no dagster.yaml in {' or '.join(str(folder) for folder in folders)}",
        "Run in the project's folder",
    )


def free_port(wanted: int) -> int:
    """The wanted port of 127.0.0.1, or the next free one after it."""
    for port in range(wanted, wanted + 50):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ConfigurationError("--port", f"{wanted} and the 49 ports after it are taken", "Give another one")


class DagsterDev:
    """`dagster dev` in a session of its own: stops on SIGINT, and leaves no orphan when it has to be killed."""

    def __init__(self, *, home: Path, port: int, environment: Mapping[str, str], log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = log.open("ab")
        values = {**os.environ, **environment}
        values.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "dagster", "dev", "-w", "workspace.yaml", "-h", "127.0.0.1", "-p", str(port)]
        self._process = subprocess.Popen(  # noqa: S603  this program
            command, cwd=home, env={**values, "PYTHONWARNINGS": "ignore"}, stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_default_signals,  # noqa: PLW1509
        )  # fmt: skip

    def wait_until_up(self) -> None:
        """Return when the webserver answers; ConfigurationError with the log's place when it died or never came."""
        deadline = time.monotonic() + UI_START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/server_info", timeout=2):  # noqa: S310  our own http URL
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
        raise ConfigurationError("dagster dev", "did not come up", f"Read {self._log.name}")

    def wait(self) -> int:
        """Until it ends by itself."""
        return self._process.wait()

    def stop(self) -> None:
        """Ask it to stop, wait for running windows to yield, then kill what is left of its session."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._log.close()


def _default_signals() -> None:
    """A background job of a shell inherits an ignored SIGINT, and Dagster maps SIGTERM to it: neither would work."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        # Should this command be killed with -9, Dagster stops like after Ctrl-C and leaves no orphans.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def _prepare(state: Path) -> None:
    try:
        state.mkdir(parents=True, exist_ok=True)
        probe = state / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another command may have been quicker
    except OSError as error:
        raise ConfigurationError(
            "COLLECTOR_STATE", f"{state} cannot be written ({error.strerror})", "Name a writable folder"
        ) from error


def _sqlalchemy(dsn: str) -> str:
    """The same database for Dagster; a bare postgresql:// would choose psycopg 3, which dagster-postgres cannot use."""
    values = {name: str(value) for name, value in conninfo.conninfo_to_dict(dsn).items() if value is not None}
    user, password = quote(values.pop("user", ""), safe=""), quote(values.pop("password", ""), safe="")
    login = f"{user}{f':{password}' if password else ''}@" if user else ""
    name = quote(values.pop("dbname", ""), safe="")
    return f"postgresql+psycopg2://{login}/{name}?{urlencode(values)}"
