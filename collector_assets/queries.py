"""The query of a link in the bytes of its page's encoding, as browsers send it. Pure.

`?q=ü` on a page in windows-1252 asks for `?q=%FC`: servers of such pages read their queries in their own encoding
(WHATWG URL, "query state" and "percent-encode after encoding"). The path is UTF-8 everywhere.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_plus

from collector_assets import charset

_UNICODE: Final = frozenset({"utf-8", "utf-16le", "utf-16be"})
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_PLAIN: Final = frozenset(range(0x21, 0x7F)) - frozenset(b"\"#'<>")
"""Bytes that a query may hold as they are (WHATWG URL, "special-query percent-encode set")."""


def form_coded(raw: bytes) -> str:
    """A name or a value of a form (WHATWG URL, "application/x-www-form-urlencoded percent-encode set")."""
    return quote_plus(raw, safe="*").replace("~", "%7E")


def in_encoding(href: str, encoding: str) -> str:
    """The link with what is not ASCII in its query escaped; `encoding`: that of its page, as in the standard."""
    if href.isascii() or encoding in _UNICODE:
        return href
    address, hash_, fragment = href.partition("#")
    path, mark, query = address.partition("?")
    codec = charset.encoder_of(encoding)
    return path + mark + _NOT_ASCII.sub(lambda run: _escaped(run[0], codec), query) + hash_ + fragment


def _escaped(run: str, codec: str) -> str:
    """The characters in this codec; one that it lacks as an escaped `&#…;`."""
    try:
        encoded = run.encode(codec)
    except UnicodeEncodeError:
        if len(run) == 1:
            return f"%26%23{ord(run)}%3B"
        return "".join(_escaped(character, codec) for character in run)
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in encoded)
