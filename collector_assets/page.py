"""What an extractor is given: one stored page, decoded, with what was known when it was asked for.

Everything is made on first use; a page never fetches and never looks at a clock.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

from collector_assets import charset, urls
from collector_assets.window import Window

if TYPE_CHECKING:
    from parsel import Selector
    from selectolax.lexbor import LexborHTMLParser

_BASE = re.compile(r"<base\b", re.IGNORECASE)


class Page:
    """One archived response, ready to read."""

    def __init__(
        self,
        *,
        url: str,
        final_url: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        fetched_at: datetime,
        window: Window,
        kind: str,
        entity: str | None = None,
        lane: str = "*",
        referrer: str | None = None,
        hints: Mapping[str, Any] | None = None,
    ) -> None:
        self.url = url
        """As asked for."""
        self.final_url = final_url
        """After redirects; relative links resolve against it (or against `<base href>`)."""
        self.status = status
        self.headers = headers
        """Response headers, names in lower case; repeated ones joined by ", "."""
        self.body = body
        """Content-decoded bytes."""
        self.fetched_at = fetched_at
        """When the response had arrived, UTC; the only notion of "now" an extractor may use."""
        self.window = window
        self.kind = kind
        self.entity = entity
        self.lane = lane
        self.referrer = referrer
        self.hints: Mapping[str, Any] = hints or {}

    def open(self) -> BinaryIO:
        """The decoded bytes as a stream."""
        return io.BytesIO(self.body)

    @cached_property
    def text(self) -> str:
        """The body as text, by BOM, header, meta and evidence, in this order (`charset.py`)."""
        return charset.decode(self.body, self.headers.get("content-type", ""))

    def json(self) -> Any:
        """The body as JSON; ValueError when it is not."""
        return json.loads(self.body)

    @cached_property
    def base_url(self) -> str:
        """What relative links stand on: the first `<base href>`, wherever it is, if usable; else `final_url` (HTML §4.2.3)."""
        if not _BASE.search(self.text):
            return self.final_url
        first = self.tree.css_first("base[href]")
        base = urls.resolve((first.attributes["href"] or "") if first else "", self.final_url)
        return base.url if isinstance(base, urls.WebAddress) else self.final_url

    @cached_property
    def tree(self) -> LexborHTMLParser:
        """The page as a lexbor tree (selectolax): fast, CSS only."""
        from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415  made on first use

        return LexborHTMLParser(self.text)

    @cached_property
    def selector(self) -> Selector:
        """The page as a parsel selector: CSS and XPath, about four times slower than `tree`."""
        from parsel import Selector  # noqa: PLC0415

        return Selector(text=self.text, base_url=self.final_url)

    def __repr__(self) -> str:
        return f"Page({self.kind} {self.url} {self.status} {len(self.body)} bytes)"
