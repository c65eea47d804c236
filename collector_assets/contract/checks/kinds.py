"""Kinds of pages: their names, and what each says of its pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from collector_assets import charset
from collector_assets.contract.kind import SITEMAP
from collector_assets.contract.refusing import wrong
from collector_assets.errors import ContractError
from collector_assets.page import is_selector

if TYPE_CHECKING:
    from collector_assets.contract.source import Source

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}\Z")
RESERVED_NAMES = frozenset({"multi"})


def check_names(source: Source) -> None:
    """Names fit assets, views and tables."""
    if not NAME.match(source.name) or source.name in RESERVED_NAMES:
        raise ContractError(
            "name",
            f"{source.name!r} must be lower case letters, digits and underscores, begin with a letter, at most 63",
            source=source.name,
        )
    for field, names in (("kinds", source.kind_map), ("records", source.schemas)):
        for name in names:
            if not NAME.match(name):
                raise ContractError(
                    field, f"{name!r} must be lower case letters, digits and underscores", source=source.name
                )


def check_pages(source: Source) -> None:
    """Kinds are said in one form, each with something to do, and records come out of one."""
    if source.kinds and (source.discover or source.extract):
        raise wrong(source, "kinds", "give either kinds (long form) or discover and extract (short form), not both")
    for name, kind in source.kinds.items():
        if not (kind.discover or kind.extract):
            raise wrong(source, "kinds", f"{name!r} has neither discover nor extract")
        for status in kind.on_status:
            if status == 429 or not 300 <= status <= 599:
                problem = "429 is heeded, whatever a source says" if status == 429 else "a status from 300 to 599"
                raise wrong(source, "kinds", f"{name!r}: on_status[{status}]: {problem}")
        if "restart" in kind.on_status.values() and not kind.discover:
            raise wrong(
                source, "kinds", f'{name!r}: on_status "restart" is for a kind with discover: a chain of listings'
            )
    if not source.with_extract:
        raise wrong(source, "extract", "no kind has extract, so no record can ever come out")


def check_known(source: Source) -> None:
    """What is fetched once leads nowhere, and the source knows that its windows do not show everything."""
    for name, kind in source.kinds.items():
        if kind.refetch != "window" and kind.discover:
            raise wrong(source, "kinds", f"{name!r} leads to other pages: it is fetched in each window")
        if isinstance(kind.refetch, timedelta) and kind.refetch <= timedelta(0):
            raise wrong(source, "kinds", f"{name!r}: refetch is not a length of time after which to fetch again")
        if kind.stop_after_known is not None and not (kind.discover and source.remembered):
            raise wrong(
                source,
                "kinds",
                f"{name!r}: stop_after_known is for a kind with discover that leads to kinds with refetch",
            )
    if source.remembered and source.coverage == "full":
        raise wrong(source, "coverage", 'a window does not show what is known (refetch): say coverage="incremental"')


def check_sitemaps(source: Source) -> None:
    """Every page that a sitemap lists has a kind to be of."""
    if SITEMAP in source.kinds and source.sitemaps:
        raise wrong(source, "kinds", f"{SITEMAP!r} is the kind of the sitemaps themselves")
    if source.sitemap_kinds and not source.sitemaps:
        raise wrong(source, "sitemap_kinds", "there are no sitemaps")
    if source.sitemaps and not source.sitemap_kinds and source.only_end_kind is None:
        raise wrong(source, "sitemap_kinds", f"say which pages are of which kind ({', '.join(source.kind_map)})")
    for pattern, name in source.sitemap_kinds.items():
        if name not in source.kind_map:
            raise wrong(source, "sitemap_kinds", f"{pattern!r}: {name!r} is not a kind ({', '.join(source.kind_map)})")
        if source.kind_map[name].dedupe == "entity":
            raise wrong(source, "sitemap_kinds", f'{name!r} says dedupe="entity"; a sitemap names no entities')


def check_soft_gone(source: Source) -> None:
    """What a missing page looks like is a selector, if it is a text."""
    if isinstance(source.soft_gone, str) and not is_selector(source.soft_gone):
        raise wrong(source, "soft_gone", f"{source.soft_gone!r} is not a CSS selector")


def check_encodings(source: Source) -> None:
    """Encodings are those of the web."""
    for field, label in (("encoding", source.encoding), *_kind_encodings(source)):
        if label is not None and charset.encoding_of(label) is None:
            raise wrong(source, field, f"{label!r} is no encoding of the web, like 'utf-8' or 'windows-1252'")


def _kind_encodings(source: Source) -> Iterator[tuple[str, str | None]]:
    return ((f"kinds[{name!r}].encoding", kind.encoding) for name, kind in source.kinds.items())
