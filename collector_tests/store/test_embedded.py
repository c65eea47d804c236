"""The embedded Postgres under what happens to it: kill -9, stale pid files, two starters, odd and forbidden folders."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from collector_assets import database, embedded
from collector_assets.embedded import EmbeddedPostgres
from collector_assets.errors import ConfigurationError, DatabaseUnreachable

STARTER = (
    "import sys, pathlib; from collector_assets import embedded; print(embedded.start(pathlib.Path(sys.argv[1])).pid)"
)
USER = """
import sys, pathlib
from collector_assets import embedded
with embedded.running(pathlib.Path(sys.argv[1]), durable=False) as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may write; pytest's own are private to us, and the server may run as another user."""
    folder = Path(tempfile.mkdtemp(prefix="collector-test-embedded-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


@pytest.fixture
def state(open_folder: Path) -> Iterator[Path]:
    """A state folder whose server is stopped at the end, whatever happened to it."""
    folder = open_folder / "state"
    yield folder
    if folder.exists():
        embedded.stop(folder)


def start(state: Path) -> EmbeddedPostgres:
    return embedded.start(state, durable=False)


def remember(server: EmbeddedPostgres, word: str) -> None:
    with database.connect(server.dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS words (word text)")
        connection.execute("INSERT INTO words VALUES (%s)", [word])


def remembered(server: EmbeddedPostgres) -> list[object]:
    with database.connect(server.dsn) as connection:
        return [row[0] for row in connection.execute("SELECT word FROM words")]


def setting(server: EmbeddedPostgres, name: str) -> object:
    with database.connect(server.dsn) as connection:
        row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
        return row and row[0]


def kill(pid: int) -> None:
    """Kill -9, and wait until it is gone (a zombie whose parent is slow counts as gone)."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def wait_until(holds: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def servers(state: Path) -> list[int]:
    """Every living Postgres process in this state folder."""
    return [process.pid for process in psutil.process_iter() if embedded._serves(process, state.resolve() / "postgres")]


def spawn(program: str, state: Path, *, new_session: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=new_session,
    )


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.fixture
def as_somebody() -> Iterator[None]:
    """The test as a user without rights: as root we become `nobody` for its time, else we are one already."""
    if os.geteuid() != 0:
        yield
        return
    nobody = pwd.getpwnam("nobody")
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(nobody.pw_gid, nobody.pw_gid, 0)
    os.setresuid(nobody.pw_uid, nobody.pw_uid, 0)
    yield
    os.setresuid(0, 0, 0)
    os.setresgid(0, 0, 0)
    os.setgroups(groups)


# --- Start, join, stop ---------------------------------------------------------------------------------------------


def test_it_serves_both_databases_and_keeps_what_it_was_told(state: Path) -> None:
    server = embedded.start(state)
    assert [setting(server, name) for name in ("fsync", "synchronous_commit", "full_page_writes")] == ["on"] * 3
    assert int(str(setting(server, "max_connections"))) >= 200
    assert setting(server, "listen_addresses") == ""
    assert server.dagster_dsn.startswith("postgresql+psycopg2://")
    with database.connect(server.dsn_of("dagster")) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("dagster",)


def test_started_twice_the_second_joins(state: Path) -> None:
    first = start(state)
    remember(first, "a")
    second = start(state)
    assert second == first
    assert remembered(second) == ["a"]


def test_many_starters_at_once_get_one_server(state: Path) -> None:
    # Mutation: drop the flock line in _exclusive().
    started: list[EmbeddedPostgres] = []
    threads = [threading.Thread(target=lambda: started.append(start(state))) for _ in range(4)]
    processes = [spawn(STARTER, state) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pids = {server.pid for server in started} | {int(process.communicate()[0]) for process in processes}
    assert len(started) == 4
    assert len(pids) == 1


def test_it_outlives_its_starter_until_it_is_stopped(state: Path) -> None:
    pid = int(spawn(STARTER, state).communicate()[0])
    server = start(state)
    assert server.pid == pid
    assert embedded.stop(state)
    assert servers(state) == []
    assert not embedded.stop(state)


def test_data_survives_a_stop(state: Path) -> None:
    remember(start(state), "a")
    embedded.stop(state)
    assert remembered(start(state)) == ["a"]


def test_stopping_where_nothing_ever_ran_does_nothing(tmp_path: Path) -> None:
    assert not embedded.stop(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_the_last_user_stops_it_and_no_other(state: Path) -> None:
    # Mutation: drop the second flock line in running(), that is stop always.
    other = spawn(USER, state)
    pid = int(read_line(other))
    with embedded.running(state, durable=False) as server:
        assert server.pid == pid
    assert embedded._recorded_pid(state / "postgres") == pid
    other.communicate()
    assert servers(state) == []


def test_a_killed_user_leaves_a_server_that_the_next_one_joins_and_stops(state: Path) -> None:
    other = spawn(USER, state)
    pid = int(read_line(other))
    other.kill()
    other.communicate()
    with embedded.running(state, durable=False) as server:
        assert server.pid == pid
    assert servers(state) == []


# --- kill -9 and what it leaves ------------------------------------------------------------------------------------


def test_it_recovers_from_kill_9_of_the_server(state: Path) -> None:
    server = start(state)
    remember(server, "a")
    with contextlib.closing(database.connect(server.dsn)):  # its process must be gone too before the folder is free
        kill(server.pid)
        again = start(state)
    assert again.pid != server.pid
    assert remembered(again) == ["a"]


def test_a_session_that_hangs_on_after_kill_9_is_ended(state: Path) -> None:
    # Mutation: drop the kill in _clear_the_dead(): Postgres then finds its shared memory in use.
    server = start(state)
    with contextlib.closing(database.connect(server.dsn)) as stuck:
        os.kill(stuck.info.backend_pid, signal.SIGSTOP)
        kill(server.pid)
        again = start(state)
    assert again.pid != server.pid


def test_a_pid_file_whose_pid_now_is_another_process_is_not_believed(state: Path) -> None:
    # Mutation: drop `and _serves(process, data)` in _postmaster().
    server = start(state)
    remember(server, "a")
    recorded = (state / "postgres" / "postmaster.pid").read_text()
    kill(server.pid)
    wait_until(lambda: servers(state) == [])
    with subprocess.Popen(["sleep", "60"]) as stranger:
        reused = recorded.replace(str(server.pid), str(stranger.pid), 1)
        (state / "postgres" / "postmaster.pid").write_text(reused)
        again = start(state)
        assert stranger.poll() is None, "a stranger's process was ended"
        stranger.kill()
    assert remembered(again) == ["a"]


@pytest.mark.parametrize("text", ["", "12", "not a number\n", "999999999\n/elsewhere\n"])
def test_a_damaged_pid_file_is_no_obstacle(state: Path, text: str) -> None:
    start(state)
    embedded.stop(state)
    (state / "postgres" / "postmaster.pid").write_text(text)
    start(state)


def test_a_start_killed_half_way_is_finished_by_the_next(state: Path) -> None:
    """At any of many moments: `initdb`, the move, the first start, the databases."""
    for delay in (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65):
        starter = spawn(STARTER, state, new_session=True)
        time.sleep(delay)  # the moment of the kill, not a wait for something
        os.killpg(starter.pid, signal.SIGKILL)
        starter.communicate()
    remember(start(state), "a")
    assert remembered(start(state)) == ["a"]


def test_a_deleted_socket_costs_a_restart(state: Path) -> None:
    server = start(state)
    remember(server, "a")
    (server.socket_folder / embedded.SOCKET).unlink()
    again = start(state)
    assert again.pid != server.pid
    assert remembered(again) == ["a"]


def test_a_state_folder_deleted_under_a_running_server_starts_fresh(state: Path) -> None:
    server = start(state)
    remember(server, "a")
    shutil.rmtree(state)
    again = start(state)
    assert again.pid != server.pid
    with database.connect(again.dsn) as connection:
        assert connection.execute("SELECT to_regclass('words')").fetchone() == (None,)
    assert set(servers(state)) >= {again.pid}
    assert server.pid not in servers(state)


# --- Folders -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["d" * 100, "a folder, with 'odd' \"signs\" %41 & ü $HOME;"])
def test_deep_and_odd_paths_work(open_folder: Path, name: str) -> None:
    state = open_folder / name / ".collector"
    try:
        server = start(state)
        remember(server, "a")
        assert len(os.fsencode(server.socket_folder / embedded.SOCKET)) <= 107
        assert start(state) == server
        assert remembered(server) == ["a"]
    finally:
        embedded.stop(state)


def test_a_relative_folder_and_a_link_reach_the_same_server(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start(state)
    (state.parent / "link").symlink_to(state)
    monkeypatch.chdir(state.parent)
    assert start(Path("state")) == server
    assert start(Path("link")) == server


def test_a_folder_that_cannot_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"COLLECTOR_STATE: .*/file/state: cannot be written"):
        start(tmp_path / "file" / "state")


def test_a_folder_that_may_not_be_written_is_named(open_folder: Path, request: pytest.FixtureRequest) -> None:
    open_folder.chmod(0o555)
    request.getfixturevalue("as_somebody")
    with pytest.raises(ConfigurationError, match=r"cannot be written \(Permission denied\)\. Name another folder"):
        start(open_folder / "state")


def test_a_parent_folder_that_was_closed_since_is_opened_again(open_folder: Path) -> None:
    state = open_folder / "inner" / "state"
    try:
        start(state)
        embedded.stop(state)
        state.parent.chmod(0o700)
        start(state)
    finally:
        embedded.stop(state)


def test_it_runs_for_an_ordinary_user(open_folder: Path, as_somebody: None) -> None:
    try:
        server = start(open_folder / "state")
        remember(server, "a")
        assert start(open_folder / "state") == server
    finally:
        embedded.stop(open_folder / "state")


def test_a_folder_that_another_user_owns_is_refused_in_words(state: Path, request: pytest.FixtureRequest) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of somebody else")
    start(state)
    state.chmod(0o777)
    (state / "postgres.lock").chmod(0o666)
    request.getfixturevalue("as_somebody")
    with pytest.raises(ConfigurationError, match="belongs to user id"):
        start(state)


def test_a_folder_of_another_postgres_version_is_refused(state: Path) -> None:
    start(state)
    embedded.stop(state)
    (state / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(ConfigurationError, match="was made by Postgres 16, this release embeds 18"):
        start(state)


def test_a_server_that_cannot_start_says_why(state: Path) -> None:
    start(state)
    embedded.stop(state)
    with (state / "postgres" / "postgresql.conf").open("a") as config:
        config.write("no_such_setting = 1\n")
    with pytest.raises(DatabaseUnreachable, match="no_such_setting"):
        start(state)
