"""A JSON API: the register's filings, a page at a time, each page with the cursor of the next one.

`/api/filings?limit=10` is the first page, `/api/filings?limit=10&cursor=…` another. Cursors name a place and when they
were given out: those from before an expiry are answered with 410 (see the misbehaviour `expire_cursors`).
"""

from __future__ import annotations

import base64
from dataclasses import asdict
from urllib.parse import parse_qs

from .register import filings
from .reply import Reply, json_reply
from .request import Request

PATH = "/api/filings"
_MOST = 50


def answer(request: Request, *, expiries: int) -> Reply | None:
    """A page of filings, when all cursors have expired so often; None for another path."""
    if request.path != PATH:
        return None
    asked = {name: values[-1] for name, values in parse_qs(request.target.partition("?")[2]).items()}
    limit, cursor = asked.get("limit", "10"), asked.get("cursor", "")
    if not limit.isdigit() or not 1 <= int(limit) <= _MOST:
        return json_reply({"error": f"limit is 1 to {_MOST}"}, status=400)
    given, first = _read(cursor) if cursor else (expiries, 0)
    if given != expiries:
        return expired()
    every, after = filings(), first + int(limit)
    shown = [asdict(filing) | {"filed_on": f"{filing.filed_on:%F}"} for filing in every[first:after]]
    return json_reply({"filings": shown, "next": _written(expiries, after) if after < len(every) else None})


def expired(status: int = 410) -> Reply:
    """The answer to a cursor that is too old; some APIs say so with status 200."""
    return json_reply({"error": "cursor_expired"}, status=status)


def has_cursor(request: Request) -> bool:
    """Whether the request is for another page than the first."""
    return request.path == PATH and "cursor=" in request.target


def _written(expiries: int, first: int) -> str:
    return base64.urlsafe_b64encode(f"{expiries}:{first}".encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[int, int]:
    """When it was given out, and the place; (-1, 0) for anything else: it is as good as expired."""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        given, _, first = text.partition(":")
        return int(given), int(first)
    except ValueError:
        return -1, 0
