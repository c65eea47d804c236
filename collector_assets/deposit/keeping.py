"""What is kept of an answer: the exchange in the archive, and the row that points at it (rules 6, 10 and 11)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from collector_assets import pages, redirects, revisits, windows
from collector_assets.archive import Exchange, Location
from collector_assets.contract import Source
from collector_assets.deposit.judged import Judged
from collector_assets.deposit.looking import texts
from collector_assets.fetch import NoResponse, Response
from collector_assets.page import header_map
from collector_assets.politeness import Forbidden, Listed, Wait
from collector_assets.request import Earlier, Lease, NewRequest

_COOKIE_VALUE: Final = re.compile(rb"\A([^=;]*)(?:=[^;]*|(?=;|\Z))")


def exchange_of(
    answer: Response | NoResponse | Forbidden | Wait | Listed,
    asked: Lease | NewRequest,
    outcome: str = "",
    *,
    hides_cookies: bool = False,
) -> Exchange:
    """What the archive keeps of an answer; `outcome`: of one that is no good page.

    `hides_cookies`: those that it sets are a session's, which is nobody's business (the exception to rule 11).
    """
    assert isinstance(answer, Response)  # noqa: S101
    sent = redirects.standing(asked)
    return Exchange(
        url=answer.final_url,
        method=sent.method,
        request_headers=answer.request_headers,
        request_body=sent.body,
        http_version=answer.http_version,
        status=answer.status,
        reason=answer.status_text,
        headers=_without_cookies(answer.headers) if hides_cookies else answer.headers,
        body=answer.body,
        requested_at=answer.requested_at,
        fetched_at=answer.fetched_at,
        ip=answer.ip,
        truncated=answer.truncated,
        revisit=revisits.revisit_of(asked, answer) if isinstance(asked, Lease) else None,
        outcome=outcome,
        rendered_by=answer.rendered_by,
        parts=answer.parts,
    )


def _without_cookies(headers: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[bytes, bytes], ...]:
    """The headers; of cookies that are set, all but the value."""
    return tuple(
        (name, _COOKIE_VALUE.sub(rb"\1={cookie}", value, count=1) if name.lower() == b"set-cookie" else value)
        for name, value in headers
    )


def page_row(
    source: Source, window: windows.WindowRow, item: Judged, location: Location, now: datetime, reading: float
) -> pages.NewPage:
    """The row of a page that was archived at `location`; `now` and the monotonic `reading` are of the same moment."""
    lease, answer = item.answered.lease, item.answered.answer
    assert isinstance(answer, Response)  # noqa: S101  only responses have a location
    # The database's clock, brought back to when the response had arrived (rule 6).
    fetched_at = now - timedelta(seconds=max(0.0, reading - answer.ended_at))
    took = max(timedelta(0), answer.fetched_at - answer.requested_at)
    headers = header_map(texts(answer))
    earlier = lease.earlier if item.is_revisit else None
    if earlier:  # a 304 need not repeat what it confirms
        headers = _said_before(earlier) | headers
    return pages.NewPage(
        window_start=window.window.start,
        source=source.name,
        request_id=lease.request_id,
        attempt=lease.attempt,
        fence=lease.fence,
        kind=lease.kind,
        url=lease.url,
        final_url=answer.final_url,
        outcome=item.of_page.value,
        status=answer.status,
        content_type=headers.get("content-type", ""),
        content_encoding=headers.get("content-encoding", ""),
        etag=headers.get("etag"),
        last_modified=headers.get("last-modified"),
        requested_at=fetched_at - took,
        fetched_at=fetched_at,
        location=location,
        body_bytes=len(answer.body),
        truncated=answer.truncated,
        flags=(*answer.flags, redirects.DOWNGRADED) if _is_downgraded(item) else answer.flags,
        late=fetched_at >= window.closes_at and not window.names_window,
        warc_date=answer.requested_at,
        revisit_of=earlier.page_id if earlier else None,
        revisit_window=earlier.window_start if earlier else None,
        robots_rule=item.answered.robots_rule,
    )


def _said_before(earlier: Earlier) -> dict[str, str]:
    said = {
        "content-type": earlier.content_type,
        "content-encoding": earlier.content_encoding,
        "etag": earlier.etag,
        "last-modified": earlier.last_modified,
    }
    return {name: value for name, value in said.items() if value}


def _is_downgraded(item: Judged) -> bool:
    """Whether TLS is left behind: followed, because the site says so, and noted on the page."""
    return bool(item.chain) and item.answered.lease.address.startswith("https:") and item.chain.url.startswith("http:")
