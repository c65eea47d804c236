"""Rendering services by name: what each one's public documentation says, as `RenderingService`.

Each is declared so that it renders the page and does nothing else for us: what asks for a disguise is left out, and
switched off where it is on by default. What a service does by itself behind its address we cannot see; the docstrings
say what is known of it, and `docs/rendering-services.md` what that means for you. Caps are yours to say, in the unit of
the price; a preset's `price` is what the documentation says one such call costs at most.

Looked up in stored copies of these pages; none of the services was called.
"""

from __future__ import annotations

from typing import Final

from collector_assets.contract import InHeader, InJson, RenderingService, Secret

FIRECRAWL: Final = "https://api.firecrawl.dev/v2/scrape"
FIRECRAWL_AT_HOME: Final = "http://127.0.0.1:3002/v2/scrape"
SCRAPINGBEE: Final = "https://app.scrapingbee.com/api/v1/"
ALTERLAB: Final = "https://api.alterlab.io/api/v1/scrape"
BRIGHTDATA: Final = "https://api.brightdata.com/request"


def _bearer(key: Secret) -> Secret:
    """The key as an Authorization header wants it."""
    return key if key.prefix else Secret(key.name, "Bearer ")


def alterlab(*, key: Secret, cap: float, price: float = 0.001, endpoint: str = ALTERLAB) -> RenderingService:
    """AlterLab, in dollars: the page as its browser has it.

    https://alterlab.io/docs/api/rest, https://alterlab.io/docs/reference/error-codes (a block or a challenge is a 403)
    and the official client, https://github.com/RapierCraft/AlterLab-SDK (`CostControls`: tier 4 is the browser, $0.001
    a call; tier 5 solves CAPTCHAs). Where a page takes long AlterLab answers 202 with a job to ask for; that is tried
    again, as a new call. Not found: the address that a page led to (it reports none), and whether every account counts
    tiers like the client: the page of error codes speaks of CAPTCHAs at tier 4. Look at yours before you use it.
    """
    return RenderingService(
        name="alterlab",
        endpoint=endpoint,
        headers={"X-API-Key": key},
        body={
            "url": "{url}", "mode": "js", "sync": True, "cache": False, "formats": ["html"], "timeout": "{timeout_s}",
            "advanced": {"render_js": True, "use_proxy": False, "remove_cookie_banners": False},
            "cost_controls": {"max_tier": "4", "fail_fast": True},
        },
        html=InJson("content.html"),
        status=InJson("status_code"),
        site_headers=InJson("headers"),
        errors=(InJson("error"), InJson("detail")),
        meanings={"BLOCKED_BY_ANTIBOT": "refused", "CHALLENGE_DETECTED": "refused", 403: "refused"},
        price=price,
        cap=cap,
    )  # fmt: skip


def firecrawl(
    *,
    key: Secret | None,
    cap: float | None,
    price: float = 1,
    endpoint: str = FIRECRAWL,
    allow_addresses: tuple[str, ...] = (),
) -> RenderingService:
    """Firecrawl's cloud, in credits: the page as its browser has it (`rawHtml`), not from its cache.

    https://docs.firecrawl.dev/api-reference/endpoint/scrape and https://docs.firecrawl.dev/features/enhanced-mode (the
    proxy is "auto" by default, which tries a better disguise where the plain one is refused; here it is "basic", at 1
    credit). Errors by https://github.com/firecrawl/firecrawl, apps/api/src/controllers/v2/scrape.ts: a `code`, or a
    text alone for 401, 402 (no credits left) and 429.
    """
    return RenderingService(
        name="firecrawl",
        endpoint=endpoint,
        headers={"Authorization": _bearer(key)} if key else {},
        body={
            "url": "{url}", "formats": ["rawHtml"], "onlyMainContent": False, "proxy": "basic", "maxAge": 0,
            "storeInCache": False, "parsers": [], "timeout": "{timeout_ms}",
        },
        html=InJson("data.rawHtml"),
        status=InJson("data.metadata.statusCode"),
        final_url=InJson("data.metadata.url"),
        content_type=InJson("data.metadata.contentType"),
        errors=(InJson("code"), InJson("error")),
        meanings={
            "SCRAPE_UNSUPPORTED_FILE_ERROR": "fail", "UNSUPPORTED_SITE": "fail", "unsafe_domain_blocked": "fail",
            "SCRAPE_*": "retry", 400: "stop",
        },
        price=price,
        cap=cap,
        allow_addresses=allow_addresses,
    )  # fmt: skip


