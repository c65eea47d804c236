"""What a source file may say (design.md §4). Importing this imports no Dagster and no driver.

Wrong types and unknown fields are refused when the object is made, as a `ContractError` that names the field;
`registry.py` adds the file. Fields that later releases bring to life are here from the start; using one is a clear
`NotBuiltYet`. `docs/source-contract.md` is generated from this module.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import ArgsKwargs

from collector_assets import addresses, charset, disguise, keys, urls
from collector_assets.errors import ContractError, NotBuiltYet
from collector_assets.media import Media
from collector_assets.page import Page, is_selector
from collector_assets.record import Record, Unreadable, attempt
from collector_assets.request import Link, RestartChain, Secret
from collector_assets.window import Cron, Daily, Hourly, Schedule, Window

__all__ = [
    "FOREVER", "Browser", "Budget", "Click", "ClientCredentials", "Cron", "Daily", "Expect", "Fill", "FromFile",
    "FromQuery", "FromSource", "Hourly", "InHeader", "InJson", "Keys", "Kind", "Link", "Page", "Press", "Record",
    "RenderingService", "RestartChain", "Retention", "Scroll", "Secret", "Session", "Source", "Unreadable", "View",
    "attempt", "days", "hours", "minutes", "replace", "seconds",
]  # fmt: skip

STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True, extra="forbid")
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}\Z")
NAMED_WINDOW = re.compile(r"\{window\.(start|end)(?::([^}]*))?\}|\{window\.key\}")
FOREVER = timedelta.max
LEAST_RENDERING = timedelta(seconds=10)
"""Of `total_timeout`: a service must be done before we are (`fetch/rendering.py`)."""
SITEMAP_BYTES = 50 * 2**20
"""https://www.sitemaps.org/protocol.html"""
DEFAULT_LANE = "*"
SITEMAP = "sitemap"
"""The kind of the pages of `Source.sitemaps`; what they lead to is read by `sitemap.py`."""
RESERVED_NAMES = frozenset({"multi"})
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
FILE_SYSTEMS = frozenset({"abfs", "abfss", "az", "file", "gcs", "gs", "hdfs", "memory", "oci", "s3"})
"""Where a file of `FromFile` may be besides a plain path; fsspec knows them."""
OUR_HEADERS = frozenset({"user-agent", "host", "connection", "content-length", "transfer-encoding", "accept-encoding"})
"""What the fetcher says itself: who we are, and how the message is framed."""

Discover = Callable[[Page], Iterable[Link]]
Extract = Callable[[Page], Iterable["Mapping[str, Any] | Record | Unreadable"]]
Combine = Callable[[str, list[Any]], Mapping[str, Any]]
SoftGone = Callable[[Page], bool]
Start = Callable[[Window, Mapping[str, Any]], Iterable[Link]]
Headers = Mapping[str, str | Secret]
OnStatus = Literal["gone", "not_yet", "fail", "skip", "restart"]
Trouble = Literal["retry", "refused", "fail", "stop"]
Loads = Literal["image", "media", "font", "stylesheet", "script"]
CAP = re.compile(r"cap ([0-9]{1,5})\Z")


def seconds(number: float) -> timedelta:
    """A length of time."""
    return timedelta(seconds=number)


def minutes(number: float) -> timedelta:
    """A length of time."""
    return timedelta(minutes=number)


def hours(number: float) -> timedelta:
    """A length of time."""
    return timedelta(hours=number)


def days(number: float) -> timedelta:
    """A length of time."""
    return timedelta(days=number)


