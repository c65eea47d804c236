"""What in a request to a rendering service asks it for a disguise. Pure.

The collector says who it is and stops where it is refused, whoever makes its requests: another country's address, a
rotated or residential proxy, a made-up user agent or a solved CAPTCHA is not asked for. Names are compared without case
and punctuation; a name that only switches a disguise off may stand (`proxy="basic"`, `stealth_proxy="false"`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

PARTS: Final = (
    "antibot", "bypass", "captcha", "cloudflare", "country", "evad", "fingerprint", "forwardheaders", "geo",
    "impersonat", "navigator", "premium", "proxies", "proxy", "residential", "rotat", "spoof", "stealth", "sticky",
    "unblock", "useragent", "webdriver",
)  # fmt: skip
"""Whatever a name with one of these in it is called exactly."""
WHOLE: Final = frozenset(
    ("asp", "customheaders", "device", "ip", "isp", "keepheaders", "mobile", "solve", "super", "ua")
)
OFF: Final = frozenset((False, None, 0, "", "0", "basic", "default", "false", "none", "off"))
TIERS: Final = "tier"
LAST_TIER: Final = 4
"""AlterLab: 5 solves CAPTCHAs (github.com/RapierCraft/AlterLab-SDK, `CostControls`)."""

_NOT_IN_NAME: Final = re.compile(r"[^a-z0-9]")


def asked(given: Mapping[str, Any]) -> str | None:
    """The first name in `given`, at whatever depth, that asks for a disguise: "cost_controls.max_tier"."""
    return next(_asking(given), None)


def _asking(given: Any, at: str = "") -> Iterator[str]:
    if isinstance(given, Mapping):
        for name, value in given.items():
            where = f"{at}.{name}" if at else str(name)
            if _is_on(str(name), value):
                yield where
            else:
                yield from _asking(value, where)
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        for each in given:
            yield from _asking(each, at)


def _is_on(name: str, value: Any) -> bool:
    plain = _NOT_IN_NAME.sub("", name.lower())
    if plain.endswith(TIERS):
        return not str(value).isdigit() or int(str(value)) > LAST_TIER
    if plain not in WHOLE and not any(part in plain for part in PARTS):
        return False
    return not (
        isinstance(value, bool | int | str | None) and (value.lower() if isinstance(value, str) else value) in OFF
    )
