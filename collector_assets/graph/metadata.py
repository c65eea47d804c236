"""What the UI shows beside a materialization or a check: bounded, never a list per URL (rule 21)."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import dagster as dg

from collector_assets.collect import Collected
from collector_assets.contract import Source, schema_columns
from collector_assets.discover import Discovered
from collector_assets.graph.columns import column_schema
from collector_assets.process import ReadingReport
from collector_assets.publish import PublishReport
from collector_assets.status import WindowStatus
from collector_assets.window_inputs import WindowInput

MOST_CELL = 120
"""Characters of a cell."""
MOST_TABLE = 2_500
"""Characters of a table's cells: a few tables stay well under the 10 kB that an event may have."""
MOST_STARTS = 5


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> dg.TableMetadataValue:
    """A table of short texts and numbers, cut where it gets long; an empty one keeps its columns."""
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    shown = _bounded([{name: _cell(row.get(name)) for name in names} for row in rows])
    schema = dg.TableSchema(columns=[dg.TableColumn(name=name) for name in names])
    return dg.MetadataValue.table(records=[dg.TableRecord(row) for row in shown], schema=schema)


def _bounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept, size = 0, 0
    for row in rows:
        size += sum(len(name) + len(str(value)) for name, value in row.items())
        if size > MOST_TABLE:
            break
        kept += 1
    return rows[: max(kept, 1)]


