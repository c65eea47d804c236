"""The four assets of a source: each body calls one use case and reports it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import dagster as dg

from collector_assets import collect, discover, process, publish
from collector_assets.collect import Collected, Ending, Progress
from collector_assets.contract import Source
from collector_assets.errors import BrokenRecord, Refused, Unusable
from collector_assets.graph import checks, metadata, names
from collector_assets.graph.resources import Installation
from collector_assets.status import WindowStatus, window_status

# Per-request retries are the frontier's; this one is for what ends a whole step (a database restart, a full disk).
STEP_RETRY = dg.RetryPolicy(max_retries=3, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)

Results = Iterator[dg.MaterializeResult | dg.AssetCheckResult]


def build(source: Source, installation: Installation) -> list[dg.AssetsDefinition]:
    """frontier -> raw_pages -> records -> latest."""
    partitions = names.partitions_of(source)

    def stage(name: str, description: str, **more: Any) -> Callable[..., Any]:
        upstream = names.STAGES[names.STAGES.index(name) - 1] if name != "frontier" else None
        return dg.asset(
            key=names.asset_key(source.name, name),
            deps=[names.asset_key(source.name, upstream)] if upstream else [],
            description=description,
            group_name=source.name,
            owners=list(source.owners) or None,
            tags=names.run_tags(source),
            partitions_def=partitions,
            retry_policy=STEP_RETRY,
            check_specs=checks.specs(source, name, partitions),
            output_required=False,
            **more,
        )

    @stage("frontier", f"Requests to make for one window of {source.name}: pass 1 follows the listings.", kinds={"http", "postgres"}, pool=source.domain)  # fmt: skip
    def frontier(context: dg.AssetExecutionContext) -> Results:
        with explained():
            done = discover.run(
                source=source, window=names.window_of(context), database=installation.database,
                archive=installation.archive, fetcher=installation.fetcher(source), progress=_logged(context),
            )  # fmt: skip
            status = window_status(installation.database, source.name, context.partition_key)
        if is_unfinished(status, done.collected):
            yield from checks.of_unfinished(source, "frontier", status, done.collected)
            return
        seen = {"requests_added": done.opened.added + done.collected.found, "superseded": ", ".join(done.opened.superseded) or "none"}
        yield dg.MaterializeResult(
            metadata={"dagster/partition_row_count": status.counts.planned, **metadata.of_collecting(status, done.collected), **seen}
        )
        yield from checks.of_discovering(source, status)

    @stage("raw_pages", f"Every page of one window of {source.name}, as received, in WARC files.", kinds={"http", "file"}, pool=source.domain)  # fmt: skip
    def raw_pages(context: dg.AssetExecutionContext) -> Results:
        with explained():
            row = window_status(installation.database, source.name, context.partition_key).row
            done = collect.run(
                source=source, window=row, kinds=None, database=installation.database, archive=installation.archive,
                fetcher=installation.fetcher(source), progress=_logged(context),
            )  # fmt: skip
            status = window_status(installation.database, source.name, context.partition_key)
        if is_unfinished(status, done):
            yield from checks.of_unfinished(source, "raw_pages", status, done)
            return
        yield dg.MaterializeResult(
            metadata={**metadata.of_collecting(status, done), **metadata.of_pages(status, str(installation.archive.location))}
        )
        yield from checks.of_collecting(source, status)

    first = next(iter(source.schemas))

    @stage("records", f"Records read from the stored pages of {source.name}: history and quarantine. Never fetches.", kinds={"pandas", "postgres"}, metadata={"dagster/column_schema": metadata.column_schema(source, first)})  # fmt: skip
    def records(context: dg.AssetExecutionContext) -> Results:
        with explained():
            row = window_status(installation.database, source.name, context.partition_key).row
            report = process.run(
                source=source, window=row, database=installation.database, archive=installation.archive,
                progress=lambda done, total: context.log.info(f"read {done} of {total} pages"),
            )  # fmt: skip
        yield dg.MaterializeResult(metadata=metadata.of_reading(report))
        yield from checks.of_reading(source, report)

    @stage("latest", f"The newest passed observation of every entity of {source.name}.", kinds={"postgres"}, metadata={"dagster/column_schema": metadata.column_schema(source, first)})  # fmt: skip
    def latest(context: dg.AssetExecutionContext) -> Results:
        with explained():
            row = window_status(installation.database, source.name, context.partition_key).row
            report = publish.run(source=source, window=row, database=installation.database)
        yield dg.MaterializeResult(metadata=metadata.of_publishing(report))
        yield checks.of_publishing(source, report)

    return [frontier, raw_pages, records, latest]


def is_unfinished(status: WindowStatus, collected: Collected) -> bool:
    """Whether the pass must go on later; a superseded window ends as it is."""
    return collected.ending is not Ending.DRAINED and status.row.superseded_at is None


@contextmanager
def explained() -> Iterator[None]:
    """A refusal, a bad contract or broken bytes end the step at once, with the one line that says what to do."""
    try:
        yield
    except (Unusable, Refused, BrokenRecord) as error:
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    raise dg.Failure(description=str(error), metadata={"error": type(error).__name__}, allow_retries=False) from error


def _logged(context: dg.AssetExecutionContext) -> Callable[[Progress], None]:
    def log(progress: Progress) -> None:
        eta = f", about {progress.to_fetch / progress.per_second:.0f} s left" if progress.per_second else ""
        waiting = f", {progress.waiting_for}" if progress.waiting_for else ""
        context.log.info(f"{progress.answered} answers, {progress.to_fetch} to fetch, {progress.per_second:.1f}/s{eta}{waiting}")

    return log
