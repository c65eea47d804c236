"""What follows from where a source starts: its hosts, its domain, and what links may lead to."""

from __future__ import annotations

from functools import cached_property

from collector_assets import urls
from collector_assets.contract.budget import Budget
from collector_assets.contract.session import Session
from collector_assets.contract.start_urls import plain_url, url_of
from collector_assets.request import Link


class HasHosts:
    """A source as far as it has hosts; `Source` says what each field means."""

    start_urls: tuple[str | Link, ...]
    sitemaps: bool | tuple[str, ...]
    scope: tuple[str, ...]
    session: Session | None
    budget: Budget

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the start URLs, and of the sitemaps that are named."""
        return tuple(dict.fromkeys(urls.host(plain_url(url)) for url in self.start_addresses))

    @cached_property
    def start_addresses(self) -> tuple[str, ...]:
        """The start URLs, and the sitemaps that are named, as they are written."""
        return (*map(url_of, self.start_urls), *(self.sitemaps if isinstance(self.sitemaps, tuple) else ()))

    @cached_property
    def sitemap_starts(self) -> tuple[str, ...]:
        """Where reading sitemaps starts: those that are named, or every host's robots.txt."""
        if isinstance(self.sitemaps, tuple):
            return self.sitemaps
        if not self.sitemaps:
            return ()
        origins = dict.fromkeys(urls.origin(plain_url(url_of(item))) for item in self.start_urls)
        return tuple(f"{origin}/robots.txt" for origin in origins or [f"https://{host}" for host in self.scope])

    @cached_property
    def domain(self) -> str:
        """The registrable domain of the source: the run tag `collector/domain`."""
        return urls.domain(self.hosts[0] if self.hosts else self.scope[0])

    @cached_property
    def is_demo(self) -> bool:
        """Whether everything the source may reach is the demo site."""
        return all(urls.is_demo(host) for host in (*self.hosts, *self.scope))

    @cached_property
    def token_hosts(self) -> frozenset[str]:
        """The hosts that are sent the session's token."""
        named = self.session.token.hosts if self.session and self.session.token else ()
        return frozenset(named or self.hosts or self.scope)

    @cached_property
    def scope_hosts(self) -> tuple[str, ...]:
        """Hosts, with their subdomains, that a link may lead to."""
        return self.scope or tuple(dict.fromkeys(urls.domain(host) for host in self.hosts))

    def in_scope(self, host: str) -> bool:
        """Whether a link to this host may enter the frontier."""
        host = host.removesuffix(".")
        return any(host == allowed or host.endswith("." + allowed) for allowed in self.scope_hosts)

    def budget_key(self, url: str) -> str:
        """What the budget counts a request to this URL against."""
        host = urls.host(url)
        return host.removesuffix(".") if self.budget.per == "host" else urls.domain(host)
