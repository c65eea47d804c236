"""Part of collecting: what sitemaps list enters the frontier, a thousand links at a time, from the stored pages.

A sitemap may list more than fits into one transaction, or into memory. So its request is `fetched` once its page is
stored, and done in the transaction after its last links. A crash in between is mended from the stored bytes, with no
request; the links that are in already change nothing (rules 1, 15).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from collector_assets import frontier, pages, sitemap_links, windows
from collector_assets.archive import Archive, Exchange, Location
from collector_assets.conduct import Note
from collector_assets.contract import SITEMAP, Source
from collector_assets.database import Database
from collector_assets.deposit import Answered, Depositor, Judged, Stored, add_found, explain, texts
from collector_assets.fetch import Response
from collector_assets.links import Found
from collector_assets.outcome import Outcome, Policy, policy
from collector_assets.page import header_map
from collector_assets.pages import StoredPage
from collector_assets.politeness import Listed
from collector_assets.request import Lease
from collector_assets.sitemap import NotASitemap

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class UnfoldingDepositor(Depositor):
    """Stores answers, and brings in what the sitemaps among them list."""

    def commit(self, judged: list[Judged]) -> Stored:
        """As `Depositor.commit`; an error after it leaves sitemaps to `discover.mend`."""
        stored = super().commit(judged)
        found = stored.found
        for item in judged:
            if item.answered.lease.kind == SITEMAP and (page := self._stored(item.answered.lease)):
                found += unfold(self._source, self._window, self._database, self._archive, page)
        return replace(stored, found=found)

    def _stored(self, lease: Lease) -> StoredPage | None:
        """The sitemap's page, if it is stored and waits for its links."""
        with self._database.transaction() as connection:
            found = pages.for_reading(
                connection, source=self._source.name, window_start=self._window.window.start, kinds=[SITEMAP],
                after_request_id=lease.request_id - 1, limit=1,
            )  # fmt: skip
        return next((page for page in found if page.request_id == lease.request_id and page.state == "fetched"), None)

    def _judge(self, item: Answered, location: Location | None, exchange: Exchange | None) -> Judged:
        judged = super()._judge(item, location, exchange)
        if item.lease.kind != SITEMAP or (found := instead_of_a_sitemap(self._source, item)) is None:
            return judged
        return replace(judged, found=found)

    def _result(self, item: Judged, note: Note) -> frontier.Result:
        lease = item.answered.lease
        mine = {"request_id": lease.request_id, "fence": lease.fence}
        if lease.kind == SITEMAP and item.found is not None:
            return frontier.Done(**mine)
        if lease.kind == SITEMAP and policy(item.outcome) is Policy.KEEP:
            return frontier.Fetched(**mine)
        return super()._result(item, note)


def instead_of_a_sitemap(source: Source, item: Answered) -> Found | None:
    """Where a redirect leads, so that each sitemap is fetched once; the usual place, where no robots.txt names one."""
    lease, answer = item.lease, item.answer
    if isinstance(answer, Listed):
        return sitemap_links.of_named(source, lease.address, answer.named, lease.depth)
    if not isinstance(answer, Response):
        return None
    if answer.status in REDIRECTS and (to := header_map(texts(answer)).get("location")):
        return sitemap_links.of_redirect(source, lease.url, to, lease.depth)
    if answer.outcome in (Outcome.GONE, Outcome.EMPTY_BODY) and sitemap_links.is_robots(lease.url):
        return sitemap_links.of_robots(source, lease.url, b"", lease.depth)
    return None


def unfold(source: Source, window: windows.WindowRow, database: Database, archive: Archive, stored: StoredPage) -> int:
    """Put what a stored sitemap lists into the frontier, part by part; the number of new requests."""
    start, new, flags = window.window.start, 0, tuple[str, ...]()
    verdict = frontier.Read(request_id=stored.request_id, state="done", outcome=Outcome.OK, reason="")
    for part in _parts(source, window, archive, stored):
        if isinstance(part, str):
            verdict = replace(verdict, state="failed", outcome=Outcome.DISCOVERY_FAILED, reason=part)
            break
        flags += part.flags
        with database.transaction() as connection:
            windows.lock(connection, source.name, start)
            new += add_found(connection, source, window, [part])
    with database.transaction() as connection:
        frontier.mark_read(connection, start, [verdict])
        pages.add_flags(connection, source.name, start, stored.request_id, flags)
    return new


def _parts(source: Source, window: windows.WindowRow, archive: Archive, stored: StoredPage) -> Iterator[Found | str]:
    """What a sitemap leads to, part by part; at last a reason, where it could not be read to its end."""
    try:
        page = pages.page_of(stored, pages.response_of(stored, archive.read), window.window, source)
        yield from sitemap_links.parts_of(source, page, stored.depth)
    except NotASitemap as error:
        yield f"not a sitemap: {error}"
    except Exception as error:  # noqa: BLE001  one file that nobody thought of must not stop the others
        yield explain(error)
