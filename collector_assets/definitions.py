"""Where settings, sources and stores meet: `defs` is what Dagster loads.

Opens nothing: a code location must load while Postgres is down. One broken source never stops the others.
"""

import gc
import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import dagster as dg

# `backfill_policy`, partitioned checks and the like; with fifty sources their warnings would flood every log.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

from collector_assets import channels, registry  # noqa: E402  after the filters, which the decorators of the graph need
from collector_assets.contract import Source  # noqa: E402
from collector_assets.database import migrate  # noqa: E402
from collector_assets.errors import ContractError  # noqa: E402
from collector_assets.graph import alerts, freshness, names, owner_jobs, resume, run_worker  # noqa: E402
from collector_assets.graph.factory import build_source  # noqa: E402
from collector_assets.graph.resources import Installation  # noqa: E402
from collector_assets.registry import Broken, Loaded, Registry  # noqa: E402
from collector_assets.settings import Settings, load_settings  # noqa: E402

LOG = logging.getLogger(__name__)
BROKEN = "broken_sources"


class Built(NamedTuple):
    """Everything of one installation."""

    defs: dg.Definitions
    installation: Installation
    registry: Registry
    """Without the sources that Dagster refused: those are among the broken ones."""


def build(settings: Settings, *, only: Sequence[str] | None = None) -> Built:
    """The sources of these settings as Dagster definitions: those that `only` names (by default `COLLECTOR_ONLY`)."""
    with _uncollected():
        return _build(settings, settings.only_names if only is None else only)


@contextmanager
def _uncollected() -> Iterator[None]:
    """What is made here stays: looking for garbage among it meanwhile costs a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _build(settings: Settings, only: Sequence[str]) -> Built:
    installation = _installation(settings)
    found = registry.load(settings.source_folders, demo=settings.demo_sources).only(only)
    built: list[dg.Definitions] = []
    usable, broken = list(found.loaded), list(found.broken)
    for loaded in found.loaded:
        try:
            built.append(build_source(loaded.source, installation, loaded.locator))
        except Exception as error:  # noqa: BLE001  whatever Dagster thinks of one source, the others are built
            usable.remove(loaded)
            broken.append(_refused(loaded, error))
    for each in broken:
        LOG.error("source left out: %s", each)
    # In process also for runs that are started from an asset page: a process per step costs 3.6 s of CPU.
    left = Registry(loaded=tuple(usable), broken=tuple(broken))
    rest = dg.Definitions(
        assets=list(_broken_assets(broken)),
        jobs=owner_jobs.build(left, installation),
        sensors=_sensors([loaded.source for loaded in usable], broken, installation, built, settings),
        executor=dg.in_process_executor,
    )
    return Built(dg.Definitions.merge(*built, rest), installation, left)


def _sensors(
    sources: Sequence[Source],
    broken: Sequence[Broken],
    installation: Installation,
    built: Iterable[dg.Definitions],
    settings: Settings,
) -> list[dg.SensorDefinition]:
    """What watches over all sources together."""
    jobs = [job for each in built for job in each.jobs or () if job.name.startswith(names.job_name(""))]
    return [
        freshness.sensor(sources, installation, jobs),
        resume.sensor(sources, installation, jobs),
        alerts.sensor(sources, broken, installation, lambda: channels.load(settings.alerts), settings.ui_url),
    ]


def _installation(settings: Settings) -> Installation:
    return Installation(
        dsn=lambda: _dsn(settings),
        archive=settings.archive_location,
        user_agent=settings.user_agent,
        demo_site=settings.demo_site,
        require_contact=settings.require_contact,
        chromium=settings.chromium,
    )


def _dsn(settings: Settings) -> str:
    """The database that is named, or the embedded one, started or joined at its first use."""
    if settings.dsn is not None:
        return settings.dsn.get_secret_value()
    from collector_assets import embedded  # noqa: PLC0415  only where there is no server

    server = embedded.start(settings.state.absolute())
    migrate(server.dsn)
    return server.dsn


def _refused(loaded: Loaded, error: Exception) -> Broken:
    said = " ".join(str(error).split()) or type(error).__name__
    source, file = loaded.source.name, loaded.file
    problem = ContractError("window", f"Dagster refuses it: {said}", source=source, file=file)
    return Broken(file=file, source=source, error=problem)


def _broken_assets(found: Iterable[Broken]) -> Iterator[dg.AssetSpec]:
    """What is broken stands in the asset list, in words, until it is mended."""
    taken = Counter[str]()
    for broken in found:
        name = re.sub(r"\W+", "_", broken.source or Path(broken.file).stem) or "unnamed"
        taken[name] += 1
        yield dg.AssetSpec(
            dg.AssetKey([BROKEN, name if taken[name] == 1 else f"{name}__{taken[name]}"]),
            group_name=BROKEN,
            description=f"**Not collected.** {broken}\n\nMend the file, then reload the code location.",
            metadata={"error": str(broken), "file": dg.MetadataValue.path(broken.file)},
            kinds={"broken"},
        )


def part(*only: str) -> dg.Definitions:
    """Some of the sources, by patterns as in `COLLECTOR_ONLY`: for a file that is a code location of its own."""
    run_worker.end_with_server()
    return build(load_settings(), only=run_worker.sources_of_run() or only).defs


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads; made when it asks, so that commands can build from their own settings."""
    run_worker.end_with_server()
    return build(load_settings(), only=run_worker.sources_of_run()).defs
