"""The run launcher of an installation: a run whose process is gone is noticed, and marked as failed.

Dagster's own launcher has no health check: after the loss of a host its runs stay STARTED for ever and keep their
source's place in the queue. Named in `dagster.yaml`. Extends private classes of Dagster: the version is pinned, and a
test uses each of them.
"""

import grpc
from dagster import DagsterRun, DefaultRunLauncher
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._grpc.types import CanCancelExecutionRequest, CanCancelExecutionResult
from dagster._serdes import deserialize_value

from collector_assets.graph import process_tag

ANSWER_WITHIN_S = 10


class HealthCheckedRunLauncher(DefaultRunLauncher):
    """Asks the code server of a run whether the run still works there."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Lets run monitoring ask."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Whether the run's process is there. Only a clear no counts: monitoring ends the run on anything else."""
        if process_tag.TAG in run.tags:
            return _of_own_process(run.tags[process_tag.TAG])
        client = self._get_grpc_client_for_termination(run.run_id)
        if client is None:
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "the run does not say which code server has it")
        request = CanCancelExecutionRequest(run_id=run.run_id)
        try:
            answer = client.can_cancel_execution(request, timeout=ANSWER_WITHIN_S)
        except DagsterUserCodeUnreachableError as error:
            return _of_silence(error)
        if deserialize_value(answer, CanCancelExecutionResult).can_cancel:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "its code server does not know the run")


def _of_own_process(value: str) -> CheckRunHealthResult:
    """A run of `collector collect`: no code server has it."""
    if process_tag.may_live(value):
        return CheckRunHealthResult(WorkerStatus.RUNNING)
    return CheckRunHealthResult(WorkerStatus.NOT_FOUND, f"the process {value} is gone")


def _of_silence(error: DagsterUserCodeUnreachableError) -> CheckRunHealthResult:
    """A server that is slow to answer is not gone: its runs go on, and a twin must not be started."""
    cause = error.__cause__
    if isinstance(cause, grpc.RpcError) and cause.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return CheckRunHealthResult(WorkerStatus.RUNNING, f"no answer within {ANSWER_WITHIN_S} s", transient=True)
    return CheckRunHealthResult(WorkerStatus.NOT_FOUND, f"code server gone: {error}")
