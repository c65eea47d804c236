"""Text and JSON from outside, made fit for Postgres and for every export of the same row."""

from __future__ import annotations

import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets.storable import clean, clean_json, clean_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\0b", "ab"),
        ("x\ud83d", "x\ufffd"),
        ("\ude00y", "\ufffdy"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("😀 ok", "😀 ok"),
        ("", ""),
    ],
)
def test_text_loses_nul_and_lone_surrogates_only(text: str, expected: str) -> None:
    """DBQ-01, DBQ-03."""
    assert clean_text(text) == expected


def test_json_is_cleaned_at_any_depth_and_counted() -> None:
    """DBQ-01, DBQ-05."""
    cleaned = clean({"a\0": [{"b": "x\0\ud800"}], "v": math.nan, "w": -math.inf, "n": 1.5, "t": True, "z": None})
    assert cleaned.value == {"a": [{"b": "x\ufffd"}], "v": None, "w": None, "n": 1.5, "t": True, "z": None}
    assert (cleaned.chars_removed, cleaned.numbers_removed) == (3, 2)


def test_what_is_no_json_is_an_error_not_a_guess() -> None:
    with pytest.raises(TypeError, match="bytes is not a JSON value"):
        clean_json({"body": b"\xff"})


SURROGATES = st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010) | st.sampled_from("\0a😀"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | SURROGATES,
    lambda inner: st.lists(inner) | st.dictionaries(SURROGATES, inner),
)


@given(VALUES)
def test_a_cleaned_value_can_be_encoded_hashed_and_read_back(value: object) -> None:
    cleaned = clean(value)
    text = json.dumps(cleaned.value, ensure_ascii=False, allow_nan=False)
    hashlib.sha256(text.encode())
    assert "\0" not in text
    assert json.loads(text) == cleaned.value
    assert clean(cleaned.value) == clean(json.loads(text))
    assert clean(cleaned.value).chars_removed == 0
