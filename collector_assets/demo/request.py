"""The head of an HTTP/1.1 request, parsed from bytes."""

from __future__ import annotations

from dataclasses import dataclass

MOST_HEAD_BYTES = 65_536
MOST_BODY_BYTES = 1_048_576


class BadRequest(Exception):
    """The bytes are no request that this server can answer; carries the status to say so with."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """What the site looks at in the header lines of a request."""

    host: str  # lower case, without port and the dot of the root
    user_agent: str
    body_bytes: int
    closes: bool  # the client wants the connection closed after the response
    accepts_gzip: bool
    if_none_match: str
    if_modified_since: str
    lines: tuple[tuple[str, str], ...]  # all of them, as received


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request."""

    method: str
    target: str  # path and query, as received
    path: str
    headers: Headers
    body: bytes = b""


def parsed_line(line: bytes) -> tuple[str, str]:
    """Method and target of a request line; absolute targets (as sent to a proxy) lose scheme and host."""
    try:
        method, target, version = line.decode("latin-1").split(" ")
    except ValueError:
        raise BadRequest(400) from None
    if not version.startswith("HTTP/1."):
        raise BadRequest(505)
    if not target.startswith("/"):
        target = "/" + target.partition("://")[2].partition("/")[2]
    return method, target


def parsed_headers(raw: bytes) -> Headers:
    """The header lines after the request line, without the empty line that ends them."""
    lines = []
    for line in raw.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            lines.append((name, value.strip()))
    values = {name.lower(): value for name, value in lines}
    if "transfer-encoding" in values:
        raise BadRequest(411)
    length = values.get("content-length", "0")
    if not length.isdigit():
        raise BadRequest(400)
    if int(length) > MOST_BODY_BYTES:
        raise BadRequest(413)
    return Headers(
        host=_without_port(values.get("host", "")),
        user_agent=values.get("user-agent", ""),
        body_bytes=int(length),
        closes=values.get("connection", "").lower() == "close",
        accepts_gzip="gzip" in values.get("accept-encoding", "").lower(),
        if_none_match=values.get("if-none-match", ""),
        if_modified_since=values.get("if-modified-since", ""),
        lines=tuple(lines),
    )


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower().removesuffix(".")
