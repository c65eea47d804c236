"""What a source file may say (design.md §4). Importing this imports no Dagster and no driver.

Wrong types and unknown fields are refused when the object is made (pydantic, strict); `registry.py` turns that into
one line that names the file and the field. Fields that later releases bring to life are here from the start; using
one is a clear `NotBuiltYet`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from collector_assets import urls
from collector_assets.errors import ContractError, NotBuiltYet
from collector_assets.page import Page
from collector_assets.record import Record
from collector_assets.request import Link, Secret
from collector_assets.window import Cron, Daily, Hourly, Schedule, Window

__all__ = [
    "FOREVER", "Budget", "Cron", "Daily", "Expect", "FromFile", "FromQuery", "FromSource", "Hourly", "Kind", "Link",
    "Page", "Record", "Retention", "Secret", "Session", "Source", "days", "hours", "minutes", "replace", "seconds",
]  # fmt: skip

STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True, extra="forbid")
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}\Z")
NAMED_WINDOW = re.compile(r"\{window\.(start|end)(?::([^}]*))?\}|\{window\.key\}")
FOREVER = timedelta.max
DEFAULT_LANE = "*"
RESERVED_NAMES = frozenset({"multi"})

Discover = Callable[[Page], Iterable[Link]]
Extract = Callable[[Page], Iterable["Mapping[str, Any] | Record"]]
Combine = Callable[[str, list[Any]], Mapping[str, Any]]
Start = Callable[[Window, Mapping[str, Any]], Iterable[Link]]
Headers = Mapping[str, str | Secret]


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


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Budget:
    """How fast a source may ask. All sources on one budget key share it: the greatest gap, the fewest slots."""

    gap: timedelta = Field(seconds(1), ge=timedelta(0), description="pause from the end of a response to the next request, per slot")
    slots: int = Field(1, ge=1, le=256, description="requests to the budget key under way at once, over all processes and hosts")
    weight: float = Field(1, gt=0, description="share of the budget among the sources on one key")
    per: Literal["domain", "host"] = Field("domain", description="what the budget key is; all sources of one domain must agree")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Expect:
    """What must hold of a window."""

    min_records: int = Field(1, ge=0, description="fewer records fail the window's verdict")
    max_records: int | None = Field(None, ge=0, description="more records fail the window's verdict")
    max_error_rate: float = Field(0.05, ge=0, le=1, description="failed / planned requests; above it `window_complete` is an ERROR")
    max_reject_rate: float = Field(0.02, ge=0, le=1, description="rejects / (records + rejects); above it the verdict fails")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Retention:
    """How long things are kept. Enforced by the use case `retain` (a later release); until then everything is kept."""

    raw_pages: timedelta = Field(FOREVER, description="WARC bytes and page rows")
    requests: timedelta = Field(FOREVER, description="rows of the frontier")
    rejects: timedelta = Field(FOREVER, description="quarantine")
    history: timedelta = Field(FOREVER, description="observations")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Kind:
    """A class of pages in a source. Pass 1 fetches the kinds that have `discover`, pass 2 the rest."""

    discover: Discover | None = Field(None, description="(Page) -> links found on a page of this kind")
    extract: Extract | None = Field(None, description="(Page) -> records on a page of this kind; pure: no network, clock, database")
    fetcher: Literal["http", "browser", "rendering"] = Field("http", description="how pages of this kind are fetched (browser, rendering: issue D)")
    dedupe: Literal["url", "entity"] = Field("url", description="what makes two requests of this kind the same work")
    may_be_empty: bool = Field(False, description="a page without records is fine")
    method: str = Field("GET", description="default method of links of this kind")
    headers: Headers = Field(default_factory=dict, description="request headers of this kind, added to the source's")
    refetch: Literal["window", "once"] | timedelta = Field("window", description="fetch a known item again: each window, never, or after a time (issue C)")
    stop_after_known: int | None = Field(None, ge=1, description="known items in a row that end a listing chain (issue C)")
    on_status: Mapping[int, Literal["gone", "not_yet", "fail", "skip"]] = Field(default_factory=dict, description="what a status means for this kind (issue C)")


@dataclass(frozen=True, config=STRICT)
class FromSource:
    """Start from the entities of another source (issue C)."""

    source: str


@dataclass(frozen=True, config=STRICT)
class FromQuery:
    """Start from the rows of a query (issue C)."""

    sql: str
    dsn: Secret
    asset: str | None = None


@dataclass(frozen=True, config=STRICT)
class FromFile:
    """Start from the rows of a file (issue C)."""

    url: str


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Session:
    """A login before pass 1 (issue C)."""

    login: Link
    proof: str


SchemaType = Any  # a pandera DataFrameModel class or DataFrameSchema; pandera itself is imported by the source file


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Source:
    """One site's contract. Short form: `discover`, `extract`, `schema`; long form: `kinds`, `records`."""

    name: str = Field(description="lower case, digits, underscores; names the assets, the job, the view")
    description: str = Field("", description="one sentence for the asset pages")
    start_urls: tuple[str | Link, ...] = Field((), description="where a window starts; may name it: {window.start:%Y-%m-%d}, {window.end:…}, {window.key}")
    start: Start | None = Field(None, description="(window, inputs) -> links a window starts with")
    inputs: Mapping[str, FromSource | FromQuery | FromFile] = Field(default_factory=dict, description="rows that `start` is given (issue C)")
    names_window: bool | None = Field(None, description="whether the starts name the window, so that it can be back-filled; None: seen from start_urls")
    discover: Discover | None = Field(None, description="short form: makes the kind \"listing\"")
    extract: Extract | None = Field(None, description="short form: makes the kind \"detail\"")
    kinds: Mapping[str, Kind] = Field(default_factory=dict, description="long form: every kind of page by name")
    schema: SchemaType = Field(None, description="short form: pandera model of the record type \"record\"")
    records: Mapping[str, SchemaType] = Field(default_factory=dict, description="long form: pandera model of each record type")
    entity: str | Mapping[str, str] = Field(description="the field that names the entity; per record type where they differ")
    combine: Combine | None = Field(None, description="(entity, rows) -> row: joins the rows of one entity within a window before validation; pure")
    revised_at: str | None = Field(None, description="the field with the page's own claim of when it was revised (source_revised_at)")
    extractor_version: str = Field(description="raise it when extract changes; pages are read again, nothing is fetched")
    edition: int = Field(1, ge=1, description="raise it to collect windows again")
    window: Schedule = Field(description="Daily, Hourly or Cron: the collection windows")
    budget: Budget = Field(default_factory=Budget, description="how fast we may ask")
    capacity: int = Field(1_000, ge=1, description="queued + leased requests of a window; the rest waits as candidates")
    max_requests: int = Field(100_000, ge=1, description="requests of a window; reaching it stops discovery (bound_reached)")
    max_depth: int = Field(1_000, ge=1, description="links followed from a start; reaching it stops discovery (bound_reached)")
    lanes: Mapping[str, int] = Field(default_factory=lambda: {DEFAULT_LANE: 1}, description="weight of each lane; a lane not named weighs \"*\"")
    interleave: bool = Field(False, description="all fetching in pass 2, discovering kinds and others mixed by `interleave_weights`")
    interleave_weights: tuple[int, int] = Field((1, 1), description="weights of (discovering kinds, other kinds) with interleave")
    expect: Expect = Field(default_factory=Expect, description="what must hold of a window")
    freshness: timedelta | None = Field(None, description="how old the newest window in `latest` may be")
    retention: Retention = Field(default_factory=Retention, description="how long things are kept")
    scope: tuple[str, ...] = Field((), description="hosts (and their subdomains) that links may lead to; default: the domains of start_urls")
    headers: Headers = Field(default_factory=dict, description="request headers; values may be Secret")
    connect_timeout: timedelta = Field(seconds(10), gt=timedelta(0), description="deadline of connecting, TLS included")
    read_timeout: timedelta = Field(seconds(30), gt=timedelta(0), description="longest silence while an answer is awaited or read")
    total_timeout: timedelta = Field(seconds(60), gt=timedelta(0), description="deadline of a whole request")
    max_bytes: int = Field(16 * 2**20, ge=1, description="bytes of a body on the wire")
    max_decoded_bytes: int = Field(64 * 2**20, ge=1, description="bytes of a body after content decoding")
    max_attempts: int = Field(3, ge=1, le=100, description="attempts of a request")
    retry_wait: timedelta = Field(seconds(1), gt=timedelta(0), description="wait after the first failed attempt; doubles, up to 5 minutes, plus jitter")
    lease: timedelta = Field(seconds(60), ge=seconds(1), description="how long a worker's claim lasts without a renewal")
    in_flight: int = Field(32, ge=1, le=256, description="requests of one process under way at once (also bounded by slots)")
    refusal_limit: int = Field(3, ge=1, description="refusals in a row that halt the origin (issue C)")
    schedule: Literal["on", "off"] = Field("off", description="whether the window schedule runs from the start")
    owners: tuple[str, ...] = Field((), description="team:name or e-mail addresses")
    licence_note: str = Field("", description="what we may do with the data, and where that is written")
    grace: timedelta = Field(hours(1), ge=timedelta(0), description="after a window's end it still counts as collected in time")
    patience: timedelta = Field(seconds(120), ge=timedelta(0), description="longest wait of a step for work that is not due yet")
    turn: timedelta = Field(hours(1), gt=timedelta(0), description="longest run of a collecting step before it yields")
    late: Literal["allow", "refuse"] = Field("allow", description="collecting after end + grace: marked late, or refused")
    coverage: Literal["full", "incremental"] = Field("full", description="whether a window lists everything; incremental: nothing is ever unseen (issue C)")
    session: Session | None = Field(None, description="a login before pass 1 (issue C)")
    sitemaps: bool = Field(False, description="discover from sitemaps (issue C)")

    def __post_init__(self) -> None:
        _check_names(self)
        _check_pages(self)
        _check_records(self)
        _check_lanes(self)
        _check_times(self)
        _check_built(self)

    @cached_property
    def kind_map(self) -> dict[str, Kind]:
        """Every kind by name, whichever form the source was written in."""
        if self.kinds:
            return dict(self.kinds)
        short = {"listing": self.discover and Kind(discover=self.discover), "detail": self.extract and Kind(extract=self.extract)}
        return {name: kind for name, kind in short.items() if kind}

    @cached_property
    def discovering(self) -> tuple[str, ...]:
        """Kinds that pass 1 fetches; none with `interleave`."""
        return () if self.interleave else self.with_discover

    @cached_property
    def with_discover(self) -> tuple[str, ...]:
        """Kinds whose pages yield links."""
        return tuple(sorted(name for name, kind in self.kind_map.items() if kind.discover))

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
        return any(NAMED_WINDOW.search(_url(item)) for item in self.start_urls)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the start URLs."""
        return tuple(dict.fromkeys(urls.host(_plain(_url(item))) for item in self.start_urls))

    @cached_property
    def domain(self) -> str:
        """The registrable domain of the source: the run tag `collector/domain`."""
        return urls.domain(self.hosts[0] if self.hosts else self.scope[0])

    @cached_property
    def is_demo(self) -> bool:
        """Whether everything the source may reach is the demo site."""
        return all(urls.is_demo(host) for host in (*self.hosts, *self.scope))

    @cached_property
    def scope_hosts(self) -> tuple[str, ...]:
        """Hosts, with their subdomains, that a link may lead to."""
        return self.scope or tuple(dict.fromkeys(urls.domain(host) for host in self.hosts))

    def in_scope(self, host: str) -> bool:
        """Whether a link to this host may enter the frontier."""
        return any(host == allowed or host.endswith("." + allowed) for allowed in self.scope_hosts)

    def budget_key(self, url: str) -> str:
        """What the budget counts a request to this URL against."""
        host = urls.host(url)
        return host if self.budget.per == "host" else urls.domain(host)

    def lane_weight(self, lane: str) -> int:
        """A lane's weight; one that is not named weighs "*"."""
        return self.lanes.get(lane, self.lanes.get(DEFAULT_LANE, 1))

    def starts(self, window: Window) -> Iterator[Link]:
        """The links a window starts with, the window's times filled in."""
        for item in self.start_urls:
            link = item if isinstance(item, Link) else Link(item, kind=self.first_kind)
            yield replace(link, url=named_url(link.url, window))
        if self.start:
            yield from self.start(window, {})

    @cached_property
    def first_kind(self) -> str:
        """The kind of a plain start URL: the first that discovers, else the first."""
        return next((name for name, kind in self.kind_map.items() if kind.discover), next(iter(self.kind_map)))


