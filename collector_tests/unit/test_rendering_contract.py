"""What a source file may say about a rendering service, and what it is told when it says something else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pandera.pandas as pa
import pytest

from collector_assets.contract import (
    Daily,
    InJson,
    Kind,
    Link,
    Page,
    Record,
    RenderingService,
    Secret,
    Session,
    Source,
    seconds,
)
from collector_assets.errors import ContractError
from collector_assets.rendering_services import (
    alterlab,
    brightdata_web_unlocker,
    firecrawl,
    firecrawl_at_home,
    scrapingbee,
)

KEY = Secret("RENDERING_KEY")


def extract(_page: Page) -> Iterator[Record]:
    yield Record("record", {})


def service(**changes: Any) -> RenderingService:
    said: dict[str, Any] = {
        "name": "renderer", "endpoint": "https://api.renderer.example/scrape", "body": {"url": "{url}"},
        "html": InJson("html"), "price": 0, **changes,
    }  # fmt: skip
    return RenderingService(**said)


def source(**changes: Any) -> Source:
    said: dict[str, Any] = {
        "name": "books", "start_urls": ("https://shop.example/p-1.html",), "entity": "upc", "extractor_version": "1",
        "kinds": {"detail": Kind(extract=extract, fetcher="rendering")}, "rendering": service(),
        "schema": pa.DataFrameSchema({"upc": pa.Column(str)}), "window": Daily(start="2026-01-01"), **changes,
    }  # fmt: skip
    return Source(**said)


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"endpoint": "ftp://a.example/"}, "endpoint", "no http(s) URL"),
        ({"endpoint": "https://me:pass@a.example/"}, "endpoint", "no http(s) URL without user and password"),
        ({"endpoint": "http://a.example/"}, "endpoint", "only for a service inside"),
        ({"endpoint": "https://a.example/?country=us"}, "endpoint", "'country' asks the service for a disguise"),
        ({"body": {"page": "{URL}"}}, "body", '"{url}" is nowhere'),
        ({"body": {"url": "{url}", "proxy": "stealth"}}, "body", "'proxy' asks the service for a disguise"),
        ({"query": {"premium_proxy": "true"}}, "query", "'premium_proxy' asks the service for a disguise"),
        ({"headers": {"x-user-agent": "Mozilla/5.0"}}, "headers", "'x-user-agent' asks the service for a disguise"),
        ({"headers": {"X-Key": "a\r\nb"}}, "headers", "control characters"),
        ({"headers": {"Host": "a"}}, "headers", "ours to say"),
        ({"method": "GET"}, "body", "a GET has no body"),
        ({"body": {"url": "{url}", "when": object()}}, "body", "is no JSON"),
        ({"price": 1.0}, "cap", "is required where a call has a price"),
        ({"price": 1.0, "cap": 0.5}, "cap", "0.5 is less than one call costs (1)"),
        ({"allow_addresses": ("169.254.169.254/32",)}, "allow_addresses", "169.254.169.254"),
    ],
)
def test_a_wrong_service_is_told_the_field(changes: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(ContractError, match=re.escape(problem)) as caught:
        service(**changes)
    assert caught.value.field == f"RenderingService.{field}"
    assert ":pass" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"meanings": {500: "wait"}}, "RenderingService.meanings"),
        ({"html": "data.html"}, "RenderingService.html"),
        ({"markdown": True}, "RenderingService.markdown: unknown field"),
        ({"price": -1.0}, "RenderingService.price"),
    ],
)
def test_a_wrong_type_is_told_the_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ContractError) as caught:
        service(**changes)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"rendering": None}, "rendering", 'detail: fetcher="rendering" needs a RenderingService'),
        ({"kinds": {"detail": Kind(extract=extract)}}, "rendering", 'no kind says fetcher="rendering"'),
        ({"headers": {"Accept-Language": "de"}}, "rendering", "no headers"),
        (
            {"kinds": {"detail": Kind(extract=extract, fetcher="rendering", headers={"A": "b"})}},
            "rendering",
            "no headers",
        ),
        (
            {"kinds": {"detail": Kind(extract=extract, fetcher="rendering", method="POST")}},
            "rendering",
            "no other method",
        ),
        ({"session": Session(login=Link("https://shop.example/login"), proof="a")}, "rendering", "no session"),
        (
            {"total_timeout": seconds(5), "connect_timeout": seconds(1), "read_timeout": seconds(1)},
            "total_timeout",
            "at least 10 s",
        ),
        ({"rendering": service(endpoint="http://render.localhost/")}, "rendering", "is written 127.0.0.1"),
        ({"start_urls": ("http://shop.localhost:8765/",)}, "rendering", "the demo site is rendered by itself"),
    ],
)
def test_a_source_that_cannot_be_rendered_is_told_why(changes: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(ContractError, match=re.escape(problem)) as caught:
        source(**changes)
    assert (caught.value.source, caught.value.field) == ("books", field)


@pytest.mark.parametrize(
    "made",
    [
        alterlab(key=KEY, cap=5), firecrawl(key=KEY, cap=500), firecrawl_at_home(), scrapingbee(key=KEY, cap=500),
        brightdata_web_unlocker(key=KEY, zone="unlocker1", cap=5),
    ],
    ids=lambda made: made.endpoint.split("/")[2],
)  # fmt: skip
def test_every_preset_may_be_used(made: RenderingService) -> None:
    assert source(rendering=made).rendering == made
    assert made.cap is not None or made.price == 0
    assert "RENDERING_KEY" in repr((made.headers, made.query)) or made.price == 0
