"""Links as sources say them -> requests as the frontier takes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from collector_assets import keys, placeholders, traps, urls
from collector_assets.contract import Link, Page, Source
from collector_assets.facts import fact
from collector_assets.request import URLENCODED, NewRequest, RequestId, again, stored_headers, unique_key
from collector_assets.storable import clean_text

SCHEMES: Final = frozenset({
    "about", "blob", "callto", "data", "file", "ftp", "geo", "intent", "javascript", "magnet", "mailto", "sip",
    "skype", "sms", "tel", "urn", "viber", "view-source", "webcal", "whatsapp", "ws", "wss",
})  # fmt: skip
"""Counted each by itself; what a page makes up is `other`."""
MOST_ROWS: Final = 100
"""Records that two listings are compared by."""
TRAP: Final = "trap_suspected"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedLink:
    """A link that stays out of the frontier: why, and where it was found."""

    reason: str
    value: str
    """The link as found, cut, without user info."""
    referrer: str | None
    detail: str = ""
    """What is counted apart under the reason: the scheme, the unknown kind, the pattern of the trap."""


@fact
class Found:
    """What came of a list of links."""

    requests: list[NewRequest] = field(default_factory=list)
    rejected: list[RejectedLink] = field(default_factory=list)
    too_deep: int = 0
    flags: tuple[str, ...] = ()
    """What is doubtful about the page that they stand on."""
    kind: str = ""
    """Of the page that they were found on."""
    known_run: int = 0
    """Of its request."""
    listing: traps.Listing | None = None
    """The page that they were found on, for the guard against traps."""


def of_starts(source: Source, links: Iterable[Link]) -> Found:
    """The requests that a window starts with."""
    return _sort(source, links, _Place())


def of_page(
    source: Source,
    page: Page,
    depth: int,
    *,
    barren: int = 0,
    above: bytes | None = None,
    known_run: int = 0,
    restarts: int = 0,
    request_id: RequestId | None = None,
) -> Found:
    """The requests that a discovered page leads to; runs the source's `discover`, whose errors propagate.

    `barren`, `above`, `known_run` and `restarts` are those of its request. `RestartChain` is one of the errors.
    """
    discover = source.kind_map[page.kind].discover
    if discover is None:
        return Found()
    place = _Place(page=page, depth=depth + 1, referrer=page.url, restarts=restarts, found_on=request_id)
    found = _sort(source, list(discover(page)), place)
    listing = traps.Listing(
        url=page.final_url,
        body=traps.digest_of_stream(page.open()),
        barren=barren,
        above=above,
        rows=_rows(source, page),
        restarts=restarts,
    )
    return replace(found, listing=listing, kind=page.kind, known_run=known_run)


def _rows(source: Source, page: Page) -> bytes:
    """A digest of the first records on a listing; nothing where its kind has none. Reading it comes later."""
    extract = source.kind_map[page.kind].extract
    if extract is None:
        return b""
    try:
        rows = list(islice(extract(page), MOST_ROWS))
    except Exception as error:  # noqa: BLE001  the source's code: `records` will tell; here it is something like any other
        rows = [repr(error)]
    return traps.digest(repr(rows).encode("utf-8", "replace")) if rows else b""


def of_addresses(source: Source, links: Iterable[Link], *, referrer: str, depth: int) -> Found:
    """The requests that absolute links lead to, which no `discover` found."""
    return _sort(source, links, _Place(referrer=referrer, depth=depth))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where links were found."""

    page: Page | None = None
    depth: int = 0
    referrer: str | None = None
    restarts: int = 0
    found_on: RequestId | None = None


def _sort(source: Source, links: Iterable[Link], place: _Place) -> Found:
    found, too_deep = Found(), 0
    for link in links:
        match _request(source, link, place):
            case NewRequest() as request if place.depth <= source.max_depth:
                found.requests.append(request)
            case NewRequest():
                too_deep += 1
            case RejectedLink() as rejected:
                found.rejected.append(rejected)
    return Found(requests=found.requests, rejected=found.rejected, too_deep=too_deep)