def firecrawl_at_home(
    *,
    endpoint: str = FIRECRAWL_AT_HOME,
    allow_addresses: tuple[str, ...] = ("127.0.0.1/32",),
    key: Secret | None = None,
) -> RenderingService:
    """A Firecrawl of your own: free, and without a key unless yours asks for one.

    https://docs.firecrawl.dev/contributing/self-host: port 3002, no authentication, no proxies but those that you give
    it. It stands inside your network: `allow_addresses` lets us reach *it* there, and nothing else.
    """
    return firecrawl(key=key, cap=None, price=0, endpoint=endpoint, allow_addresses=allow_addresses)


def scrapingbee(*, key: Secret, cap: float, price: float = 5, endpoint: str = SCRAPINGBEE) -> RenderingService:
    """ScrapingBee, in credits: the page as its browser has it, under the site's own status.

    https://www.scrapingbee.com/documentation/ and
    https://help.scrapingbee.com/en/article/what-kind-of-headers-are-returned-by-the-api-17lh4xw/ (headers of the site
    begin with Spb-, and Spb-resolved-url is there where the site has answered); 5 credits with scripts and the plain
    proxies. 401 and 402 mean the key or the credits, 429 too many at once. Not found: the text of the documentation
    itself; the parameters are those of the official client, https://github.com/ScrapingBee/scrapingbee-cli.
    """
    return RenderingService(
        name="scrapingbee",
        endpoint=endpoint,
        method="GET",
        query={
            "api_key": key, "url": "{url}", "render_js": "true", "transparent_status_code": "true",
            "premium_proxy": "false", "stealth_proxy": "false", "block_ads": "false", "timeout": "{timeout_ms}",
        },
        final_url=InHeader("Spb-resolved-url"),
        site_headers=InHeader("Spb-"),
        answered=InHeader("Spb-resolved-url"),
        price=price,
        cap=cap,
    )  # fmt: skip


def brightdata_web_unlocker(
    *, key: Secret, zone: str, cap: float, price: float = 0.0015, endpoint: str = BRIGHTDATA
) -> RenderingService:
    """Bright Data's Web Unlocker, in dollars.

    https://docs.brightdata.com/scraping-automation/web-unlocker/send-your-first-request and
    https://docs.brightdata.com/scraping-automation/web-unlocker/error-codes: whatever the site said comes with status
    200, and the site's own in `x-brd-status-code`; an error has `x-brd-error-code` or `x-brd-err-code`. It says that it
    chooses proxies, sets fingerprints and solves CAPTCHAs *by itself*: no request asks for that, and none can refuse
    it. Switch it off in the zone's settings; where that cannot be done, use this only where the site has agreed to be
    collected. It reports no address that a page led to. Not found: the price of a call on your plan.
    """
    return RenderingService(
        name="brightdata",
        endpoint=endpoint,
        headers={"Authorization": _bearer(key)},
        body={"zone": zone, "url": "{url}", "format": "raw", "method": "GET"},
        status=InHeader("x-brd-status-code"),
        answered=InHeader("x-brd-status-code"),
        errors=(InHeader("x-brd-error-code"), InHeader("x-brd-err-code"), InHeader("x-brd-error")),
        meanings={
            "reject_block": "refused", "*captcha*": "refused", "*hardblock*": "refused",
            "ub_bad_endpoint_robots": "refused", "client_*": "stop", "premium": "stop", "feature_not_active": "stop",
            "policy_*": "fail", 400: "stop",
        },
        price=price,
        cap=cap,
    )  # fmt: skip
