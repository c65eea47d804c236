"""The owner's tools as jobs of the deployment, one per verb: what the commands do, without a shell.

They send nothing and materialize nothing: `replay` and `recollect` say which partition to materialize next.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import dagster as dg
from pydantic import Field

from collector_assets import listing, recollect, replay, report, resume_origin, retain
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.errors import Refused, Unusable
from collector_assets.graph import metadata, names
from collector_assets.graph.resources import Installation
from collector_assets.listing import Requests
from collector_assets.put_back import PutBack, Wish
from collector_assets.registry import Registry
from collector_assets.report import Report
from collector_assets.selected import RequestRow
from collector_assets.selection import STATES, Selection

WINDOW_TAG = "collector/window"
"""Not Dagster's partition tag: that would make the run one of those that collect the window."""
SHOWN = 20
Results = Iterator[dg.Output]
BUDGET = ("budget_key", "source", "gap_s", "slots", "weight", "holding", "waiting", "closed_for_s")
INTERVENTION = ("at", "verb", "by_whom", "requests", "reason")
PLACES = ("where", "requests")
RETAINED = ("source", "windows", "pages", "files", "bytes", "needed", "waiting", "observations", "rejects")
REQUEST = ("id", "state", "outcome", "attempts", "kind", "entity", "reason", "url")


class OfWindow(dg.Config):
    """Which window."""

    source: str = Field(description="name of a source")
    window: str = Field(description="key of a window (its partition), such as 2026-11-29")


class OfOrigin(dg.Config):
    """Which origin may be asked again, and why."""

    origin: str = Field(description="as the alert or the failed step names it, such as https://shop.example")
    reason: str = Field(description="why it is right to go on; kept in the table interventions")
    by: str = Field(default="", description="who decided it")


class OfSources(dg.Config):
    """Whose old pages, rejects and history to discard. Nothing is discarded until `dry_run` is false."""

    sources: list[str] = Field(default=[], description="names of sources; all of them where none is named")
    dry_run: bool = Field(default=True, description="count and show, and discard nothing; false does it")


class OfNewest(dg.Config):
    """Which window; the newest where none is named."""

    source: str = Field(description="name of a source")
    window: str = Field(default="", description="key of a window; without it the newest that was opened")


class Limited(OfWindow):
    """How much of a window to list."""

    limit: int = Field(default=SHOWN, description="rows at most; the page shows as many as fit")


class Choice(OfWindow):
    """Which requests of a window: those that fit every criterion that is given."""

    ids: list[int] = Field(default=[], description="requests by their ids, as the job `requests` lists them")
    states: list[str] = Field(default=[], description=f"where they are: {', '.join(STATES)}")
    outcomes: list[str] = Field(default=[], description="how attempts ended, such as timeout")
    reason_has: str = Field(default="", description="part of the reason, in any case")
    kinds: list[str] = Field(default=[], description="kinds of pages")
    entities: list[str] = Field(default=[], description="what the pages are about, as in `latest`")
    url_has: str = Field(default="", description="part of the URL, in any case")

    def selection(self) -> Selection:
        """As the use cases take it."""
        return Selection(
            ids=tuple(self.ids), states=tuple(self.states), outcomes=tuple(self.outcomes), reason_has=self.reason_has,
            kinds=tuple(self.kinds), entities=tuple(self.entities), url_has=self.url_has,
        )  # fmt: skip


class Listed(Choice):
    """What to list."""

    limit: int = Field(default=SHOWN, description="rows at most; the page shows as many as fit")


class Again(Choice):
    """What to put back, and why. Nothing is changed until `dry_run` is false."""

    reason: str = Field(description="why; kept in the table interventions")
    by: str = Field(default="", description="who decided it")
    everything: bool = Field(default=False, description="the whole window; give no criterion then")
    dry_run: bool = Field(default=True, description="count and show, and change nothing; false does it")