def named_url(url: str, window: Window) -> str:
    """The URL with {window.start:FORMAT}, {window.end:FORMAT} and {window.key} filled in, in the source's time zone."""

    def fill(match: re.Match[str]) -> str:
        if match[1] is None:
            return window.key
        moment = window.start if match[1] == "start" else window.end
        return moment.strftime(match[2] or "%Y-%m-%d")

    return NAMED_WINDOW.sub(fill, url)


def contract_fields(of: type = Source) -> tuple[tuple[str, str, str, str], ...]:
    """(field, type, default, meaning) of each field, for docs/source-contract.md."""
    return tuple((f.name, _type_text(f.type), _default_text(f.default), _meaning(f.default)) for f in fields(of))


def _url(item: str | Link) -> str:
    return item if isinstance(item, str) else item.url


def _plain(url: str) -> str:
    return NAMED_WINDOW.sub("0", url)


def _check_names(source: Source) -> None:
    if not NAME.match(source.name) or source.name in RESERVED_NAMES:
        raise ContractError("name", f"{source.name!r} must be lower case letters, digits and underscores, begin with a letter, at most 63", source=source.name)
    for field, names in (("kinds", source.kind_map), ("records", source.schemas)):
        for name in names:
            if not NAME.match(name):
                raise ContractError(field, f"{name!r} must be lower case letters, digits and underscores", source=source.name)


