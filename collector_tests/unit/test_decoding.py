"""Content decoding: what is decoded, forgiven and refused, and that none of it costs more than the limit."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
import zlib
from pathlib import Path

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from collector_assets.decoding import MISLABELLED, TRAILING, DecodingError, decode
from collector_assets.outcome import Outcome

HTML = b"<p>hello!</p>" * 40
LIMIT = 10_000_000
ROOT = Path(__file__).parents[2]


def gzipped(body: bytes) -> bytes:
    """Without the time of day: it would be in the names of tests, and two workers must collect the same ones."""
    return gzip.compress(body, mtime=0)


def raw_deflate(body: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflater.compress(body) + deflater.flush()


def zstd_stream(body: bytes) -> bytes:
    """One frame that does not say how large its content is."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(body) + compressor.flush()


ENCODERS = {
    "gzip": gzipped,
    "deflate": zlib.compress,
    "raw deflate": raw_deflate,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "zstd without size": zstd_stream,
    "zstd with checksum": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def coding_of(encoder: str) -> str:
    return encoder.removeprefix("raw ").partition(" ")[0]


def refusal(body: bytes, content_encoding: str, *, limit: int = LIMIT) -> Outcome:
    with pytest.raises(DecodingError) as raised:
        decode(body, content_encoding, limit=limit)
    return raised.value.outcome


# --- What is decoded -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ENCODERS)
def test_coding_is_undone(encoder: str) -> None:
    decoded = decode(ENCODERS[encoder](HTML), coding_of(encoder), limit=LIMIT)
    assert decoded.body == HTML
    assert not decoded.flags


@given(st.sampled_from(sorted(ENCODERS)), st.binary(max_size=3_000), st.integers(1, 40))
def test_whatever_was_encoded_comes_back_and_cut_it_never_passes(encoder: str, piece: bytes, times: int) -> None:
    body = piece * times
    encoded, coding = ENCODERS[encoder](body), coding_of(encoder)
    assert decode(encoded, coding, limit=LIMIT).body == body
    for cut in {4, len(encoded) // 2, len(encoded) - 1} & set(range(4, len(encoded))):
        assert refusal(encoded[:cut], coding) in (Outcome.TRUNCATED, Outcome.UNDECODABLE)


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("x-gzip", gzipped(HTML)),
        ("GZip ", gzipped(HTML)),
        ("gzip, gzip", gzipped(gzipped(HTML))),
        ("deflate, br", brotli.compress(zlib.compress(HTML))),
        ("identity, gzip", gzipped(HTML)),
        ("gzip,", gzipped(HTML)),
        ("deflate", raw_deflate(HTML)),
        ("gzip", gzipped(HTML[:100]) + gzipped(HTML[100:])),
        *((spelling, HTML) for spelling in ("", "identity", "none", "UTF-8", "utf8", "iso-8859-1", "binary", "8bit")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_http_05_unusual_headers(header: str, body: bytes) -> None:
    decoded = decode(body, header, limit=LIMIT)
    assert decoded.body == HTML
    assert not decoded.flags


def test_http_04_zstd_frames_without_size_and_more_than_one() -> None:
    two = zstd_stream(HTML) + zstd_stream(b"<p>more</p>")
    assert decode(two, "zstd", limit=LIMIT).body == HTML + b"<p>more</p>"
    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    assert decode(skippable + two, "zstd", limit=LIMIT).body == HTML + b"<p>more</p>"


@pytest.mark.parametrize("missing", [1, 2, 3, 4, 5, 9, 12])
def test_http_04_zstd_cut_in_its_last_frame_is_truncated(missing: int) -> None:
    """The library itself gives what it has and says nothing."""
    # Mutation: `end = len(body)` instead of _frame_end in _unzstd -> no error for any cut.
    assert refusal((zstd_stream(HTML) + zstd_stream(os.urandom(50)))[:-missing], "zstd") is Outcome.TRUNCATED


def test_nothing_is_nothing() -> None:
    assert decode(b"", "gzip", limit=LIMIT).body == b""


# --- What is forgiven ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize(
    "body",
    [
        b"<p>hello!</p>",
        b'  {"a": "\xc3\xa9"}',
        ("Ünï" * 9).encode(),
        ("<p>é" * 9).encode("cp1252"),
        b"%PDF-1.7\n\xe2\xe3\x00\x01",
        b"a;b;c;d\n" * 9,
    ],
)
def test_http_01_plain_body_with_a_coding_in_its_header(coding: str, body: bytes) -> None:
    decoded = decode(body, coding, limit=LIMIT)
    assert decoded.body == body
    assert decoded.flags == {MISLABELLED}


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("br", gzipped(HTML)),
        ("br", zstandard.compress(HTML)),
        ("deflate", gzipped(HTML)),
        ("gzip", zlib.compress(HTML)),
        ("gzip", zstandard.compress(HTML)),
        ("zstd", gzipped(HTML)),
        ("gzip, gzip", gzipped(HTML)),
    ],
)
def test_http_05_the_bytes_say_which_coding_it_is(header: str, body: bytes) -> None:
    decoded = decode(body, header, limit=LIMIT)
    assert decoded.body == HTML
    assert decoded.flags == {MISLABELLED}


