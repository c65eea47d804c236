"""Request headers: what a source may say in them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from collector_assets.request import Secret

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
OUR_HEADERS = frozenset({"user-agent", "host", "connection", "content-length", "transfer-encoding", "accept-encoding"})
"""What the fetcher says itself: who we are, and how the message is framed."""
Headers = Mapping[str, str | Secret]


def header_problem(headers: Headers) -> str:
    """What is wrong with them; empty when nothing is."""
    for name, value in headers.items():
        if not HEADER_NAME.match(name):
            return f"{name!r} is not a header name"
        if name.lower() in OUR_HEADERS:
            return f"{name} is ours to say: a source cannot set it"
        if isinstance(value, str) and (value.strip() != value or not value.isprintable()):
            return f"the value of {name} has control characters, or blanks around it"
    return ""
