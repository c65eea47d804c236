"""What did not change since an earlier window: asked for with a condition, stored as a pointer to the bytes we hold.

A first attempt is conditional where the archive holds a page of the same request. Whatever came of it, the next attempt
asks plainly; so does a recollect: somebody wants the page, not our idea of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from collector_assets import pages
from collector_assets.archive import Archive, Revisit
from collector_assets.contract import Source
from collector_assets.database import Connection
from collector_assets.fetch import Response
from collector_assets.outcome import Outcome
from collector_assets.page import StoredResponse, header_map, revisited
from collector_assets.request import Lease
from collector_assets.spool import sha256

OWN_QUESTIONS: Final = frozenset(
    ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range")
)
"""Headers by which a source asks itself: the answers are not ours to interpret (RFC 9110 §13, §14.2)."""

LONGEST_VALIDATOR: Final = 1_000
"""A longer one would rather make the request too large than be recognised."""
TO_CONDITIONS: Final = {304: Outcome.NOT_MODIFIED, 412: Outcome.CONDITION_FAILED}
"""What a status means to a conditional GET. A 412 is against RFC 9110 §13.1.2, and is sent all the same."""


class EarlierPages:
    """What the archive holds of requests that are claimed now; shared by the desks of a worker."""

    def __init__(self, *, source: Source, window_start: datetime, archive: Archive) -> None:
        self._source, self._window_start, self._archive = source, window_start, archive
        self._has_any: bool | None = None if source.conditional else False

    def of(self, connection: Connection, leases: Sequence[Lease]) -> list[Lease]:
        """The leases, those that may be compared with the page to compare with. One statement at most.

        Whether the archive still has the bytes is for `held` to say: it may ask an object store, so outside of any
        transaction.
        """
        asking = [lease.request_id for lease in leases if _may_ask(lease) and self._is_by_http(lease)]
        if not asking or not self._found_any(connection):
            return list(leases)
        found = pages.earlier(connection, self._window_start, asking)
        return [replace(lease, earlier=found.get(lease.request_id)) for lease in leases]

    def held(self, leases: Sequence[Lease]) -> list[Lease]:
        """The leases; what the archive does not have any more is asked for plainly."""
        return [
            replace(lease, earlier=None) if lease.earlier and not self._archive.holds(lease.earlier.location) else lease
            for lease in leases
        ]

    def _is_by_http(self, lease: Lease) -> bool:
        """What others made of a page cannot be asked for with a condition, nor compared byte by byte."""
        return self._source.kind_map[lease.kind].fetcher == "http"

    def _found_any(self, connection: Connection) -> bool:
        if self._has_any is None:
            self._has_any = pages.has_other_windows(connection, self._source.name, self._window_start)
        return self._has_any


def _may_ask(lease: Lease) -> bool:
    return (
        lease.attempt == 1
        and lease.method == "GET"
        and lease.body is None
        and not any(name.lower() in OWN_QUESTIONS for name in lease.headers)
    )


def conditions(lease: Lease) -> dict[str, str]:
    """The headers of a conditional request; both validators where there are both (RFC 9110 §13.1.3)."""
    if lease.earlier is None:
        return {}
    said = {"If-None-Match": lease.earlier.etag, "If-Modified-Since": lease.earlier.last_modified}
    return {name: value for name, value in said.items() if value and _may_be_sent(value)}


def _may_be_sent(value: str) -> bool:
    return len(value) <= LONGEST_VALIDATOR and value.isascii() and value.isprintable()


def outcome_of(lease: Lease, answer: Response) -> Outcome:
    """The outcome of the answer, a 304 to a conditional request being a good one (HTTP-23)."""
    if answer.status in TO_CONDITIONS and conditions(lease):
        return TO_CONDITIONS[answer.status]
    return answer.outcome


def revisit_of(lease: Lease, answer: Response) -> Revisit | None:
    """Where the body of this answer is already, if it is."""
    earlier = lease.earlier
    if earlier is None:
        return None
    if outcome_of(lease, answer) is Outcome.NOT_MODIFIED:
        profile = "server-not-modified"
    elif answer.outcome is Outcome.OK and _is_same(lease, answer):
        profile = "identical-payload-digest"
    else:
        return None
    return Revisit(profile=profile, held=earlier.location, held_date=earlier.warc_date)


def confirmed(lease: Lease, answer: Response, archive: Archive) -> Response:
    """A 304 as the response that it confirms; `BrokenRecord` when the archive cannot give it."""
    assert lease.earlier is not None  # noqa: S101  only a conditional request is confirmed
    revisit = StoredResponse(
        status=answer.status,
        headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers),
        body=b"",
        url=answer.url,
        truncated=None,
        fetched_at=answer.fetched_at,
        is_revisit=True,
    )
    whole = revisited(revisit, archive.read(lease.earlier.location))
    headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in whole.headers)
    return replace(answer, status=whole.status, headers=headers, body=whole.body)


def _is_same(lease: Lease, answer: Response) -> bool:
    """The same bytes, to be read in the same way."""
    earlier = lease.earlier
    assert earlier is not None  # noqa: S101  asked for by `revisit_of`
    said = header_map((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers)
    return (
        (said.get("content-type", ""), said.get("content-encoding", ""))
        == (earlier.content_type, earlier.content_encoding)
        and answer.truncated is None
        and sha256(answer.body) == earlier.location.payload_digest
    )
