"""Which runs are taken for dead (private Dagster classes: pinned)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.launcher import WorkerStatus
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import PythonFileTarget

from collector_assets.graph import launcher, process_tag

SETTINGS = {
    "run_launcher": {"module": "collector_assets.graph.launcher", "class": "HealthCheckedRunLauncher", "config": {}}
}
SLOW = """
    import time
    import dagster as dg

    @dg.op
    def sleep():
        time.sleep(600)

    @dg.job(executor_def=dg.in_process_executor)
    def slow():
        sleep()

    defs = dg.Definitions(jobs=[slow])
"""


@pytest.fixture
def recorded() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(overrides=SETTINGS) as instance:
        yield instance


def health(instance: dg.DagsterInstance, run_id: str) -> WorkerStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return instance.run_launcher.check_run_worker_health(run).status


def started(instance: dg.DagsterInstance, **tags: str) -> str:
    """A run that is recorded as working, with these tags."""
    run = dg.DagsterRun(job_name="slow", run_id=str(uuid.uuid4()), status=dg.DagsterRunStatus.STARTED, tags=tags)
    instance.add_run(run)
    return run.run_id


def at_port(port: int) -> dict[str, str]:
    return {".dagster/grpc_info": json.dumps({"host": "127.0.0.1", "port": port})}


def test_monitoring_may_ask(recorded: dg.DagsterInstance) -> None:
    assert isinstance(recorded.run_launcher, launcher.HealthCheckedRunLauncher)
    assert recorded.run_launcher.supports_check_run_worker_health


def test_a_run_lives_with_its_code_server(recorded: dg.DagsterInstance, tmp_path: Path) -> None:
    # Mutation: supports_check_run_worker_health without check_run_worker_health of ours
    file = tmp_path / "slow.py"
    file.write_text(textwrap.dedent(SLOW))
    target = PythonFileTarget(
        python_file=str(file), attribute=None, working_directory=str(tmp_path), location_name="slow"
    )
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with create_test_daemon_workspace_context(target, recorded) as process:
        workspace = process.create_request_context()
        job = workspace.code_locations[0].get_repository("__repository__").get_full_job("slow")
        namespace: dict[str, dg.Definitions] = {}
        exec(textwrap.dedent(SLOW), namespace)  # noqa: S102  the file above
        run = recorded.create_run_for_job(
            job_def=namespace["defs"].resolve_job_def("slow"), remote_job_origin=job.get_remote_origin()
        )
        recorded.launch_run(run.run_id, workspace)
        deadline = time.monotonic() + 60
        while (found := recorded.get_run_by_id(run.run_id)) is None or found.status is not dg.DagsterRunStatus.STARTED:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert health(recorded, run.run_id) is WorkerStatus.RUNNING

        assert health(recorded, started(recorded, **found.tags)) is WorkerStatus.NOT_FOUND, (
            "a run that this server never had"
        )

        for child in psutil.Process().children(recursive=True):
            if child.pid not in before:
                child.kill()
        assert health(recorded, run.run_id) is WorkerStatus.NOT_FOUND
        recorded.report_run_failed(found)  # as monitoring does now


def test_a_server_that_is_slow_to_answer_is_not_dead(
    recorded: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its runs would be declared dead and started again beside the living ones."""
    # Mutation: _of_silence always NOT_FOUND
    monkeypatch.setattr(launcher, "ANSWER_WITHIN_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert health(recorded, started(recorded, **at_port(silent.getsockname()[1]))) is WorkerStatus.RUNNING


def test_a_server_that_is_gone_is_dead_at_once(recorded: dg.DagsterInstance) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert health(recorded, started(recorded, **at_port(port))) is WorkerStatus.NOT_FOUND


def test_a_run_of_a_command_lives_as_long_as_its_process(recorded: dg.DagsterInstance) -> None:
    # Mutation: check_run_worker_health without process_tag (no code server: dead while it works)
    mine = process_tag.of_this_process()
    assert health(recorded, started(recorded, **mine)) is WorkerStatus.RUNNING
    assert health(recorded, started(recorded)) is WorkerStatus.NOT_FOUND

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        host = socket.gethostname()
        created = f"{psutil.Process(other.pid).create_time():.2f}"
        run = started(recorded, **{process_tag.TAG: f"{host}:{other.pid}:{created}"})
        assert health(recorded, run) is WorkerStatus.RUNNING
        other.kill()
        other.wait()
        assert health(recorded, run) is WorkerStatus.NOT_FOUND


def test_a_number_that_another_process_has_now_is_not_the_run(recorded: dg.DagsterInstance) -> None:
    # Mutation: may_live without the time of its start
    assert not process_tag.may_live(f"{socket.gethostname()}:{os.getpid()}:1.00")
    assert process_tag.may_live(f"another-host:{os.getpid()}:1.00")
