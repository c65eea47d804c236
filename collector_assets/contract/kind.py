"""A class of pages, and what is done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets.contract.browser import View
from collector_assets.contract.headers import Headers
from collector_assets.contract.refusing import STRICT, Refusing
from collector_assets.media import Media
from collector_assets.page import Page
from collector_assets.record import Record, Unreadable
from collector_assets.request import Link

SITEMAP = "sitemap"
"""The kind of the pages of `Source.sitemaps`; what they lead to is read by `sitemap.py`."""
Discover = Callable[[Page], Iterable[Link]]
Extract = Callable[[Page], Iterable[Mapping[str, Any] | Record | Unreadable]]
OnStatus = Literal["gone", "not_yet", "fail", "skip", "restart"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Kind(Refusing):
    """A class of pages in a source. Pass 1 fetches the kinds that have `discover`, pass 2 the rest."""

    discover: Discover | None = Field(default=None, description="(Page) -> links found on a page of this kind")
    extract: Extract | None = Field(
        default=None, description="(Page) -> records on a page of this kind; pure: no network, clock, database"
    )
    fetcher: Literal["http", "browser", "rendering"] = Field(
        default="http",
        description="how pages of this kind are fetched: by us, in a browser of ours (`view`), or by the source's "
        "`rendering`",
    )
    view: View = Field(default_factory=View, description='with fetcher="browser": what is done with a page')
    dedupe: Literal["url", "entity"] = Field(
        default="url", description="what makes two requests of this kind the same work"
    )
    accepts: tuple[Media, ...] = Field(
        default=(),
        description="what a page may be by its first bytes, else by its header: html, xml, json, text (CSV too), pdf, "
        "image, zip (XLSX too), gzip, binary; empty: anything but markup that is a sealed file, or the reverse",
    )
    may_be_empty: bool = Field(default=False, description="a page without records is fine")
    method: str = Field(default="GET", pattern=r"^[A-Z]+$", description="default method of links of this kind")
    headers: Headers = Field(default_factory=dict, description="request headers of this kind, added to the source's")
    refetch: Literal["window", "once"] | timedelta = Field(
        default="window",
        description="when an item that was fetched in an earlier window is fetched again: in each window, never, or "
        "after a time (sooner where a sitemap's lastmod or `Link.changed_at` says that it changed); else it is skipped",
    )
    stop_after_known: int | None = Field(
        default=None,
        ge=1,
        description="on a kind that lists the newest first: so many known items in a row, up to a listing's end, and "
        "its links to further listings of its kind are not followed",
    )
    encoding: str | None = Field(
        default=None, description="the charset of pages whose header says another; without it the source's"
    )
    on_status: Mapping[int, OnStatus] = Field(
        default_factory=dict,
        description='what a status means for this kind: "gone" and "skip" are skipped, "fail" fails at once, "not_yet" '
        'is asked again until the window has closed, "restart": its cursor is dead, and its chain of listings starts '
        "over; none of them is a refusal",
    )
    max_restarts: int = Field(
        default=3,
        ge=0,
        le=100,
        description="how often a chain of listings of this kind starts over in a window because its cursor is dead "
        '(`on_status` "restart", or `discover` raises RestartChain); then it fails (cursor_expired)',
    )
