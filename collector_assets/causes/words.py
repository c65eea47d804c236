"""Moments and lengths of time for a person."""

from __future__ import annotations

from datetime import UTC, datetime


def shown(moment: datetime | None) -> str:
    """A moment for a person, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment else "never"


def length(seconds: float) -> str:
    """A length of time for a person, in its two greatest units."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
