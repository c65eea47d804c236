"""The strict checker on files that are wrong in one way each, and on real ones."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets.archive import LocalArchive
from collector_assets.archive.check import Checked, check, repeated
from collector_tests.store.test_archive import REAL_FILES, exchange, stored


def record(
    block: bytes = b"hello",
    *,
    kind: str = "resource",
    length: int | None = None,
    end: bytes = b"\r\n\r\n",
    **fields: str,
) -> bytes:
    """A record; by default a sound one."""
    said = {
        "WARC-Type": kind,
        "WARC-Record-ID": "<urn:uuid:5d4a1b52-6b0c-4a39-9c5e-2f0a1a6f3c11>",
        "WARC-Date": "2026-03-29T01:30:00Z",
        "WARC-Target-URI": "http://shop.localhost/1",
        "WARC-Block-Digest": f"sha1:{hashlib.sha1(block, usedforsecurity=False).hexdigest()}",
        "Content-Length": str(len(block) if length is None else length),
    } | {name.replace("_", "-"): value for name, value in fields.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items() if value)
    return f"WARC/1.1\r\n{lines}\r\n".encode("latin-1") + block + end


def http(body: bytes, *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode() + body


def checked(data: bytes) -> Checked:
    return check("a.warc.gz", BytesIO(data))


def told(data: bytes) -> list[str]:
    return [problem.message for problem in checked(data).problems]


@pytest.mark.parametrize("compress", [gzip.compress, bytes], ids=["gzip", "plain"])
def test_sound_records_have_their_places(compress: Callable[[bytes], bytes]) -> None:
    parts = [compress(record(os.urandom(size))) for size in (0, 5, 300_000)]
    found = checked(b"".join(parts))
    assert found.problems == []
    assert [(each.offset, each.length) for each in found.records] == [
        (0, len(parts[0])), (len(parts[0]), len(parts[1])), (len(parts[0]) + len(parts[1]), len(parts[2])),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (gzip.compress(record())[:-3], "the gzip member is cut"),
        (gzip.compress(record())[:-8] + bytes(8), "the gzip member is damaged"),
        (gzip.compress(record()) + bytes(512), "bytes that are no gzip member"),
        (gzip.compress(record()) + b"trailing", "bytes that are no gzip member"),
        (gzip.compress(record() + record()), "more than one record in one gzip member"),
        (gzip.compress(record()[:60]) + gzip.compress(record()[60:]), "no WARC record begins here"),
        (gzip.compress(b"<!doctype html>"), "no WARC record begins here"),
        (gzip.compress(record(length=400)), "the record is cut: 9 of its 400 bytes are there"),
        (gzip.compress(record(length=3)), "does not end where it says"),
        (gzip.compress(record(end=b"\n\n")), "does not end where it says"),
        (gzip.compress(record(Content_Length="five")), "a record without a length"),
        (gzip.compress(record(WARC_Block_Digest="sha1:AAAA")), "WARC-Block-Digest is not that of the bytes"),
        (gzip.compress(record(WARC_Block_Digest="md6:AAAA")), "no algorithm that is known here"),
        (gzip.compress(record(WARC_Date="yesterday")), "WARC-Date is no time in UTC"),
        (gzip.compress(record(WARC_Date="2026-03-29T01:30:00+02:00")), "WARC-Date is no time in UTC"),
        (gzip.compress(record(WARC_Record_ID="1")), "WARC-Record-ID is no URI"),
        (gzip.compress(record(WARC_Record_ID="")), "warc-record-id is missing"),
        (gzip.compress(record(WARC_Target_URI="")), "without WARC-Target-URI"),
        (gzip.compress(record(WARC_Target_URI="http://a b/")), "WARC-Target-URI is no URI"),
        (gzip.compress(record(WARC_Target_URI="<http://a/>")), "WARC-Target-URI is no URI"),
        (gzip.compress(record(WARC_Filename="a\nX-Injected: 1")), "not a header line"),
        (gzip.compress(record(kind="revisit")), "without WARC-Profile"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_each_fault_is_named(data: bytes, says: str) -> None:
    assert any(says in message for message in told(data))


@pytest.mark.parametrize(
    ("body", "headers", "says"),
    [
        (b"hello", ["Content-Length: 5"], []),
        (b"hello", ["Content-Length: 50"], ["the head says Content-Length: 50, and the body has 5 bytes"]),
        (b"5\r\nhello\r\n0\r\n\r\n", ["Transfer-Encoding: chunked"], []),
        (b"hello", ["Transfer-Encoding: chunked"], ["the head says Transfer-Encoding: chunked, and the body is not"]),
        (
            b"5\r\nhel",
            ["Transfer-Encoding: chunked"],
            ["the head says Transfer-Encoding: chunked, and the body is not"],
        ),
    ],
)
def test_warc_01_a_body_that_is_not_what_its_head_says(body: bytes, headers: Sequence[str], says: list[str]) -> None:
    kind = "application/http;msgtype=response"
    assert told(gzip.compress(record(http(body, *headers), kind="response", Content_Type=kind))) == says


@pytest.mark.parametrize("over", [b"5\r\nhello\r\n0\r\n\r\n", b"hello"], ids=["chunks", "content"])
def test_a_payload_digest_may_be_over_the_chunks_or_their_content(over: bytes) -> None:
    digest = f"sha256:{hashlib.sha256(over).hexdigest()}"
    block = http(b"5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
    kind = "application/http"
    assert told(gzip.compress(record(block, kind="response", Content_Type=kind, WARC_Payload_Digest=digest))) == []
    wrong = f"sha256:{hashlib.sha256(b'other').hexdigest()}"
    [only] = told(gzip.compress(record(block, kind="response", Content_Type=kind, WARC_Payload_Digest=wrong)))
    assert only.startswith("WARC-Payload-Digest is not that of the bytes")


def test_without_compression_the_record_after_a_bad_one_is_found() -> None:
    found = checked(record() + record(length=3) + record())
    assert [problem.offset for problem in found.problems] == [len(record())] * 2
    assert [each.offset for each in found.records] == [0, 2 * len(record())]


def test_a_file_that_is_nothing_but_wrong_is_told_briefly() -> None:
    assert len(checked(gzip.compress(record(WARC_Date="x")) * 500).problems) == 50


@given(st.data())
def test_no_damage_is_an_error_of_ours_and_no_cut_goes_unseen(data: st.DataObject) -> None:
    """Bytes changed, cut off or put in, anywhere."""
    kind = "application/http;msgtype=response"
    digest = f"sha256:{hashlib.sha256(b'hello').hexdigest()}"
    block = http(b"5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked")
    plain = record() + record(block, kind="response", Content_Type=kind, WARC_Payload_Digest=digest)
    members = gzip.compress(record()), gzip.compress(record(block, kind="response", Content_Type=kind))
    whole = data.draw(st.sampled_from([plain, b"".join(members)]))
    at = data.draw(st.integers(1, len(whole) - 1))
    match data.draw(st.sampled_from(["cut", "change", "insert"])):
        case "cut":
            assert told(whole[:at]) or at in {len(record()), len(members[0])}
        case "change":
            told(whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :])
        case _:
            told(whole[:at] + data.draw(st.binary(min_size=1, max_size=40)) + whole[at:])


@pytest.mark.parametrize("length", ["9" * 5_000, "-1", "1e3", "٣", "5 5"])
def test_a_length_that_is_none(length: str) -> None:
    lines = f"WARC/1.1\r\nContent-Length: {length}\r\n\r\n".encode()
    assert any("without a length" in message for message in told(gzip.compress(lines)))


def test_a_large_record_is_checked_in_little_memory() -> None:
    """A bomb too: 100 MB of zeros in 100 KB."""
    data = gzip.compress(record(bytes(100_000_000)))
    tracemalloc.start()
    assert told(data) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_our_files_pass_the_check_of_others(tmp_path: Path) -> None:
    files = LocalArchive(tmp_path)
    places = stored(files, exchange(), exchange(body=b"", headers=()), exchange("http://h/\r\né", truncated="time"))
    file = tmp_path / places[0].file
    assert told(file.read_bytes()) == []
    command = [sys.executable, "-m", "warcio.cli", "check", "-v", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert "failed" not in done.stdout


REAL: dict[str, list[tuple[int, str]]] = {
    "example.warc": [],
    "example.warc.gz": [],
    "example-iana.org-chunked.warc": [],
    "example-resource.warc.gz": [],
    "post-test.warc.gz": [],
    "example-bad-non-chunked.warc.gz": [(0, "more than one record in one gzip member")],
    "example-bad.warc.gz.bad": [(0, "more than one record in one gzip member")],
    "example-digest.warc": [
        (0, "WARC-Payload-Digest is not"),
        (922, "not the first"),
        (1840, "not the first"),
        (2758, "not the first"),
    ],
    "example-space-in-target-uri.warc.gz": [(241, "WARC-Target-URI is no URI")],
    "example-trunc.warc": [
        (1197, "WARC-Block-Digest is not"),
        (1197, "WARC-Payload-Digest is not"),
        (1197, "the head says Content-Length: 606, and the body has 604"),
        (1197, "the record does not end where it says"),
    ],
    "example-wget-bad-target-uri.warc.gz": [
        (offset, "WARC-Target-URI is no URI") for offset in (410, 824, 1978, 2295, 2681)
    ],
    "example-wrong-chunks.warc.gz": [(0, "the record is cut: 343 of its 1613"), (516, "no WARC record begins here")],
}


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="the real files are not here")
@pytest.mark.parametrize("name", REAL)
def test_what_is_wrong_with_real_files(name: str) -> None:
    found = check(name, BytesIO((REAL_FILES / name).read_bytes()))
    problems = [*found.problems, *repeated([found], set())]
    assert [problem.offset for problem in problems] == [offset for offset, _ in REAL[name]]
    assert all(said in problem.message for problem, (_, said) in zip(problems, REAL[name], strict=True))


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="the real files are not here")
def test_every_real_file_is_looked_at() -> None:
    assert {file.name for file in REAL_FILES.iterdir()} == set(REAL)
