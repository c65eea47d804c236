"""Lengths of time, as a source file writes them."""

from __future__ import annotations

from datetime import timedelta

FOREVER = timedelta.max


def seconds(number: float) -> timedelta:
    """A length of time."""
    return timedelta(seconds=number)


def minutes(number: float) -> timedelta:
    """A length of time."""
    return timedelta(minutes=number)


def hours(number: float) -> timedelta:
    """A length of time."""
    return timedelta(hours=number)


def days(number: float) -> timedelta:
    """A length of time."""
    return timedelta(days=number)