def _cell(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= MOST_CELL else text[: MOST_CELL - 1] + "…"


def outcomes(status: WindowStatus) -> dg.TableMetadataValue:
    """Where the window's requests are."""
    return table(status.counts.outcome_table(), columns=("kind", "state", "outcome", "requests"))


# --- Of a definition -------------------------------------------------------------------------------------------------


def of_contract(source: Source) -> dict[str, Any]:
    """What the source says about itself, for people who look at the asset."""
    budget, gap, window = source.budget, source.budget.gap.total_seconds(), source.window
    starts = [item if isinstance(item, str) else item.url for item in source.start_urls] + [*source.sitemap_starts]
    said = {
        "domain": source.domain,
        "starts": dg.MetadataValue.md("\n".join(f"* `{url}`" for url in starts[:MOST_STARTS]) or "from a function"),
        "windows": f"{window.cron} ({window.timezone}), from {window.start}",
        "backfill": "yes: the starts name the window"
        if source.is_window_named
        else "no: pages show the site as it is now",
        "budget": f"{budget.slots} at once, {gap:g} s after each answer, weight {budget.weight:g}, per {budget.per}",
        "lanes": ", ".join(f"{lane}: {weight}" for lane, weight in source.lanes.items()),
        "kinds": ", ".join(source.kind_map),
        "max_requests": source.max_requests,
    }
    if source.inputs:
        said["inputs"] = ", ".join(f"{name} ({type(given).__name__})" for name, given in source.inputs.items())
    return said | ({"licence_note": source.licence_note} if source.licence_note else {})


def of_record_types(source: Source) -> dict[str, Any]:
    """The columns of the first record type where Dagster shows columns; further types beside it."""
    first, *further = source.schemas
    shown: dict[str, Any] = {"dagster/column_schema": column_schema(source, first)}
    if further:
        rows = [
            {
                "record type": name,
                "entity": source.entity_field(name),
                "columns": ", ".join(schema_columns(schema) or ()),
            }
            for name, schema in source.schemas.items()
        ]
        shown["record_types"] = table(rows)
        shown |= {f"columns of {name}": dg.MetadataValue.table_schema(column_schema(source, name)) for name in further}
    return shown


# --- Of a materialization --------------------------------------------------------------------------------------------


def of_discovering(status: WindowStatus, done: Discovered) -> dict[str, Any]:
    """Pass 1."""
    seen = {"dagster/partition_row_count": status.counts.planned, **_of_window(status), **_of_work(done.collected)}
    seen["requests_added"] = done.opened.added + done.collected.found
    if status.inputs:
        seen["inputs"] = table([_of_input(each) for each in status.inputs])
    if done.mended:
        seen["listings_read_again"] = done.mended
    if done.opened.superseded:
        seen["superseded_windows"] = ", ".join(done.opened.superseded)
    return seen


def _of_input(read: WindowInput) -> dict[str, Any]:
    digest = f"sha256:{read.digest.hex()[:16]}"
    return {"input": read.input, "rows": read.row_count, "digest": digest, "read at": f"{read.read_at:%F %T} UTC"}


def of_collecting(status: WindowStatus, done: Collected, archive: str) -> dict[str, Any]:
    """Pass 2: the window's pages and where their bytes are."""
    pages = status.pages
    return {
        "dagster/partition_row_count": pages.good,
        "complete": status.is_complete,
        **_of_window(status),
        **_of_work(done),
        "pages": pages.pages,
        "good_pages": pages.good,
        "unchanged_pages": pages.unchanged,
        "bytes_stored": pages.stored_bytes,
        "warc_files": len(pages.warc_files),
        "warc_location": dg.MetadataValue.path(_location(archive, pages.warc_files)),
    }


def of_view(url: str, picture: bytes) -> dict[str, Any]:
    """A page as a browser showed it; too large a picture stays in the archive, for the event log keeps what is here."""
    if len(picture) > MOST_PICTURE:
        return {"view": f"{url}: {len(picture):,} bytes, in the archive as urn:view:{url}"}
    shown = base64.b64encode(picture).decode("ascii")
    return {"view": dg.MetadataValue.md(f"`{url}`\n\n![as a browser showed it](data:image/png;base64,{shown})")}


def _of_window(status: WindowStatus) -> dict[str, Any]:
    """Counts of the whole window, whoever did the work."""
    counts = status.counts
    seen: dict[str, Any] = {
        "planned": counts.planned,
        "done": counts.done,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "outstanding": counts.outstanding,
        "to_fetch": counts.to_fetch,
        "to_read": counts.to_read,
        "attempts": counts.attempts,
        "retries": counts.retries,
        "outcomes": outcomes(status),
    }
    if counts.oldest_waiting_at:
        seen["oldest_waiting_since"] = dg.MetadataValue.timestamp(counts.oldest_waiting_at)
    if status.row.bound_reached:
        seen["bound_reached"] = status.row.bound_reached
    if status.spent:
        seen["rendering_spent"] = "; ".join(f"{s.service}: {s.calls} calls, {s.amount:f}" for s in status.spent)
    if status.row.superseded_at:
        seen["superseded_at"] = dg.MetadataValue.timestamp(status.row.superseded_at)
    if status.rejected_links:
        rows = [
            {
                "reason": link.reason,
                "detail": link.detail,
                "links": link.count,
                "example": link.example,
                "found on": link.referrer,
            }
            for link in status.rejected_links
        ]
        seen["rejected_links"] = table(rows)
    return seen


MOST_PICTURE = 500_000
"""Bytes of a picture that is shown in the UI."""
PAGE_LOADS = "page_loads"
"""What pages in a browser wanted besides their documents, by what became of it."""


def _of_work(done: Collected) -> dict[str, Any]:
    """What this run added."""
    loads = {PAGE_LOADS: dg.MetadataValue.json(dict(done.loads))} if done.loads else {}
    return loads | {
        "requests_sent": done.sent,
        "bytes_received": done.wire_bytes,
        "late_results_refused": done.refused,
        "seconds": round(done.seconds, 3),
        "requests_per_second": round(done.sent / done.seconds, 2) if done.seconds else 0.0,
    }


def _location(archive: str, files: Sequence[str]) -> str:
    """The one file, or the folder that the files share; in an object store, their URL."""
    if not files:
        return archive
    return f"{archive}/{files[0] if len(files) == 1 else PurePosixPath(files[0]).parent}"


def preview(source: Source, rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """A few records, in the schema's order; type and entity stand beside them only where there are several types."""
    if len(source.schemas) > 1:
        return table(rows)
    return table(rows, schema_columns(next(iter(source.schemas.values()))) or ())


def of_reading(source: Source, report: ReadingReport) -> dict[str, Any]:
    """What extraction made of the stored pages."""
    by_type = {f"records/{name}": number for name, number in report.records.items()} if len(report.records) > 1 else {}
    return {
        "dagster/partition_row_count": report.records_total,
        "pages_read": report.pages,
        "records": report.records_total,
        **by_type,
        "rejects": report.rejects,
        "new_records": report.new_observations,
        "changed_records": report.changed,
        "gone_records": report.gone,
        "extractor_version": report.extractor_version,
        "verdict": "passed" if report.verdict.passed else "failed",
        "preview": preview(source, report.preview),
        "seconds": round(report.seconds, 3),
    }


def of_publishing(source: Source, report: PublishReport) -> dict[str, Any]:
    """What changed in `latest`."""
    problem = {"view_problem": report.view_problem} if report.view_problem else {}
    return problem | {
        "dagster/row_count": report.total,
        "dagster/partition_row_count": report.from_window,
        "inserted": report.inserted,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "moved_back": report.moved_back,
        "withdrawn": report.withdrawn,
        "removed": report.removed,
        "returned": report.returned,
        "there": report.there,
        "shows_everything": not report.partial or f"no: {report.partial}",
        "views": ", ".join(report.views),
        "preview": preview(source, report.preview),
        "seconds": round(report.seconds, 3),
    }
