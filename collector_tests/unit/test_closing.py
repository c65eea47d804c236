"""When a budget key is closed, and for how long (rule 9)."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from collector_assets import closing
from collector_assets.closing import Closing, Sign
from collector_assets.outcome import Outcome

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
NEW = Closing()


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def sign(
    outcome: Outcome = Outcome.THROTTLED, *, request: int = 1, sent: float = 0, received: float | None = None,
    asked: float | None = None,
) -> Sign:  # fmt: skip
    wait = None if asked is None else timedelta(seconds=asked)
    received_at = at(sent + 0.1 if received is None else received)
    return Sign(request_id=request, outcome=outcome, sent_at=at(sent), received_at=received_at, asked=wait, reason="x")


def after(before: Closing, *signs: Sign) -> tuple[Closing, bool]:
    waits = False
    for each in signs:
        before, waits = closing.after(before, each, random.Random(1))  # noqa: S311
    return before, waits


def test_retry_after_closes_the_key_from_the_receipt() -> None:
    assert after(NEW, sign(sent=0, received=5, asked=120)) == (
        Closing(until=at(125), reason="x", incidents=1), True
    )  # fmt: skip


def test_without_it_the_key_is_closed_for_a_minute_then_two_then_four_each_a_little_longer() -> None:
    state, lengths = NEW, []
    for _ in range(9):
        sent = 0 if state.until is None else (state.until - NOON).total_seconds()
        state, _ = after(state, sign(sent=sent, received=sent))
        lengths.append((state.remaining(at(sent))).total_seconds())
    for number, length in enumerate(lengths[:6]):
        assert 60 * 2**number <= length <= 60 * 2**number * 1.25
    assert all(3600 <= length <= 3600 * 1.25 for length in lengths[6:])
    assert len({round(second / first, 6) for first, second in pairwise(lengths)}) > 1, "jitter"


def test_answers_to_what_was_sent_before_the_closing_ended_are_one_incident() -> None:
    first, _ = after(NEW, sign(sent=0, received=1))
    again = [sign(request=n, sent=0.5, received=1 + n) for n in range(2, 9)]
    assert after(first, *again) == (first, True)
    late = sign(request=9, sent=0.5, received=200)  # a slow one that comes when the key is open again
    assert after(first, late) == (first, True)


def test_within_an_incident_a_longer_wish_is_heeded_and_a_shorter_one_changes_nothing() -> None:
    first, _ = after(NEW, sign(asked=60))
    assert after(first, sign(request=2, asked=30))[0] == first
    assert after(first, sign(request=2, asked=90))[0] == Closing(until=at(90.1), reason="x", incidents=1)


def test_a_quiet_time_forgives() -> None:
    state, _ = after(NEW, sign(asked=1), sign(sent=100, asked=1), sign(sent=200, asked=1))
    assert state.incidents == 3
    assert state.until
    long_after = (state.until - NOON + closing.QUIET).total_seconds() + 1
    assert after(state, sign(sent=long_after))[0].incidents == 1


def test_retry_after_zero_again_and_again_is_no_leave_to_ask_at_full_speed() -> None:
    state, lengths = NEW, []
    for _ in range(8):
        sent = 0 if state.until is None else (state.until - NOON).total_seconds()
        state, _ = after(state, sign(sent=sent, received=sent, asked=0))
        lengths.append(state.remaining(at(sent)).total_seconds())
    assert lengths == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_url_that_is_never_available_closes_nothing() -> None:
    """Rule 9 is about sites; one page that is broken for good holds up no other."""
    state, waits = after(NEW, *[sign(Outcome.UNAVAILABLE, request=7, sent=n) for n in range(20)])
    assert (state.until, state.unavailable, waits) == (None, 1, False)


def test_the_third_request_in_a_row_that_is_unavailable_closes_the_key() -> None:
    """The demo's lab stays below: two of its requests are unavailable, and good ones come between."""
    # Mutation: OUTAGE = 2.
    two, waits = after(NEW, *[sign(Outcome.UNAVAILABLE, request=n) for n in (1, 2)])
    assert (two.until, waits) == (None, False)
    three, waits = after(two, sign(Outcome.UNAVAILABLE, request=3))
    assert waits
    assert 60 <= three.remaining(at(0.1)).total_seconds() <= 75
    again, waits = after(three, sign(Outcome.UNAVAILABLE, request=1, sent=100))
    assert (again.incidents, waits) == (2, True), "still down when the key is open again"


def test_any_other_answer_ends_the_row() -> None:
    two, _ = after(NEW, *[sign(Outcome.UNAVAILABLE, request=n) for n in (1, 2)])
    good, waits = after(two, sign(Outcome.OK, request=3))
    assert (good, waits) == (NEW, False)


def test_unavailable_with_retry_after_is_heeded_at_once() -> None:
    state, waits = after(NEW, sign(Outcome.UNAVAILABLE, asked=120))
    assert (state.until, waits) == (at(120.1), True)
