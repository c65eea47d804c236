"""What follows from the kinds of a source."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from collector_assets.contract.kind import SITEMAP, Discover, Extract, Kind


class HasKinds:
    """A source as far as it has kinds, in whichever form they are written; `Source` says what each field means."""

    discover: Discover | None
    extract: Extract | None
    kinds: Mapping[str, Kind]
    sitemaps: bool | tuple[str, ...]
    interleave: bool
    encoding: str | None

    @cached_property
    def kind_map(self) -> dict[str, Kind]:
        """Every kind by name, whichever form the source was written in, and the kind of its sitemaps."""
        return self._own_kinds | ({SITEMAP: Kind()} if self.sitemaps else {})

    @cached_property
    def _own_kinds(self) -> dict[str, Kind]:
        if self.kinds:
            return dict(self.kinds)
        short = {
            "listing": self.discover and Kind(discover=self.discover),
            "detail": self.extract and Kind(extract=self.extract),
        }
        return {name: kind for name, kind in short.items() if kind}

    @cached_property
    def discovering(self) -> tuple[str, ...]:
        """Kinds that pass 1 fetches; none with `interleave`."""
        return () if self.interleave else self.with_discover

    @cached_property
    def with_discover(self) -> tuple[str, ...]:
        """Kinds whose pages yield links."""
        return tuple(sorted(name for name, kind in self.kind_map.items() if kind.discover or name == SITEMAP))

    @cached_property
    def remembered(self) -> tuple[str, ...]:
        """Kinds whose items are known once they were fetched."""
        return tuple(sorted(name for name, kind in self._own_kinds.items() if kind.refetch != "window"))

    @cached_property
    def with_browser(self) -> tuple[str, ...]:
        """Kinds whose pages are opened in a browser."""
        return tuple(sorted(name for name, kind in self._own_kinds.items() if kind.fetcher == "browser"))

    @cached_property
    def with_extract(self) -> tuple[str, ...]:
        """Kinds whose pages yield records."""
        return tuple(sorted(name for name, kind in self.kind_map.items() if kind.extract))

    @cached_property
    def only_end_kind(self) -> str | None:
        """The one kind that leads nowhere further, if it is one: what sitemaps list."""
        ends = [name for name, kind in self._own_kinds.items() if not kind.discover and kind.dedupe == "url"]
        return ends[0] if len(ends) == 1 else None

    @cached_property
    def first_kind(self) -> str:
        """The kind of a plain start URL: the first that discovers, else the first."""
        return next((name for name, kind in self._own_kinds.items() if kind.discover), next(iter(self._own_kinds)))

    def is_sitemap(self, kind: str) -> bool:
        """Whether the pages of this kind are sitemaps."""
        return kind == SITEMAP and bool(self.sitemaps)

    def encoding_of(self, kind: str) -> str | None:
        """The charset that pages of a kind are known to be in, whatever they declare."""
        return self.kind_map[kind].encoding or self.encoding
