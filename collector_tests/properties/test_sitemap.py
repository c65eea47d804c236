"""A sitemap of any bytes is read or refused, and the same in whatever pieces it comes."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from collector_assets.sitemap import DAMAGED, Entry, Lost, NotASitemap, Sitemap

NOW = datetime(2026, 11, 29, tzinfo=UTC)
PARTS = [
    b"<urlset>", b"</urlset>", b"<url>", b"</url>", b"<loc>", b"</loc>", b"https://h.example/", b"?a=1&b=2", b"&amp;",
    b"&eacute;", b"&nope;", b"&#0;", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<!DOCTYPE x [", b"<?xml ?>", b"<lastmod>",
    b"2026-01-25", b"</lastmod>", b"\n", b"\0", b"\xff", b"\xc3\xa9", b"<", b">", b"&", b'"', b"\x1f\x8b\x08",
]  # fmt: skip
WHOLE = b"<urlset><url><loc>https://h.example/1</loc></url>"


class Pieces(io.BytesIO):
    """At most so many bytes at a time."""

    def __init__(self, body: bytes, most: int) -> None:
        super().__init__(body)
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(self._most, size or self._most))


def read(body: bytes, most: int) -> tuple[list[Entry | Lost], dict[str, int]] | str:
    """Everything that comes of it."""
    sitemap = Sitemap(Pieces(body, most), now=NOW)
    try:
        return list(sitemap), dict(sitemap.flags)
    except NotASitemap:
        return "refused"


@given(st.lists(st.sampled_from(PARTS), max_size=30).map(b"".join), st.integers(1, 40), st.booleans())
@settings(max_examples=300)
def test_any_bytes_are_read_or_refused_whatever_the_pieces(body: bytes, most: int, begins_well: bool) -> None:  # noqa: FBT001
    text = WHOLE + body if begins_well else body
    found = read(text, 65_536)
    in_pieces = read(text, most)
    if isinstance(found, str) or isinstance(in_pieces, str) or DAMAGED not in {**found[1], **in_pieces[1]}:
        assert found == in_pieces
    if begins_well and not isinstance(found, str):
        assert found[0][0] == Entry(loc="https://h.example/1"), "what was good stays good, whatever comes behind it"
