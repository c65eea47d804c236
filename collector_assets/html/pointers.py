"""Where a page itself points: to its own proper address, or away from here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborNode

from collector_assets import urls
from collector_assets.page import Page

LONGEST_REFRESH_S: Final = 10.0
"""A page that goes away later than this is there to be read. A choice; browsers go at any time."""

_MAY_REFRESH: Final = re.compile(rb"http-equiv\s*=\s*[\"']?\s*refresh", re.IGNORECASE)
# HTML standard, "shared declarative refresh steps": a time, then what may be an address, with or without "url=".
_REFRESH: Final = re.compile(
    r"[\t\n\f\r ]*(\d+|(?=\.))[\d.]*(?:[\t\n\f\r ]*[;,]|[\t\n\f\r ])[\t\n\f\r ]*(.*)", re.DOTALL
)
_URL_IS: Final = re.compile(r"url[\t\n\f\r ]*=[\t\n\f\r ]*", re.IGNORECASE)
_LINK: Final = re.compile(r"<([^>]*)>((?:[^,\"]|\"(?:[^\"\\]|\\.)*\")*)")
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)
_UNUSED: Final = frozenset({"noscript", "template", "svg"})


def canonical(page: Page) -> str | None:
    """The address that the page says is its proper one (RFC 6596), by its head or its `Link` header; absolute.

    None where it says nothing, nothing usable, or two different things: then it is no evidence of anything.
    """
    said = {address.url for href in _canonicals(page) if isinstance(address := page.resolve(href), urls.WebAddress)}
    return said.pop() if len(said) == 1 else None


def refresh_target(page: Page) -> str | None:
    """Where a meta refresh (or the header `Refresh`) leads within `LONGEST_REFRESH_S`; absolute, without fragment.

    None where there is none, where it only loads the page again, and where no browser with scripts would follow it:
    in a comment, in `noscript`, in a template. Looks for the word before anything is parsed, so it costs little.
    """
    for content in _refreshes(page):
        if href := _target(content):
            address = page.resolve(href)
            if isinstance(address, urls.WebAddress) and address.url != page.final_url:
                return address.url
    return None


def _canonicals(page: Page) -> Iterator[str]:
    for href, parameters in _LINK.findall(page.headers.get("link", "")):
        rel = _REL.search(parameters)
        if rel and "canonical" in (rel[1] or rel[2]).lower().split():
            yield href
    for node in page.tree.css("head link[rel][href]"):
        if "canonical" in (node.attributes["rel"] or "").lower().split() and not _is_unused(node):
            yield node.attributes["href"] or ""


def _refreshes(page: Page) -> Iterator[str]:
    """What may be said about going away, the header first."""
    if header := page.headers.get("refresh"):
        yield header
    if not _MAY_REFRESH.search(page.body):
        return
    for node in page.tree.css("meta[http-equiv][content]"):
        if (node.attributes["http-equiv"] or "").lower() == "refresh" and not _is_unused(node):
            yield node.attributes["content"] or ""


def _target(content: str) -> str:
    """The address in the value of a refresh; empty for a reload, a long delay, or a value that no browser takes."""
    found = _REFRESH.match(content)
    if not found or len(found[1]) > 9 or float(found[1] or 0) > LONGEST_REFRESH_S:
        return ""
    address = _URL_IS.sub("", found[2], count=1) if _URL_IS.match(found[2]) else found[2]
    if address[:1] in ("'", '"'):
        address = address[1:].partition(address[0])[0]
    return address.strip("\t\n\f\r ")


def _is_unused(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag in _UNUSED:
            return True
        parent = parent.parent
    return False