class Refusing:
    """A part of the contract: what pydantic finds wrong becomes one `ContractError` that names the field."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse(cls, given: Any, make: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return make(given)
        except ValidationError as error:
            if not isinstance(given, ArgsKwargs):  # a value inside another part, which names the field better
                raise
            raise _refusal(cls, given, error) from None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Budget(Refusing):
    """How fast a source may ask. All sources on one budget key share it: the greatest gap, the fewest slots."""

    gap: timedelta = Field(
        default=seconds(1),
        ge=timedelta(0),
        description="pause from the end of a response to the next request, per slot",
    )
    slots: int = Field(
        default=1,
        ge=1,
        le=256,
        description="requests to the budget key under way at once, over all processes and hosts",
    )
    weight: float = Field(default=1, gt=0, description="share of the budget among the sources on one key")
    per: Literal["domain", "host"] = Field(
        default="domain", description="what the budget key is; all sources of one domain must agree"
    )
    longest_gap: timedelta = Field(
        default=seconds(60),
        ge=timedelta(0),
        description="the longest Crawl-delay of a robots.txt that is kept; a longer one stops the step with a message",
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Expect(Refusing):
    """What must hold of a window."""

    min_records: int = Field(default=1, ge=0, description="fewer records fail the window's verdict")
    max_records: int | None = Field(default=None, ge=0, description="more records fail the window's verdict")
    max_error_rate: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="failed / planned requests, and unreadable / all pages; above it a check is an ERROR",
    )
    max_reject_rate: float = Field(
        default=0.02, ge=0, le=1, description="rejects / (records + rejects); above it the verdict fails"
    )
    max_removed_rate: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="share of the entities in `latest` that may be marked as removed at once; above it none is, and a "
        "check warns",
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Retention(Refusing):
    """How long things are kept after their window ended; `collector retain` discards what is older."""

    raw_pages: timedelta = Field(
        default=FOREVER,
        ge=days(1),
        description="WARC files and rows of pages, also since they were fetched; bytes that newer pages did not change "
        "from are kept with those",
    )
    requests: timedelta = Field(default=FOREVER, gt=timedelta(0), description="rows of the frontier (a later release)")
    rejects: timedelta = Field(default=FOREVER, gt=timedelta(0), description="quarantine")
    history: timedelta = Field(
        default=FOREVER, gt=timedelta(0), description="observations; what `latest` stands on is kept"
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Keys(Refusing):
    """Which differences between two URLs do not matter on this site; the URL that is sent stays as it was found."""

    drop: tuple[str, ...] = Field(
        default=(), description='query parameters that do not count, by name; `*` stands for anything: "utm_*"'
    )
    session_ids: bool = Field(
        default=False, description="session ids that servers give (jsessionid, PHPSESSID …) do not count"
    )
    any_order: bool = Field(default=False, description="the order of differently named query parameters does not count")
    hash_routes: bool = Field(
        default=False, description="fragments that begin with #/ or #! are pages of their own (kinds with a browser)"
    )

    def key(self, url: str, fragment: str = "") -> str:
        """The URL as duplicates are recognised by it."""
        if not (self.drop or self.session_ids or self.any_order or self.hash_routes):
            return urls.key(url)
        return keys.key(
            url, fragment=fragment, drop=self.drop, session_ids=self.session_ids, any_order=self.any_order,
            hash_routes=self.hash_routes,
        )  # fmt: skip


@dataclass(frozen=True, config=STRICT)
class Click(Refusing):
    """Click on the first element that a selector finds, once it is there and visible."""

    selector: str
    """CSS."""
    wait_for: str = ""
    """A selector that must find something afterwards."""


@dataclass(frozen=True, config=STRICT)
class Fill(Refusing):
    """Put text into a field, as a person who types it would."""

    selector: str
    """CSS; of an input, a text area, or what can be edited."""
    text: str | Secret
    """A secret is masked in what is kept of the page."""


@dataclass(frozen=True, config=STRICT)
class Press(Refusing):
    """Press a key: `Enter`, `Tab`, `Escape`, an arrow (`ArrowDown` …), `PageDown`, or a character."""

    key: str
    """Its name."""
    selector: str = ""
    """The element that has the focus then; by default whichever has it."""


@dataclass(frozen=True, config=STRICT)
class Scroll(Refusing):
    """Scroll down until no further items come."""

    items: str
    """A selector that finds the items."""
    most: int = 50
    """Scrolls at most."""
    settle: timedelta = timedelta(seconds=1)
    """How long new items are waited for."""


Action = Click | Fill | Press | Scroll


@dataclass(frozen=True, kw_only=True, config=STRICT)
class View(Refusing):
    """What a browser does with pages of a kind (`fetcher="browser"`)."""

    wait: str = Field(
        default="domcontentloaded",
        description='what the page is waited for: "domcontentloaded", "networkidle" (or `wait_at_most`, whichever is '
        "first), or a CSS selector that must find something; else the attempt ends `never_settled`",
    )
    wait_at_most: timedelta = Field(default=seconds(10), gt=timedelta(0), description="how long, for each wait")
    actions: tuple[Action, ...] = Field(default=(), description="what is done then, in this order")
    capture: tuple[str, ...] = Field(
        default=(),
        description='responses to the page\'s own requests that are archived, by URL (`*` is anything): "*/api/*"',
    )
    screenshot: bool = Field(default=False, description="keep a picture of the page")
    text: Literal["rendered", "response"] = Field(
        default="rendered",
        description="what `page.text`, `page.tree` and `page.selector` show: the DOM in the end, or what the site sent",
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Browser(Refusing):
    """The browser of a source that has kinds with `fetcher="browser"`; one in each worker."""

    pages: int = Field(default=2, ge=1, le=32, description="pages open at once in one worker")
    subrequests: str = Field(
        default="charge",
        pattern=r"^(charge|cap [0-9]{1,5})$",
        description='what a page loads from its own domain: "charge": each waits its turn and the gap like a page; '
        '"cap 20": so many of a page at once, further ones not at all',
    )
    allow_domains: tuple[str, ...] = Field(
        default=(), description="other registrable domains that pages may load from; counted, not spaced"
    )
    block: tuple[Loads, ...] = Field(
        default=("image", "media", "font"),
        description="what is not loaded: image, media, font, stylesheet, script",
    )
    block_urls: tuple[str, ...] = Field(default=(), description="nor what is at these URLs (`*` is anything)")
    block_trackers: bool = Field(default=True, description="nor the common hosts that watch visitors")
    retire_after_pages: int = Field(
        default=50, ge=1, description="pages after which a context (cookies, storage, cache) is closed"
    )
    retire_after: timedelta = Field(default=minutes(10), gt=timedelta(0), description="or this time")
    max_memory: int = Field(
        default=1_536 * 2**20,
        ge=256 * 2**20,
        description="memory of the browser with all its processes: at three quarters it is replaced after the pages "
        "that are open, at the limit at once",
    )
    storage_state: Secret | None = Field(
        default=None,
        description="the variable that names a file of cookies (storage state of Playwright) for a site that you may "
        "log in to; read when a context is made, never archived or logged",
    )

    @cached_property
    def cap(self) -> int | None:
        """Sub-requests to its own domain that a page may make; nothing where each is charged."""
        found = CAP.match(self.subrequests)
        return int(found[1]) if found else None


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


@dataclass(frozen=True, config=STRICT)
class FromSource(Refusing):
    """Start from what is known of another source: the values of each of its entities in `latest`."""

    source: str
    """Its name."""
    record: str | None = None
    """One record type of it; by default all."""


@dataclass(frozen=True, config=STRICT)
class FromQuery(Refusing):
    """Start from the rows of a query to a Postgres database, by column name."""

    sql: str
    """May use %(window_start)s, %(window_end)s and %(window_key)s; then another % is written %%."""
    dsn: Secret
    """Where to ask; the variable holds the DSN."""
    asset: str | None = None
    """The Dagster asset that the rows come from, such as "dbt/watchlist": its edge to `frontier`."""


@dataclass(frozen=True, config=STRICT)
class FromFile(Refusing):
    """Start from the rows of a file: .csv or .tsv with a line of names, or .jsonl; gzipped or not."""

    url: str
    """A path (from the folder that the collector runs in), or s3://… and the like; may name the window."""
    asset: str | None = None
    """The Dagster asset that the file is; by default named by its path."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ClientCredentials(Refusing):
    """A token for an id and a secret (OAuth 2 client credentials, RFC 6749 §4.4); fetched anew before it expires."""

    url: str = Field(description="the token endpoint")
    client_id: str | Secret = Field(description="who we are there")
    client_secret: Secret = Field(description="what proves it")
    scope: str = Field(default="", description="what is asked for, names with blanks in between")
    more: Mapping[str, str | Secret] = Field(
        default_factory=dict, description='what else the endpoint wants in its form, such as {"audience": "…"}'
    )
    auth: Literal["header", "body"] = Field(
        default="header", description="where id and secret go: HTTP Basic, which every server must take, or the form"
    )
    hosts: tuple[str, ...] = Field(
        default=(), description="the hosts that are sent the token; default: those of start_urls, else of scope"
    )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Session(Refusing):
    """What a source shows to be let in: one login a window, whoever comes first, for all workers. One of three ways."""

    login: Link | None = Field(
        default=None,
        description='the request that logs in: Link("…/login", body={"user": Secret("U"), "password": Secret("P")})',
    )
    page: str | Link | None = Field(
        default=None, description="or the page with the login form, sent with its hidden fields as a browser would"
    )
    form: str = Field(default="form", description="with page: the CSS selector of the form")
    fields: Mapping[str, str | Secret] = Field(
        default_factory=dict, description="with page: what is filled in, by the names of the form's fields"
    )
    token: ClientCredentials | None = Field(
        default=None, description="or a token that goes along as `Authorization: Bearer …`"
    )
    proof: str | None = Field(
        default=None,
        description="a CSS selector that every HTML page shows while we are logged in, and none that shows us out, "
        'like "a.logout"; without it only a redirect to a login, or a 401, says that a session is over',
    )

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it is begun."""
        found = (self.login, self.page, self.token and self.token.url)
        return tuple(_url(item) for item in found if item is not None)


