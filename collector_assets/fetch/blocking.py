"""What a browser does not load: by its own list where it can decide alone, and by the kind of thing asked for. Pure.

What the list holds back never leaves the page's process, and asks nobody. A stranger's domain needs no list: nothing is
sent there unless the source allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from collector_assets.contract import Loads

FILES: Final[Mapping[Loads, tuple[str, ...]]] = {
    "image": ("png", "jpg", "jpeg", "gif", "webp", "avif", "svg", "ico", "bmp"),
    "media": ("mp4", "webm", "m4v", "mov", "mp3", "ogg", "wav", "m3u8", "ts"),
    "font": ("woff", "woff2", "ttf", "otf", "eot"),
    "stylesheet": ("css",),
}
TRACKERS: Final = (
    "google-analytics.com", "googletagmanager.com", "doubleclick.net", "googlesyndication.com", "googleadservices.com",
    "connect.facebook.net", "facebook.com/tr", "hotjar.com", "clarity.ms", "segment.io", "segment.com", "mixpanel.com",
    "amplitude.com", "fullstory.com", "mouseflow.com", "matomo.cloud", "scorecardresearch.com", "quantserve.com",
    "criteo.com", "criteo.net", "taboola.com", "outbrain.com", "adnxs.com", "bat.bing.com", "analytics.tiktok.com",
    "snap.licdn.com", "newrelic.com", "nr-data.net", "sentry.io", "cdn.cookielaw.org",
)  # fmt: skip
"""Hosts that watch visitors: a source that allows a whole domain does not mean them."""
NEVER: Final = frozenset(("CSPViolationReport", "Manifest", "Other", "Ping", "Prefetch", "SignedExchange", "WebSocket"))
"""Resource types of DevTools that no page needs to be built: reports, icons, what is fetched in case."""


def patterns(block: Iterable[Loads], more: Iterable[str], *, trackers: bool) -> list[str]:
    """URL patterns for the browser's own list (`*` is anything)."""
    files = [f"*.{ending}{rest}" for each in block for ending in FILES.get(each, ()) for rest in ("", "?*")]
    watchers = [f"*://*{host}/*" if "/" not in host else f"*://*{host}*" for host in TRACKERS] if trackers else []
    return [*files, *watchers, "ws://*", "wss://*", *more]


def is_unwanted(resource_type: str, block: Iterable[Loads], headers: Mapping[str, str]) -> bool:
    """Whether a thing of this type is not loaded, or only fetched in case that it will be wanted."""
    purpose = {name.lower(): value for name, value in headers.items()}.get("sec-purpose", "")
    return resource_type in NEVER or resource_type.lower() in set(block) or "prefetch" in purpose
