"""One HTTP exchange: what is asked (`FetchRequest`), and the four ways it may end.

`Response`: an answer came, whole or in part. `NoResponse`: none came. `NotSent`: the permission was over before a byte
left, or nothing can be sent at all. An error of our own is a `NoResponse` too; a fetcher raises nothing but
cancellation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from collector_assets.errors import CollectorError
from collector_assets.facts import fact
from collector_assets.outcome import Outcome
from collector_assets.page import Part
from collector_assets.request import Secret
from collector_assets.spool import Body

Truncated = Literal["length", "time", "disconnect", "unspecified"]
"""Why a body is not whole, in the words of WARC-Truncated (WARC 1.1 §5.13)."""


def anything(_url: str) -> bool:
    """A page may load what it likes."""
    return True


@fact
class FetchRequest:
    """What to send, and how long and how much to take. `url` is sent exactly as it stands here."""

    url: str
    kind: str = ""
    """The kind whose page is asked for: a source may say by which fetcher, and how. Empty for a robots.txt."""
    method: str = "GET"
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    """Added to the fetcher's own; those that say who we are or frame the message cannot be replaced."""
    body: bytes | None = None
    secrets: Sequence[str] = ()
    """Variables whose placeholders in `url` and `body` are filled in; in the answer they are masked again."""
    cookies: str = ""
    """Cookies of a session and of this chain of redirects, added to a Cookie header of the source; never kept."""
    authorization: str = ""
    """Credentials of a session, in place of a header of the source; never kept."""
    connect_s: float
    """Until a connection stands, with TLS."""
    read_s: float
    """Longest silence while waiting for the answer or more of it."""
    total_s: float
    """All of it."""
    max_bytes: int
    """Of the body, as received."""
    gap_s: float = 0.0
    """What a browser lets pass between two requests of one page to its own domain, as between any two."""
    may_load: Callable[[str], bool] = anything
    """Whether a page may load this URL: what robots.txt and halts say; asked of a browser's further requests."""


@fact
class Response:
    """An answer, as received: headers raw, body without transfer coding but still content-encoded.

    What it repeats of the request's secrets is masked; a body in which there was one is not content-encoded any more.
    """

    outcome: Outcome
    reason: str
    """One short line for people; empty when the outcome is ok. Secrets are masked."""
    url: str
    final_url: str
    http_version: str
    status: int
    status_text: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: Body
    truncated: Truncated | None
    request_headers: tuple[tuple[str, str], ...]
    """As sent, secrets masked."""
    requested_at: datetime
    """Wall clock, UTC, right before the first byte left."""
    fetched_at: datetime
    """Wall clock, UTC, when the last byte was in."""
    ended_at: float
    """`time.monotonic()` at that moment: the gap of the budget counts from here."""
    ip: str | None
    refresh: str = ""
    """Where a good page leads by itself, as a redirect would; its outcome is then `redirect`."""
    flags: tuple[str, ...] = ()
    """What is doubtful about it, for its page (`Page.flags`)."""
    rendered_by: str = ""
    """Who made the body from what the site sent; then it is no answer of the site, and is archived as what it is."""
    parts: tuple[Part, ...] = ()
    """What a browser made of it: the DOM, responses to its own requests, a picture."""
    loads: Mapping[str, int] = field(default_factory=dict)
    """What the page wanted to load besides, by what became of it (`gate.Load`)."""


@fact
class NoResponse:
    """No answer came."""

    outcome: Outcome
    reason: str
    """One short line for people. Secrets are masked."""
    ended_at: float
    """`time.monotonic()` when the connection was closed."""
    sent: bool
    """Whether bytes may have left: if so, the site may have counted a request."""
    wait_s: float = 0.0
    """Another attempt before that ends the same way: the name is not asked for again (`fetch/names.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """The permission was over when the connection stood, or nothing more can be sent: no attempt was used."""

    ended_at: float
    stop: CollectorError | None = None
    """Why nothing more can be sent by this fetcher, if so: the worker ends with it."""


class Fetcher(Protocol):
    """Makes one request; knows nothing of the frontier, the budget or the archive."""

    @property
    def user_agent(self) -> str:
        """What it says of itself in every request; robots.txt groups address its first product."""
        ...

    async def fetch(self, request: FetchRequest, may_send: Callable[[], bool]) -> Response | NoResponse | NotSent:
        """Send `request` once. `may_send()` is asked on the standing connection, right before the bytes leave."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...
