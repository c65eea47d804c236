"""The four assets of a source: each body calls one use case and reports it."""

import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import dagster as dg

from collector_assets import collect, discover, pages, process, publish
from collector_assets.collect import Collected, Ending, Progress
from collector_assets.contract import Source
from collector_assets.errors import BrokenRecord, Refused, Unusable
from collector_assets.graph import checks, freshness, lineage, metadata, names
from collector_assets.graph.resources import Installation
from collector_assets.spool import whole
from collector_assets.status import WindowStatus, window_row, window_status
from collector_assets.windows import WindowRow

# Retries of a request are the frontier's; this one is for what ends a whole step (a database restart, a full disk).
STEP_RETRY = dg.RetryPolicy(max_retries=3, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)

LINE_EVERY_S = 2.0

Results = Iterator[dg.MaterializeResult | dg.AssetCheckResult | dg.Output]
Body = Callable[[dg.AssetExecutionContext], Results]
Decorator = Callable[[Body], dg.AssetsDefinition]


def build(source: Source, installation: Installation, locator: str | None = None) -> list[dg.AssetsDefinition]:
    """All four, in their order. `locator` lets extraction use all cores (`registry.Loaded`)."""
    return [
        _frontier(source, installation),
        _raw_pages(source, installation, locator),
        _records(source, installation, locator),
        _latest(source, installation),
    ]


def _stage(source: Source, name: str, description: str, **more: Any) -> Decorator:
    """What the four have in common."""
    before = names.STAGES[: names.STAGES.index(name)][-1:]
    partitions = names.partitions_of(source)
    as_asset = dg.asset(
        key=names.asset_key(source.name, name),
        deps=[names.asset_key(source.name, stage) for stage in before] or lineage.inputs_of(source),
        description=f"{description}\n\n{source.description}".strip(),
        group_name=source.name,
        owners=list(source.owners),
        tags=names.run_tags(source),
        partitions_def=partitions,
        retry_policy=STEP_RETRY,
        check_specs=checks.specs(source, name, partitions),
        # An unfinished window yields no materialization: the run succeeds, what is below is skipped (rule 23).
        output_required=False,
        pool=source.domain if name in names.FETCHING else None,
        **more,
    )
    return lambda body: as_asset(_explained(body))


def _frontier(source: Source, installation: Installation) -> dg.AssetsDefinition:
    about = f"Requests to make in one window of {source.name}; pass 1 follows the listings."
    known = metadata.of_contract(source)

    @_stage(source, "frontier", about, kinds={"http", "postgres"}, metadata=known, code_version=str(source.edition))
    def frontier(context: dg.AssetExecutionContext) -> Results:
        window = names.window_of(context)
        done = discover.run(
            source=source, window=window, fetcher=installation.fetcher(source, window),
            database=installation.database, archive=installation.archive, progress=_logged(context),
        )  # fmt: skip
        status = window_status(installation.database, source.name, context.partition_key)
        if is_unfinished(status, done.collected):
            yield from checks.of_unfinished(context, source, "frontier", status, done.collected)
            return
        yield dg.MaterializeResult(metadata=metadata.of_discovering(status, done))
        yield from checks.of_discovering(source, status)

    return frontier


def _raw_pages(source: Source, installation: Installation, locator: str | None) -> dg.AssetsDefinition:
    about = f"Every page of one window of {source.name} as it was received, in WARC files."

    @_stage(source, "raw_pages", about, kinds={"http", "file"})
    def raw_pages(context: dg.AssetExecutionContext) -> Results:
        row = _row(context, source, installation)
        discover.require_in_time(source, row, installation.database)
        ahead = installation.ahead(source, row, locator if _is_read_next(context, source) else None)
        done = collect.run(
            source=source, window=row, kinds=None, fetcher=installation.fetcher(source, row.window),
            database=installation.database, archive=installation.archive, progress=_logged(context, ahead.consider),
        )  # fmt: skip
        status = window_status(installation.database, source.name, context.partition_key)
        if is_unfinished(status, done):
            yield from checks.of_unfinished(context, source, "raw_pages", status, done)
            return
        shown = metadata.of_collecting(status, done, installation.archive.location)
        yield dg.MaterializeResult(metadata=shown | _picture(source, installation))
        yield from checks.of_collecting(source, status)

    return raw_pages


