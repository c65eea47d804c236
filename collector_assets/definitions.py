"""Where settings, sources and stores meet: `defs` is what Dagster loads.

Opens nothing: a code location must load while Postgres is down. One broken source never stops the others.
"""

import logging
import re
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import dagster as dg

# `backfill_policy`, partitioned checks and the like; with fifty sources their warnings would flood every log.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

from collector_assets import registry  # noqa: E402  after the filters, which the decorators of the graph need
from collector_assets.contract import Source  # noqa: E402
from collector_assets.database import migrate  # noqa: E402
from collector_assets.errors import ContractError  # noqa: E402
from collector_assets.graph.factory import build_source  # noqa: E402
from collector_assets.graph.resources import Installation  # noqa: E402
from collector_assets.registry import Broken, Registry  # noqa: E402
from collector_assets.settings import Settings, load_settings  # noqa: E402

LOG = logging.getLogger(__name__)
BROKEN = "broken_sources"


class Built(NamedTuple):
    """Everything of one installation."""

    defs: dg.Definitions
    installation: Installation
    registry: Registry
    """Without the sources that Dagster refused: those are among the broken ones."""


def build(settings: Settings) -> Built:
    """Every source of these settings as Dagster definitions."""
    installation = _installation(settings)
    folders = [Path(folder) for folder in settings.sources.split(":") if folder]
    found = registry.load(folders, demo=settings.demo_sources)
    built: list[dg.Definitions] = []
    refused: list[Broken] = []
    for loaded in found.loaded:
        try:
            built.append(build_source(loaded.source, installation, loaded.locator))
        except Exception as error:  # noqa: BLE001  whatever Dagster thinks of one source, the others are built
            refused.append(Broken(file=loaded.file, source=loaded.source.name, error=_refusal(loaded.source, loaded.file, error)))
    names = {each.source for each in refused}
    usable = Registry(
        loaded=tuple(each for each in found.loaded if each.source.name not in names), broken=(*found.broken, *refused)
    )
    for broken in usable.broken:
        LOG.error("source left out: %s", broken)
    # In process also for runs that are started from an asset page: a process per step costs 3.6 s of CPU.
    rest = dg.Definitions(assets=list(_broken_assets(usable)), executor=dg.in_process_executor)
    return Built(dg.Definitions.merge(*built, rest), installation, usable)


def _installation(settings: Settings) -> Installation:
    return Installation(
        dsn=lambda: _dsn(settings),
        archive_folder=settings.archive_folder.absolute(),
        user_agent=settings.user_agent,
        demo_site=settings.demo_site,
        require_contact=settings.require_contact,
    )


def _dsn(settings: Settings) -> str:
    """The database that is named, or the embedded one, started or joined at its first use."""
    if settings.dsn is not None:
        return settings.dsn.get_secret_value()
    from collector_assets import embedded  # noqa: PLC0415  only where there is no server

    server = embedded.start(settings.state.absolute())
    migrate(server.dsn)
    return server.dsn


def _refusal(source: Source, file: str, error: Exception) -> ContractError:
    said = " ".join(str(error).split()) or type(error).__name__
    return ContractError("window", f"Dagster refuses it: {said}", source=source.name, file=file)


def _broken_assets(found: Registry) -> Iterator[dg.AssetSpec]:
    """What is broken stands in the asset list, in words, until it is mended."""
    seen: set[str] = set()
    for broken in found.broken:
        stem = re.sub(r"\W+", "_", broken.source or Path(broken.file).stem) or "unnamed"
        name = next(name for name in chain([stem], (f"{stem}_{n}" for n in range(2, 1_000_000))) if name not in seen)
        seen.add(name)
        yield dg.AssetSpec(
            dg.AssetKey([BROKEN, name]),
            group_name=BROKEN,
            description=f"**This source is not collected.**\n\n{broken}\n\nMend the file, then reload the code location.",
            metadata={"error": str(broken), "file": dg.MetadataValue.path(broken.file)},
            kinds={"broken"},
        )


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads; made when it asks, so that commands can build from their own settings."""
    return build(load_settings()).defs
