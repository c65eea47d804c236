"""What makes two URLs the same work where a source says more than `urls.key` may assume. Pure.

Only the key is coarser: what is sent stays the URL that was found. Every rule is off until a source turns it on,
because on some site each of them merges pages that differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus

from collector_assets import urls

_SESSION: Final = r"jsessionid|phpsessid|aspsessionid\w*|asp\.net_sessionid|cfid|cftoken|oscsid|zenid|xtcsid"
"""Names that servers give; not `sid`, `session` or `s`, which are business parameters elsewhere."""
_SESSION_PARAMETER: Final = re.compile(_SESSION, re.IGNORECASE)
_SESSION_IN_PATH: Final = re.compile(rf";(?:{_SESSION})=[^;/]*", re.IGNORECASE)
_ASP_NET_SEGMENT: Final = re.compile(r"/(?:\((?:[ASF]\([^()/]*\))+\))(?=/)")
"""`/(S(4hqa0555fwsecu455xqckv45))/`, the cookieless session of ASP.NET."""


def key(
    url: str,
    *,
    fragment: str = "",
    drop: Sequence[str] = (),
    session_ids: bool = False,
    any_order: bool = False,
    hash_routes: bool = False,
) -> str:
    """`urls.key` under a source's rules (`contract.Keys`); idempotent."""
    plain = urls.key(url)
    if drop or session_ids or any_order:
        plain = _reduced(plain, tuple(drop), session_ids=session_ids, any_order=any_order)
    return f"{plain}#{fragment}" if hash_routes and is_route(fragment) else plain


def is_route(fragment: str) -> bool:
    """Whether a fragment names a page (`#/user/1`, `#!news`) and not a place in one."""
    return fragment.startswith(("/", "!"))


def _reduced(plain: str, drop: tuple[str, ...], *, session_ids: bool, any_order: bool) -> str:
    path, _, query = plain.partition("?")
    if session_ids:
        path = _ASP_NET_SEGMENT.sub("", _SESSION_IN_PATH.sub("", path))
    is_dropped = _named(drop)
    kept = [
        pair
        for pair in query.split("&")
        if not (is_dropped(name := _name(pair)) or (session_ids and _SESSION_PARAMETER.fullmatch(name)))
    ]
    if any_order:
        # By name alone, and stable: of a name that is given twice the order counts.
        kept = sorted(filter(None, kept), key=_name)
    query = "&".join(kept)
    # Once more, because what stood around a session id may have become a dot segment.
    return urls.key(f"{path}?{query}" if query else path)


def _name(pair: str) -> str:
    return unquote_plus(pair.partition("=")[0])


@lru_cache(maxsize=64)
def _named(patterns: tuple[str, ...]):  # noqa: ANN202  (str) -> match or nothing
    """Whether a parameter's name is one of these; `*` stands for anything."""
    alternatives = "|".join(re.escape(pattern).replace(r"\*", ".*") for pattern in patterns)
    return re.compile(alternatives or r"(?!)", re.DOTALL).fullmatch