def build(found: Registry, installation: Installation) -> list[dg.JobDefinition]:
    """One job per verb, for all sources of the deployment."""
    desk = _Desk(found, installation)

    @_op("report", "Counts, verdict, rejects by reason, budget, and what there is to do.")
    def report_op(context: dg.OpExecutionContext, config: OfNewest) -> Results:
        with desk.serving(context, config.source, config.window) as source:
            done = report.run(source, config.window or None, desk.database)
            yield _said(context, [f"{done.status.row.window.key}: {remark}" for remark in _remarks(done)], _card(done))

    @_op("requests", "The requests of a window: where each is, how it ended, and why.")
    def requests_op(context: dg.OpExecutionContext, config: Listed) -> Results:
        with desk.serving(context, config.source, config.window) as source:
            done = listing.requests(source, config.window, config.selection(), desk.database, limit=config.limit)
            yield _said(context, [f"{done.total} requests"], {"total": done.total, **_listed(done)})

    @_op("rejects", "The records of a window that did not pass, with every failure case: column, check, value.")
    def rejects_op(context: dg.OpExecutionContext, config: Limited) -> Results:
        with desk.serving(context, config.source, config.window) as source:
            done = listing.quarantine(source, config.window, desk.database, limit=config.limit)
            columns = ("type", "entity", "column", "check", "value", "page")
            shown = {"total": done.total, "failure_cases": metadata.table(done.cases, columns)}
            yield _said(context, [f"{done.total} records did not pass"], shown)

    @_op("replay", "Put failed(fetch) requests back, with new attempts. Sends nothing.")
    def replay_op(context: dg.OpExecutionContext, config: Again) -> Results:
        with desk.serving(context, config.source, config.window) as source:
            done = replay.run(_wish(context, source, config), desk.database)
            yield _said(context, [done.summary, done.next_step], _of_putting_back(done))

    @_op("recollect", "Have pages fetched again that were fetched before. Sends nothing.")
    def recollect_op(context: dg.OpExecutionContext, config: Again) -> Results:
        with desk.serving(context, config.source, config.window) as source:
            done = recollect.run(_wish(context, source, config), desk.database)
            yield _said(context, [done.summary, done.next_step], _of_putting_back(done))

    @_op("resume_origin", "Let requests go to an origin again that refused us and is halted. Sends nothing.")
    def resume_origin_op(context: dg.OpExecutionContext, config: OfOrigin) -> Results:
        with _explained():
            by = _who(context, config.by)
            done = resume_origin.run(config.origin, reason=config.reason, by=by, database=desk.database)
            yield _said(context, [f"{done.origin} may be asked again", done.next_step], asdict(done))

    @_op("retain", "Discard what is older than the `retention` of its source says. Sends nothing.")
    def retain_op(context: dg.OpExecutionContext, config: OfSources) -> Results:
        with _explained():
            named = [found.get(name) for name in config.sources]
            chosen = named or [each.source for each in found.loaded]
            done = retain.run(chosen, desk.database, installation.archive, is_dry=config.dry_run)
            rows = [asdict(each) | {"waiting": ", ".join(each.waiting)} for each in done]
            yield _said(context, [each.summary for each in done], {"retained": metadata.table(rows, RETAINED)})

    verbs = (report_op, requests_op, rejects_op, replay_op, recollect_op, resume_origin_op, retain_op)
    return [_job(op) for op in verbs]


def _op(name: str, description: str) -> Callable[[Callable[..., Results]], dg.OpDefinition]:
    return dg.op(name=name, description=description, out=dg.Out(dg.Nothing))


def _job(op: dg.OpDefinition) -> dg.JobDefinition:
    """The op as a job: one short process, no pool, nothing of the queue's limits."""
    # Ops and graphs must differ in their names; the launchpad shows the op's.
    graph = dg.GraphDefinition(name=f"{op.name}_in_a_window", node_defs=[op], description=op.description)
    return graph.to_job(name=op.name, tags={names.TOOL_TAG: op.name}, executor_def=dg.in_process_executor)


class _Desk:
    """Where the ops work."""

    def __init__(self, found: Registry, installation: Installation) -> None:
        self._found, self._installation = found, installation

    @property
    def database(self) -> Database:
        return self._installation.database

    @contextmanager
    def serving(self, context: dg.OpExecutionContext, source: str, window: str) -> Iterator[Source]:
        """The source by its name, noted on the run; what a person must change is one line on the run's page."""
        with _explained():
            chosen = self._found.get(source)
            tags = {names.SOURCE_TAG: chosen.name} | ({WINDOW_TAG: window} if window else {})
            context.instance.add_run_tags(context.run_id, tags)
            yield chosen


