"""The page store: one row per archived response, and the way from a row to the `Page` that an extractor reads.

A row is written after its bytes are durable, in the transaction that moves the request on (rule 10).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from psycopg.errors import ForeignKeyViolation
from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from collector_assets import decoding
from collector_assets.contract import Source
from collector_assets.database import Connection, statements, stream
from collector_assets.facts import fact
from collector_assets.outcome import Outcome
from collector_assets.page import (
    PREFIXES,
    Location,
    Page,
    PagePart,
    Part,
    PartPlace,
    StoredResponse,
    header_map,
    revisited,
)
from collector_assets.request import Earlier, RequestId
from collector_assets.spool import whole
from collector_assets.storable import clean_text
from collector_assets.window import Window, utc

SQL: Final = statements("pages")
PLACES_AT_ONCE: Final = 5_000


@fact
class NewPage:
    """An archived response, ready for its row. `fence` is that of the claim under which it was fetched."""

    window_start: datetime
    source: str
    request_id: RequestId
    attempt: int
    fence: int
    kind: str
    url: str
    final_url: str
    outcome: str
    status: int
    content_type: str
    content_encoding: str
    etag: str | None
    last_modified: str | None
    requested_at: datetime
    fetched_at: datetime
    location: Location
    body_bytes: int
    """Of the body as received."""
    truncated: str | None
    flags: Sequence[str]
    late: bool
    """Fetched after the window closed (rule 22)."""
    warc_date: datetime
    """WARC-Date of the record."""
    revisit_of: int | None = None
    """The page that holds the bytes, where this one has none of its own; never itself a revisit."""
    revisit_window: datetime | None = None
    """The window of that page."""
    robots_rule: str | None = None
    """What in the origin's robots.txt allowed it."""


@fact
class StoredPage:
    """A good page with what is known of its request."""

    page_id: int
    request_id: RequestId
    attempt: int
    kind: str
    url: str
    final_url: str
    status: int
    content_type: str
    requested_at: datetime
    fetched_at: datetime
    location: Location
    body_bytes: int
    flags: tuple[str, ...]
    late: bool
    lane: str
    entity: str | None
    hints: Mapping[str, Any]
    referrer: str | None
    depth: int
    restarts: int = 0
    state: str
    request_outcome: str | None
    held: Location | None = None
    """Of a revisit: where the bytes are. `location` is then the record that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a page row points at."""

    page_id: int
    is_revisit: bool
    """A revisit record is there, not a response."""
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCounts:
    """The pages of one window."""

    pages: int
    ok_by_kind: Mapping[str, int]
    """Good pages, each request's newest only."""
    stored_bytes: int
    """Of bodies as received; an unchanged page has none of its own."""
    unchanged: int
    """Pages whose bytes an earlier window holds."""
    first_fetched_at: datetime | None
    last_fetched_at: datetime | None
    late: int
    """Pages fetched after the window had closed (rule 22)."""
    warc_files: tuple[str, ...]

    @property
    def good(self) -> int:
        """Good pages of every kind."""
        return sum(self.ok_by_kind.values())


def insert(connection: Connection, rows: Sequence[NewPage]) -> list[int]:
    """Write the rows in one statement; the ids of those that are new.

    A claim leaves one page: a row whose request and fence are there already is passed over.
    """
    if not rows:
        return []
    ordered = sorted(rows, key=lambda row: (row.request_id, row.fence))
    found = connection.execute(SQL["insert_pages"], _columns(ordered)).fetchall()
    return [int(page_id) for (page_id,) in found]  # pyright: ignore[reportArgumentType]


def add_flags(
    connection: Connection, source: str, window_start: datetime, request_id: RequestId, flags: Sequence[str]
) -> None:
    """Note what reading found doubtful about a request's newest good page."""
    if flags:
        values = {"source": source, "window_start": window_start, "request_id": request_id, "flags": list(flags)}
        connection.execute(SQL["add_flags"], values)


