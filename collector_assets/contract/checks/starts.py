"""What a window starts with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector_assets import urls
from collector_assets.contract.inputs import FILE_SYSTEMS, FromFile
from collector_assets.contract.refusing import wrong
from collector_assets.contract.start_urls import plain_url, url_of
from collector_assets.request import Link

if TYPE_CHECKING:
    from collector_assets.contract.source import Source


def check_inputs(source: Source) -> None:
    """What rows come from is read by `start`, and no file of it is on the web."""
    if source.inputs and not source.start:
        raise wrong(source, "inputs", "nothing reads them: give a start function, (window, inputs) -> links")
    for name, given in source.inputs.items():
        scheme = given.url.partition("://")[0] if isinstance(given, FromFile) and "://" in given.url else ""
        if scheme and scheme not in FILE_SYSTEMS:
            # What is on the web goes through robots.txt, budget, egress guard and archive, or not at all (rule 13).
            known = ", ".join(sorted(FILE_SYSTEMS))
            problem = f"{name!r}: {scheme!r} is no file system ({known}); a file on the web is a page, fetched like any"
            raise wrong(source, "inputs", problem)


def check_starts(source: Source) -> None:
    """A window has something to start with, on hosts that are known, of one domain unless the scope is named."""
    if not source.start_urls and not source.start and not source.sitemaps:
        raise wrong(source, "start_urls", "empty, and no start function: a window would have nothing to do")
    if not source.start_addresses and not source.scope:
        raise wrong(source, "scope", "without start_urls the hosts must be named here")
    for host in source.scope:
        address = urls.resolve(f"https://{host}/", "")
        if isinstance(address, urls.Rejected) or urls.host(address.url) != host:
            raise wrong(source, "scope", f"{host!r} is not a host name in lower case, like 'shop.example'")
    for item in (*source.start_urls, *(source.sitemaps if isinstance(source.sitemaps, tuple) else ())):
        _check_start(source, item)
    if not source.scope and len(domains := {urls.domain(host) for host in source.hosts}) > 1:
        several = f"they lead to {len(domains)} domains ({', '.join(sorted(domains))})"
        raise wrong(source, "start_urls", f"{several}; one source is one domain: split it, or name the scope")


def _check_start(source: Source, item: str | Link) -> None:
    url = url_of(item)
    address = urls.resolve(plain_url(url), "")
    if isinstance(address, urls.Rejected):
        raise wrong(source, "start_urls", f"{url!r} is not an absolute http(s) URL")
    if urls.has_user_info(plain_url(url)):
        raise wrong(
            source, "start_urls", f"{urls.shown(url)!r} had a user or a password: give it in headers, as Secret"
        )
    if "{" in plain_url(url):
        raise wrong(
            source, "start_urls", f"{url!r}: in braces only window.start, window.end (with :FORMAT) or window.key"
        )
    if isinstance(item, Link) and item.kind not in source.kind_map:
        raise wrong(
            source, "start_urls", f"{url!r} is of kind {item.kind!r}; the kinds are {', '.join(source.kind_map)}"
        )
    if source.scope and not source.in_scope(urls.host(address.url)):
        raise wrong(source, "scope", f"{url!r} starts outside of it")