@contextmanager
def _explained() -> Iterator[None]:
    """What a person must change is one line on the run's page."""
    try:
        yield
    except (Unusable, Refused) as error:
        about = {"error": type(error).__name__}
        raise dg.Failure(description=str(error), metadata=about, allow_retries=False) from error


def _wish(context: dg.OpExecutionContext, source: Source, config: Again) -> Wish:
    return Wish(
        source=source, window=config.window, selection=config.selection(), everything=config.everything,
        reason=config.reason, by=_who(context, config.by), dry_run=config.dry_run,
    )  # fmt: skip


def _who(context: dg.OpExecutionContext, by: str) -> str:
    """Who it was: Dagster knows no users, so at least the run is named."""
    return f"{by.strip() or 'the Dagster UI'}, run {context.run_id}"


def _said(context: dg.OpExecutionContext, lines: list[str], shown: Mapping[str, Any]) -> dg.Output[None]:
    """What was done, as lines of the run's log and as metadata of its one output."""
    for line in lines:
        context.log.info(line)
    return dg.Output(None, metadata={"summary": "\n".join(lines), **shown})


# --- What the run's page shows ---------------------------------------------------------------------------------------


def _tally(places: Mapping[str, int]) -> dg.TableMetadataValue:
    return metadata.table([{"where": place, "requests": number} for place, number in places.items()], PLACES)


def _row(row: RequestRow) -> dict[str, Any]:
    return {
        "id": row.request_id, "state": row.place, "outcome": row.outcome, "kind": row.kind, "entity": row.entity,
        "attempts": f"{row.attempts}/{row.max_attempts}", "reason": row.reason, "url": row.url,
    }  # fmt: skip


def _listed(done: Requests) -> dict[str, Any]:
    return {"where": _tally(done.places), "requests": metadata.table([_row(row) for row in done.rows], REQUEST)}


def _of_putting_back(done: PutBack) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "requests": done.requests,
        "dry_run": done.dry_run,
        "attempts": done.attempts,
        "were": _tally(done.were),
        "left_alone": _tally(done.left_alone),
        "also_to_fetch": done.also_to_fetch,
        "late": done.is_late,
        "examples": metadata.table([_row(row) for row in done.examples], REQUEST),
        "next_step": done.next_step,
    }
    if done.intervention is None:
        return shown
    materialize = dg.MetadataValue.asset(names.asset_key(done.source, "raw_pages"))
    return shown | {"intervention": done.intervention, "partition": done.window, "materialize": materialize}


def _remarks(done: Report) -> tuple[str, ...]:
    return done.remarks or ("nothing to do",)


def _card(done: Report) -> dict[str, Any]:
    row, latest = done.status.row, done.latest
    card: dict[str, Any] = {
        "window": row.window.key,
        "outcomes": metadata.outcomes(done.status),
        "unread_pages": done.unread,
        "rejects": done.rejects,
        "rejects_by_reason": metadata.table(done.reject_reasons, ("check", "column", "count", "value")),
        "late_results": row.late_results,
        "bound": row.bound_reached or "none reached",
        "latest_entities": latest.entities,
        "budget": metadata.table([asdict(each) for each in done.budget], BUDGET),
        "interventions": metadata.table([asdict(each) for each in done.interventions], INTERVENTION),
    }
    if done.verdict:
        findings = [asdict(finding) for finding in done.verdict.findings]
        card["verdict"] = metadata.table(findings, ("check", "passed", "severity", "message"))
    if latest.age_s is not None:
        card |= {"latest_window": latest.newest_window, "latest_age_h": round(latest.age_s / 3600, 2)}
    if done.freshness:
        card["freshness_h"] = done.freshness.total_seconds() / 3600
    if done.oldest_waiting:
        card["oldest_waiting_s"] = round(done.oldest_waiting.total_seconds(), 1)
    return card