def _check_pages(source: Source) -> None:
    def fail(field: str, problem: str) -> None:
        raise ContractError(field, problem, source=source.name)

    if source.kinds and (source.discover or source.extract):
        fail("kinds", "give either kinds (long form) or discover and extract (short form), not both")
    if not source.with_extract:
        fail("extract", "no kind has extract, so no record can ever come out")
    if not source.start_urls and not source.start:
        fail("start_urls", "empty, and no start function: a window would have nothing to do")
    if not source.start_urls and not source.scope:
        fail("scope", "without start_urls the hosts must be named here")
    for item in source.start_urls:
        if isinstance(urls.resolve(_plain(_url(item)), ""), urls.Rejected):
            fail("start_urls", f"{_url(item)!r} is not an absolute http(s) URL")
        if isinstance(item, Link) and item.kind not in source.kind_map:
            fail("start_urls", f"{item.url!r} is of kind {item.kind!r}; the kinds are {', '.join(source.kind_map)}")
    if not source.scope and len(domains := {urls.domain(host) for host in source.hosts}) > 1:
        fail("start_urls", f"they lead to {len(domains)} domains ({', '.join(sorted(domains))}); one source is one domain: split it, or name the scope")
    for name, kind in source.kind_map.items():
        if not (kind.discover or kind.extract):
            fail("kinds", f"{name!r} has neither discover nor extract")