@dataclass(frozen=True, config=STRICT)
class InHeader(Refusing):
    """A place in the answer of a rendering service: one of its headers."""

    name: str
    """In any case; as `site_headers` the prefix of those that are the site's, like "Spb-"."""


@dataclass(frozen=True, config=STRICT)
class InJson(Refusing):
    """A place in the answer of a rendering service: a value in its JSON."""

    path: str
    """Keys joined by dots, like "data.metadata.statusCode"."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RenderingService(Refusing):
    """A service that fetches a page and runs its scripts, by declaration; presets are in `rendering_services`.

    Values in `query` and `body` may be "{url}" (the page's address), "{timeout_ms}" and "{timeout_s}" (how long the
    service may take), or Secret. Nothing in them may ask for a disguise.
    """

    name: str = Field(description="what it is called in reasons, in the archive and where its spending is counted")
    endpoint: str = Field(description='its address; may hold "{url}", the page\'s address percent-encoded')
    method: Literal["GET", "POST"] = Field(default="POST", description="method of the request to the service")
    query: Mapping[str, str | Secret] = Field(default_factory=dict, description="query parameters of the endpoint")
    headers: Headers = Field(default_factory=dict, description="headers for the service, such as its key (Secret)")
    body: Mapping[str, Any] | None = Field(default=None, description="what is sent as JSON")
    html: InJson | None = Field(
        default=None, description="where the page is in the answer; None: the answer is the page"
    )
    status: InJson | InHeader | None = Field(
        default=None, description="where the site's status is; None: the status of the answer is the site's"
    )
    final_url: InJson | InHeader | None = Field(default=None, description="where the address is that the page is from")
    content_type: InJson | InHeader | None = Field(
        default=None, description="where the type of the page is; what is no text inside of JSON is no page"
    )
    site_headers: InJson | InHeader | None = Field(default=None, description="where the site's headers are")
    answered: InJson | InHeader | None = Field(
        default=None, description="what is there only where the site has answered: else the answer is the service's own"
    )
    errors: tuple[InJson | InHeader, ...] = Field(
        default=(), description="where an error of the service is named; something there is an error"
    )
    meanings: Mapping[int | str, Trouble] = Field(
        default_factory=dict,
        description='what its errors mean, by name (`*` stands for anything) or by status: "retry", "refused" (by the '
        'site: counts as its refusal), "fail" (this page never), "stop" (the run). Else 401 to 405 and 407 stop, '
        "408, 429 and 5xx are tried again, other 4xx fail",
    )
    price: float = Field(ge=0, description="of one call, at most, in the unit of `cap`: money or credits; 0: free")
    cap: float | None = Field(
        default=None, ge=0, description="what one window of the source may spend; the run stops before it is passed"
    )
    allow_addresses: tuple[str, ...] = Field(
        default=(), description='networks inside that the service itself may be in, like "127.0.0.1/32"; pages may not'
    )

    def __post_init__(self) -> None:
        _check_service(self)


SchemaType = Any  # a pandera DataFrameModel class or DataFrameSchema; pandera itself is imported by the source file


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Source(Refusing):
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

    def __post_init__(self) -> None:
        _check_names(self)
        _check_pages(self)
        _check_sitemaps(self)
        _check_known(self)
        _check_inputs(self)
        _check_starts(self)
        _check_addresses(self)
        _check_keys(self)
        _check_soft_gone(self)
        _check_browser(self)
        _check_headers(self)
        _check_rendering(self)
        _check_session(self)
        _check_encodings(self)
        _check_records(self)
        _check_lanes(self)
        _check_times(self)
        _check_built(self)

    @cached_property
    def kind_map(self) -> dict[str, Kind]:
        """Every kind by name, whichever form the source was written in, and the kind of its sitemaps."""
        return self._own_kinds | ({SITEMAP: Kind()} if self.sitemaps else {})

    @cached_property
    def _own_kinds(self) -> dict[str, Kind]:
        if self.kinds:
            return dict(self.kinds)
        short = {
            "listing": self.discover and Kind(discover=self.discover),
            "detail": self.extract and Kind(extract=self.extract),
        }
        return {name: kind for name, kind in short.items() if kind}

    @cached_property
    def discovering(self) -> tuple[str, ...]:
        """Kinds that pass 1 fetches; none with `interleave`."""
        return () if self.interleave else self.with_discover

    @cached_property
    def with_discover(self) -> tuple[str, ...]:
        """Kinds whose pages yield links."""
        return tuple(sorted(name for name, kind in self.kind_map.items() if kind.discover or name == SITEMAP))

    @cached_property
    def remembered(self) -> tuple[str, ...]:
        """Kinds whose items are known once they were fetched."""
        return tuple(sorted(name for name, kind in self._own_kinds.items() if kind.refetch != "window"))

    @cached_property
    def with_browser(self) -> tuple[str, ...]:
        """Kinds whose pages are opened in a browser."""
        return tuple(sorted(name for name, kind in self._own_kinds.items() if kind.fetcher == "browser"))

    @cached_property
    def with_extract(self) -> tuple[str, ...]:
        """Kinds whose pages yield records."""
        return tuple(sorted(name for name, kind in self.kind_map.items() if kind.extract))

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
        return any(NAMED_WINDOW.search(url) for url in self._start_addresses)

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

    def is_sitemap(self, kind: str) -> bool:
        """Whether the pages of this kind are sitemaps."""
        return kind == SITEMAP and bool(self.sitemaps)

    def max_bytes_of(self, kind: str) -> int:
        """Bytes of a body on the wire; a sitemap may have as many as its protocol allows."""
        return max(self.max_bytes, SITEMAP_BYTES) if self.is_sitemap(kind) else self.max_bytes

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the start URLs, and of the sitemaps that are named."""
        return tuple(dict.fromkeys(urls.host(_plain(url)) for url in self._start_addresses))

    @cached_property
    def _start_addresses(self) -> tuple[str, ...]:
        return (*map(_url, self.start_urls), *(self.sitemaps if isinstance(self.sitemaps, tuple) else ()))

    @cached_property
    def sitemap_starts(self) -> tuple[str, ...]:
        """Where reading sitemaps starts: those that are named, or every host's robots.txt."""
        if isinstance(self.sitemaps, tuple):
            return self.sitemaps
        if not self.sitemaps:
            return ()
        origins = dict.fromkeys(urls.origin(_plain(_url(item))) for item in self.start_urls)
        return tuple(f"{origin}/robots.txt" for origin in origins or [f"https://{host}" for host in self.scope])

    @cached_property
    def domain(self) -> str:
        """The registrable domain of the source: the run tag `collector/domain`."""
        return urls.domain(self.hosts[0] if self.hosts else self.scope[0])

    @cached_property
    def is_demo(self) -> bool:
        """Whether everything the source may reach is the demo site."""
        return all(urls.is_demo(host) for host in (*self.hosts, *self.scope))

    @cached_property
    def token_hosts(self) -> frozenset[str]:
        """The hosts that are sent the session's token."""
        named = self.session.token.hosts if self.session and self.session.token else ()
        return frozenset(named or self.hosts or self.scope)

    @cached_property
    def scope_hosts(self) -> tuple[str, ...]:
        """Hosts, with their subdomains, that a link may lead to."""
        return self.scope or tuple(dict.fromkeys(urls.domain(host) for host in self.hosts))

    def in_scope(self, host: str) -> bool:
        """Whether a link to this host may enter the frontier."""
        host = host.removesuffix(".")
        return any(host == allowed or host.endswith("." + allowed) for allowed in self.scope_hosts)

    def budget_key(self, url: str) -> str:
        """What the budget counts a request to this URL against."""
        host = urls.host(url)
        return host.removesuffix(".") if self.budget.per == "host" else urls.domain(host)

    def encoding_of(self, kind: str) -> str | None:
        """The charset that pages of a kind are known to be in, whatever they declare."""
        return self.kind_map[kind].encoding or self.encoding

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

    @cached_property
    def only_end_kind(self) -> str | None:
        """The one kind that leads nowhere further, if it is one: what sitemaps list."""
        ends = [name for name, kind in self._own_kinds.items() if not kind.discover and kind.dedupe == "url"]
        return ends[0] if len(ends) == 1 else None

    @cached_property
    def first_kind(self) -> str:
        """The kind of a plain start URL: the first that discovers, else the first."""
        return next((name for name, kind in self._own_kinds.items() if kind.discover), next(iter(self._own_kinds)))


