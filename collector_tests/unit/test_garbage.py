"""The garbage collector goes back to what it was, whatever happens inside."""

from __future__ import annotations

import gc

import pytest

from collector_assets.garbage import RARELY, collected_rarely


def test_inside_it_looks_rarely_and_afterwards_as_before() -> None:
    # Mutation: without the finally
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), collected_rarely():
        assert gc.get_threshold() == RARELY
        assert gc.get_freeze_count() > 0
        raise ZeroDivisionError
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
