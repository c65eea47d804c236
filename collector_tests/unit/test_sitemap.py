"""Sitemaps beyond the cases: what breaks, what is no sitemap, feeds, encodings, and bounded memory."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from collector_assets import sitemap
from collector_assets.sitemap import Entry, Lost, NotASitemap, Sitemap
from collector_tests.cases.test_map import NOW, XML, compressed, read, urlset


def test_only_the_loc_of_an_entry_is_its_address() -> None:
    """Images, videos and alternates are in other namespaces, whose prefixes may be wrong or missing."""
    body = (
        b'<s:urlset xmlns:s="wrong"><s:url><s:loc>https://h.example/1</s:loc>'
        b"<image:image><image:loc>https://h.example/1.jpg</image:loc></image:image>"
        b'<xhtml:link rel="alternate" hreflang="de" href="https://h.example/de/1"/>'
        b"<video:player_loc>https://h.example/v</video:player_loc></s:url></s:urlset>"
    )
    assert read(body)[0] == ["https://h.example/1"]


@pytest.mark.parametrize(
    "body",
    [
        b"<rss><channel><link>https://h.example/</link><item><link>https://h.example/1</link></item></channel></rss>",
        b'<feed><link href="/"/><entry><link rel="self" href="/s"/><link href="https://h.example/1"/></entry></feed>',
        b"<URLSET><URL><LOC>https://h.example/1</LOC></URL></URLSET>",
        b"\nhttps://h.example/1\n\n",
        (XML.decode().replace("UTF-8", "UTF-16") + urlset(b"https://h.example/1").decode()).encode("utf-16"),
    ],
)
def test_feeds_lists_and_other_spellings_are_read_too(body: bytes) -> None:
    assert read(body)[0] == ["https://h.example/1"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<!DOCTYPE html><html><body><a href=x>1</a></body></html>", "HTML page"),
        (b"<html><p>not found", "HTML page"),
        (b'{"urls": []}', "neither XML nor a list"),
        (b"<catalogue><product>1</product></catalogue>", "root element is 'catalogue'"),
        (b"<urlset", "not XML"),
        (b"\x1f\x8b\x08 rubbish", "neither XML nor a list"),
        (b"", "neither XML nor a list"),
    ],
)
def test_what_is_no_sitemap_says_why(body: bytes, why: str) -> None:
    with pytest.raises(NotASitemap, match=why):
        read(body)


def test_an_empty_sitemap_is_one() -> None:
    assert read(b"<urlset/>")[0] == []
    assert read(b"<sitemapindex></sitemapindex>")[0] == []


@pytest.mark.parametrize("cut", [5, 15, 25, 30, 40])
def test_a_broken_tail_keeps_the_good_entries_and_says_so(cut: int) -> None:
    """No address is ever the beginning of one."""
    whole = urlset(b"https://h.example/1", b"https://h.example/2?with=more")
    locs, found = read(whole[:-cut])
    assert locs == ["https://h.example/1", *(["https://h.example/2?with=more"] if cut < 24 else [])]
    assert found.flags["sitemap_cut"]


def test_a_broken_entry_costs_itself() -> None:
    """Markup in a loc, a wrong end, a control character, bytes of another encoding."""
    body = urlset(
        b"https://h.example/1",
        b"https://h.example/<b>",
        b"https://h.example/2</url>",
        b"https://h.example/\x013",
        b"https://h.example/\xe9",
        b"https://h.example/4",
    )
    found = list(Sitemap(io.BytesIO(body), now=NOW))
    assert [entry.loc for entry in found if isinstance(entry, Entry)] == [
        "https://h.example/1",
        "https://h.example/3",
        "https://h.example/4",
    ]
    assert [lost.reason for lost in found if isinstance(lost, Lost)] == [
        "sitemap_entry_broken",
        "sitemap_entry_broken",
        "sitemap_undecodable_loc",
    ]


def test_what_follows_the_document_is_left_out_and_said() -> None:
    locs, found = read(urlset(b"https://h.example/1") + b"<!-- cached --><p>rubbish")
    assert locs == ["https://h.example/1"]
    assert found.flags == {sitemap.TRAILING: 1}


def test_entries_of_a_second_document_are_not_lost_silently() -> None:
    locs, found = read(urlset(b"https://h.example/1") + urlset(b"https://h.example/2"))
    assert locs == ["https://h.example/1"]
    assert found.flags == {sitemap.DAMAGED: 1}


class Dripping(io.BytesIO):
    """One byte at a time."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(1, size or 1))