def _picture(source: Source, installation: Installation) -> dict[str, Any]:
    """The newest page that a browser took a picture of, for kinds whose view says so."""
    kinds = [name for name, kind in source.kind_map.items() if kind.view.screenshot]
    if not kinds:
        return {}
    with installation.database.transaction() as connection:
        found = pages.newest(connection, source.name, kinds)
    for part in found[0].location.parts if found else ():
        if part.role == "view":
            return metadata.of_view(part.url, whole(installation.archive.read(part.location).body))
    return {}


def _records(source: Source, installation: Installation, locator: str | None) -> dg.AssetsDefinition:
    about = f"Records read from the stored pages of {source.name}: history, and the quarantine. Never fetches."
    columns, version = metadata.of_record_types(source), source.extractor_version

    @_stage(source, "records", about, kinds={"pandas", "postgres"}, metadata=columns, code_version=version)
    def records(context: dg.AssetExecutionContext) -> Results:
        row = _row(context, source, installation)
        report = process.run(
            source=source, window=row, locator=locator, helpers=installation.helpers_of(row),
            database=installation.database, archive=installation.archive, progress=_read(context),
        )  # fmt: skip
        yield dg.MaterializeResult(metadata=metadata.of_reading(source, report))
        yield from checks.of_reading(source, report)

    return records


def _latest(source: Source, installation: Installation) -> dg.AssetsDefinition:
    about = f"The newest observation that counts of every entity of {source.name}."

    @_stage(
        source, "latest", about, kinds={"postgres"}, metadata=metadata.of_record_types(source),
        freshness_policy=freshness.policy(source),
    )  # fmt: skip
    def latest(context: dg.AssetExecutionContext) -> Results:
        window = _row(context, source, installation)
        report = publish.run(source=source, window=window, database=installation.database)
        yield dg.MaterializeResult(metadata=metadata.of_publishing(source, report))
        yield from checks.of_publishing(source, report)

    return latest


def is_unfinished(status: WindowStatus, collected: Collected) -> bool:
    """Whether the pass must go on later; a superseded window ends as it is."""
    return collected.ending is not Ending.DRAINED and status.row.superseded_at is None


def _explained(body: Body) -> Body:
    """The body; what no second attempt can change ends it at once, with one line that says what to do."""

    @wraps(body)
    def explained(context: dg.AssetExecutionContext) -> Results:
        try:
            yield from body(context)
        except (Unusable, Refused, BrokenRecord) as error:
            raise _final(str(error), error) from error
        except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt) as error:
            # Left to Dagster, the retry policy would answer "Terminate" with another attempt.
            raise _final("interrupted: what was under way was given back; the window can go on", error) from error

    return explained


def _final(message: str, error: BaseException) -> dg.Failure:
    return dg.Failure(description=message, metadata={"error": type(error).__name__}, allow_retries=False)


def _row(context: dg.AssetExecutionContext, source: Source, installation: Installation) -> WindowRow:
    """The window as it was opened; UnknownWindow says to materialize `frontier` first."""
    return window_row(installation.database, source.name, context.partition_key)


def _is_read_next(context: dg.AssetExecutionContext, source: Source) -> bool:
    """Whether this run goes on to `records`, in this process."""
    selected = context.run.asset_selection
    return selected is None or names.asset_key(source.name, "records") in selected


def _logged(
    context: dg.AssetExecutionContext, also: Callable[[Progress], None] = lambda _: None
) -> Callable[[Progress], None]:
    def log(progress: Progress) -> None:
        also(progress)
        left = f", about {progress.to_fetch / progress.per_second:.0f} s left" if progress.per_second else ""
        waiting = f", {progress.waiting_for}" if progress.waiting_for else ""
        said = f"{progress.answered} answers, {progress.to_fetch} to fetch, {progress.per_second:.1f}/s{left}{waiting}"
        context.log.info(said)

    return log


def _read(context: dg.AssetExecutionContext) -> Callable[[int, int], None]:
    """A line every few seconds: one costs 8 ms and a row in Dagster's database."""
    said = time.monotonic()

    def log(done: int, total: int) -> None:
        nonlocal said
        if time.monotonic() - said >= LINE_EVERY_S:
            said = time.monotonic()
            context.log.info("%d of %d pages read", done, total)

    return log
