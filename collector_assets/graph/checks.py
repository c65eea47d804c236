"""Asset checks: one list of what must hold per stage, and their results from what the stores say.

Checks report; the guarantee is elsewhere (`publish` reads the stored verdict). All are partitioned.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from collector_assets.collect import Collected, Ending
from collector_assets.contract import Source
from collector_assets.graph import names
from collector_assets.graph.metadata import outcomes, table
from collector_assets.process import ReadingReport
from collector_assets.publish import PublishReport
from collector_assets.rejects import RejectRow
from collector_assets.status import WindowStatus

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR

ACCOUNTED = "every_request_accounted_for"
HOLDS: dict[str, dict[str, str]] = {
    "frontier": {
        ACCOUNTED: "Planned = done + failed + skipped + outstanding, and pass 1 left nothing open.",
        "bounds_not_reached": "Neither `max_requests` nor `max_depth` stopped discovery.",
    },
    "raw_pages": {
        ACCOUNTED: "Planned = done + failed + skipped + outstanding, and nothing is left to fetch.",
        "window_complete": "No request failed; an error above the source's `max_error_rate`.",
        "collected_in_window": "Everything was fetched before the window's end plus `grace`.",
        "items_have_own_pages": "No three requests were redirected to one page: mostly that is an error page.",
        "traps_not_suspected": "No listing led on and on without showing anything new; see `docs/links.md`.",
    },
    "records": {
        "pages_readable": "The extractor finds on every page what it looks for; an error above `max_error_rate`.",
        "schema_holds": "Every record passes the source's pandera schema; an error above `max_reject_rate`.",
        "reject_rate_within_limit": "Rejects / (records + rejects) is at most the source's `max_reject_rate`.",
        "record_count_expected": "There are at least `min_records` and at most `max_records`.",
        "entities_unique": "One record per entity and record type; of several the one of the first request is kept.",
        "stages_agree": "Every good page was read, and every record it gave is an observation or a reject.",
    },
    "latest": {
        "latest_agrees": "Every entity of the window is in `latest`, from this window or a newer one.",
        "removals_within_limit": "No more than `max_removed_rate` of the entities would be marked as removed at once.",
    },
}
# What the stores tell as JSON comes without an order.
COLUMNS = {
    "reasons": ("column", "check", "count", "value"),
    "problems": ("pages", "reason", "example", "outcome"),
}
BLOCKING = frozenset({("records", "schema_holds")})


def specs(source: Source, stage: str, partitions: dg.PartitionsDefinition) -> list[dg.AssetCheckSpec]:
    """The checks that a stage declares."""
    return [
        dg.AssetCheckSpec(
            name,
            asset=names.asset_key(source.name, stage),
            description=meaning,
            blocking=(stage, name) in BLOCKING,
            partitions_def=partitions,
        )
        for name, meaning in HOLDS[stage].items()
    ]


def result(
    source: Source,
    stage: str,
    name: str,
    *,
    passed: bool,
    message: str,
    severity: dg.AssetCheckSeverity = ERROR,
    **details: Any,
) -> dg.AssetCheckResult:
    """One check's result; the message says what to do where there is something to do."""
    return dg.AssetCheckResult(
        asset_key=names.asset_key(source.name, stage),
        check_name=name,
        passed=passed,
        severity=severity,
        description=message,
        metadata=details,
    )


def of_unfinished(
    context: dg.AssetExecutionContext, source: Source, stage: str, status: WindowStatus, collected: Collected
) -> Iterator[dg.AssetCheckResult | dg.Output]:
    """A window that must wait: no materialization, and one check says until when (rule 23)."""
    counts, until = status.counts, _due_at(collected)
    why = "the turn is over" if collected.ending is Ending.TURN_OVER else "the rest is not due yet"
    when = f"after {until:%Y-%m-%d %H:%M:%S} UTC" if until else "to go on"
    left = f"{counts.to_fetch} of {counts.planned} requests are still to be fetched"
    message = "; ".join([f"{left}: {why}", *collected.troubles, f"materialize the partition again {when}"])
    details: dict[str, Any] = {"outcomes": outcomes(status), "to_fetch": counts.to_fetch, "planned": counts.planned}
    if counts.oldest_waiting_at:
        details["oldest_waiting_since"] = dg.MetadataValue.timestamp(counts.oldest_waiting_at)
    if until:
        details["due_at"] = dg.MetadataValue.timestamp(until)
    yield result(source, stage, ACCOUNTED, passed=False, severity=WARN, message=message, **details)
    # Dagster wants an output for every declared check; one without a result is shown as skipped.
    for output, spec in context.assets_def.check_specs_by_output_name.items():
        if spec.name != ACCOUNTED:
            yield dg.Output(None, output_name=output)


def of_discovering(source: Source, status: WindowStatus) -> Iterator[dg.AssetCheckResult]:
    """Pass 1."""
    yield _accounted(source, "frontier", status, left=status.counts.by_kind(*source.discovering).to_fetch)
    bound = status.row.bound_reached
    stopped = f"{bound} reached: discovery stopped and the window is incomplete; raise {bound} in the source"
    message = stopped if bound else "no bound was reached"
    yield result(source, "frontier", "bounds_not_reached", passed=not bound, message=message)


