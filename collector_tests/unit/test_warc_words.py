"""Ids of WARC records: UUIDs as the library writes them."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets.archive.warc import words


@given(st.binary(min_size=16, max_size=20), st.sampled_from([4, 5]))
def test_ids_are_written_as_the_library_writes_them(octets: bytes, version: int) -> None:
    assert words._urn(octets, version) == uuid.UUID(bytes=octets[:16], version=version).urn


@pytest.mark.parametrize("place", [("archive/shop/a.warc.gz", 0), ("ä.warc.gz", 2**40)])
def test_the_id_of_a_place_is_what_it_has_always_been(place: tuple[str, int]) -> None:
    """Archives name records by it: a revisit refers to it."""
    file, offset = place
    assert words.record_id(file, offset) == uuid.uuid5(words._RECORDS, f"{file}@{offset}").urn


def test_new_ids_differ() -> None:
    assert len({words.new_id() for _ in range(100)}) == 100