def named_url(url: str, window: Window) -> str:
    """The URL with {window.start:FORMAT}, {window.end:FORMAT} and {window.key} filled in, in the source's time zone."""

    def fill(match: re.Match[str]) -> str:
        if match[1] is None:
            return window.key
        moment = window.start if match[1] == "start" else window.end
        return moment.strftime(match[2] or "%Y-%m-%d")

    return NAMED_WINDOW.sub(fill, url)


def _refusal(of: type, given: ArgsKwargs, error: ValidationError) -> ContractError:
    """The first thing that is wrong, in the words of a source file; `given` holds the arguments of the call."""
    first, *others = error.errors(include_url=False)
    at = first["loc"]
    name = str(at[0]) if at else of.__name__
    field = name + "".join(f"[{part!r}]" for part in at[1:2])
    source = str((given.kwargs or {}).get("name", "")) if of is Source else ""
    problem = _problem(of, name, first) + (f" (and {len(others)} more)" if others else "")
    return ContractError(field if of is Source else f"{of.__name__}.{field}", problem, source=source)


def _problem(of: type, name: str, found: Mapping[str, Any]) -> str:
    match found["type"]:
        case "unexpected_keyword_argument":
            near = difflib.get_close_matches(name, getattr(of, "__dataclass_fields__", ()), n=1)
            return (
                f"unknown field; did you mean {near[0]!r}?"
                if near
                else "unknown field; docs/source-contract.md lists all"
            )
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return "is required"
        case "unexpected_positional_argument":
            return "fields are given by name"
        case "time_delta_type":
            return f"{found['input']!r} is not a length of time: write seconds(2), minutes(2), hours(2) or days(2)"
        case "dataclass_exact_type" if name == "window":
            return f"{_short(found['input'])} is no schedule: write Daily(start=…), Hourly(start=…) or Cron(…, start=…)"
        case _:
            return f"{found['msg'][0].lower()}{found['msg'][1:]}, not {_short(found['input'])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _url(item: str | Link) -> str:
    return item if isinstance(item, str) else item.url


