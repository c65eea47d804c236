"""What the UI shows beside a materialization or a check: bounded, never a list per URL (rule 21)."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from collector_assets.collect import Collected
from collector_assets.contract import Source
from collector_assets.process import ReadingReport
from collector_assets.publish import PublishReport
from collector_assets.status import WindowStatus

CELL_LIMIT = 200
PREVIEW_ROWS = 10


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> dg.TableMetadataValue:
    """A table of short texts and numbers; an empty one keeps its columns."""
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    records = [dg.TableRecord({name: _cell(row.get(name)) for name in names}) for row in rows]
    schema = dg.TableSchema(columns=[dg.TableColumn(name=name) for name in names])
    return dg.MetadataValue.table(records=records, schema=schema)


def _cell(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= CELL_LIMIT else text[: CELL_LIMIT - 1] + "…"


def of_collecting(status: WindowStatus, collected: Collected) -> dict[str, Any]:
    """Counts of the window and what this run added to it."""
    counts = status.counts
    seen: dict[str, Any] = {
        "planned": counts.planned,
        "done": counts.done,
        "fetched": counts.fetched,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "outstanding": counts.outstanding,
        "attempts": counts.attempts,
        "retries": counts.retries,
        "outcomes": table(counts.outcome_table(), columns=("kind", "state", "outcome", "requests")),
        "complete": status.is_complete,
        "requests_sent": collected.sent,
        "bytes_received": collected.wire_bytes,
        "late_results_refused": collected.refused,
        "seconds": round(collected.seconds, 3),
        "requests_per_second": round(collected.sent / collected.seconds, 2) if collected.seconds else 0.0,
    }
    if status.row.bound_reached:
        seen["bound_reached"] = status.row.bound_reached
    if status.row.superseded_at:
        seen["superseded_at"] = dg.MetadataValue.timestamp(status.row.superseded_at)
    if status.rejected_links:
        rows = [
            {"reason": link.reason, "links": link.count, "example": link.example, "found on": link.referrer}
            for link in status.rejected_links[:PREVIEW_ROWS]
        ]
        seen["rejected_links"] = table(rows)
    return seen


def of_pages(status: WindowStatus, archive_folder: str) -> dict[str, Any]:
    """The window's pages and where their bytes are."""
    pages = status.pages
    return {
        "dagster/partition_row_count": pages.good,
        "pages": pages.pages,
        "good_pages": pages.good,
        "bytes_stored": pages.wire_bytes,
        "warc_files": len(pages.warc_files),
        "warc_location": dg.MetadataValue.path(_location(archive_folder, pages.warc_files)),
    }


def _location(folder: str, files: Sequence[str]) -> str:
    if len(files) == 1:
        return f"{folder}/{files[0]}"
    return f"{folder}/{files[0].rsplit('/', 1)[0]}" if files else folder


def of_reading(report: ReadingReport) -> dict[str, Any]:
    """What extraction made of the stored pages."""
    return {
        "dagster/partition_row_count": report.records_total,
        "pages_read": report.pages,
        "records": report.records_total,
        **{f"records/{name}": number for name, number in report.records.items() if len(report.records) > 1},
        "rejects": report.rejects,
        "new_records": report.new_observations,
        "changed_records": report.changed,
        "extractor_version": report.extractor_version,
        "verdict": "passed" if report.verdict.passed else "failed",
        "preview": table(report.preview[:PREVIEW_ROWS]),
        "seconds": round(report.seconds, 3),
    }


def of_publishing(report: PublishReport) -> dict[str, Any]:
    """What changed in `latest`."""
    return {
        "dagster/row_count": report.total,
        "dagster/partition_row_count": report.from_window,
        "inserted": report.inserted,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "withdrawn": report.withdrawn,
        "preview": table(report.preview[:PREVIEW_ROWS]),
        "seconds": round(report.seconds, 3),
    }


def column_schema(source: Source, record_type: str) -> dg.TableSchema:
    """The columns of a record type, from its pandera schema."""
    schema = source.schemas[record_type]
    made = schema.to_schema() if hasattr(schema, "to_schema") else schema
    columns = [
        dg.TableColumn(
            name=name,
            type=str(column.dtype),
            description=column.description or column.title or None,
            constraints=dg.TableColumnConstraints(
                nullable=column.nullable,
                unique=name == source.entity_field(record_type),
                other=[str(check) for check in column.checks],
            ),
        )
        for name, column in made.columns.items()
    ]
    return dg.TableSchema(columns=columns)