def _request(source: Source, link: Link, place: _Place) -> NewRequest | RejectedLink:
    page = place.page

    def reject(reason: str, detail: str = "") -> RejectedLink:
        value = clean_text(urls.shown(link.url))
        return RejectedLink(reason=reason, detail=detail, value=value, referrer=place.referrer)

    kind = source.kind_map.get(link.kind)
    if kind is None:
        return reject("unknown_kind", clean_text(link.kind[:60]))
    if kind.dedupe == "entity" and not link.entity:
        return reject("entity_missing")
    address = page.resolve(link.url) if page else urls.resolve(link.url, "")
    if isinstance(address, urls.Rejected):
        return reject(address.reason, scheme_of(address))
    if not source.in_scope(urls.host(address.url)):
        return reject("out_of_scope")
    if page and source.max_barren is not None and (grown := traps.growth(address.url, page.final_url)):
        return reject(TRAP, grown)
    # Nothing but a browser shows another page for another fragment.
    route = address.fragment if source.keys.hash_routes and kind.fetcher != "http" else ""
    method = (link.method if link.method != "GET" else kind.method).upper()
    sent = sent_of(link, address.url)
    if len(sent.url) > urls.MAX_URL:
        return reject("too_long")
    if sent.is_form and method == "GET":
        method = "POST"
    key = unique_key(
        kind=link.kind, edition=source.edition, method=method, body=sent.body,
        url_key=source.keys.key(sent.url, route),
        entity=link.entity if kind.dedupe == "entity" else None,
    )  # fmt: skip
    # A chain that starts over leads to its listings once more, and to everything else only where it was not there yet.
    is_again = place.restarts and page and page.kind == link.kind
    return NewRequest(
        unique_key=again(key, place.restarts) if is_again else key,
        kind=link.kind, lane=clean_text(link.lane or "*"),
        url=f"{sent.url}#{route}" if keys.is_route(route) else sent.url,
        budget_key=source.budget_key(address.url), priority=link.priority,
        entity=link.entity and clean_text(link.entity), method=method, body=sent.body, secrets=sent.secrets or None,
        headers=stored_headers({**source.headers, **kind.headers, **sent.headers, **link.headers}),
        hints=link.hints, depth=place.depth, referrer=place.referrer, changed_at=link.changed_at,
        found_on=place.found_on, restarts=place.restarts,
    )  # fmt: skip


@fact
class Sent:
    """A link's query and body as they are kept: secrets by placeholders."""

    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """What the body asks for."""
    secrets: tuple[str, ...] = ()
    is_form: bool = False


def sent_of(link: Link, url: str) -> Sent:
    """The link's query and body, at its address `url`."""
    in_query, in_body = (), ()
    if link.query:
        url, in_query = placeholders.with_query(url, link.query)
    if link.body is None or isinstance(link.body, bytes):
        return Sent(url=url, body=link.body, secrets=in_query)
    form, in_body = placeholders.coded(link.body)
    headers = {"Content-Type": URLENCODED} if not any(name.lower() == "content-type" for name in link.headers) else {}
    secrets = tuple(dict.fromkeys(in_query + in_body))
    return Sent(url=url, body=form.encode("ascii"), headers=headers, secrets=secrets, is_form=True)


def scheme_of(address: urls.Rejected) -> str:
    """What is counted apart of an address that is none of the web."""
    return address.scheme if address.scheme in SCHEMES else address.scheme and "other"


def by_reason(rejected: Iterable[RejectedLink]) -> Iterator[tuple[int, RejectedLink]]:
    """How many links of each reason and detail, sorted, and the first of them: what the store counts."""
    groups: dict[tuple[str, str], list[RejectedLink]] = {}
    for link in rejected:
        groups.setdefault((link.reason, link.detail), []).append(link)
    for _, alike in sorted(groups.items()):
        yield len(alike), alike[0]