def _plain(url: str) -> str:
    return NAMED_WINDOW.sub("0", url)


def _check_names(source: Source) -> None:
    if not NAME.match(source.name) or source.name in RESERVED_NAMES:
        raise ContractError(
            "name",
            f"{source.name!r} must be lower case letters, digits and underscores, begin with a letter, at most 63",
            source=source.name,
        )
    for field, names in (("kinds", source.kind_map), ("records", source.schemas)):
        for name in names:
            if not NAME.match(name):
                raise ContractError(
                    field, f"{name!r} must be lower case letters, digits and underscores", source=source.name
                )


def _check_pages(source: Source) -> None:
    if source.kinds and (source.discover or source.extract):
        raise _wrong(source, "kinds", "give either kinds (long form) or discover and extract (short form), not both")
    for name, kind in source.kinds.items():
        if not (kind.discover or kind.extract):
            raise _wrong(source, "kinds", f"{name!r} has neither discover nor extract")
        for status in kind.on_status:
            if status == 429 or not 300 <= status <= 599:
                problem = "429 is heeded, whatever a source says" if status == 429 else "a status from 300 to 599"
                raise _wrong(source, "kinds", f"{name!r}: on_status[{status}]: {problem}")
        if "restart" in kind.on_status.values() and not kind.discover:
            raise _wrong(
                source, "kinds", f'{name!r}: on_status "restart" is for a kind with discover: a chain of listings'
            )
    if not source.with_extract:
        raise _wrong(source, "extract", "no kind has extract, so no record can ever come out")


