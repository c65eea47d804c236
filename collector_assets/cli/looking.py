"""Commands that show the owner of a source how a window stands: its requests, its quarantine, its report card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from collector_assets.cli import show
from collector_assets.cli.arguments import (
    AsJson,
    Entity,
    Id,
    Kind,
    Limit,
    Outcome,
    ReasonHas,
    SourceName,
    State,
    UrlHas,
    WindowKey,
    meant,
)
from collector_assets.cli.ground import owned

if TYPE_CHECKING:
    from collector_assets.report import Report

commands = typer.Typer()


@commands.command()
def requests(
    source: SourceName,
    window: WindowKey,
    state: State = None,
    outcome: Outcome = None,
    reason_has: ReasonHas = "",
    kind: Kind = None,
    entity: Entity = None,
    url_has: UrlHas = "",
    request: Id = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List a window's requests: where each is, how it ended, and why."""
    from collector_assets import listing

    selection = meant(
        ids=request, outcomes=outcome, reason_has=reason_has, kinds=kind, entities=entity, url_has=url_has, states=state
    )
    with owned(source) as (chosen, database):
        found = listing.requests(chosen, window, selection, database, limit=limit)
    if as_json:
        show.in_json({
            "total": found.total, "places": found.places, "requests": [asdict(row) for row in found.rows],
        })  # fmt: skip
        return
    columns = ("id", "kind", "entity", "state", "outcome", "attempts", "reason", "url")
    show.table("Requests", [show.request_row(row) for row in found.rows], columns)
    show.line(f"{len(found.rows)} of {found.total}: {show.tally(found.places)}")


@commands.command()
def rejects(source: SourceName, window: WindowKey, limit: Limit = 20, as_json: AsJson = False) -> None:
    """List the records that did not pass, each with every failure case: column, check, value."""
    from collector_assets import listing

    with owned(source) as (chosen, database):
        found = listing.quarantine(chosen, window, database, limit=limit)
    if as_json:
        show.in_json({"total": found.total, "rejects": [asdict(row) for row in found.rows]})
        return
    rows = found.cases
    show.table("Rejects", rows, ("type", "entity", "column", "check", "value", "page"))
    show.line(f"{len(found.rows)} of {found.total} records, {len(rows)} failure cases")


@commands.command()
def report(
    source: SourceName,
    window: Annotated[str | None, typer.Argument(help="Key of a window; the newest without it.")] = None,
    as_json: AsJson = False,
) -> None:
    """The report card of a window: counts, verdict, rejects by reason, budget, and what there is to do."""
    from collector_assets import report as use_case

    with owned(source) as (chosen, database):
        found = use_case.run(chosen, window, database)
    if as_json:
        show.in_json(_report_values(found))
    else:
        _show_report(found)


# --- The report ------------------------------------------------------------------------------------------------------


def _report_values(found: Report) -> dict[str, Any]:
    waited = found.oldest_waiting
    return {
        "window": show.status_row(found.status), "remarks": found.remarks,
        "outcomes": found.status.counts.outcome_table(),
        "pages": asdict(found.status.pages), "unread": found.unread,
        "rejected_links": [asdict(each) for each in found.status.rejected_links],
        "verdict": asdict(found.verdict) if found.verdict else None,
        "rejects": found.rejects, "reject_reasons": found.reject_reasons,
        "oldest_waiting_s": waited.total_seconds() if waited else None,
        "latest": asdict(found.latest), "freshness_s": found.freshness.total_seconds() if found.freshness else None,
        "budget": [asdict(each) for each in found.budget],
        "interventions": [asdict(each) for each in found.interventions],
    }  # fmt: skip


def _show_report(found: Report) -> None:
    row = found.status.row
    opened, closes = (f"{at:%Y-%m-%d %H:%M}" for at in (row.opened_at, row.closes_at))
    show.line(f"{row.source} {row.window.key}: opened {opened}, closes {closes} UTC")
    show.table("Requests", found.status.counts.outcome_table(), ("kind", "state", "outcome", "requests"))
    if found.verdict:
        _show_verdict(found)
    if found.status.rejected_links:
        rows = [asdict(each) for each in found.status.rejected_links]
        show.table("Links that stayed out", rows, ("reason", "count", "example"))
    if found.budget:
        rows = [_budget_row(asdict(each)) for each in found.budget]
        show.table("Budget", rows, ("key", "source", "gap s", "slots", "weight", "holding", "waiting"))
    if found.interventions:
        rows = [asdict(each) for each in found.interventions]
        show.table("Interventions", rows, ("at", "verb", "by_whom", "requests", "reason"))
    show.line(_freshness(found))
    for remark in found.remarks or ("nothing to do",):
        show.line(f"* {remark}")


def _show_verdict(found: Report) -> None:
    assert found.verdict  # noqa: S101  the caller looked
    rows = [
        {"check": each.check, "message": each.message,
         "result": "passed" if each.passed else "FAILED" if each.severity == "ERROR" else "warned"}
        for each in found.verdict.findings
    ]  # fmt: skip
    show.table(f"Verdict on extractor version {found.verdict.extractor_version}", rows, ("check", "result", "message"))
    if found.reject_reasons:
        show.table("Rejects by reason", found.reject_reasons, ("check", "column", "count", "value"))


def _budget_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "key": row["budget_key"], "gap s": row["gap_s"]}


def _freshness(found: Report) -> str:
    latest, waited = found.latest, found.oldest_waiting
    parts = [f"latest holds {latest.entities} entities"]
    if latest.age_s is not None:
        parts.append(f"newest window {latest.newest_window}, fetched {latest.age_s / 3600:.1f} h ago")
    if found.freshness:
        parts.append(f"may be {found.freshness.total_seconds() / 3600:g} h old")
    if waited:
        parts.append(f"the oldest request has waited {waited.total_seconds():.0f} s")
    return "; ".join(parts)
