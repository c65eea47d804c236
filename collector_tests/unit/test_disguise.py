"""What asks a rendering service for a disguise, by whatever name services call it."""

from __future__ import annotations

from typing import Any

import pytest

from collector_assets import disguise


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"stealth_proxy": "true"}, "stealth_proxy"),  # ScrapingBee
        ({"premium_proxy": True}, "premium_proxy"),
        ({"country_code": "us"}, "country_code"),
        ({"forward_headers": "true"}, "forward_headers"),
        ({"device": "mobile"}, "device"),
        ({"proxy": "stealth"}, "proxy"),  # Firecrawl
        ({"proxy": "auto"}, "proxy"),
        ({"location": {"country": "DE"}}, "location.country"),
        ({"mobile": True}, "mobile"),
        ({"headers": {"User-Agent": "Mozilla/5.0"}}, "headers.User-Agent"),
        ({"Spb-User-Agent": "x"}, "Spb-User-Agent"),
        ({"cost_controls": {"max_tier": "5"}}, "cost_controls.max_tier"),  # AlterLab
        ({"cost_controls": {"min_tier": "auto"}}, "cost_controls.min_tier"),
        ({"advanced": {"use_proxy": True}}, "advanced.use_proxy"),
        ({"advanced": {"proxy_country": "US"}}, "advanced.proxy_country"),
        ({"asp": True}, "asp"),  # Scrapfly
        ({"super": "true"}, "super"),  # scrape.do
        ({"geoCode": "us"}, "geoCode"),
        ({"antibot": True}, "antibot"),  # ZenRows
        ({"solveCaptcha": 1}, "solveCaptcha"),
        ({"actions": [{"wait": 1}, {"captcha": {"solve": True}}]}, "actions.captcha"),
        ({"bypass": ["cloudflare"]}, "bypass"),
        ({"customHeaders": {"a": "b"}}, "customHeaders"),
    ],
)
def test_is_found_at_any_depth(given: dict[str, Any], found: str) -> None:
    assert disguise.asked(given) == found


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"proxy": "basic"},
        {"stealth_proxy": "False", "premium_proxy": False, "use_proxy": None, "captcha": 0},
        {"cost_controls": {"max_tier": "4"}},
        {"url": "https://proxy.example/?country=us&stealth=1", "wait_for": ".captcha-free"},
        {"description": "x", "zip": 1, "script": "x", "render_js": True, "window_width": 1280},
    ],
)
def test_what_is_off_or_about_something_else_may_be_said(given: dict[str, Any]) -> None:
    assert disguise.asked(given) is None
