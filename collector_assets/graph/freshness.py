"""Freshness in the UI: the check `fresh` on `latest`, told by a sensor with its cause, and Dagster's own badge.

Dagster's policy looks at the last materialization of whatever window, so a backfill of an old one turns the badge
green. The check is the truth: it is computed from the data. It can be executed by a click too.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import dagster as dg

from collector_assets import freshness
from collector_assets.contract import Source
from collector_assets.freshness import Found
from collector_assets.graph import names
from collector_assets.graph.dagster_facts import DagsterFacts
from collector_assets.graph.resources import Installation

CHECK = "fresh"
SENSOR = "freshness"
FRESH_TAG = "collector/fresh"
"""On a run that was asked for because a window was missing: for which cause."""
TELL_AGAIN_AFTER = timedelta(hours=6)
"""A check that says the same is told again, so that the UI shows that somebody looks."""
MOST_TOLD = 50
"""Events of one tick; one costs 18 ms."""
MOST_ASKED = 20
"""Runs that one tick asks for."""
HOLDS_FOR = timedelta(minutes=2)
"""A cause must have lasted this long before a window is collected for it: the schedule of a daemon that has just
come back has its own turn first."""
SHORTEST_BADGE = timedelta(seconds=60)

Clock = Callable[[], datetime | None]


def policy(source: Source) -> dg.FreshnessPolicy | None:
    """Dagster's badge on `latest`."""
    if source.freshness is None or not SHORTEST_BADGE <= source.freshness < timedelta.max:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=source.freshness)


def check_key(source: Source) -> dg.AssetCheckKey:
    """`fresh` of `<source>/latest`."""
    return dg.AssetCheckKey(names.asset_key(source.name, "latest"), CHECK)


def check(source: Source, installation: Installation) -> dg.AssetChecksDefinition:
    """The check `fresh` of a source; whole, since a window that is not the newest says nothing about freshness."""

    @dg.asset_check(
        asset=names.asset_key(source.name, "latest"),
        name=CHECK,
        description="The newest window in latest that counts is younger than the source's freshness; else the cause "
        "why not. A sensor tells it; executing it asks again now.",
    )
    def fresh(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        facts = DagsterFacts(context.instance)
        (found,) = freshness.judge([source], database=installation.database, scheduler=facts)
        evaluation = evaluate(found)
        return dg.AssetCheckResult(
            passed=evaluation.passed,
            severity=evaluation.severity,
            description=evaluation.description,
            metadata=evaluation.metadata,
        )

    return fresh


def evaluate(found: Found) -> dg.AssetCheckEvaluation:
    """What was found, as the UI shows it: the cause, its numbers, what to do."""
    judgement = found.judgement
    said: dict[str, Any] = {"message": judgement.message}
    if judgement.cause:
        said |= {"cause": str(judgement.cause), "what to do": judgement.fix}
        said["found_at"] = dg.MetadataValue.timestamp(found.found_at)
    if judgement.window_key:
        said["window"] = judgement.window_key
    if judgement.since:
        said["fresh_until" if judgement.is_fresh else "stale_since"] = dg.MetadataValue.timestamp(judgement.since)
    return dg.AssetCheckEvaluation(
        asset_key=names.asset_key(found.source.name, "latest"),
        check_name=CHECK,
        passed=judgement.is_fresh,
        severity=dg.AssetCheckSeverity.ERROR if judgement.is_error else dg.AssetCheckSeverity.WARN,
        description=f"{judgement.cause}: {judgement.message}" if judgement.cause else judgement.message,
        metadata=said | dict(judgement.numbers),
        blocking=False,
    )


def sensor(
    sources: Sequence[Source], installation: Installation, jobs: Sequence[Any], *, clock: Clock = lambda: None
) -> dg.SensorDefinition:
    """One for the deployment: judges every source each minute, tells the UI what is new, asks for missing windows."""

    @dg.sensor(
        name=SENSOR,
        jobs=jobs,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells the check `fresh` of every source, with the cause. Where a schedule is on and collecting "
        "again can help, it asks for the window that is missing: once per window and cause.",
    )
    def watch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        facts = DagsterFacts(context.instance)
        told = Told.read(context.cursor)
        events: list[dg.AssetCheckEvaluation] = []
        requests: list[dg.RunRequest] = []
        names_now: set[str] = set()
        for found in freshness.judge(sources, database=installation.database, scheduler=facts, now=clock()):
            names_now.add(found.source.name)
            if len(events) < MOST_TOLD and told.is_news(found):
                told.put(found)
                events.append(evaluate(found))
            if len(requests) < MOST_ASKED and (request := _request(found, facts, context.instance, installation)):
                requests.append(request)
        return dg.SensorResult(
            asset_events=events,
            run_requests=requests,
            cursor=told.only(names_now).written(),
            skip_reason=None if requests else dg.SkipReason(f"{len(events)} of {len(names_now)} checks have news"),
        )

    return watch


def _request(
    found: Found, facts: DagsterFacts, instance: dg.DagsterInstance, installation: Installation
) -> dg.RunRequest | None:
    """The run that would help, if nobody has asked for it yet and the source's schedule is on."""
    source, key, cause = found.source, found.judgement.collect, found.judgement.cause
    if key is None or found.held_for < HOLDS_FOR or not facts.scheduling(source).is_on:
        return None
    if not names.partitions_of(source).has_partition_key(key) or facts.is_active(source.name, key):
        return None
    tags = {names.SOURCE_TAG: source.name, FRESH_TAG: f"{key} {cause}"}
    if instance.get_runs(dg.RunsFilter(tags=tags), limit=1):
        return None
    if not freshness.ask_once(found, key, installation.database):
        return None
    return dg.RunRequest(
        job_name=names.job_name(source.name),
        run_key=f"{source.name} {key} {cause} {found.now:%Y-%m-%dT%H:%M}",
        partition_key=key,
        tags={**names.run_tags(source), names.PRIORITY_TAG: str(names.RESUME), FRESH_TAG: f"{key} {cause}"},
    )


class Told:
    """What the UI was told last about each source; kept in the sensor's cursor, so it moves with the events."""

    def __init__(self, said: Mapping[str, Sequence[Any]]) -> None:
        self._said = dict(said)

    @classmethod
    def read(cls, cursor: str | None) -> "Told":
        """From a cursor; from none, or one that cannot be read, nothing was told."""
        try:
            said = json.loads(cursor or "{}")
        except ValueError:
            said = {}
        return cls(said if isinstance(said, dict) else {})

    def is_news(self, found: Found) -> bool:
        """Whether the UI does not know this yet, or was told long ago."""
        last = self._said.get(found.source.name)
        return (
            last is None
            or last[:2] != self._key(found)
            or found.now.timestamp() - last[2] >= TELL_AGAIN_AFTER.total_seconds()
        )

    def put(self, found: Found) -> None:
        self._said[found.source.name] = [*self._key(found), round(found.now.timestamp())]

    def only(self, sources: set[str]) -> "Told":
        """Without sources that are no more."""
        return Told({name: said for name, said in self._said.items() if name in sources})

    def written(self) -> str:
        return json.dumps(self._said, separators=(",", ":"))

    @staticmethod
    def _key(found: Found) -> list[str]:
        return [str(found.judgement.cause or ""), found.judgement.window_key or ""]
