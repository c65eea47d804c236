"""A sensor that lets unfinished windows go on when their work is due (rule 23). Which ones is `resume.choose`'s."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from collector_assets import resume
from collector_assets.contract import Source
from collector_assets.graph import names
from collector_assets.graph.dagster_facts import ACTIVE, DagsterFacts
from collector_assets.graph.resources import Installation
from collector_assets.resumes import Resumable

SENSOR = "resume"
RESUME_TAG = "collector/resume"
MOST = 20
"""Runs that one tick asks for; the others come with the next."""


def sensor(
    sources: Sequence[Source],
    installation: Installation,
    jobs: Sequence[Any],
    *,
    clock: Callable[[], datetime | None] = lambda: None,
) -> dg.SensorDefinition:
    """One for the deployment."""
    by_name = {source.name: source for source in sources}

    @dg.sensor(
        name=SENSOR,
        jobs=jobs,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Goes on with windows that were opened and not finished, when their work is due: oldest first, at "
        f"most {resume.MOST_IN_VAIN} times without progress. A window that is over, or whose run was cancelled, rests.",
    )
    def watch(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        free = _free(context.instance, by_name)
        now = clock()
        chosen = list(resume.choose(sources, database=installation.database, is_free=free, most=MOST, now=now))
        for window in chosen:
            yield _request(by_name[window.source], window)
        if not chosen:
            yield dg.SkipReason("no unfinished window has work that is due")

    return watch


def _request(source: Source, window: Resumable) -> dg.RunRequest:
    # No run key: Dagster would refuse the second resume of a window. `resume.choose` gives it out once.
    tags = {**names.run_tags(source), names.PRIORITY_TAG: str(names.RESUME), RESUME_TAG: "true"}
    return dg.RunRequest(job_name=names.job_name(source.name), partition_key=window.window_key, tags=tags)


def _free(instance: dg.DagsterInstance, by_name: Mapping[str, Source]) -> Callable[[Resumable], bool]:
    """Whether a window may get a run: none is there, no other resume of the source waits, and nobody cancelled it."""
    facts = DagsterFacts(instance)

    def is_free(window: Resumable) -> bool:
        source = by_name[window.source]
        if not names.partitions_of(source).has_partition_key(window.window_key):
            return False
        newest = facts.runs(source, [window.window_key]).get(window.window_key)
        if newest and newest.status in {"waiting", "working", "canceled"}:
            return False
        resuming = {names.SOURCE_TAG: source.name, RESUME_TAG: "true"}
        return not instance.get_runs(dg.RunsFilter(tags=resuming, statuses=list(ACTIVE)), limit=1)

    return is_free
