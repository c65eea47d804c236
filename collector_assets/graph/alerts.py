"""A sensor that turns failed runs, failed checks and broken source files into alerts, and sends them.

It reads the event log by a cursor of its own instead of using Dagster's failure sensor, which handles five failures a
tick and forgets one whose message could not be delivered. Here a failure is first written to the table of alerts, where
equal ones are counted; whatever is due is then sent from there, and tried again until it arrived.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

import dagster as dg

from collector_assets import alerts, notify
from collector_assets.channels import Routes
from collector_assets.contract import Source
from collector_assets.database import Connection
from collector_assets.graph import names
from collector_assets.graph.dagster_facts import first_error
from collector_assets.graph.freshness import CHECK as FRESH
from collector_assets.graph.resources import Installation
from collector_assets.registry import Broken

SENSOR = "alerts"
BATCH, MOST_BATCHES = 500, 10
SETTLED_S = 2.0
"""An event may become visible after a later one; this old, every earlier one is there."""
TOLD_ELSEWHERE = frozenset({"DagsterAssetCheckFailedError", "VerdictRefused"})
"""Ends of a run whose cause is a failed check, which has an alert of its own."""
DECIDED = frozenset({"DagsterExecutionInterruptedError", "KeyboardInterrupt"})
"""Ends of a run that somebody wanted."""
MOST_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Up to where the event log was read: ids of run failures and of check evaluations."""

    runs: int
    checks: int

    @classmethod
    def read(cls, text: str | None) -> "Cursor | None":
        try:
            return cls(**json.loads(text)) if text else None
        except (ValueError, TypeError):
            return None

    def written(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that went wrong."""

    source: str
    cause: str
    title: str
    body: str
    page: str
    """Path of the page in the Dagster UI that shows it."""
    repeats: bool = True

    def with_page(self, ui: str) -> "Note":
        """The address of the page behind the body, which may be cut; nothing without a UI to link to."""
        if not ui:
            return self
        line = f"\n{ui.rstrip('/')}{self.page}"
        return replace(self, body=self.body[: alerts.MOST_BODY - len(line)] + line)


def sensor(
    sources: Sequence[Source],
    broken: Sequence[Broken],
    installation: Installation,
    routes: Callable[[], Routes],
    ui: str = "",
) -> dg.SensorDefinition:
    """One for the deployment. `routes` is read at each tick; while its file is wrong, ticks fail: nothing is lost.

    `ui` is where people open Dagster; with it a message ends with the page on which to look.
    """
    owners = {source.name: source.owners for source in sources}

    @dg.sensor(
        name=SENSOR,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Sends one message per source and cause to the channels of the source's owners: failed runs, "
        "failed checks, broken source files. `collector mute` keeps them back.",
    )
    def watch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        ways, read = routes(), Cursor.read(context.cursor)
        cursor = _reset(context.instance, read) if read else _newest(context.instance)
        cursor, found = _happened(context.instance, cursor)
        with installation.database.transaction() as connection:
            _write(connection, [note.with_page(ui) for note in (*found, *map(_of_broken, broken))], owners)
        sent = list(notify.run(ways, installation.database))
        for each in sent:
            if each.problem:
                context.log.warning("alert %s (%s) is not delivered: %s", each.cause, each.source, each.problem)
        arrived = sum(each.problem is None for each in sent)
        said = f"{len(found)} failures seen, {arrived} messages sent, {len(sent) - arrived} to be tried again"
        return dg.SensorResult(skip_reason=dg.SkipReason(said), cursor=cursor.written())

    return watch


def _write(connection: Connection, notes: Iterable[Note], owners: Mapping[str, Sequence[str]]) -> None:
    """In the order of their keys, so that two writers cannot deadlock."""
    for note in sorted(notes, key=lambda note: (note.source, note.cause)):
        alerts.note(
            connection, source=note.source, cause=note.cause, title=note.title, body=note.body,
            owners=owners.get(note.source, ()), repeats=note.repeats,
        )  # fmt: skip


# --- Reading the event log -------------------------------------------------------------------------------------------


def _newest(instance: dg.DagsterInstance) -> Cursor:
    """The end of the log: what happened before the sensor was first turned on is no news."""
    runs = instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, limit=1).records
    checks = _evaluations(instance, None, limit=1)
    return Cursor(runs=runs[0].storage_id if runs else 0, checks=checks[0].storage_id if checks else 0)


def _reset(instance: dg.DagsterInstance, read: Cursor) -> Cursor:
    """The cursor; from the beginning of a log that is younger than it, because Dagster's database was made anew."""
    newest = _newest(instance)
    return Cursor(
        runs=read.runs if newest.runs >= read.runs else 0, checks=read.checks if newest.checks >= read.checks else 0
    )


def _happened(instance: dg.DagsterInstance, cursor: Cursor) -> tuple[Cursor, list[Note]]:
    """What went wrong since, and the new cursor."""
    until = time.time() - SETTLED_S
    failed: list[dg.AssetCheckEvaluation] = []
    notes: list[Note] = []
    for record in _records(lambda after: _evaluations(instance, after, limit=BATCH), cursor.checks, until):
        cursor = replace(cursor, checks=record.storage_id)
        event = record.event_log_entry.dagster_event
        if event and _is_failed(evaluation := event.asset_check_evaluation_data):
            failed.append(evaluation)
    for record in _records(lambda after: _run_failures(instance, after), cursor.runs, until):
        cursor = replace(cursor, runs=record.storage_id)
        if note := _of_run(instance, record):
            notes.append(note)
    return cursor, [*_of_checks(failed), *notes]


def _records(
    read: Callable[[int], Sequence[dg.EventLogRecord]], after: int, until: float
) -> Iterator[dg.EventLogRecord]:
    for _ in range(MOST_BATCHES):
        found = read(after)
        for record in found:
            if record.timestamp > until:
                return
            after = record.storage_id
            yield record
        if len(found) < BATCH:
            return


def _evaluations(instance: dg.DagsterInstance, after: int | None, *, limit: int) -> Sequence[dg.EventLogRecord]:
    wanted = dg.EventRecordsFilter(event_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION, after_cursor=after)
    # Of the storage: the instance's method of this name is deprecated and has no successor for checks.
    return instance.event_log_storage.get_event_records(wanted, limit=limit, ascending=after is not None)


def _run_failures(instance: dg.DagsterInstance, after: int) -> Sequence[dg.EventLogRecord]:
    wanted = dg.RunStatusChangeRecordsFilter(event_type=dg.DagsterEventType.RUN_FAILURE, after_storage_id=after)
    return instance.fetch_run_status_changes(wanted, limit=BATCH, ascending=True).records


# --- From events to alerts -------------------------------------------------------------------------------------------


def _is_failed(evaluation: dg.AssetCheckEvaluation) -> bool:
    return not evaluation.passed and evaluation.severity is dg.AssetCheckSeverity.ERROR


def _of_checks(failed: Iterable[dg.AssetCheckEvaluation]) -> Iterator[Note]:
    """The failed checks of one stage are one alert: the layout of a page changed, and three checks say so."""
    groups: dict[tuple[str, str], list[dg.AssetCheckEvaluation]] = {}
    for evaluation in failed:
        source, stage = evaluation.asset_key.path[0], evaluation.asset_key.path[-1]
        if evaluation.check_name == FRESH:
            yield _of_fresh(source, evaluation)
        else:
            groups.setdefault((source, stage), []).append(evaluation)
    for (source, stage), evaluations in groups.items():
        checks = dict.fromkeys(each.check_name for each in evaluations)
        windows = dict.fromkeys(each.partition or "" for each in evaluations)
        yield Note(
            source=source,
            cause=f"{stage}: checks failed",
            title=f"{source}: {', '.join(checks)} failed in {stage} of {_some(windows)}",
            body="\n".join(
                f"* {each.check_name} ({each.partition}): {each.description}" for each in evaluations[:MOST_LISTED]
            ),
            page=_checks_of(source, stage),
        )


def _of_fresh(source: str, evaluation: dg.AssetCheckEvaluation) -> Note:
    cause, fix = (str(_value(evaluation, name)) for name in ("cause", "what to do"))
    return Note(
        source=source,
        cause=f"not fresh: {cause}",
        title=f"{source}: not fresh: {cause}",
        body=f"{_value(evaluation, 'message')}\nWhat to do: {fix}",
        page=_checks_of(source, evaluation.asset_key.path[-1]),
    )


def _checks_of(source: str, stage: str) -> str:
    return f"/assets/{quote(source)}/{quote(stage)}?view=checks"


def _value(evaluation: dg.AssetCheckEvaluation, name: str) -> Any:
    found = evaluation.metadata.get(name)
    return found.value if found else ""


def _of_run(instance: dg.DagsterInstance, record: dg.EventLogRecord) -> Note | None:
    run = instance.get_run_by_id(record.event_log_entry.run_id)
    if run is None or names.TOOL_TAG in run.tags:  # whoever launched an owner's tool is looking at its page
        return None
    error = first_error(instance, run.run_id)
    if error.kind in TOLD_ELSEWHERE | DECIDED:
        return None
    tag = run.tags.get(names.SOURCE_TAG, "")
    source = error.source if tag in {"", names.SEVERAL} and error.source else tag or run.job_name
    window = run.tags.get(names.PARTITION_TAG, "no window")
    event = record.event_log_entry.dagster_event
    lost = (event.message if event else None) or "its process was lost"
    return Note(
        source=source,
        cause=f"run failed: {error.stage or 'run'}: {error.kind or 'process lost'}",
        title=f"{source}: run of {window} failed" + (f" in {error.stage}" if error.stage else ""),
        body=f"{error.message or lost}\nRun {run.run_id}",
        page=f"/runs/{run.run_id}",
    )


def _of_broken(broken: Broken) -> Note:
    """Once per file and error."""
    said = hashlib.sha256(str(broken).encode()).hexdigest()[:12]
    return Note(
        source=broken.source or broken.file,
        cause=f"broken file: {said}",
        title=f"source file left out: {broken.file}",
        body=f"{broken}\nThe other sources go on. Mend the file, then reload the code location.",
        page="/locations",
        repeats=False,
    )


def _some(windows: Iterable[str]) -> str:
    first, *more = windows
    return f"{first} and {len(more)} more windows" if more else first or "no window"
