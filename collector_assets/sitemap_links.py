"""What sitemaps list -> requests as the frontier takes them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

from collector_assets import links, robots, sitemap, urls
from collector_assets.contract import SITEMAP, Link, Page, Source
from collector_assets.links import Found, RejectedLink
from collector_assets.storable import clean_text

TOO_DEEP: Final = "sitemap_too_deep"
AT_ONCE: Final = 1_000
"""Entries of a sitemap that are held at once."""
DEEPEST_SITEMAP: Final = 10
"""Links and redirects from a start to a sitemap. The protocol knows no index in an index; sites do, but with an end."""


def of_page(source: Source, page: Page, depth: int) -> Found:
    """All that a sitemap leads to; raises `NotASitemap`."""
    whole = Found()
    for part in parts_of(source, page, depth):
        whole.requests.extend(part.requests)
        whole.rejected.extend(part.rejected)
        whole = replace(whole, too_deep=whole.too_deep + part.too_deep, flags=whole.flags + part.flags)
    return whole


def parts_of(source: Source, page: Page, depth: int) -> Iterator[Found]:
    """The requests that a sitemap, or a robots.txt that names sitemaps, leads to, a thousand at a time.

    Raises `NotASitemap`, perhaps after some of them.
    """
    if is_robots(page.url):
        yield of_robots(source, page.url, page.body, depth, base=page.final_url)
        return
    listed = sitemap.Sitemap(
        page.open(),
        now=page.fetched_at,
        limit=source.max_decoded_bytes,
        content_type=page.headers.get("content-type", ""),
    )
    entries = iter(listed)
    while some := list(islice(entries, AT_ONCE)):
        yield _of_entries(source, some, page, depth + 1)
    lost = [
        RejectedLink(reason=flag, value=page.url[:200], referrer=page.referrer)
        for flag in listed.flags
        if flag in sitemap.INCOMPLETE
    ]
    yield Found(rejected=lost, flags=tuple(sorted(listed.flags)))


def is_robots(url: str) -> bool:
    """Whether this is the address of a robots.txt (RFC 9309 §2.3)."""
    return url == f"{urls.origin(url)}/robots.txt"


def of_robots(source: Source, url: str, body: bytes, depth: int, *, base: str = "") -> Found:
    """The sitemaps that a robots.txt names; without any, the usual place."""
    return of_named(source, url, robots.parse(body, "*").sitemaps(base or url), depth)


def of_named(source: Source, url: str, named: Sequence[str], depth: int) -> Found:
    """The sitemaps that the robots.txt at this address names; without any, the usual place."""
    wanted = [Link(each, kind=SITEMAP) for each in named or (urls.origin(url) + "/sitemap.xml",)]
    return links.of_addresses(source, wanted, referrer=url, depth=depth + 1)


def of_redirect(source: Source, url: str, location: str, depth: int) -> Found:
    """The sitemap that a redirect names instead."""
    to = _listed(source, sitemap.Entry(loc=location, is_sitemap=True), url, url, depth + 1)
    return _sorted_out(source, [to], url, depth + 1)


def _of_entries(source: Source, entries: Sequence[sitemap.Entry | sitemap.Lost], page: Page, depth: int) -> Found:
    found = [
        RejectedLink(reason=entry.reason, value=clean_text(entry.value[:200]), referrer=page.url)
        if isinstance(entry, sitemap.Lost)
        else _listed(source, entry, page.final_url, page.url, depth)
        for entry in entries
    ]
    return _sorted_out(source, found, page.url, depth)


def _sorted_out(source: Source, found: Sequence[Link | RejectedLink], referrer: str, depth: int) -> Found:
    wanted = [each for each in found if isinstance(each, Link)]
    stays_out = [each for each in found if isinstance(each, RejectedLink)]
    whole = links.of_addresses(source, wanted, referrer=referrer, depth=depth)
    too_deep = whole.too_deep + sum(each.reason == TOO_DEEP for each in stays_out)
    return replace(whole, rejected=stays_out + whole.rejected, too_deep=too_deep)


def _listed(source: Source, entry: sitemap.Entry, base: str, referrer: str, depth: int) -> Link | RejectedLink:
    """An entry as a link of the kind that its address fits."""
    address = urls.resolve(entry.loc, base)
    if isinstance(address, urls.Rejected):
        return RejectedLink(
            reason=address.reason, detail=links.scheme_of(address), value=clean_text(address.value), referrer=referrer
        )
    kind = _kind_of(source, address.url, is_sitemap=entry.is_sitemap)
    if kind is None:
        return RejectedLink(reason="no_sitemap_kind", value=address.url[:200], referrer=referrer)
    if kind == SITEMAP and depth > DEEPEST_SITEMAP:
        return RejectedLink(reason=TOO_DEEP, value=address.url[:200], referrer=referrer)
    return Link(address.url, kind=kind, changed_at=entry.lastmod and entry.lastmod.latest)


def _kind_of(source: Source, url: str, *, is_sitemap: bool) -> str | None:
    patterns = {p: kind for p, kind in source.sitemap_kinds.items() if (kind == SITEMAP) == is_sitemap}
    if not patterns:
        return SITEMAP if is_sitemap else source.only_end_kind
    return next((kind for pattern, kind in patterns.items() if fnmatchcase(url, pattern)), None)
