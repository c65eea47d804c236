"""A source with a rendering service as an installation runs it, on the open web's side of the guard."""

from __future__ import annotations

import dagster as dg

from collector_assets.contract import Budget, Kind, Link, RenderingService, Source, replace, seconds
from collector_assets.demo import DemoSite
from collector_assets.graph.resources import Installation
from collector_assets.rendering_services import firecrawl_at_home
from collector_assets.sources.shop import SHOP, extract
from collector_tests.fixtures.services import ServiceSite
from collector_tests.graph.test_materialize import attempts_of, collect, failure_of, metadata_of

HERE = ("127.0.0.1/32",)


def source(site: DemoSite, services: ServiceSite, **service: object) -> Source:
    """Three pages of the shop, found at its number, by a service on this machine."""
    at_home = firecrawl_at_home(endpoint=f"http://{services.address}/firecrawl?site={site.address}")
    rendering: RenderingService = replace(at_home, **service)
    return replace(
        SHOP, name="rendered", discover=None, extract=None, rendering=rendering, allow_addresses=HERE,
        kinds={"detail": Kind(extract=extract, fetcher="rendering", may_be_empty=True)}, scope=("127.0.0.1",),
        start_urls=tuple(Link(f"http://{site.address}/catalogue/page-{number}.html") for number in (1, 2, 3)),
        budget=Budget(gap=seconds(0), slots=1),
    )  # fmt: skip


def test_pages_come_through_the_service_and_what_was_spent_is_shown(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite, services: ServiceSite
) -> None:
    rendered = source(site, services, price=0.5, cap=10.0)
    result = collect(rendered, installation, instance, "frontier", "raw_pages")

    assert len(services.calls) == 3
    assert metadata_of(result, "raw_pages")["rendering_spent"] == "firecrawl: 3 calls, 1.5"


def test_an_empty_purse_ends_the_step_once_and_says_what_to_do(
    installation: Installation, instance: dg.DagsterInstance, site: DemoSite, services: ServiceSite
) -> None:
    """Rule 23: another attempt would find it empty too."""
    rendered = source(site, services, price=0.5, cap=1.0)
    result = collect(rendered, installation, instance, "frontier", "raw_pages")

    assert attempts_of(result, "raw_pages") == 1
    assert "would pass the cap of this window (1): raise RenderingService.cap" in failure_of(result, "raw_pages")
    assert len(services.calls) == 2
