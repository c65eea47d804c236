"""Cases MAP: sitemaps as sites write them."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from datetime import UTC, datetime

import psycopg
import pytest

from collector_assets.contract import replace
from collector_assets.sitemap import RELATIVE, Entry, Lost, NotASitemap, Sitemap, last_modified
from collector_tests.collect.conftest import Hands
from collector_tests.collect.test_sitemaps import LISTED, SHOP, fetched, index, say

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
XML = b'<?xml version="1.0" encoding="UTF-8"?>'


def urlset(*locs: bytes) -> bytes:
    entries = b"".join(b"<url><loc>" + loc + b"</loc></url>" for loc in locs)
    return b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">' + entries + b"</urlset>"


def read(body: bytes, content_type: str = "") -> tuple[list[str], Sitemap]:
    """The addresses, and the sitemap after reading."""
    sitemap = Sitemap(io.BytesIO(body), now=NOW, content_type=content_type)
    return [entry.loc for entry in sitemap if isinstance(entry, Entry)], sitemap


def compressed(body: bytes) -> bytes:
    """The same bytes each time: they name the test."""
    return gzip.compress(body, mtime=0)


ONE = XML + urlset(b"https://h.example/1")


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("s1.xml.gz", ONE),
        ("s2.xml.gz", compressed(ONE)),
        ("s3.xml.gz", compressed(compressed(ONE))),
        ("s4.txt.gz", compressed(b"https://h.example/1\r\n")),
        ("s5.xml", compressed(ONE[:60]) + compressed(ONE[60:])),
    ],
)
def test_map_01_compression_that_does_not_match_the_name(name: str, body: bytes) -> None:
    assert read(body)[0] == ["https://h.example/1"], name


def test_map_01_gzip_under_content_encoding(hands: Hands) -> None:
    """As `s3.xml.gz`, from a real site."""
    body = compressed(compressed(urlset(f"{SHOP}/catalogue/1".encode())))
    say(hands.site, "/s3.xml.gz", body, type="application/gzip", headers="Content-Encoding: gzip\r\n")
    source = replace(LISTED, sitemaps=(f"{SHOP}/s3.xml.gz",))
    hands.discover(source)
    assert hands.status(source).counts.by_kind("detail").planned == 1


def test_map_01_a_third_layer_is_none_and_a_cut_one_keeps_what_came() -> None:
    with pytest.raises(NotASitemap):
        read(compressed(compressed(compressed(ONE))))
    many = urlset(*(b"https://h.example/%d" % number for number in range(5_000)))
    locs, sitemap = read(compressed(many)[:-2_000])
    assert 0 < len(locs) < 5_000
    assert sitemap.flags["sitemap_cut"]


@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "application/gzip", ""])
def test_map_02_type_and_name_say_nothing(content_type: str) -> None:
    assert read(ONE, content_type)[0] == ["https://h.example/1"]
    [entry] = Sitemap(
        io.BytesIO(b"<sitemapindex><sitemap><loc>https://h.example/1</loc></sitemap></sitemapindex>"), now=NOW
    )
    assert entry == Entry(loc="https://h.example/1", is_sitemap=True)


@pytest.mark.parametrize("front", [b"\n", b"\xef\xbb\xbf \r\n", b"\xef\xbb\xbf\xef\xbb\xbf", b"<br />Warning: x\n"])
def test_map_03_blank_line_or_bom_before_the_declaration(front: bytes) -> None:
    assert read(front + ONE)[0] == ["https://h.example/1"]


def test_map_06_html_entity_not_defined_in_xml() -> None:
    found = list(
        Sitemap(
            io.BytesIO(urlset(b"https://h.example/caf&eacute;-1", b"https://h.example/&nope;", b"https://h.example/2")),
            now=NOW,
        )
    )
    assert found[0] == Entry(loc="https://h.example/café-1")
    assert found[1] == Lost(reason="sitemap_unknown_entity", value="&nope; in https://h.example/")
    assert found[2] == Entry(loc="https://h.example/2")


@pytest.mark.parametrize(
    "doctype",
    [
        b'<!DOCTYPE urlset [<!ENTITY a "aaa">]>',
        b'<!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        b'<!DOCTYPE urlset [<!ENTITY % p SYSTEM "http://h.example/x.dtd"> %p;]>',
    ],
)
def test_map_06_entities_that_a_file_declares_are_refused(doctype: bytes) -> None:
    with pytest.raises(NotASitemap, match="declares entities"):
        read(doctype + urlset(b"https://h.example/&a;"))


def test_map_07_cdata_and_whitespace_in_loc() -> None:
    locs, sitemap = read(urlset(b"\n   https://h.example/a\n", b"<![CDATA[ https://h.example/b?x=1&y=2 ]]>", b"/rel"))
    assert locs == ["https://h.example/a", "https://h.example/b?x=1&y=2", "/rel"]
    assert sitemap.flags == {RELATIVE: 1}


def test_map_08_escapes_decoded_once() -> None:
    locs, _ = read(urlset(b"https://h.example/s?q=1&amp;p=2", b"https://h.example/s?q=&amp;amp;x"))
    assert locs == ["https://h.example/s?q=1&p=2", "https://h.example/s?q=&amp;x"]


def test_map_08_bare_ampersands_cost_nothing_and_are_said() -> None:
    locs, sitemap = read(
        urlset(b"https://h.example/?a=1&b=2", b"<![CDATA[https://h.example/?a&b]]>&c", b"https://h.example/3")
    )
    assert locs == ["https://h.example/?a=1&b=2", "https://h.example/?a&b&c", "https://h.example/3"]
    assert sitemap.flags == {"sitemap_entry_repaired": 2}


def test_map_10_each_final_address_is_fetched_once(hands: Hands) -> None:
    """Rule 1: an index that lists itself; a child that leads back to it by a redirect; two entry points to one file."""
    say(hands.site, "/index.xml", index("/index.xml", "/a.xml", "/sitemap-books.xml"))
    say(hands.site, "/a.xml", "", status=301, headers=f"Location: {SHOP}/index.xml\r\n")
    starts = (f"{SHOP}/index.xml", f"{SHOP}/a.xml")
    status = hands.whole(replace(LISTED, sitemaps=starts))
    assert sorted(path for path in fetched(hands) if path != "/robots.txt") == [
        "/a.xml",
        "/index.xml",
        "/sitemap-books.xml",
    ]
    assert status.counts.failed == 0


@pytest.mark.parametrize(
    ("text", "earliest", "latest"),
    [
        ("2026-01-25", "2026-01-24 10:00:00", "2026-01-26 14:00:00"),
        ("2026-01-25T07:35:12+00:00", "2026-01-25 07:35:12", "2026-01-25 07:35:13"),
        ("2026-01-25T07:35-01:00", "2026-01-25 08:35:00", "2026-01-25 08:36:00"),
        ("2026-01-25T07:35:12", "2026-01-24 17:35:12", "2026-01-25 21:35:13"),
        ("2026-01-25 15:35:12", "2026-01-25 01:35:12", "2026-01-26 05:35:13"),
        ("2026-01-25T13:15:00+0200", "2026-01-25 11:15:00", "2026-01-25 11:15:01"),
        ("2026-01-25T13:15:00.123Z", "2026-01-25 13:15:00", "2026-01-25 13:15:01"),
        ("2025", "2024-12-31 10:00:00", "2026-01-01 14:00:00"),
        ("2026-01", "2025-12-31 10:00:00", "2026-02-01 14:00:00"),
        ("Mon, 25 May 2026 07:35:12 +0200", "2026-05-25 05:35:12", "2026-05-25 05:35:13"),
    ],
)
def test_map_12_lastmod_formats(text: str, earliest: str, latest: str) -> None:
    found = last_modified(text, now=NOW)
    assert found
    assert (f"{found.earliest:%F %T}", f"{found.latest:%F %T}") == (earliest, latest)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-25T13:15:00+02:00 2026-01-26T13:15:00+02:00", "25.01.2026", "2041-01-01", "", "01/25/2026",
        "0000-00-00", "-0001-11-30T00:00:00+00:00", "1970-01-01", "2026-02-30", "2026-01-25T25:00:00Z",
        "2026-01-25T13:15:00+99:99", "9999-12-31T23:59:59", "today", "\u0662\u0660\u0662\u0666-01-25",
    ],
)  # fmt: skip
def test_map_12_a_lastmod_that_cannot_be_meant_is_none_and_the_url_stays(text: str) -> None:
    assert last_modified(text, now=NOW) is None
    body = f"<urlset><url><loc>https://h.example/1</loc><lastmod>{text}</lastmod></url></urlset>".encode()
    assert list(Sitemap(io.BytesIO(body), now=NOW)) == [Entry(loc="https://h.example/1")]


def test_map_13_a_chain_of_indexes_ends_at_the_depth_cap(hands: Hands) -> None:
    chained = replace(LISTED, sitemaps=(f"{SHOP}/misbehave/sitemap_chain/0",))
    hands.discover(chained)
    status = hands.status(chained)
    assert len([path for path in fetched(hands) if path != "/robots.txt"]) == 11
    assert status.row.bound_reached == "max_depth"
    assert [(link.reason, link.count) for link in status.rejected_links] == [("sitemap_too_deep", 1)]


def test_map_13_a_worker_that_dies_leaves_a_sitemap_that_is_finished_without_a_request(hands: Hands) -> None:
    """Rule 15: two of three parts are in when the database refuses; the rest comes from the stored bytes."""
    big = replace(LISTED, sitemaps=(f"{SHOP}/misbehave/sitemap_of/2500",), max_requests=10_000)
    with hands.refusing("requests", "right(url, 5) <> '/2200'"), pytest.raises(psycopg.errors.CheckViolation):
        hands.discover(big)
    assert hands.column("SELECT state FROM requests WHERE kind = 'sitemap'") == ["fetched"]
    assert hands.status(big).counts.by_kind("detail").planned == 2_000
    sent = fetched(hands)
    mended = hands.discover(big)
    assert (mended.mended, fetched(hands)) == (1, sent)
    counts = hands.status(big).counts
    assert (counts.by_kind("sitemap").done, counts.by_kind("detail").planned) == (1, 2_500)


def test_map_13_a_file_may_be_as_large_as_the_protocol_says(hands: Hands) -> None:
    """Twenty megabytes, where the source lets pages have one."""
    large = replace(LISTED, sitemaps=(f"{SHOP}/misbehave/sitemap_of/3/20000000",), max_bytes=2**20)
    hands.discover(large)
    assert hands.status(large).counts.by_kind("detail").planned == 3


@pytest.mark.parametrize(
    ("children", "entries"),
    [(3, 4_000), pytest.param(6, 50_000, marks=[pytest.mark.chaos, pytest.mark.timeout(600)])],
)
def test_map_13_memory_is_flat(hands: Hands, worker_dsn: str, children: int, entries: int) -> None:
    say(hands.site, "/index.xml", index(*(f"/misbehave/sitemap_of/{entries - child}" for child in range(children))))
    driver = [sys.executable, "-m", "collector_tests.cases.map_driver"]
    facts = [worker_dsn, hands.site.address, str(hands.folder), f"{SHOP}/index.xml"]
    grown = subprocess.run([*driver, *facts], check=True, capture_output=True, text=True)
    assert hands.status(LISTED).counts.by_kind("detail").planned == entries
    assert int(grown.stdout) < 40