def _check_known(source: Source) -> None:
    for name, kind in source.kinds.items():
        if kind.refetch != "window" and kind.discover:
            raise _wrong(source, "kinds", f"{name!r} leads to other pages: it is fetched in each window")
        if isinstance(kind.refetch, timedelta) and kind.refetch <= timedelta(0):
            raise _wrong(source, "kinds", f"{name!r}: refetch is not a length of time after which to fetch again")
        if kind.stop_after_known is not None and not (kind.discover and source.remembered):
            raise _wrong(
                source,
                "kinds",
                f"{name!r}: stop_after_known is for a kind with discover that leads to kinds with refetch",
            )
    if source.remembered and source.coverage == "full":
        raise _wrong(source, "coverage", 'a window does not show what is known (refetch): say coverage="incremental"')


def _check_sitemaps(source: Source) -> None:
    if SITEMAP in source.kinds and source.sitemaps:
        raise _wrong(source, "kinds", f"{SITEMAP!r} is the kind of the sitemaps themselves")
    if source.sitemap_kinds and not source.sitemaps:
        raise _wrong(source, "sitemap_kinds", "there are no sitemaps")
    if source.sitemaps and not source.sitemap_kinds and source.only_end_kind is None:
        raise _wrong(source, "sitemap_kinds", f"say which pages are of which kind ({', '.join(source.kind_map)})")
    for pattern, name in source.sitemap_kinds.items():
        if name not in source.kind_map:
            raise _wrong(source, "sitemap_kinds", f"{pattern!r}: {name!r} is not a kind ({', '.join(source.kind_map)})")
        if source.kind_map[name].dedupe == "entity":
            raise _wrong(source, "sitemap_kinds", f'{name!r} says dedupe="entity"; a sitemap names no entities')


def _check_inputs(source: Source) -> None:
    if source.inputs and not source.start:
        raise _wrong(source, "inputs", "nothing reads them: give a start function, (window, inputs) -> links")
    for name, given in source.inputs.items():
        scheme = given.url.partition("://")[0] if isinstance(given, FromFile) and "://" in given.url else ""
        if scheme and scheme not in FILE_SYSTEMS:
            # What is on the web goes through robots.txt, budget, egress guard and archive, or not at all (rule 13).
            known = ", ".join(sorted(FILE_SYSTEMS))
            problem = f"{name!r}: {scheme!r} is no file system ({known}); a file on the web is a page, fetched like any"
            raise _wrong(source, "inputs", problem)


def _check_starts(source: Source) -> None:
    if not source.start_urls and not source.start and not source.sitemaps:
        raise _wrong(source, "start_urls", "empty, and no start function: a window would have nothing to do")
    if not source._start_addresses and not source.scope:  # noqa: SLF001  the same module
        raise _wrong(source, "scope", "without start_urls the hosts must be named here")
    for host in source.scope:
        address = urls.resolve(f"https://{host}/", "")
        if isinstance(address, urls.Rejected) or urls.host(address.url) != host:
            raise _wrong(source, "scope", f"{host!r} is not a host name in lower case, like 'shop.example'")
    for item in (*source.start_urls, *(source.sitemaps if isinstance(source.sitemaps, tuple) else ())):
        _check_start(source, item)
    if not source.scope and len(domains := {urls.domain(host) for host in source.hosts}) > 1:
        several = f"they lead to {len(domains)} domains ({', '.join(sorted(domains))})"
        raise _wrong(source, "start_urls", f"{several}; one source is one domain: split it, or name the scope")


def _check_start(source: Source, item: str | Link) -> None:
    url = _url(item)
    address = urls.resolve(_plain(url), "")
    if isinstance(address, urls.Rejected):
        raise _wrong(source, "start_urls", f"{url!r} is not an absolute http(s) URL")
    if urls.has_user_info(_plain(url)):
        raise _wrong(
            source, "start_urls", f"{urls.shown(url)!r} had a user or a password: give it in headers, as Secret"
        )
    if "{" in _plain(url):
        raise _wrong(
            source, "start_urls", f"{url!r}: in braces only window.start, window.end (with :FORMAT) or window.key"
        )
    if isinstance(item, Link) and item.kind not in source.kind_map:
        raise _wrong(
            source, "start_urls", f"{url!r} is of kind {item.kind!r}; the kinds are {', '.join(source.kind_map)}"
        )
    if source.scope and not source.in_scope(urls.host(address.url)):
        raise _wrong(source, "scope", f"{url!r} starts outside of it")


def _check_addresses(source: Source) -> None:
    for text in source.allow_addresses:
        try:
            addresses.allowed_network(text)
        except ValueError as error:
            raise _wrong(source, "allow_addresses", str(error)) from None


def _check_keys(source: Source) -> None:
    for pattern in source.keys.drop:
        if not pattern or not pattern.isprintable():
            raise _wrong(source, "keys", f"{pattern!r} is not the name of a query parameter")
    if source.keys.hash_routes and all(kind.fetcher == "http" for kind in source.kind_map.values()):
        raise _wrong(source, "keys", "hash_routes needs a kind with a browser: what stands behind # is never sent")


def _check_soft_gone(source: Source) -> None:
    if isinstance(source.soft_gone, str) and not is_selector(source.soft_gone):
        raise _wrong(source, "soft_gone", f"{source.soft_gone!r} is not a CSS selector")


