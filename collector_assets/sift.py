"""Which of the links of a batch of listings lead on and on; they stay out, counted as `trap_suspected`.

A listing shows something new when it has records, or links to items or to listings of another sort, that the last ones
of its sort did not have. What shows nothing new is fetched all the same, `max_barren` of them in a row; only then are
its *new* links to further listings left out. Links to items never are, and the rest of the site goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from collector_assets import frontier, links, trails, traps
from collector_assets.contract import Source
from collector_assets.database import Connection
from collector_assets.links import Found, RejectedLink
from collector_assets.request import NewRequest
from collector_assets.storable import clean_text
from collector_assets.traps import Listing, Trail


def sift(connection: Connection, source: Source, window_start: datetime, batch: Sequence[Found]) -> list[Found]:
    """The batch without what leads nowhere; the caller holds the window's row and inserts what is left."""
    followed = [(found, found.listing) for found in batch if found.listing]
    if not followed or source.max_barren is None:
        return list(batch)
    ways = {r.unique_key: traps.pattern(r.url, r.restarts) for found, _ in followed for r in _ways(source, found)}
    sifter = Sifter(
        source=source,
        ways=ways,
        known=frontier.known(connection, source.name, window_start, ways) if ways else set(),
        trails=trails.read(
            connection, source.name, window_start, {*ways.values(), *(listing.pattern for _, listing in followed)}
        ),
        most=source.max_barren,
    )
    sifted = [sifter.sifted(found, found.listing) if found.listing else found for found in batch]
    trails.write(
        connection,
        source.name,
        window_start,
        {listing.pattern: sifter.trails[listing.pattern] for _, listing in followed},
    )
    return sifted


def _ways(source: Source, found: Found) -> list[NewRequest]:
    """What leads to further listings."""
    return [request for request in found.requests if request.kind in source.with_discover]


@dataclass(slots=True, kw_only=True)
class Sifter:
    """One batch, with everything that the database knows about it."""

    source: Source
    ways: dict[bytes, str]
    """Links to listings: their patterns by unique key."""
    known: set[bytes]
    """Those of them that the window has already."""
    trails: dict[str, Trail]
    most: int

    def sifted(self, found: Found, listing: Listing) -> Found:
        """What is left of the links of one listing; notes what it showed."""
        if listing.above == listing.body:
            return self._without(found, f"the same page, deeper and deeper: {listing.pattern}")
        trail = self.trails[listing.pattern].after(self._items(found, listing))
        self.trails[listing.pattern] = trail
        chain = listing.barren + 1 if trail.barren else 0
        if chain and traps.leads_nowhere(chain, trail, self.most):
            return self._without(found, listing.pattern)
        return replace(found, requests=[self._marked(request, listing, chain) for request in found.requests])

    def _items(self, found: Found, listing: Listing) -> bytes | None:
        """What the listing shows, ways to its like aside."""
        shown = [request.unique_key for request in found.requests if self._is_item(request.unique_key, listing)]
        return traps.digest_of([*shown, listing.rows] if listing.rows else shown)

    def _is_item(self, key: bytes, listing: Listing) -> bool:
        """A link to an item, or one to a listing of another sort that is new and may show something."""
        way = self.ways.get(key)
        if way is None:
            return True
        return way != listing.pattern and key not in self.known and self.trails[way].barren < self.most

    def _marked(self, request: NewRequest, listing: Listing, chain: int) -> NewRequest:
        """A way on with what must be known when it comes back; anything else as it is."""
        if request.unique_key not in self.ways:
            return request
        is_below = traps.is_deeper(request.url, listing.url)
        return replace(request, barren=chain, above=listing.body if is_below else None)

    def _without(self, found: Found, pattern: str) -> Found:
        """The links without new ways on."""
        ways_on = self.ways.keys() - self.known
        kept = [request for request in found.requests if request.unique_key not in ways_on]
        out = [
            RejectedLink(reason=links.TRAP, detail=pattern, value=clean_text(r.url[:200]), referrer=r.referrer)
            for r in found.requests
            if r.unique_key in ways_on
        ]
        return replace(found, requests=kept, rejected=[*found.rejected, *out])