def of_collecting(source: Source, status: WindowStatus) -> Iterator[dg.AssetCheckResult]:
    """Pass 2."""
    rate, limit = status.error_rate, source.expect.max_error_rate
    yield _accounted(source, "raw_pages", status, left=status.counts.to_fetch)
    yield result(
        source, "raw_pages", "window_complete",
        passed=status.is_complete, severity=_severity(status, rate, limit), message=_completeness(status, rate, limit),
        error_rate=rate, max_error_rate=limit,
    )  # fmt: skip
    late = status.pages.late
    yield result(
        source, "raw_pages", "collected_in_window", passed=not late, severity=WARN, late_pages=late,
        message=f"{late} pages were fetched after the window had closed: they show the site as it was then" if late
        else "every page was fetched before the window closed",
    )  # fmt: skip
    yield _own_pages(source, status)
    yield _traps(source, status)


def _own_pages(source: Source, status: WindowStatus) -> dg.AssetCheckResult:
    shared = status.shared_pages
    said = "; ".join(f"{count} requests ended at {url}" for url, count in shared[:3])
    return result(
        source, "raw_pages", "items_have_own_pages", passed=not shared, severity=WARN,
        message=f"{said}: if that is the site's way to say \"not found\", name its marker in soft_gone" if shared
        else "no page stands for several requests",
        **({"shared": table([{"page": url, "requests": count} for url, count in shared])} if shared else {}),
    )  # fmt: skip


def _traps(source: Source, status: WindowStatus) -> dg.AssetCheckResult:
    traps = status.suspected_traps
    left_out = sum(trap.count for trap in traps)
    patterns = ", ".join(trap.detail for trap in traps[:3])
    rows = [
        {"pattern": trap.detail, "links": trap.count, "example": trap.example, "on": trap.referrer} for trap in traps
    ]
    return result(
        source, "raw_pages", "traps_not_suspected", passed=not traps, severity=WARN,
        message=f"{left_out} links were not followed: {patterns}; pass them over in discover, or raise max_barren"
        if traps else "every listing led to something new, or to its end",
        **({"suspected": table(rows)} if rows else {}),
    )  # fmt: skip


def _severity(status: WindowStatus, rate: float, limit: float) -> dg.AssetCheckSeverity:
    return ERROR if rate > limit or status.row.bound_reached else WARN


def _completeness(status: WindowStatus, rate: float, limit: float) -> str:
    counts, row = status.counts, status.row
    if status.is_complete:
        return f"all {counts.planned} requests succeeded"
    parts = [f"{counts.failed} of {counts.planned} requests failed ({rate:.1%}, limit {limit:.1%})"]
    if row.superseded_at:
        parts.append(f"superseded: {counts.outstanding} were left when a newer window opened")
    if row.bound_reached:
        parts.append(f"{row.bound_reached} stopped discovery")
    return "; ".join(parts)


def of_reading(source: Source, report: ReadingReport) -> Iterator[dg.AssetCheckResult]:
    """The window's verdict, finding by finding; the schema's with examples of what did not hold."""
    for finding in report.verdict.findings:
        details = {
            name: table(value, COLUMNS.get(name, ())) if isinstance(value, list) else value
            for name, value in finding.details.items()
        }
        if finding.check == "schema_holds" and report.reject_examples:
            details["examples"] = table([_reject(row) for row in report.reject_examples])
        severity = ERROR if finding.severity == "ERROR" else WARN
        yield result(
            source,
            "records",
            finding.check,
            passed=finding.passed,
            severity=severity,
            message=finding.message,
            **details,
        )


def _reject(row: RejectRow) -> dict[str, Any]:
    reasons = "; ".join(f"{reason['column'] or 'row'}: {reason['check']} ({reason['value']})" for reason in row.reasons)
    return {"type": row.record_type, "entity": row.entity, "why": reasons, "page": row.url}


def of_publishing(source: Source, report: PublishReport) -> Iterator[dg.AssetCheckResult]:
    """Whether the window arrived in `latest`, and whether what is gone is so little that it can be believed."""
    missing = report.missing
    held = f"latest holds {report.total} entities, {report.from_window} from this window"
    message = f"{missing} entities of the window are not in latest" if missing else held
    yield result(source, "latest", "latest_agrees", passed=not missing, message=message, missing=missing)
    held, limit = report.held_back, source.expect.max_removed_rate
    yield result(
        source, "latest", "removals_within_limit", passed=not held, severity=WARN, removed=report.removed,
        held_back=held, max_removed_rate=limit,
        message=f"{held} of {report.there} entities would be marked as removed at once, so none is; if the site really "
        "lists so little now, raise expect.max_removed_rate and materialize again" if held
        else f"{report.removed} entities were marked as removed, {report.returned} are there again",
    )  # fmt: skip


def _accounted(source: Source, stage: str, status: WindowStatus, *, left: int) -> dg.AssetCheckResult:
    counts = status.counts
    ended = counts.done + counts.failed + counts.skipped
    parts = f"{counts.done} done + {counts.failed} failed + {counts.skipped} skipped + {counts.outstanding} outstanding"
    message = f"{counts.planned} planned = {parts} ({counts.to_fetch} to fetch, {counts.to_read} to read)"
    # A window that ended because a newer one opened leaves work undone; `window_complete` says so.
    is_settled = not left or status.row.superseded_at is not None
    passed = is_settled and counts.planned == ended + counts.outstanding
    return result(source, stage, ACCOUNTED, passed=passed, severity=ERROR, message=message, outcomes=outcomes(status))


def _due_at(collected: Collected) -> datetime | None:
    """For people only; decisions use the database's clock."""
    return (
        datetime.now(UTC) + timedelta(seconds=collected.next_due_in_s) if collected.next_due_in_s is not None else None
    )
