"""The HTTP in a record: heads as they came, but for what would be untrue of the stored body, and the request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from collector_assets.archive.exchange import Exchange
from collector_assets.archive.warc.words import wire_bytes
from collector_assets.page import Part

_ORIGINAL: Final = b"X-Archive-Orig-"
_UNDONE: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_BREAK: Final = re.compile(rb"[\r\n]")
_TARGET: Final = re.compile(r"[^:/?#]+://[^/?#]*([^#]*)")


def response_head(exchange: Exchange) -> bytes:
    """The head as received; what is untrue of the stored body is renamed, and its length is there."""
    length = b"%d" % len(exchange.body)
    headers, has_length = [], False
    for name, value in exchange.headers:
        lower = name.lower()
        if lower == b"content-length" and value.strip() == length and not has_length:
            has_length = True
        elif lower in (b"transfer-encoding", b"content-length"):
            name = _ORIGINAL + name  # noqa: PLW2901
        headers.append((name, value))
    if not has_length:
        headers.append((b"Content-Length", length))
    return _http_head(_status_line(exchange), headers)


def revisit_head(exchange: Exchange) -> bytes:
    """The head as received, the body left out: its headers speak of the body that is held."""
    return _http_head(_status_line(exchange), exchange.headers)


def captured_head(part: Part) -> bytes:
    """The head as DevTools tells it; what is untrue of the decoded body is renamed."""
    headers = [
        ((_ORIGINAL if name.lower() in _UNDONE else b"") + wire_bytes(name), wire_bytes(value))
        for name, value in part.headers
    ]
    headers.append((b"Content-Length", b"%d" % len(part.body)))
    return _http_head(wire_bytes(f"HTTP/1.1 {part.status} "), headers)


def request_block(exchange: Exchange, uri: str) -> bytes:
    """The request as it was sent, its body with it."""
    found = _TARGET.match(uri)
    target = found[1] if found else uri
    target = target if target.startswith("/") else f"/{target}"
    headers = [(wire_bytes(name), wire_bytes(value)) for name, value in exchange.request_headers]
    start = wire_bytes(f"{exchange.method} {target} HTTP/{exchange.http_version}")
    return _http_head(start, headers) + (exchange.request_body or b"")


def _status_line(exchange: Exchange) -> bytes:
    return wire_bytes(f"HTTP/{exchange.http_version} {exchange.status} {exchange.reason}")


def _http_head(start: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The lines of a head; a line break inside of one is percent-encoded, so that it ends nothing."""
    lines = [start, *(name + b": " + value for name, value in headers)]
    head = b"\r\n".join(lines)
    if head.count(b"\r") >= len(lines) or head.count(b"\n") >= len(lines):
        head = b"\r\n".join(_BREAK.sub(lambda found: b"%%%02X" % found[0][0], line) for line in lines)
    return head + b"\r\n\r\n"
