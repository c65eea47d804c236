from __future__ import annotations

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from collector_assets.retry import Backoff

NO_JITTER = Backoff(jitter=0)


def chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  the same in each run


class TestBackoff:
    def test_waits_double_from_one_second(self):
        waits = [NO_JITTER.wait(attempt, chance(1)).total_seconds() for attempt in (1, 2, 3, 4)]

        assert waits == [1, 2, 4, 8]

    def test_growth_ends_at_the_most(self):
        assert NO_JITTER.wait(10, chance(1)) == timedelta(minutes=5)

    def test_jitter_only_lengthens_so_one_second_then_two_is_a_promise(self):
        luck = chance(1)
        waits = [Backoff().wait(2, luck).total_seconds() for _ in range(1_000)]

        assert 2 <= min(waits) < 2.01
        assert 2.49 < max(waits) <= 2.5

    def test_the_same_chance_gives_the_same_wait(self):
        assert Backoff().wait(3, chance(7)) == Backoff().wait(3, chance(7))

    def test_a_first_wait_of_nothing_stays_nothing(self):
        assert Backoff(first=timedelta(0)).wait(5, chance(1)) == timedelta(0)

    @given(
        attempt=st.integers(min_value=1, max_value=2**31),
        first=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)),
        most=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)),
        seed=st.integers(),
    )
    def test_every_wait_is_between_nothing_and_the_most_with_jitter(
        self, attempt: int, first: timedelta, most: timedelta, seed: int
    ):
        wait = Backoff(first=first, most=most).wait(attempt, chance(seed))

        assert timedelta(0) <= wait <= most * 1.25 + timedelta(microseconds=1)