def _check_browser(source: Source) -> None:
    for domain in source.browser.allow_domains:
        if urls.domain(domain) != domain or urls.is_public_suffix(domain):
            raise _wrong(
                source, "browser", f"allow_domains: {domain!r} is not a registrable domain, like 'shop.example'"
            )
    for name, kind in source.kinds.items():
        if kind.fetcher != "browser" and kind.view != View():
            raise _wrong(source, "kinds", f'{name!r}: view is for a kind with fetcher="browser"')
        if kind.fetcher == "browser" and kind.method not in ("GET", "POST"):
            raise _wrong(source, "kinds", f"{name!r}: a browser opens pages with GET or POST")
        for selector in _selectors(kind.view):
            if not is_selector(selector):
                raise _wrong(source, "kinds", f"{name!r}: {selector!r} is not a CSS selector")


def _selectors(view: View) -> Iterator[str]:
    """Every selector that a page is looked through with."""
    if view.wait not in ("domcontentloaded", "networkidle"):
        yield view.wait
    for action in view.actions:
        match action:
            case Click(selector, wait_for):
                yield from (selector, *filter(None, (wait_for,)))
            case Fill(selector):
                yield selector
            case Press(_, selector):
                yield from filter(None, (selector,))
            case Scroll(items):
                yield items


def _check_headers(source: Source) -> None:
    links = [item for item in source.start_urls if isinstance(item, Link)]
    for headers in (
        source.headers,
        *(kind.headers for kind in source.kind_map.values()),
        *(link.headers for link in links),
    ):
        if problem := _header_problem(headers):
            raise _wrong(source, "headers", problem)


def _header_problem(headers: Headers) -> str:
    """What is wrong with them; empty when nothing is."""
    for name, value in headers.items():
        if not HEADER_NAME.match(name):
            return f"{name!r} is not a header name"
        if name.lower() in OUR_HEADERS:
            return f"{name} is ours to say: a source cannot set it"
        if isinstance(value, str) and (value.strip() != value or not value.isprintable()):
            return f"the value of {name} has control characters, or blanks around it"
    return ""


def _check_service(service: RenderingService) -> None:
    """What a declaration of a rendering service can never say."""
    _check_endpoint(service)
    _check_asking(service)
    asking = {"endpoint": dict(parse_qsl(urlsplit(service.endpoint).query)), "query": service.query}
    for field, given in (asking | {"headers": service.headers, "body": service.body or {}}).items():
        if name := disguise.asked(given):
            problem = (
                "asks the service for a disguise: the collector says who it is, and stays away where it is refused"
            )
            raise _wrong_service(field, f"{name!r} {problem}")
    if service.price and service.cap is None:
        raise _wrong_service("cap", "is required where a call has a price: what one window may spend")
    if service.cap is not None and service.cap < service.price:
        raise _wrong_service("cap", f"{service.cap:g} is less than one call costs ({service.price:g})")


def _check_endpoint(service: RenderingService) -> None:
    address = urls.resolve(service.endpoint.replace("{url}", "0"), "")
    if isinstance(address, urls.Rejected) or urls.has_user_info(service.endpoint):
        raise _wrong_service(
            "endpoint", f"{urls.shown(service.endpoint)!r} is no http(s) URL without user and password"
        )
    is_inside = bool(service.allow_addresses) or urls.is_demo(urls.host(address.url))
    if address.url.startswith("http:") and not is_inside:
        raise _wrong_service("endpoint", "is plain http: only for a service inside (allow_addresses)")
    for text in service.allow_addresses:
        try:
            addresses.allowed_network(text)
        except ValueError as error:
            raise _wrong_service("allow_addresses", str(error)) from None


def _check_asking(service: RenderingService) -> None:
    if "{url}" not in service.endpoint and "{url}" not in (*service.query.values(), *_texts_in(service.body or {})):
        raise _wrong_service("body", '"{url}" is nowhere: the service would not know which page is meant')
    if service.method == "GET" and service.body is not None:
        raise _wrong_service("body", "a GET has no body: say it in the query")
    if not _is_json(service.body):
        raise _wrong_service("body", "is no JSON: texts, numbers, lists and mappings, and Secret in them")
    if problem := _header_problem(service.headers):
        raise _wrong_service("headers", problem)


def _wrong_service(field: str, problem: str) -> ContractError:
    return ContractError(f"RenderingService.{field}", problem)


def _is_json(given: Any) -> bool:
    match given:
        case None | str() | bool() | int() | float() | Secret():
            return True
        case Mapping():
            return all(isinstance(name, str) and _is_json(each) for name, each in given.items())
        case list() | tuple():
            return all(map(_is_json, given))
        case _:
            return False


def _texts_in(given: Any) -> Iterator[str]:
    """Every text in a body."""
    if isinstance(given, Mapping):
        given = tuple(given.values())
    if isinstance(given, str):
        yield given
    elif isinstance(given, list | tuple):
        for each in given:
            yield from _texts_in(each)


