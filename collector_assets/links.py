"""Links as sources say them -> requests as the frontier takes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from collector_assets import urls
from collector_assets.contract import Link, Page, Source
from collector_assets.request import NewRequest, stored_headers, unique_key
from collector_assets.storable import clean_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedLink:
    """A link that stays out of the frontier: why, and where it was found."""

    reason: str
    value: str
    referrer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of a list of links."""

    requests: list[NewRequest] = field(default_factory=list)
    rejected: list[RejectedLink] = field(default_factory=list)
    too_deep: int = 0


def of_starts(source: Source, links: Iterable[Link]) -> Found:
    """The requests that a window starts with."""
    return _sort(source, links, base="", referrer=None, depth=0)


def of_page(source: Source, page: Page, depth: int) -> Found:
    """The requests that a discovered page leads to; runs the source's `discover`, whose errors propagate."""
    discover = source.kind_map[page.kind].discover
    if discover is None:
        return Found()
    return _sort(source, list(discover(page)), base=page.base_url, referrer=page.url, depth=depth + 1)


def _sort(source: Source, links: Iterable[Link], *, base: str, referrer: str | None, depth: int) -> Found:
    found, too_deep = Found(), 0
    for link in links:
        match _request(source, link, base, referrer, depth):
            case NewRequest() as request if depth <= source.max_depth:
                found.requests.append(request)
            case NewRequest():
                too_deep += 1
            case RejectedLink() as rejected:
                found.rejected.append(rejected)
    return Found(requests=found.requests, rejected=found.rejected, too_deep=too_deep)


def _request(source: Source, link: Link, base: str, referrer: str | None, depth: int) -> NewRequest | RejectedLink:
    def reject(reason: str) -> RejectedLink:
        return RejectedLink(reason=reason, value=clean_text(link.url[:200]), referrer=referrer)

    kind = source.kind_map.get(link.kind)
    if kind is None:
        return reject(f"unknown_kind_{link.kind}"[:60])
    if kind.dedupe == "entity" and not link.entity:
        return reject("entity_missing")
    address = urls.resolve(link.url, base)
    if isinstance(address, urls.Rejected):
        return reject(address.reason)
    if not source.in_scope(urls.host(address.url)):
        return reject("out_of_scope")
    method = (link.method if link.method != "GET" else kind.method).upper()
    return NewRequest(
        unique_key=unique_key(
            kind=link.kind, edition=source.edition, url_key=urls.key(address.url), method=method, body=link.body,
            entity=link.entity if kind.dedupe == "entity" else None,
        ),
        kind=link.kind, lane=clean_text(link.lane or "*"), url=address.url, budget_key=source.budget_key(address.url),
        priority=link.priority, entity=link.entity and clean_text(link.entity), method=method, body=link.body,
        headers=stored_headers({**source.headers, **kind.headers, **link.headers}),
        hints=link.hints, depth=depth, referrer=referrer,
    )  # fmt: skip


def by_reason(rejected: Iterable[RejectedLink]) -> Iterator[tuple[str, int, RejectedLink]]:
    """(reason, how many, the first of them), reasons sorted: what the store counts."""
    groups: dict[str, list[RejectedLink]] = {}
    for link in rejected:
        groups.setdefault(link.reason, []).append(link)
    for reason in sorted(groups):
        yield reason, len(groups[reason]), groups[reason][0]
