"""Requests: what a source asks for (`Link`), what enters the frontier (`NewRequest`), what a worker holds (`Lease`)."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NewType

from collector_assets.errors import ContractError
from collector_assets.facts import fact
from collector_assets.page import Location

RequestId = NewType("RequestId", int)
Fence = NewType("Fence", int)
URLENCODED: Final = "application/x-www-form-urlencoded"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value from the environment, read when a request is sent and at no other time; masked everywhere else."""

    name: str
    """The environment variable."""
    prefix: str = ""
    """Text in front of the value, such as "Bearer "."""

    def __post_init__(self) -> None:
        # It stands in URLs and bodies, and a value given for a name by mistake must not be shown.
        if not _VARIABLE.match(self.name):
            raise ContractError("Secret", "takes the name of an environment variable, not a value")

    def read(self) -> str | None:
        """Prefix and value, or nothing when the variable is unset or empty."""
        value = os.environ.get(self.name)
        return self.prefix + value if value else None

    def __str__(self) -> str:
        return f"{self.prefix}{{secret {self.name}}}"


Headers = Mapping[str, "str | Secret"]
Pairs = Mapping[str, "str | Secret"] | Sequence[tuple[str, "str | Secret"]]
"""Names and values of a query or a form; as a sequence a name may come twice."""


class RestartChain(Exception):
    """Raised by `discover`: the page says that its cursor is dead, so its chain of listings starts over."""


@dataclass(frozen=True, slots=True)
class Link:
    """A page to fetch, as a source says it."""

    url: str
    """Absolute, or relative to the page that the link was found on."""
    kind: str = "detail"
    """What is done with the page."""
    entity: str | None = None
    """What the page is about; with `dedupe="entity"` it is what makes two links the same work."""
    lane: str | None = None
    """Scheduling class; without one "*"."""
    priority: int = 0
    """Higher first, inside the lane."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """Values seen where the link was found; they travel along and reach `extract` as `page.hints`. JSON values."""
    method: str = "GET"
    """Request method."""
    body: bytes | Pairs | None = None
    """Request body: bytes; or the names and values of a form, sent urlencoded in UTF-8, with POST unless another method
    is given; values may be Secret."""
    headers: Headers = field(default_factory=dict)
    """Request headers, added to the kind's; values may be Secret."""
    query: Pairs = field(default_factory=dict)
    """Parameters that are set in the URL's query, in place of those of the same name; values may be Secret."""
    changed_at: datetime | None = None
    """When the site says that the page changed last; brings the fetch of a known item forward (`Kind.refetch`)."""


@fact
class NewRequest:
    """A link that passed: parsed, in scope, with its unique key."""

    unique_key: bytes
    kind: str
    lane: str
    url: str
    budget_key: str
    priority: int = 0
    entity: str | None = None
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    """Plain strings, or {"secret": name, "prefix": text} (see `stored_headers`)."""
    secrets: Sequence[str] | None = None
    """Variables whose placeholders in URL and body are filled in when it is sent (`placeholders.py`)."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 0
    referrer: str | None = None
    chain: Mapping[str, Any] | None = None
    """Where redirects have led, when it is sent outside any window; the frontier keeps that of its own requests."""
    barren: int = 0
    """Listings in a row on the way to it that showed nothing new (`traps.py`)."""
    above: bytes | None = None
    """Digest of the listing that it was found on, where it lies in a folder below."""
    known_run: int = 0
    """Known items in a row at the end of the listings on the way to it (`remember.py`)."""
    found_on: RequestId | None = None
    """The request whose page led to it; none for a start."""
    restarts: int = 0
    """How often its chain of listings had started over."""
    changed_at: datetime | None = None
    is_known: bool = False
    """Fetched in an earlier window, and not due: it is skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The newest good page of the same request in another window: what a conditional request asks about."""

    window_start: datetime
    """With `page_id`: the page that holds the bytes. A chain of revisits ends here."""
    page_id: int
    location: Location
    """Of those bytes."""
    warc_date: datetime
    """WARC-Date of the record that holds them."""
    content_type: str
    content_encoding: str
    etag: str | None
    """As the newest answer said it, weak or strong; sent back as it is."""
    last_modified: str | None


@fact
class Lease:
    """A request that one worker holds for a limited time; every write about it carries `fence`."""

    request_id: RequestId
    fence: Fence
    attempt: int
    """1 for the first attempt."""
    max_attempts: int
    snoozes: int = 0
    """Answers so far that said "later" and cost no attempt."""
    kind: str
    lane: str
    url: str
    budget_key: str
    method: str
    body: bytes | None
    headers: Mapping[str, Any]
    hints: Mapping[str, Any]
    entity: str | None
    depth: int
    referrer: str | None
    leased_until: datetime
    earlier: Earlier | None = None
    """What the answer is compared with; none for another attempt than the first, which asks plainly."""
    chain: Mapping[str, Any] | None = None
    """Where redirects have led so far (`redirects.Chain.stored`)."""
    barren: int = 0
    above: bytes | None = None
    known_run: int = 0
    secrets: Sequence[str] | None = None
    found_on: RequestId | None = None
    restarts: int = 0

    @property
    def address(self) -> str:
        """The URL that is sent now: its own, or where the last redirect led."""
        return self.chain["url"] if self.chain else self.url


def unique_key(
    *, kind: str, edition: int, url_key: str, method: str = "GET", body: bytes | None = None, entity: str | None = None
) -> bytes:
    """What makes two requests the same work inside one source and window: 16 bytes (design.md §2).

    `entity` is given where the kind says `dedupe="entity"`; it then stands for URL, method and body.
    """
    parts = ["entity", entity] if entity is not None else ["url", url_key, method.upper(), (body or b"").hex()]
    text = "\x1f".join([kind, str(edition), *parts])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def secrets_of(stored: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables that headers as the frontier keeps them name."""
    return tuple(value["secret"] for value in stored.values() if isinstance(value, dict))


def again(key: bytes, times: int = 1) -> bytes:
    """The unique key of a listing that is fetched once more in its window, because its chain has started over."""
    for _ in range(times):
        key = hashlib.blake2b(key, digest_size=16, person=b"restart").digest()
    return key


def stored_headers(headers: Headers) -> dict[str, Any]:
    """Headers as the frontier keeps them: secrets by name only."""
    return {name: {"secret": v.name, "prefix": v.prefix} if isinstance(v, Secret) else v for name, v in headers.items()}


def loaded_headers(stored: Mapping[str, Any]) -> dict[str, str | Secret]:
    """The inverse of `stored_headers`."""
    return {name: Secret(v["secret"], v.get("prefix", "")) if isinstance(v, dict) else v for name, v in stored.items()}