def _check_rendering(source: Source) -> None:
    kinds = {name: kind for name, kind in source.kind_map.items() if kind.fetcher == "rendering"}
    service = source.rendering
    if service is None:
        if kinds:
            raise _wrong(source, "rendering", f'{", ".join(kinds)}: fetcher="rendering" needs a RenderingService here')
        return
    if not kinds:
        raise _wrong(source, "rendering", 'no kind says fetcher="rendering"')
    if source.is_demo != urls.is_demo(urls.host(service.endpoint)):
        problem = "the demo site is rendered by itself, and renders nothing else"
        raise _wrong(source, "rendering", f"{problem}; a service on this machine is written 127.0.0.1")
    if source.headers or source.session or any(kind.headers or kind.method != "GET" for kind in kinds.values()):
        problem = "a rendering service is given addresses and nothing else: no headers, no session, no other method"
        raise _wrong(source, "rendering", f"{problem}; what needs them is fetched by http")
    if source.total_timeout < LEAST_RENDERING:
        raise _wrong(source, "total_timeout", f"rendering takes time: at least {LEAST_RENDERING.total_seconds():g} s")


def _check_session(source: Source) -> None:
    session = source.session
    if session is None:
        return
    if sum(way is not None for way in (session.login, session.page, session.token)) != 1:
        raise _wrong(source, "session", "give one of login, page and token")
    for url in session.addresses:
        if isinstance(urls.resolve(url, ""), urls.Rejected) or urls.has_user_info(url):
            raise _wrong(source, "session", f"{urls.shown(url)!r} is not an absolute http(s) URL without a password")
    if (session.page is None) != (not session.fields):
        raise _wrong(source, "session", "page and fields belong together: the form, and what is filled in")
    for name, selector in (("proof", session.proof), ("form", session.form)):
        if selector is not None and not is_selector(selector):
            raise _wrong(source, "session", f"{name}: {selector!r} is not a CSS selector")
    if any(kind.fetcher == "browser" for kind in source.kind_map.values()):
        raise _wrong(source, "session", "is for kinds that are fetched by http; a browser has Browser.storage_state")
    ways = (source.headers, *(kind.headers for kind in source.kind_map.values()))
    if session.token and any(name.lower() == "authorization" for headers in ways for name in headers):
        raise _wrong(source, "session", "the token is the Authorization header: take the other one out of headers")


def _check_encodings(source: Source) -> None:
    for field, label in (("encoding", source.encoding), *_kind_encodings(source)):
        if label is not None and charset.encoding_of(label) is None:
            raise _wrong(source, field, f"{label!r} is no encoding of the web, like 'utf-8' or 'windows-1252'")


def _kind_encodings(source: Source) -> Iterator[tuple[str, str | None]]:
    return ((f"kinds[{name!r}].encoding", kind.encoding) for name, kind in source.kinds.items())


def _wrong(source: Source, field: str, problem: str) -> ContractError:
    return ContractError(field, problem, source=source.name)


def _check_records(source: Source) -> None:
    if bool(source.records) == (source.schema is not None):
        raise _wrong(source, "schema", "give either schema (one record type) or records (several), and not both")
    if not isinstance(source.entity, str) and (unknown := set(source.entity) - set(source.schemas)):
        raise _wrong(source, "entity", f"{min(unknown)!r} is not a record type ({', '.join(source.schemas)})")
    for record_type, schema in source.schemas.items():
        _check_record_type(source, record_type, schema)
    columns = {column for schema in source.schemas.values() for column in schema_columns(schema) or ()}
    if source.revised_at is not None and source.revised_at not in columns:
        raise _wrong(source, "revised_at", f"{source.revised_at!r} is not a column of any record type")


def _check_record_type(source: Source, record_type: str, schema: SchemaType) -> None:
    columns = schema_columns(schema)
    if columns is None:
        raise _wrong(source, "schema", f"record type {record_type!r} needs a pandera DataFrameModel or DataFrameSchema")
    if not isinstance(source.entity, str) and record_type not in source.entity:
        raise _wrong(source, "entity", f"record type {record_type!r} has no entity field")
    if (column := source.entity_field(record_type)) not in columns:
        raise _wrong(
            source, "entity", f"{column!r} is not a column of record type {record_type!r} ({', '.join(columns)})"
        )


def schema_columns(schema: SchemaType) -> tuple[str, ...] | None:
    """Column names of a pandera model or schema; nothing if it is neither."""
    made = schema.to_schema() if hasattr(schema, "to_schema") else schema
    return tuple(made.columns) if hasattr(made, "columns") and hasattr(made, "validate") else None


def _check_lanes(source: Source) -> None:
    for lane, weight in source.lanes.items():
        if weight < 1:
            raise ContractError(
                "lanes",
                f"lane {lane!r} weighs {weight}; a weight is at least 1, or its work would starve",
                source=source.name,
            )


def _check_times(source: Source) -> None:
    if source.expect.max_records is not None and source.expect.max_records < source.expect.min_records:
        raise ContractError("expect.max_records", "is less than min_records", source=source.name)
    if source.total_timeout < max(source.connect_timeout, source.read_timeout):
        raise ContractError("total_timeout", "is shorter than connect_timeout or read_timeout", source=source.name)


def _check_built(source: Source) -> None:
    """Refuse what a later issue brings to life, by name."""
    later = {
        "retention.requests": source.retention.requests != FOREVER,
    }  # fmt: skip
    for field, is_used in later.items():
        if is_used:
            raise NotBuiltYet(f"source {source.name!r}: {field}", "C")
