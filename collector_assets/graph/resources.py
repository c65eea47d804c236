"""What asset bodies work with: the stores of this installation, opened on first use."""

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

from collector_assets.archive import Archive, open_archive
from collector_assets.contract import Source
from collector_assets.database import Database, require_current
from collector_assets.extraction_pool import Helpers
from collector_assets.fetch import Fetcher, choice, chromium
from collector_assets.fetch.browser import BrowserFetcher
from collector_assets.fetch.egress import egress_of, egress_of_service
from collector_assets.fetch.http import HttpFetcher
from collector_assets.fetch.rendering import RenderingFetcher
from collector_assets.process import Ahead
from collector_assets.purse import WindowPurse
from collector_assets.window import Window
from collector_assets.windows import WindowRow


class Installation:
    """Database, archive and identity of one installation; made by `definitions.py` and `cli/` from settings.

    Opening nothing at import time: a code location must load while Postgres is down.
    """

    def __init__(
        self,
        *,
        dsn: Callable[[], str],
        archive: str,
        user_agent: str,
        demo_site: str,
        require_contact: Callable[[str], None],
        chromium: str = "",
    ) -> None:
        self._dsn, self._archive_location = dsn, archive
        self._user_agent, self._demo_site, self._require_contact = user_agent, demo_site, require_contact
        self._chromium = chromium
        self._ahead: tuple[WindowRow, Ahead] | None = None

    @cached_property
    def database(self) -> Database:
        """The pool of the collector's database; refuses one that is older or newer than this release."""
        dsn = self._dsn()
        require_current(dsn)
        return Database(dsn)

    @cached_property
    def archive(self) -> Archive:
        """Where the WARC files are."""
        return open_archive(self._archive_location)

    def fetcher(self, source: Source, window: Window) -> Callable[[], Fetcher]:
        """How to make the fetcher of a source, inside its event loop; refuses a nameless visit to the open web."""
        self._require_named(source)
        makers: choice.Makers = {
            "http": lambda: self._http(source),
            "rendering": lambda: self._rendering(source, window),
        }
        if source.with_browser:
            makers = {**makers, "browser": partial(self._browser, source, chromium.find(self._chromium))}
        return lambda: choice.of(source, makers)

    def _http(self, source: Source) -> Fetcher:
        return HttpFetcher(
            user_agent=self._user_agent,
            egress=egress_of(source, demo_site=self._demo_site),
            connections=source.in_flight,
        )

    def _rendering(self, source: Source, window: Window) -> Fetcher:
        service = source.rendering
        assert service is not None  # noqa: S101  the contract refuses kinds without it
        purse = (
            WindowPurse(service, source=source.name, window_start=window.start, database=self.database)
            if service.price
            else None
        )
        by = HttpFetcher(
            user_agent=self._user_agent,
            egress=egress_of_service(source, service, demo_site=self._demo_site),
            connections=source.in_flight,
        )
        return RenderingFetcher(service, by=by, target=egress_of(source, demo_site=self._demo_site), purse=purse)

    def _browser(self, source: Source, program: Path) -> Fetcher:
        return BrowserFetcher(
            http=self._http(source),
            egress=egress_of(source, demo_site=self._demo_site),
            program=program,
            browser=source.browser,
            views={name: kind.view for name, kind in source.kind_map.items()},
            max_decoded=source.max_decoded_bytes,
        )

    def _require_named(self, source: Source) -> None:
        if not source.is_demo:
            self._require_contact(source.name)

    def ahead(self, source: Source, window: WindowRow, locator: str | None) -> Ahead:
        """Helpers that may start while this window's last pages come; those of an earlier window are ended."""
        if self._ahead:
            self._ahead[1].close()
        made = Ahead(source=source, window=window, archive=self.archive, locator=locator)
        self._ahead = (window, made)
        return made

    def helpers_of(self, window: WindowRow) -> Helpers | None:
        """The helpers that were started ahead for this window, if any; whoever asks ends them."""
        if self._ahead is None or self._ahead[0].window != window.window or self._ahead[0].source != window.source:
            return None
        return self._ahead[1].take()

    def close(self) -> None:
        """Close what was opened."""
        if self._ahead:
            self._ahead[1].close()
        if "database" in vars(self):
            self.database.close()

    def require_usable(self, source: Source, window_key: str) -> None:
        """Refuse now what the run would refuse in its middle: no contact, no database, no place for bytes."""
        self._require_named(source)
        if source.with_browser:
            chromium.find(self._chromium)
        _ = self.database
        self.archive.writer(source.name, window_key).close()
