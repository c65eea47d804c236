"""What goes into the archive: one request and the response to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from collector_assets.facts import fact
from collector_assets.page import Location, Part
from collector_assets.spool import Body


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisit:
    """Instead of a body: the record that holds it (WARC 1.1 §6.7)."""

    profile: Literal["server-not-modified", "identical-payload-digest"]
    held: Location
    """Of the response record with the body."""
    held_date: datetime
    """Its WARC-Date."""


@fact
class Exchange:
    """One HTTP exchange as it was on the wire, except for the transfer coding and for secrets, which are masked."""

    url: str
    """What was asked for; the target URI of both records."""
    method: str
    request_headers: Sequence[tuple[str, str]]
    request_body: bytes | None
    http_version: str
    status: int
    reason: str
    """The words after the status; usually empty or "OK"."""
    headers: Sequence[tuple[bytes, bytes]]
    body: Body
    """Without transfer coding, still content-encoded."""
    requested_at: datetime
    fetched_at: datetime
    ip: str | None
    truncated: str | None
    """Why the body is not whole, in the words of WARC-Truncated: length, time, disconnect."""
    revisit: Revisit | None = None
    """Where the body is already: then it is not stored again."""
    outcome: str = ""
    """What the fetch was found to be, where it is no good page; a note for other readers, the page's row decides."""
    rendered_by: str = ""
    """Who made the body from what the site sent, if somebody did: then it is a resource, not a response of the site."""
    parts: Sequence[Part] = ()
    """What a browser made of the page."""
