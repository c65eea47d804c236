"""The source: everything that a file says of one site, and what follows from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets.contract.browser import Browser
from collector_assets.contract.budget import Budget
from collector_assets.contract.checks import check
from collector_assets.contract.expect import Expect
from collector_assets.contract.headers import Headers
from collector_assets.contract.hosts import HasHosts
from collector_assets.contract.inputs import FromFile, FromQuery, FromSource
from collector_assets.contract.keys import Keys
from collector_assets.contract.kind import SITEMAP, Discover, Extract, Kind
from collector_assets.contract.kind_map import HasKinds
from collector_assets.contract.lengths import hours, seconds
from collector_assets.contract.refusing import STRICT, Refusing
from collector_assets.contract.rendering import RenderingService
from collector_assets.contract.retention import Retention
from collector_assets.contract.schemas import SchemaType
from collector_assets.contract.session import Session
from collector_assets.contract.start_urls import NAMED_WINDOW, named_url
from collector_assets.page import Page
from collector_assets.request import Link
from collector_assets.window import Schedule, Window

DEFAULT_LANE = "*"
SITEMAP_BYTES = 50 * 2**20
"""https://www.sitemaps.org/protocol.html"""

Combine = Callable[[str, list[Any]], Mapping[str, Any]]
SoftGone = Callable[[Page], bool]
Start = Callable[[Window, Mapping[str, Any]], Iterable[Link]]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Source(HasKinds, HasHosts, Refusing):
    """One site's contract. Short form: `discover`, `extract`, `schema`; long form: `kinds`, `records`."""

    name: str = Field(description="lower case, digits, underscores; names the assets, the job, the view")
    description: str = Field(default="", description="one sentence for the asset pages")
    start_urls: tuple[str | Link, ...] = Field(
        default=(),
        description="where a window starts; may name it: {window.start:%Y-%m-%d}, {window.end:…}, {window.key}",
    )
    start: Start | None = Field(default=None, description="(window, inputs) -> links a window starts with")
    inputs: Mapping[str, FromSource | FromQuery | FromFile] = Field(
        default_factory=dict,
        description="rows that `start` is given by name, read once when a window opens",
    )
    names_window: bool | None = Field(
        default=None,
        description="whether the starts name the window, so that it can be back-filled; None: seen from start_urls",
    )
    discover: Discover | None = Field(default=None, description='short form: makes the kind "listing"')
    extract: Extract | None = Field(default=None, description='short form: makes the kind "detail"')
    kinds: Mapping[str, Kind] = Field(default_factory=dict, description="long form: every kind of page by name")
    schema: SchemaType = Field(default=None, description='short form: pandera model of the record type "record"')
    records: Mapping[str, SchemaType] = Field(
        default_factory=dict, description="long form: pandera model of each record type"
    )
    entity: str | Mapping[str, str] = Field(
        description="the field that names the entity; per record type where they differ"
    )
    combine: Combine | None = Field(
        default=None,
        description="(entity, rows) -> row: joins the rows of one entity within a window before validation; pure",
    )
    revised_at: str | None = Field(
        default=None, description="the field with the page's own claim of when it was revised (source_revised_at)"
    )
    extractor_version: str = Field(
        min_length=1,
        max_length=100,
        description="raise it when extract changes; pages are read again, nothing is fetched",
    )
    edition: int = Field(default=1, ge=1, description="raise it to collect windows again")
    window: Schedule = Field(description="Daily, Hourly or Cron: the collection windows")
    budget: Budget = Field(default_factory=Budget, description="how fast we may ask")
    capacity: int = Field(
        default=1_000, ge=1, description="queued + leased requests of a window; the rest waits as candidates"
    )
    max_requests: int = Field(
        default=100_000, ge=1, description="requests of a window; reaching it stops discovery (bound_reached)"
    )
    max_depth: int = Field(
        default=1_000, ge=1, description="links followed from a start; reaching it stops discovery (bound_reached)"
    )
    soft_gone: str | SoftGone | None = Field(
        default=None,
        description="what a page of an item that is not there looks like, with status 200: a CSS selector, "
        'like "h1.not-found" or "h1:lexbor-contains(\'not found\')", or (Page) -> bool',
    )
    max_barren: int | None = Field(
        default=20,
        ge=2,
        description="listings in a row that show nothing new; what leads on from there stays out (trap_suspected); "
        "None: no guard against traps",
    )
    lanes: Mapping[str, int] = Field(
        default_factory=lambda: {DEFAULT_LANE: 1}, description='weight of each lane; a lane not named weighs "*"'
    )
    interleave: bool = Field(
        default=False, description="all fetching in pass 2, discovering kinds and others mixed by `interleave_weights`"
    )
    interleave_weights: tuple[int, int] = Field(
        default=(1, 1), description="weights of (discovering kinds, other kinds) with interleave"
    )
    expect: Expect = Field(default_factory=Expect, description="what must hold of a window")
    freshness: timedelta | None = Field(default=None, description="how old the newest window in `latest` may be")
    retention: Retention = Field(default_factory=Retention, description="how long things are kept")
    scope: tuple[str, ...] = Field(
        default=(),
        description="hosts (and their subdomains) that links may lead to; default: the domains of start_urls",
    )
    allow_addresses: tuple[str, ...] = Field(
        default=(),
        description='networks inside that the source may reach, like "127.0.0.1/32" or "10.1.0.0/16"; metadata never',
    )
    keys: Keys = Field(
        default_factory=Keys, description="which differences between two URLs do not make them different requests"
    )
    headers: Headers = Field(default_factory=dict, description="request headers; values may be Secret")
    encoding: str | None = Field(
        default=None,
        description="the charset of a site that declares a wrong one; raise extractor_version to read pages again",
    )
    conditional: bool = Field(
        default=True,
        description="ask for a page that an earlier window holds with If-None-Match and If-Modified-Since; "
        "a 304 points at the bytes held. False: every page is sent again",
    )
    connect_timeout: timedelta = Field(
        default=seconds(10), gt=timedelta(0), description="deadline of connecting, TLS included"
    )
    read_timeout: timedelta = Field(
        default=seconds(30), gt=timedelta(0), description="longest silence while an answer is awaited or read"
    )
    total_timeout: timedelta = Field(default=seconds(60), gt=timedelta(0), description="deadline of a whole request")
    max_bytes: int = Field(default=16 * 2**20, ge=1, description="bytes of a body on the wire")
    max_decoded_bytes: int = Field(default=64 * 2**20, ge=1, description="bytes of a body after content decoding")
    max_attempts: int = Field(default=3, ge=1, le=100, description="attempts of a request")
    retry_wait: timedelta = Field(
        default=seconds(1),
        gt=timedelta(0),
        description="wait after the first failed attempt; doubles, up to 5 minutes, plus jitter",
    )
    lease: timedelta = Field(
        default=seconds(60), ge=seconds(1), description="how long a worker's claim lasts without a renewal"
    )
    in_flight: int = Field(
        default=32, ge=1, le=256, description="requests of one process under way at once (also bounded by slots)"
    )
    max_redirects: int = Field(
        default=10, ge=0, le=50, description="redirects that one request follows, each a request of its own"
    )
    robots_refused: Literal["disallow", "allow"] = Field(
        default="disallow",
        description="what a robots.txt that answers 401, 403, 407 or 451 means; RFC 9309 says allow",
    )
    refusal_limit: int = Field(default=3, ge=1, description="refusals in a row that halt the origin, for everybody")
    schedule: Literal["on", "off"] = Field(default="off", description="whether the window schedule runs from the start")
    owners: tuple[str, ...] = Field(default=(), description="team:name or e-mail addresses")
    licence_note: str = Field(default="", description="what we may do with the data, and where that is written")
    grace: timedelta = Field(
        default=hours(1), ge=timedelta(0), description="after a window's end it still counts as collected in time"
    )
    patience: timedelta = Field(
        default=seconds(120), ge=timedelta(0), description="longest wait of a step for work that is not due yet"
    )
    turn: timedelta = Field(
        default=hours(1), gt=timedelta(0), description="longest run of a collecting step before it yields"
    )
    late: Literal["allow", "refuse"] = Field(
        default="allow", description="collecting after end + grace: marked late, or refused"
    )
    coverage: Literal["full", "incremental"] = Field(
        default="full",
        description="whether a window shows everything; incremental: what one does not show is not removed",
    )
    removed_after: int = Field(
        default=2,
        ge=1,
        description="an entity is removed when so many whole windows in a row do not show it; 1 where a listing cannot "
        "shift while it is read",
    )
    rendering: RenderingService | None = Field(
        default=None, description='the service that fetches the pages of kinds with fetcher="rendering"'
    )
    session: Session | None = Field(
        default=None, description="a login, or a token, without which nothing of the source is asked for"
    )
    browser: Browser = Field(default_factory=Browser, description='the browser of kinds with fetcher="browser"')
    sitemaps: bool | tuple[str, ...] = Field(
        default=False,
        description="discover from sitemaps: those that the robots.txt of every host in start_urls or scope names "
        "(else /sitemap.xml), or these (a URL of a sitemap or of a robots.txt; may name the window)",
    )
    sitemap_kinds: Mapping[str, str] = Field(
        default_factory=dict,
        description="kind of the pages in sitemaps by pattern of the URL (`*`, `?`, `[…]`; the first that fits counts, "
        'others stay out); default: all are of the one kind that has no discover; patterns of kind "sitemap" choose '
        "among the sitemaps of an index",
    )

    _is_whole = True

    def __post_init__(self) -> None:
        check(self)

    @cached_property
    def schemas(self) -> dict[str, SchemaType]:
        """The pandera model of each record type; the short form's type is called "record"."""
        return dict(self.records) if self.records else {"record": self.schema}

    def entity_field(self, record_type: str) -> str:
        """The field that names the entity of a record type."""
        return self.entity if isinstance(self.entity, str) else self.entity[record_type]

    @cached_property
    def is_window_named(self) -> bool:
        """Whether starts name the window: only then can an old window be truly collected."""
        if self.names_window is not None:
            return self.names_window
        return any(NAMED_WINDOW.search(url) for url in self.start_addresses)

    @cached_property
    def shows_everything(self) -> bool:
        """Whether a whole window shows all there is: not a day's part of it, nor what somebody asked for by name."""
        return self.coverage == "full" and not self.is_window_named and not self.inputs

    @cached_property
    def reach(self) -> bytes:
        """A digest of what decides which pages a window can show: windows of different reach are not compared."""
        said = {
            "starts": [repr(item) for item in self.start_urls],
            "sitemaps": [self.sitemaps, dict(self.sitemap_kinds)],
            "scope": sorted(self.scope_hosts),
            "kinds": {
                name: [kind.discover is not None, kind.extract is not None, kind.dedupe, kind.may_be_empty]
                for name, kind in self.kind_map.items()
            },
            "bounds": [self.max_depth, self.max_barren],
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).digest()

    def max_bytes_of(self, kind: str) -> int:
        """Bytes of a body on the wire; a sitemap may have as many as its protocol allows."""
        return max(self.max_bytes, SITEMAP_BYTES) if self.is_sitemap(kind) else self.max_bytes

    def lane_weight(self, lane: str) -> int:
        """A lane's weight; one that is not named weighs "*"."""
        return self.lanes.get(lane, self.lanes.get(DEFAULT_LANE, 1))

    def starts(self, window: Window, inputs: Mapping[str, Any] | None = None) -> Iterator[Link]:
        """The links a window starts with, the window's times filled in; `inputs` are the rows that `start` is given.

        Without them a source that has inputs is not asked to `start`.
        """
        for item in self.start_urls:
            link = item if isinstance(item, Link) else Link(item, kind=self.first_kind)
            yield replace(link, url=named_url(link.url, window))
        for url in self.sitemap_starts:
            yield Link(named_url(url, window), kind=SITEMAP)
        if self.start and (inputs is not None or not self.inputs):
            yield from self.start(window, inputs or {})

    @property
    def starts_from(self) -> tuple[str, ...]:
        """Names of the sources that this one starts from."""
        return tuple(given.source for given in self.inputs.values() if isinstance(given, FromSource))