def for_reading(
    connection: Connection,
    *,
    source: str,
    window_start: datetime,
    kinds: Sequence[str],
    after_request_id: int = 0,
    limit: int = 500,
) -> list[StoredPage]:
    """The newest good page of each request of these kinds, in request id order, from after `after_request_id`."""
    values = {
        "source": source,
        "window_start": window_start,
        "kinds": list(kinds),
        "after_request_id": after_request_id,
        "limit": limit,
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        return [_stored(row) for row in cursor.execute(SQL["pages_for_reading"], values)]


def soft_gone_since(
    connection: Connection, source: str, urls: Collection[str], apart: timedelta, now: datetime | None = None
) -> dict[str, datetime]:
    """Which addresses said "gone" at least `apart` ago, in whatever window, and nothing else since; when first."""
    values = {"source": source, "urls": [clean_text(url) for url in urls], "apart": apart, "now": now}
    rows: list[Any] = connection.execute(SQL["soft_gone_since"], values).fetchall()
    return {url: utc(first) for url, first in rows}


def shared(connection: Connection, source: str, window_start: datetime, at_least: int = 3) -> list[tuple[str, int]]:
    """Addresses at which at least so many requests for other ones ended, most first; ten of them."""
    values = {"source": source, "window_start": window_start, "at_least": at_least}
    rows: list[Any] = connection.execute(SQL["shared_pages"], values).fetchall()
    return [(url, count) for url, count in rows]


def newest(
    connection: Connection, source: str, kinds: Sequence[str], url: str | None = None, *, cut: bool = False
) -> tuple[StoredPage, Window] | None:
    """The newest good page of these kinds, or of one URL, and its window; with `cut` the newest whose body is cut."""
    values = {"source": source, "kinds": list(kinds), "url": url, "cut": cut}
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(SQL["newest_page"], values).fetchone()
    if row is None:
        return None
    window = Window(key=row.pop("window_key"), start=row.pop("window_start"), end=row.pop("window_end"))
    return _stored(row), window


def count(connection: Connection, source: str, window_start: datetime) -> PageCounts:
    """What the window's pages come to."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(SQL["count_pages"], {"source": source, "window_start": window_start}).fetchone()
    assert row is not None  # noqa: S101  an aggregate has one row
    row["warc_files"] = tuple(row["warc_files"])
    return PageCounts(**row)


def places(connection: Connection, source: str, window_start: datetime) -> Iterator[Place]:
    """What every page row of a window points at, by a cursor of the open transaction."""
    values = {"source": source, "window_start": window_start}
    for rows in stream(connection, SQL["page_places"], values, at_once=PLACES_AT_ONCE):
        for page_id, is_revisit, url, file, offset, length, digest, parts in rows:
            location = Location(
                file=file, offset=offset, length=length, payload_digest=digest, url=url, parts=_parts(file, parts)
            )
            yield Place(page_id=page_id, is_revisit=is_revisit, location=location)


def has_other_windows(connection: Connection, source: str, window_start: datetime) -> bool:
    """Whether `earlier` can find anything: the source has a good page of another window."""
    row: Any = connection.execute(SQL["has_other_windows"], {"source": source, "window_start": window_start}).fetchone()
    return bool(row[0])


def earlier(
    connection: Connection, window_start: datetime, request_ids: Sequence[RequestId]
) -> dict[RequestId, Earlier]:
    """The newest good page of the same request in another window, where there is one. One statement for all."""
    values = {"window_start": window_start, "request_ids": list(request_ids)}
    with connection.cursor(row_factory=dict_row) as cursor:
        return {RequestId(row.pop("request_id")): _earlier(row) for row in cursor.execute(SQL["earlier_pages"], values)}


def lock_holders(connection: Connection, found: Sequence[Earlier]) -> set[int]:
    """Keep the pages that hold the bytes from being removed, until the transaction ends; those that are there."""
    values = {"window_starts": [each.window_start for each in found], "page_ids": [each.page_id for each in found]}
    rows: list[Any] = connection.execute(SQL["lock_holders"], values).fetchall()
    return {page_id for (page_id,) in rows}


def _earlier(row: dict[str, Any]) -> Earlier:
    return Earlier(location=_location(row, row.pop("final_url")), **row)


def response_of(stored: StoredPage, read: Callable[[Location], StoredResponse]) -> StoredResponse:
    """The archived response, a revisit with the body that it stands for; `read` is the archive's."""
    response = read(stored.location)
    return response if stored.held is None else revisited(response, read(stored.held))


def page_of(
    stored: StoredPage,
    response: StoredResponse,
    window: Window,
    source: Source,
    *,
    read: Callable[[Location], StoredResponse] | None = None,
    cut: bool = False,
) -> Page:
    """The page as an extractor sees it; `DecodingError` when its bytes are cut, or not decodable within the limit.

    `read` is the archive's: what a browser made of the page is read when it is asked for. With `cut` what is there of a
    cut body is taken for it; who asks knows.
    """
    if response.truncated and not cut:
        raise decoding.DecodingError(Outcome.TRUNCATED, f"the archived body is cut ({response.truncated})")
    headers = header_map(response.headers)
    decoded = decoding.decode(response.body, headers.get("content-encoding", ""), limit=source.max_decoded_bytes)
    return Page(
        url=stored.url,
        final_url=stored.final_url,
        status=response.status,
        headers=headers,
        body=decoded.body,
        fetched_at=stored.fetched_at,
        window=window,
        kind=stored.kind,
        entity=stored.entity,
        lane=stored.lane,
        referrer=stored.referrer,
        hints=stored.hints,
        flags=decoded.flags.union(stored.flags),
        encoding=source.encoding_of(stored.kind),
        parts=_readable(stored.location.parts, read) if read else (),
        shows_rendered=source.kind_map[stored.kind].view.text == "rendered",
    )


def _readable(places: Iterable[PartPlace], read: Callable[[Location], StoredResponse]) -> tuple[PagePart, ...]:
    return tuple(PagePart(role=place.role, url=place.url, read=partial(_part, place, read)) for place in places)


def _part(place: PartPlace, read: Callable[[Location], StoredResponse]) -> Part:
    found = read(place.location)
    return Part(
        role=place.role, url=place.url, status=found.status, headers=tuple(found.headers), body=whole(found.body)
    )


def _parts(file: str, stored: Sequence[Mapping[str, Any]] | None) -> tuple[PartPlace, ...]:
    """The places of a page's parts, as its row has them."""
    return tuple(
        PartPlace(
            role=each["role"],
            url=each["url"],
            location=Location(
                file=file, offset=each["offset"], length=each["length"],
                payload_digest=bytes.fromhex(each["digest"]), url=f"{PREFIXES.get(each['role'], '')}{each['url']}",
            ),
        )
        for each in stored or ()
    )  # fmt: skip


def _listed(location: Location) -> Jsonb | None:
    """A page's parts for its row."""
    if not location.parts:
        return None
    return Jsonb([
        {"role": each.role, "url": clean_text(each.url), "offset": each.location.offset,
         "length": each.location.length, "digest": each.location.payload_digest.hex()}
        for each in location.parts
    ])  # fmt: skip


def _stored(row: dict[str, Any]) -> StoredPage:
    held = {name: row.pop(f"held_{name}") for name in ("file", "offset", "length", "url")}
    location = _location(row, row["final_url"])
    row["flags"] = tuple(row["flags"])
    return StoredPage(
        location=location,
        held=Location(payload_digest=location.payload_digest, **held) if held["file"] is not None else None,
        **row,
    )


def _location(row: dict[str, Any], url: str) -> Location:
    file = row.pop("warc_file")
    return Location(
        file=file,
        offset=row.pop("warc_offset"),
        length=row.pop("warc_length"),
        payload_digest=row.pop("payload_digest"),
        url=url,
        parts=_parts(file, row.pop("parts", None)),
    )


def _columns(rows: Sequence[NewPage]) -> dict[str, list[Any]]:
    """Each column as one array; text from the site made storable."""
    return {
        "window_start": [row.window_start for row in rows],
        "source": [row.source for row in rows],
        "request_id": [row.request_id for row in rows],
        "attempt": [row.attempt for row in rows],
        "fence": [row.fence for row in rows],
        "kind": [row.kind for row in rows],
        "url": [clean_text(row.url) for row in rows],
        "final_url": [clean_text(row.final_url) for row in rows],
        "outcome": [row.outcome for row in rows],
        "status": [row.status for row in rows],
        "content_type": [clean_text(row.content_type) for row in rows],
        "content_encoding": [clean_text(row.content_encoding) for row in rows],
        "etag": [row.etag and clean_text(row.etag) for row in rows],
        "last_modified": [row.last_modified and clean_text(row.last_modified) for row in rows],
        "requested_at": [row.requested_at for row in rows],
        "fetched_at": [row.fetched_at for row in rows],
        "warc_file": [row.location.file for row in rows],
        "warc_offset": [row.location.offset for row in rows],
        "warc_length": [row.location.length for row in rows],
        "warc_date": [row.warc_date for row in rows],
        "payload_digest": [row.location.payload_digest for row in rows],
        "body_bytes": [row.body_bytes for row in rows],
        "truncated": [row.truncated for row in rows],
        "flags": [" ".join(row.flags) for row in rows],
        "late": [row.late for row in rows],
        "revisit_of": [row.revisit_of for row in rows],
        "revisit_window": [row.revisit_window for row in rows],
        "robots_rule": [row.robots_rule and clean_text(row.robots_rule) for row in rows],
        "parts": [_listed(row.location) for row in rows],
    }


# --- Discarding ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFile:
    """A WARC file as the pages of one window know it."""

    file: str
    pages: int
    bytes: int
    """Of these pages' records."""
    newest_at: datetime
    """When the newest of them was fetched."""
    is_needed: bool
    """A page that is kept is unchanged since one of them."""


def files(connection: Connection, source: str, window_start: datetime, *, before: datetime) -> list[WindowFile]:
    """The files of a window's pages; what was fetched `before`, in a window that ended before it, needs no bytes."""
    values = {"source": source, "window_start": window_start, "before": before}
    with connection.cursor(row_factory=class_row(WindowFile)) as cursor:
        return cursor.execute(SQL["window_files"], values).fetchall()


def discard(connection: Connection, source: str, window_start: datetime, file: str) -> int | None:
    """Delete the rows of a file and how many they were; nothing, and None, while a page needs bytes that are there."""
    values = {"source": source, "window_start": window_start, "file": file}
    try:
        with connection.transaction():  # a savepoint: a refusal ends nothing else
            row: Any = connection.execute(SQL["discard_pages"], values).fetchone()
    except ForeignKeyViolation:
        return None
    return int(row[0])
