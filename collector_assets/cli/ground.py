"""What commands stand on: a database that answers, the sources, the stores of this installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from collector_assets import stack
from collector_assets.contract import Source
from collector_assets.database import Database
from collector_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    from collector_assets.graph.resources import Installation
    from collector_assets.registry import Registry


@contextmanager
def running(settings: Settings) -> Iterator[stack.Stack]:
    """The databases of these settings, started or joined where they are embedded."""
    dsn = settings.dsn.get_secret_value() if settings.dsn else None
    url = settings.dagster_url.get_secret_value() if settings.dagster_url else None
    with stack.running(state=settings.state, dsn=dsn, dagster_url=url) as ground:
        yield ground


def registry_of(settings: Settings) -> Registry:
    """Every source of these settings."""
    from collector_assets import registry

    return registry.load(settings.source_folders, demo=settings.demo_sources)


def installation_of(settings: Settings, ground: stack.Stack) -> Installation:
    """The stores of these settings."""
    from collector_assets.graph.resources import Installation

    return Installation(
        dsn=lambda: ground.dsn, archive=settings.archive_location, user_agent=settings.user_agent,
        demo_site=settings.demo_site, require_contact=settings.require_contact, chromium=settings.chromium,
    )  # fmt: skip


@contextmanager
def owned(source: str) -> Iterator[tuple[Source, Database]]:
    """The source, and the database of its windows."""
    settings = load_settings()
    chosen = registry_of(settings).get(source)
    with running(settings) as ground, Database(ground.dsn) as database:
        yield chosen, database
