"""Answers made to exhaust whoever reads them: each costs at most its limit and a bit, in memory and in time."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

from collector_assets.decoding import PIECE
from collector_assets.sources.shop import SHOP

ROOT = Path(__file__).parents[2]
MB = 1 << 20
TOTAL_S = 3.0
MOST_GROWN = 100 * MB
ZEROS = bytes(MB)
Pieces = Iterable[bytes]


@contextmanager
def pouring(bomb: Callable[[], Pieces]) -> Iterator[str]:
    """A server that answers each request with the bomb, as far as it is taken."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), connection:
                        connection.recv(65_536)
                        for piece in bomb():
                            connection.sendall(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def whole(body: bytes, *, coding: str = "", kind: str = "text/html") -> Pieces:
    said = f"Content-Encoding: {coding}\r\n" if coding else ""
    yield f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{said}Content-Length: {len(body)}\r\n\r\n".encode()
    yield body


def chunked(pieces: Pieces) -> Pieces:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)


def headed(pieces: Pieces) -> Pieces:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
    yield from pieces


def slowly(pieces: Pieces) -> Pieces:
    for piece in pieces:
        time.sleep(0.2)
        yield piece


def endless(piece: bytes) -> Pieces:
    return repeat(piece)


def packed(size: int, engine: Any) -> bytes:
    return b"".join([*(engine.compress(ZEROS) for _ in range(size // MB)), engine.flush()])


def gzipped(size: int) -> bytes:
    return packed(size, zlib.compressobj(9, wbits=31))


def brotlied(size: int) -> bytes:
    engine = brotli.Compressor(quality=1)
    return b"".join([*(engine.process(ZEROS) for _ in range(size // MB)), engine.finish()])


def zstded(size: int, **parameters: int) -> bytes:
    chosen = zstandard.ZstdCompressionParameters.from_level(1, **parameters)
    return packed(size, zstandard.ZstdCompressor(compression_params=chosen).compressobj())


LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 20) for n in range(12))
    + b"]><urlset><url><loc>http://shop.localhost/&m;</loc></url></urlset>"
)
INDEX = b'<?xml version="1.0"?><sitemapindex>%s</sitemapindex>'
ENTRY = b"<sitemap><loc>http://shop.localhost/s.xml</loc></sitemap>"

GZIP_OF_2_GIB = gzipped(128 * MB) * 16
EXCESS = b"Content-Length: 5000000000\r\n\r\n"

BOMBS: dict[str, tuple[Callable[[], Pieces], str]] = {
    "gzip": (lambda: whole(GZIP_OF_2_GIB, coding="gzip"), "to more than"),
    "gzip of gzip": (lambda: whole(gzip.compress(GZIP_OF_2_GIB), coding="gzip, gzip"), "to more than"),
    "gzip of many members": (lambda: whole(gzip.compress(ZEROS) * 2_000, coding="gzip"), "to more than"),
    "deflate": (lambda: whole(packed(128 * MB, zlib.compressobj(9)), coding="deflate"), "to more than"),
    "raw deflate": (lambda: whole(packed(128 * MB, zlib.compressobj(9, wbits=-15)), coding="deflate"), "to more than"),
    "br": (lambda: whole(brotlied(128 * MB), coding="br"), "to more than"),
    "zstd": (lambda: whole(zstded(128 * MB), coding="zstd"), "to more than"),
    "zstd of a large window": (lambda: whole(zstded(128 * MB, window_log=27), coding="zstd"), "undecodable"),
    "twenty codings": (lambda: whole(gzipped(MB), coding=", ".join(["gzip"] * 20)), "20 content codings"),
    "nested tags": (lambda: whole(b"<!doctype html>" + b"<div>" * 3_000_000), "inside each other"),
    "nested tags, packed": (lambda: whole(gzip.compress(b"<div>" * 4_000_000), coding="gzip"), "inside each other"),
    "header lines": (lambda: headed(endless(b"X-Flood: 0123456789\r\n")), "protocol_error"),
    "one header line": (lambda: headed(chain((b"X-Long: ",), endless(b"x" * 65_536))), "protocol_error"),
    "drip of a head": (lambda: headed(slowly(endless(b"X"))), "timeout"),
    "early hints": (lambda: endless(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100), "timeout"),
    "endless chunks": (lambda: chunked(endless(ZEROS)), "too_large"),
    "endless tiny chunks": (lambda: chunked(endless(b"x")), "timeout"),
    "endless chunk extension": (lambda: chain(chunked(()), (b"5;a=",), endless(b"b" * 65_536)), "timeout"),
    "endless trailers": (
        lambda: chain(chunked((b"x",)), (b"0\r\n",), endless(b"X-T: 1\r\n")),
        "protocol_error|truncated",
    ),
    "endless without a length": (lambda: headed(chain((b"\r\n",), endless(ZEROS))), "too_large"),
    "drip of a body": (lambda: chunked(slowly(endless(b"x"))), "timeout"),
    "declared excess": (lambda: headed(chain((EXCESS,), endless(ZEROS))), "too_large"),
    "billion laughs": (lambda: whole(LAUGHS, kind="text/xml"), "NotASitemap"),
    "sitemap index": (
        lambda: whole(gzip.compress(INDEX % (ENTRY * 60_000)), coding="gzip", kind="text/xml"),
        "entries",
    ),
    "nested JSON": (lambda: whole(b"[" * 10_000_000, kind="application/json"), "RecursionError"),
}
GROUPS = [tuple(BOMBS)[at::5] for at in range(5)]
"""Bombs that one process meets, one after the other: a process takes longer to start than most of them."""


@pytest.mark.parametrize("names", GROUPS, ids="; ".join)
def test_bombs_cost_no_more_than_their_limits(names: tuple[str, ...]) -> None:
    """Rule 11; HTTP-07, HTTP-27, HTTP-28: memory, decoded bytes and time; what became of each has a name."""
    with ExitStack() as stack:
        addresses = [stack.enter_context(pouring(BOMBS[name][0] if name else small)) for name in ("", *names)]
        run = subprocess.run(
            [sys.executable, "-m", "collector_tests.fetch.bomb_driver", str(TOTAL_S), *addresses],
            cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2_000:]
    first, *found = map(json.loads, run.stdout.splitlines())
    assert first["read"] == "1 links"
    for name, cost in zip(names, found, strict=True):
        expected = BOMBS[name][1]
        assert cost["outcome"] in expected.split("|") or expected in cost["read"], (name, cost)
        assert cost["grown"] <= MOST_GROWN, (name, cost)
        assert cost["decoded"] <= SHOP.max_decoded_bytes + PIECE, (name, cost)
        assert cost["seconds"] <= TOTAL_S + 2, (name, cost)


def small() -> Pieces:
    """A harmless page, which loads what is loaded late."""
    return whole(b"<!doctype html><a href=/>small</a>")
