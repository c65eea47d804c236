"""The gazette: notices of each day, at addresses that name the day.

`/gazette/YYYY/MM/DD.json` lists three notices of that day, the same ones whenever asked for; days to come are 404.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from .catalogue import draws
from .reply import Reply, json_reply

_DAY = re.compile(r"/gazette/(\d{4}/\d\d/\d\d)\.json")
_SUBJECTS = ("change of name", "sale of land", "new road", "closing of a shop", "call for bids", "lost cattle")


def answer(path: str) -> Reply | None:
    """The notices of the day that the path names; None when it names none that has come."""
    match = _DAY.fullmatch(path)
    if match is None:
        return None
    try:
        day = datetime.strptime(match[1], "%Y/%m/%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return json_reply({"day": f"{day:%F}", "notices": _notices(day)}) if day <= datetime.now(UTC) else None


def _notices(day: datetime) -> list[dict[str, str]]:
    drawn = draws(f"gazette:{day:%F}")
    return [
        {"number": f"{day:%Y%m%d}-{number}", "subject": _SUBJECTS[next(drawn) % len(_SUBJECTS)]} for number in (1, 2, 3)
    ]
