"""What a holder may do with a slot: monotonic readings in, yes or no out."""

from __future__ import annotations

from math import inf

import pytest

from collector_assets.permission import Grant, Permission, Returned, SlotState


def granted(
    *, ready_in: float = 0.0, held_for: float = 3.0, turn_for: float = 1.0, must_yield: bool = False, gap: float = 0.1
) -> Permission:
    """A permission whose statement was sent at 100.0 and answered at 100.2."""
    grant = Grant(slot=0, fence=7, ready_in_s=ready_in, held_for_s=held_for, turn_for_s=turn_for, must_yield=must_yield)
    return Permission(grant, gap_s=gap, before=100.0, after=100.2)


def send(permission: Permission, start: float, end: float) -> None:
    permission.started(start)
    assert permission.may_send(start)
    permission.ended(end)


def test_lease_counts_from_before_the_statement_and_readiness_from_after_it() -> None:
    """Rule 8: a grant is not an arrival."""
    # Mutation: `after + grant.held_for_s`, or `before + grant.ready_in_s`.
    permission = granted(ready_in=0.5)
    assert (permission.not_before, permission.not_after) == (100.7, 103.0)
    assert not permission.may_start(100.69)
    assert permission.wait_s(100.2) == pytest.approx(0.5)
    assert permission.may_start(100.7)
    assert permission.may_start(102.99)
    assert not permission.may_start(103.0)
    assert permission.wait_s(103.0) == inf


def test_bytes_do_not_leave_when_the_lease_ended_while_connecting() -> None:
    """Rule 8: the last question is asked after connecting."""
    # Mutation: drop `now < self._not_after` from may_send.
    permission = granted()
    permission.started(102.9)
    assert not permission.may_send(103.0)
    permission.ended(103.0)
    assert permission.served == 0
    assert permission.returned(103.0).ended_ago_s is None


def test_a_statement_that_took_longer_than_the_lease_permits_nothing() -> None:
    grant = Grant(slot=0, fence=7, ready_in_s=0.0, held_for_s=3.0, turn_for_s=1.0, must_yield=False)
    permission = Permission(grant, gap_s=0.1, before=100.0, after=104.0)
    assert permission.is_lost(104.0)
    assert not permission.may_start(104.0)


def test_requests_do_not_overlap_and_the_gap_runs_from_the_end() -> None:
    """Rule 7, inside one holder."""
    # Mutation: drop `not self.in_flight` from may_start; `self._ended_at = now` moved to started.
    permission = granted()
    permission.started(101.0)
    assert permission.may_send(101.0)
    assert not permission.may_start(101.5)
    assert permission.wait_s(101.5) == inf
    with pytest.raises(RuntimeError):
        permission.started(101.5)
    permission.ended(101.5)
    assert not permission.may_start(101.59)
    assert permission.may_start(101.601)


def test_a_request_that_never_left_costs_no_gap_and_counts_nothing() -> None:
    permission = granted()
    permission.started(101.0)
    permission.ended(101.4)
    assert permission.may_start(101.4)
    assert permission.served == 0


def test_asking_twice_before_sending_counts_once() -> None:
    permission = granted()
    permission.started(101.0)
    assert permission.may_send(101.0)
    assert permission.may_send(101.1)
    permission.ended(101.2)
    assert permission.held().served == 1


def test_a_renewal_extends_the_lease_and_brings_the_new_gap() -> None:
    permission = granted()
    send(permission, 101.0, 101.5)
    state = SlotState(held_for_s=3.0, turn_for_s=0.0, must_yield=False)
    permission.renewed(state, gap_s=0.8, closed_for_s=0.0, before=102.0, after=102.1)
    assert permission.not_after == 105.0
    assert not permission.may_start(102.2)
    assert permission.may_start(102.3)


def test_a_closed_key_holds_everything_back() -> None:
    permission = granted()
    state = SlotState(held_for_s=3.0, turn_for_s=1.0, must_yield=False)
    permission.renewed(state, gap_s=0.1, closed_for_s=2.0, before=101.0, after=101.1)
    assert permission.wait_s(101.1) == pytest.approx(2.0)
    permission.renewed(state, gap_s=0.1, closed_for_s=0.0, before=102.0, after=102.1)
    assert permission.may_start(102.1)


def test_a_renewal_without_the_slot_ends_it() -> None:
    permission = granted()
    permission.renewed(None, gap_s=0.1, closed_for_s=0.0, before=101.0, after=101.1)
    assert permission.is_lost(101.1)
    assert not permission.may_start(101.1)


def test_a_turn_lasts_its_length_when_others_wait() -> None:
    permission = granted(must_yield=True)
    send(permission, 100.3, 100.5)
    assert not permission.is_over(100.7)
    send(permission, 101.1, 101.15)
    assert permission.is_over(101.2)
    assert not permission.may_start(101.3)
    assert permission.wait_s(101.3) == inf


def test_a_turn_is_one_request_when_that_is_longer() -> None:
    permission = granted(must_yield=True)
    permission.started(100.3)
    assert permission.may_send(100.3)
    assert not permission.is_over(104.0)  # not while it is under way, whatever the clock says
    permission.ended(104.0)
    assert permission.is_over(104.0)


def test_a_gap_beyond_the_turn_is_waited_for_by_the_next_holder() -> None:
    permission = granted(must_yield=True, gap=10.0)
    assert not permission.is_over(100.2)
    send(permission, 100.3, 100.4)
    assert permission.is_over(100.4)
    assert permission.returned(100.65) == Returned(slot=0, fence=7, served=1, ended_ago_s=100.65 - 100.4)


def test_nobody_waiting_means_the_turn_goes_on() -> None:
    permission = granted()
    send(permission, 102.0, 102.1)
    assert not permission.is_over(102.5)


def test_a_slot_with_a_request_in_flight_is_not_given_back() -> None:
    permission = granted()
    permission.started(100.3)
    with pytest.raises(RuntimeError):
        permission.returned(100.4)


def test_a_lease_shorter_than_the_gap_is_no_reason_to_give_up() -> None:
    permission = granted(ready_in=10.0, turn_for=11.0)
    assert permission.wait_s(100.2) == pytest.approx(10.0)