def test_it_does_not_matter_in_which_pieces_a_file_comes() -> None:
    parts = [urlset(b"https://h.example/1")[:-9], b"<url><loc>https://h.example/?a&b</loc></url></urlset>"]
    for body in (b"".join(map(compressed, parts)), compressed(b"".join(map(compressed, parts))), b"".join(parts)):
        found = Sitemap(Dripping(body), now=NOW)
        assert [entry.loc for entry in found if isinstance(entry, Entry)] == [
            "https://h.example/1", "https://h.example/?a&b",
        ]  # fmt: skip
        assert found.flags == {sitemap.REPAIRED: 1}


def test_what_follows_a_gzip_member_is_no_damage() -> None:
    whole = compressed(urlset(b"https://h.example/1"))
    assert read(whole + bytes(512))[1].flags == {}
    locs, found = read(whole + b"rubbish")
    assert (locs, found.flags) == (["https://h.example/1"], {sitemap.TRAILING: 1})


@pytest.mark.parametrize(
    "declaration",
    [
        b'<?xml version="1.1"?>',
        b"<?xml encoding='utf8' made='by us'?>",
        b'<?xml encoding="UTF-8">',
        b"<?XML ?>",
    ],
)
def test_an_odd_declaration_is_no_reason_to_stop(declaration: bytes) -> None:
    locs, found = read(declaration + b'<?xml-stylesheet href="s.xsl"?>' + urlset("https://h.example/1\u200b".encode()))
    assert (locs, found.flags) == (["https://h.example/1"], {})


def test_the_declared_encoding_is_used_also_where_expat_does_not_know_it() -> None:
    body = '<?xml version="1.0" encoding="Shift_JIS"?><urlset><url><loc>https://h.example/本</loc></url></urlset>'
    assert read(body.encode("shift_jis"))[0] == ["https://h.example/本"]


@pytest.mark.parametrize(
    "body",
    [b"<a>" * 100_000, b"<urlset><!--" + b"x" * 3_000_000 + b"-->", b"<urlset a='" + b"x" * 3_000_000],
)
def test_what_only_a_bomb_does_is_refused(body: bytes) -> None:
    with pytest.raises(NotASitemap):
        read(body)


def test_more_than_the_limit_is_not_read_and_said() -> None:
    body = urlset(*(b"https://h.example/%d" % number for number in range(1_000)))
    found = Sitemap(io.BytesIO(body), now=NOW, limit=10_000)
    assert 100 < sum(1 for _ in found) < 1_000
    assert found.flags[sitemap.TOO_LARGE] == 1


class Endless(io.RawIOBase):
    """A sitemap of so many bytes that nobody holds."""

    def __init__(self, size: int) -> None:
        self._left, self._started = size, False

    def read(self, size: int = -1) -> bytes:
        if not self._started:
            self._started = True
            return b"<urlset>"
        self._left -= size
        return b"<url><loc>https://h.example/some/page</loc></url>" * (size // 50) if self._left > 0 else b""


def test_memory_is_flat() -> None:
    """What is held does not grow with the file."""
    tracemalloc.start()
    found = Sitemap(Endless(1_000_000), now=NOW)  # type: ignore[arg-type]
    count = sum(1 for _ in found)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count > 19_000
    assert peak < 1_000_000
