"""Rules 20 and 22 through the use cases: what a window that is late, superseded or incomplete says of itself."""

from __future__ import annotations

import pytest

from collector_assets.collect import Ending
from collector_assets.contract import replace, seconds
from collector_assets.errors import LateRefused, UnknownWindow
from collector_tests.collect.conftest import LONG_AGO, QUICK, TODAY, TOMORROW, Hands, ends

FEW = replace(QUICK, max_requests=8)


# --- Everything is accounted for -------------------------------------------------------------------------------------


def test_every_request_is_accounted_for_at_every_stage(hands: Hands) -> None:
    """Rule 20: while some fail, some wait and some are read."""
    hands.site.misbehave("status", prefix="/catalogue/", arg="404", every=10)
    stages = []
    hands.open(QUICK)
    stages.append(ends(hands.status(QUICK)))
    hands.discover(QUICK)
    stages.append(ends(hands.status(QUICK)))
    hands.site.misbehave("delay", prefix="/catalogue/", arg="0.1")
    hands.collect(replace(QUICK, turn=seconds(0.2)))
    hands.site.behave()
    hands.site.misbehave("status", prefix="/catalogue/", arg="404", every=10)
    stages.append(ends(hands.status(QUICK)))
    stages.append(ends(hands.whole(QUICK)))
    for seen in stages:
        assert seen["planned"] == seen["done"] + seen["failed"] + seen["skipped"] + seen["outstanding"]
    status = hands.status(QUICK)
    failed = status.counts.failed
    assert failed >= 5
    assert stages[-1] == {"planned": 63, "done": 63 - failed, "failed": failed, "skipped": 0, "outstanding": 0}
    assert (status.is_complete, status.error_rate) == (False, pytest.approx(failed / 63))


def test_window_that_has_not_failed_anything_is_complete(hands: Hands) -> None:
    """Rule 20."""
    assert hands.whole(QUICK).is_complete is True


# --- Late ------------------------------------------------------------------------------------------------------------


def test_work_after_the_window_closed_is_marked_late_on_page_and_observation(hands: Hands) -> None:
    """Rule 22: yesterday's page cannot be fetched today."""
    hands.discover(FEW, LONG_AGO)
    collected = hands.collect(FEW, LONG_AGO)
    assert collected.late == collected.sent > 0
    hands.read(FEW, LONG_AGO)
    assert hands.column("SELECT DISTINCT late FROM pages") == [True]
    assert hands.column("SELECT DISTINCT late FROM observations") == [True]
    assert hands.status(FEW, LONG_AGO).pages.late == 8


def test_work_within_the_grace_is_not_late(hands: Hands) -> None:
    """Rule 22: a window closes at its end plus grace."""
    generous = replace(FEW, grace=TODAY.start - LONG_AGO.start)
    hands.discover(generous, LONG_AGO)
    assert hands.collect(generous, LONG_AGO).late == 0
    assert hands.column("SELECT DISTINCT late FROM pages") == [False]


def test_starts_that_name_the_window_are_never_late(hands: Hands) -> None:
    """Rule 22: only these can truly be back-filled."""
    named = replace(FEW, names_window=True)
    hands.discover(named, LONG_AGO)
    assert hands.collect(named, LONG_AGO).late == 0


def test_source_may_refuse_to_be_late(hands: Hands) -> None:
    """Rule 22: nothing is sent, and no window is opened."""
    strict = replace(FEW, late="refuse")
    with pytest.raises(LateRefused, match='late="refuse"'):
        hands.discover(strict, LONG_AGO)
    assert hands.arrivals() == []
    with pytest.raises(UnknownWindow):
        hands.row(strict, LONG_AGO)


def test_refused_window_that_is_complete_may_be_materialized_again(hands: Hands) -> None:
    """Rule 22: nothing would be fetched, so there is nothing to refuse."""
    hands.whole(FEW, LONG_AGO)
    assert hands.discover(replace(FEW, late="refuse"), LONG_AGO).collected.sent == 0


# --- Superseded ------------------------------------------------------------------------------------------------------


def test_newer_window_ends_an_unfinished_older_one(hands: Hands) -> None:
    """Rules 20 and 22: the older one is incomplete, what it left counts as failed, and what it has can be read."""
    hands.discover(QUICK, TODAY)
    hands.site.misbehave("delay", prefix="/catalogue/", arg="0.2")
    hands.collect(replace(QUICK, turn=seconds(0.3)), TODAY)
    opened = hands.open(QUICK, TOMORROW)
    assert opened.superseded == [TODAY.key]
    old = hands.status(QUICK, TODAY)
    assert old.row.superseded_at is not None
    assert old.counts.to_fetch > 0
    assert old.is_complete is False
    assert old.error_rate == pytest.approx(old.counts.outstanding / 63)


def test_finished_window_is_not_superseded(hands: Hands) -> None:
    """Rule 22: only an unfinished one."""
    hands.whole(QUICK, TODAY)
    assert hands.open(QUICK, TOMORROW).superseded == []
    assert hands.status(QUICK, TODAY).is_complete is True


def test_older_window_whose_starts_name_it_goes_on(hands: Hands) -> None:
    """Rule 22: its pages are still there to be fetched."""
    named = replace(QUICK, names_window=True)
    hands.discover(named, TODAY)
    assert hands.open(named, TOMORROW).superseded == []
    assert hands.collect(named, TODAY).ending is Ending.DRAINED
    assert hands.status(named, TODAY).is_complete is True


def test_window_is_collected_only_after_it_was_opened(hands: Hands) -> None:
    """A window that nobody opened is refused by name, and nothing is sent."""
    with pytest.raises(UnknownWindow, match=TODAY.key):
        hands.collect(QUICK)
    assert hands.arrivals() == []
