"""The lab: small JSON candidates, each with one known fate (the experiment that seeds the defaults).

`/items/<name>.json`; what stands before a hyphen in the name decides, so `good-17` is one more good candidate:

| name    | answer                                                                          |
|---------|---------------------------------------------------------------------------------|
| good    | 200, a value in 0..1_000_000, observed now                                      |
| retry   | 503 to the first request of each path (with its query) since the reset, then good |
| bad     | 200, the value out of range; `bad-type`: not a number                           |
| stale   | 200, observed an hour ago                                                       |
| exhaust | always 503                                                                      |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from .catalogue import draws
from .reply import Reply, json_reply

CANDIDATES = ("good", "retry", "bad", "stale", "exhaust", "good")  # six, one of them twice
_ITEM = re.compile(r"/items/([A-Za-z0-9_-]+)\.json")


def answer(path: str, *, earlier: int) -> Reply | None:
    """The lab's answer to a path that has been asked for `earlier` times before; None when it has none."""
    if path == "/candidates.json":
        return json_reply([{"name": name, "url": f"/items/{name}.json"} for name in CANDIDATES])
    match = _ITEM.fullmatch(path)
    if match is None:
        return None
    name = match[1]
    match name.partition("-")[0]:
        case "good":
            return _observation(name)
        case "retry":
            return _observation(name) if earlier else _unavailable()
        case "bad":
            return _observation(name, value="many" if name == "bad-type" else 1_000_001)
        case "stale":
            return _observation(name, age=timedelta(hours=1))
        case "exhaust":
            return _unavailable()
        case _:
            return None


def _observation(name: str, *, value: object = None, age: timedelta = timedelta(0)) -> Reply:
    if value is None:
        first, second = draws(f"lab:{name}"), draws(f"lab:{name}:low")
        value = (next(first) << 16 | next(second)) % 1_000_001
    return json_reply({"name": name, "value": value, "observed_at": (datetime.now(UTC) - age).isoformat()})


def _unavailable() -> Reply:
    return json_reply({"error": "unavailable"}, status=503)