def _check_records(source: Source) -> None:
    def fail(field: str, problem: str) -> None:
        raise ContractError(field, problem, source=source.name)

    if bool(source.records) == (source.schema is not None):
        fail("schema", "give either schema (one record type) or records (several), and not both")
    for record_type, schema in source.schemas.items():
        if not isinstance(source.entity, str) and record_type not in source.entity:
            fail("entity", f"record type {record_type!r} has no entity field")
        columns = schema_columns(schema)
        if columns is None:
            fail("schema", f"record type {record_type!r} needs a pandera DataFrameModel or DataFrameSchema")
        elif source.entity_field(record_type) not in columns:
            fail("entity", f"{source.entity_field(record_type)!r} is not a column of record type {record_type!r} ({', '.join(columns)})")


def schema_columns(schema: SchemaType) -> tuple[str, ...] | None:
    """Column names of a pandera model or schema; nothing if it is neither."""
    made = schema.to_schema() if hasattr(schema, "to_schema") else schema
    return tuple(made.columns) if hasattr(made, "columns") and hasattr(made, "validate") else None


def _check_lanes(source: Source) -> None:
    for lane, weight in source.lanes.items():
        if weight < 1:
            raise ContractError("lanes", f"lane {lane!r} weighs {weight}; a weight is at least 1, or its work would starve", source=source.name)


def _check_times(source: Source) -> None:
    if source.expect.max_records is not None and source.expect.max_records < source.expect.min_records:
        raise ContractError("expect.max_records", "is less than min_records", source=source.name)
    if source.total_timeout < max(source.connect_timeout, source.read_timeout):
        raise ContractError("total_timeout", "is shorter than connect_timeout or read_timeout", source=source.name)


def _check_built(source: Source) -> None:
    """Refuse what a later issue brings to life, by name."""
    later = {
        "inputs": bool(source.inputs), "session": source.session is not None, "sitemaps": source.sitemaps,
        "coverage": source.coverage != "full",
        "kinds.refetch": any(kind.refetch != "window" for kind in source.kind_map.values()),
        "kinds.stop_after_known": any(kind.stop_after_known is not None for kind in source.kind_map.values()),
        "kinds.on_status": any(kind.on_status for kind in source.kind_map.values()),
    }  # fmt: skip
    for field, is_used in later.items():
        if is_used:
            raise NotBuiltYet(f"source {source.name!r}: {field}", "C")
    for name, kind in source.kind_map.items():
        if kind.fetcher != "http":
            raise NotBuiltYet(f"source {source.name!r}: kinds[{name!r}].fetcher={kind.fetcher!r}", "D")


def _type_text(annotation: object) -> str:
    return str(annotation).replace("collections.abc.", "")


def _default_text(info: Any) -> str:
    if info.is_required():
        return "required"
    value = info.get_default(call_default_factory=True)
    return "forever" if value == FOREVER else str(value) if isinstance(value, timedelta) else repr(value)


def _meaning(info: Any) -> str:
    return info.description or ""


