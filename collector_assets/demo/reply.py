"""One response as bytes, made once and sent many times."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from hashlib import blake2b
from http import HTTPStatus
from time import time

HTML = "text/html"  # without a charset, as books.toscrape.com says it
JSON = "application/json"
STATUS_LINE = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response without its status line and Date; `after_date` is the rest of it, ready to be written."""

    status: int
    headers: bytes  # whole lines, without Date, Content-Length and Connection
    body: bytes
    after_date: bytes
    etag: str = ""
    modified: float = 0.0  # seconds since 1970; 0: the reply has no validators


def status_line(status: int) -> bytes:
    """The first line of a response; any three digits may be asked for."""
    return STATUS_LINE.get(status) or f"HTTP/1.1 {status} Unknown\r\n".encode()


def reply(
    body: bytes | str, *, status: int = 200, content_type: str = HTML, extra: str = "", modified: float = 0.0
) -> Reply:
    """A reply with the given body; `extra` is whole header lines; with `modified` it carries validators."""
    body = body.encode() if isinstance(body, str) else body
    headers, etag = f"Server: collector-demo\r\nContent-Type: {content_type}\r\n{extra}", ""
    if modified:
        etag = f'"{blake2b(body, digest_size=8).hexdigest()}"'
        headers += f"ETag: {etag}\r\nLast-Modified: {formatdate(modified, usegmt=True)}\r\n"
    return _assembled(status, headers.encode("latin-1"), body, etag, modified)


def json_reply(value: object, *, status: int = 200) -> Reply:
    """A value as JSON."""
    return reply(json.dumps(value, ensure_ascii=False), status=status, content_type=JSON)


def not_modified(original: Reply) -> Reply:
    """The 304 of a reply: its headers, no body, no length."""
    return Reply(
        status=304,
        headers=original.headers,
        body=b"",
        after_date=original.headers + b"\r\n",
        etag=original.etag,
        modified=original.modified,
    )


def gzipped(original: Reply) -> Reply:
    """The reply with its body compressed, the same bytes each time."""
    headers = original.headers + b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
    return _assembled(
        original.status, headers, gzip.compress(original.body, 6, mtime=0), original.etag, original.modified
    )


def _assembled(status: int, headers: bytes, body: bytes, etag: str, modified: float) -> Reply:
    after_date = b"%sContent-Length: %d\r\n\r\n%s" % (headers, len(body), body)
    return Reply(status=status, headers=headers, body=body, after_date=after_date, etag=etag, modified=modified)


def is_unchanged(current: Reply, if_none_match: str, if_modified_since: str) -> bool:
    """RFC 9110 13.2.2: If-None-Match decides alone when present, compared weakly; else If-Modified-Since."""
    if not current.etag:
        return False
    if if_none_match:
        named = {each.strip().removeprefix("W/") for each in if_none_match.split(",")}
        return current.etag in named or "*" in named
    try:
        since = parsedate_to_datetime(if_modified_since).timestamp()
    except (ValueError, TypeError):
        return False
    return current.modified <= since


def wire(answer: Reply, *, method: str = "GET") -> bytes:
    """The bytes of a reply, dated now; without the body for HEAD."""
    rest = answer.after_date
    if method == "HEAD":
        rest = rest[: len(rest) - len(answer.body)]
    return b"%s%s%s" % (status_line(answer.status), date_line(), rest)


def date_line() -> bytes:
    """The Date header of now, made once a second."""
    return _dated(int(time()))


@lru_cache(maxsize=2)
def _dated(second: int) -> bytes:
    return f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