@pytest.mark.parametrize("rest", [b"\0" * 8, b"\n", b"rubbish"])
@pytest.mark.parametrize("encoder", ["gzip", "deflate", "raw deflate", "zstd"])
def test_bytes_after_the_end_are_left_out_and_flagged(encoder: str, rest: bytes) -> None:
    decoded = decode(ENCODERS[encoder](HTML) + rest, coding_of(encoder), limit=LIMIT)
    assert decoded.body == HTML
    assert decoded.flags == {TRAILING}


# --- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [3, 8, 11, 20, -9, -8, -1])
def test_http_01_cut_gzip_is_never_taken_for_plain(keep: int) -> None:
    assert refusal(gzipped(HTML)[:keep], "gzip") is Outcome.TRUNCATED


@pytest.mark.parametrize("encoder", ["gzip", "deflate", "zstd with checksum"])
def test_damaged_body_is_undecodable(encoder: str) -> None:
    body = bytearray(ENCODERS[encoder](os.urandom(3_000)))
    body[1_500] ^= 0xFF
    assert refusal(bytes(body), coding_of(encoder)) is Outcome.UNDECODABLE


def test_damaged_second_member_is_no_trailing_rubbish() -> None:
    assert refusal(gzipped(HTML) + gzipped(HTML)[:-4], "gzip") is Outcome.TRUNCATED


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_compressed_bytes_never_pass_as_text(coding: str) -> None:
    """Brotli has no mark: with another name on it, it is not known for what it is, but not for text either."""
    # Mutation: `return True` in _is_plain.
    assert refusal(brotli.compress(os.urandom(300) + HTML), coding) is Outcome.UNDECODABLE


@pytest.mark.parametrize("header", ["compress", "exi", "gzip, foo", "x"])
def test_unknown_coding_is_undecodable(header: str) -> None:
    assert refusal(HTML, header) is Outcome.UNDECODABLE


def test_chain_of_codings_has_an_end() -> None:
    assert refusal(HTML, ", ".join(["gzip"] * 50)) is Outcome.UNDECODABLE


# --- What it may cost ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["identity", *ENCODERS])
def test_limit_is_the_most_that_comes_out(encoder: str) -> None:
    body = ENCODERS.get(encoder, bytes)(HTML)
    assert decode(body, coding_of(encoder), limit=len(HTML)).body == HTML
    assert refusal(body, coding_of(encoder), limit=len(HTML) - 1) is Outcome.TOO_LARGE


BOMB = """
import gzip, re, zlib
from pathlib import Path
import zstandard
from collector_assets.decoding import DecodingError, decode

def deflated(size, wbits):
    deflater, zeros = zlib.compressobj(9, wbits=wbits), bytes(1 << 20)
    return b"".join([*(deflater.compress(zeros) for _ in range(size >> 20)), deflater.flush()])

def memory(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

def zstded(size):
    compressor, zeros = zstandard.ZstdCompressor().compressobj(), bytes(1 << 20)
    return b"".join([*(compressor.compress(zeros) for _ in range(size >> 20)), compressor.flush()])

single = deflated(1 << 28, 31) * 8  # members of one body
bombs = {"gzip": single, "gzip, gzip": gzip.compress(single), "deflate": deflated(1 << 28, 15), "zstd": zstded(1 << 28)}
for limit, coding, bomb in [(limit, *item) for limit in (1 << 20, 64 << 20) for item in bombs.items()]:
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = memory("VmRSS")
    try:
        decode(bomb, coding, limit=limit)
    except DecodingError as error:
        grown = memory("VmHWM") - before
        assert error.outcome == "too_large", error
        assert grown < limit + (50 << 20), (coding, grown)
        continue
    raise SystemExit(f"{coding}: decoded")
"""


def test_http_07_bomb_costs_no_more_than_the_limit() -> None:
    """2 GiB of zeros, once and twice compressed, in a process of its own: memory grows by less than limit + 50 MB."""
    # Mutation: inflater.decompress(bite) without PIECE in _inflate.
    run = subprocess.run(
        [sys.executable, "-c", BOMB], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert run.returncode == 0, run.stderr


def test_many_tiny_members_take_linear_time() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    decode(gzip.compress(b"") * 50_000, "gzip", limit=LIMIT)
    decode(zstandard.compress(b"a") * 50_000, "zstd", limit=LIMIT)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 5
