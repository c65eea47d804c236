"""Everything the site can do wrong, by name.

A path `/misbehave/<name>[/<argument>]` always misbehaves, on any host; a rule (`Rule`) makes any path prefix misbehave
until it is switched off. "As usual" is what the path gives otherwise; for `/misbehave/…` that is a small page.
Slow accept is not here, because no path is known before a connection is read: it is the switch `accept_delay`.
`python -m collector_assets.demo --help-misbehaviours` prints the table.
"""

from __future__ import annotations

import asyncio
import base64
import gzip as gzip_format
import json
import time
from collections.abc import Awaitable, Callable
from html import escape
from typing import Protocol
from urllib.parse import quote

from . import api, sitemaps
from .reply import Reply, gzipped, json_reply, reply, status_line, wire
from .request import Request

_PIECE = b"All work and no play makes a demo site a dull site. " * 1260  # 65,520 bytes
_HTML = "Content-Type: text/html"
_UTF8 = "text/html; charset=utf-8"


class Line(Protocol):
    """The connection under an exchange."""

    def write(self, data: bytes) -> None:
        """Hand bytes to the kernel now."""

    def note_status(self, status: int) -> None:
        """The status that the log will show."""

    async def drained(self) -> None:
        """Return when the kernel has taken everything written."""

    def close(self) -> None:
        """Close in good order after what was written."""

    def reset(self) -> None:
        """Close with RST."""


class Exchange:
    """One request, its usual answer, and the connection to do wrong on."""

    def __init__(self, line: Line, request: Request, usual: Reply, earlier: int) -> None:
        self.line = line
        self.request = request
        self.usual = usual
        self.earlier = earlier  # how often this misbehaviour met this host and target before, since the reset

    def respond(self, answer: Reply | None = None) -> None:
        """Write a whole reply: the usual one, or another."""
        answer = answer or self.usual
        self.line.note_status(answer.status)
        self.line.write(wire(answer, method=self.request.method))

    def start(self, status: int, *header_lines: str) -> None:
        """Write a status line and headers, and leave the body to the caller."""
        self.line.note_status(status)
        lines = "".join(f"{each}\r\n" for each in header_lines)
        self.line.write(status_line(status) + f"Server: collector-demo\r\n{lines}\r\n".encode("latin-1"))


Misbehaviour = Callable[[Exchange, str], Awaitable[None]]


async def delay(exchange: Exchange, argument: str) -> None:
    """delay[/seconds=1]: wait, then answer as usual."""
    await _at_least(float(argument or 1))
    exchange.respond()


async def drop(exchange: Exchange, _: str) -> None:
    """drop: close the connection before any byte."""
    exchange.line.close()


async def reset(exchange: Exchange, _: str) -> None:
    """reset: end the connection with a TCP RST before any byte."""
    exchange.line.reset()


async def hang(exchange: Exchange, argument: str) -> None:
    """hang[/seconds]: send nothing until the client leaves (or the seconds have passed, then close)."""
    await _at_least(float(argument or 86_400))
    exchange.line.close()


async def hang_after_headers(exchange: Exchange, argument: str) -> None:
    """hang_after_headers[/bytes=0]: send the headers and so many bytes of the body, then nothing more."""
    body = exchange.usual.body
    exchange.start(200, _HTML, f"Content-Length: {max(len(body), int(argument or 0) + 1)}")
    exchange.line.write(body[: int(argument or 0)])
    await asyncio.sleep(86_400)


async def drip(exchange: Exchange, argument: str) -> None:
    """drip[/seconds=0.1]: the headers at once, then one byte of the body each so many seconds."""
    pause = float(argument or 0.1)
    exchange.start(exchange.usual.status, _HTML, f"Content-Length: {len(exchange.usual.body)}")
    for at in range(len(exchange.usual.body)):
        await asyncio.sleep(pause)
        exchange.line.write(exchange.usual.body[at : at + 1])


async def oversized(exchange: Exchange, argument: str) -> None:
    """oversized[/bytes=104857600]: a body of that size, declared in Content-Length and really sent."""
    left = int(argument or 104_857_600)
    exchange.start(200, _HTML, f"Content-Length: {left}")
    while left > 0:
        exchange.line.write(_PIECE[:left])
        left -= len(_PIECE)
        await exchange.line.drained()
        await asyncio.sleep(0)


async def large_csv(exchange: Exchange, argument: str) -> None:
    """large_csv[/rows=100000]: a CSV file of rows of 100 bytes, chunked, under the type that says so."""
    exchange.start(200, "Content-Type: text/csv", "Transfer-Encoding: chunked")
    exchange.line.write(_chunk(b"sku,price,note\n"))
    rows = int(argument or 100_000)
    for start in range(0, rows, 1_000):
        lines = (b"%010d,%d.50,%s\n" % (n, n % 1_000, b"." * 80) for n in range(start, min(rows, start + 1_000)))
        exchange.line.write(_chunk(b"".join(lines)))
        await exchange.line.drained()
        await asyncio.sleep(0)
    exchange.line.write(b"0\r\n\r\n")


async def endless(exchange: Exchange, _: str) -> None:
    """endless: a chunked body that never ends."""
    exchange.start(200, _HTML, "Transfer-Encoding: chunked")
    while True:
        exchange.line.write(_chunk(_PIECE))
        await exchange.line.drained()
        await asyncio.sleep(0)


async def short_body(exchange: Exchange, argument: str) -> None:
    """short_body[/bytes=10]: declare so many bytes more than are sent, then close."""
    body = exchange.usual.body
    exchange.start(200, _HTML, f"Content-Length: {len(body) + int(argument or 10)}")
    exchange.line.write(body)
    exchange.line.close()


async def cut_chunked(exchange: Exchange, _: str) -> None:
    """cut_chunked: a chunked body that is closed in the middle of a chunk."""
    body = exchange.usual.body
    exchange.start(200, _HTML, "Transfer-Encoding: chunked")
    exchange.line.write(_chunk(body) + b"%x\r\n" % (len(body) + 10) + body)
    exchange.line.close()


async def chunked(exchange: Exchange, _: str) -> None:
    """chunked: the usual body, correctly chunked in two chunks (not wrong, only rare here)."""
    body = exchange.usual.body
    exchange.start(exchange.usual.status, _HTML, "Transfer-Encoding: chunked")
    half = len(body) // 2 + 1
    exchange.line.write(_chunk(body[:half]) + (_chunk(body[half:]) if body[half:] else b"") + b"0\r\n\r\n")


async def status(exchange: Exchange, argument: str) -> None:
    """status[/code=500]: that status with a small body."""
    exchange.respond(_said(int(argument or 500)))


async def flaky(exchange: Exchange, argument: str) -> None:
    """flaky[/times=1]: 503 so many times for each host and target, then as usual."""
    exchange.respond(_said(503) if exchange.earlier < int(argument or 1) else None)


async def redirect(exchange: Exchange, argument: str) -> None:
    """redirect[/3xx][/target]: to a path or an absolute URL (a query percent-encoded); 302 to / by default."""
    code, target = _code_and_rest(argument, 302)
    exchange.respond(_moved(target if "://" in target else f"/{target.lstrip('/')}", code))


async def redirect_loop(exchange: Exchange, _: str) -> None:
    """redirect_loop: to itself, for ever."""
    exchange.respond(_moved(exchange.request.target))


async def redirect_chain(exchange: Exchange, argument: str) -> None:
    """redirect_chain[/hops=5]: that many redirects, then as usual."""
    hops = int(argument or 5)
    exchange.respond(_moved(f"/misbehave/redirect_chain/{hops - 1}") if hops > 0 else None)


async def location(exchange: Exchange, argument: str) -> None:
    """location[/3xx][/value]: a redirect whose Location is exactly that, of whatever kind; 302 by default."""
    code, value = _code_and_rest(argument, 302)
    exchange.respond(_moved(value, code))


async def cookie_wall(exchange: Exchange, argument: str) -> None:
    """cookie_wall[/new]: to itself with a cookie; as usual for who brings it (with "new": never, always another)."""
    if argument == "new":
        exchange.respond(_moved(exchange.request.target, extra=f"Set-Cookie: seen={exchange.earlier}; Path=/\r\n"))
    elif "seen=1" in _cookies(exchange.request):
        exchange.respond()
    else:
        exchange.respond(_moved(exchange.request.target, extra="Set-Cookie: seen=1; Path=/misbehave\r\n"))


async def cookie_trip(exchange: Exchange, argument: str) -> None:
    """cookie_trip: by way of cookie_trip/desk, where the cookie is set, and back; as usual for who brings it."""
    here = "/misbehave/cookie_trip"
    if argument == "desk":
        exchange.respond(_moved(here, extra="Set-Cookie: ticket=7; Path=/; HttpOnly\r\n"))
    else:
        exchange.respond(None if "ticket=7" in _cookies(exchange.request) else _moved(f"{here}/desk"))


async def echo(exchange: Exchange, _: str) -> None:
    """echo: what was received, as JSON: method, target, headers (names in lower case) and body."""
    request = exchange.request
    headers = {name.lower(): value for name, value in request.headers.lines}
    said = {"method": request.method, "target": request.target, "headers": headers, "body": request.body.decode()}
    exchange.respond(json_reply(said))


async def empty_200(exchange: Exchange, _: str) -> None:
    """empty_200: 200 with Content-Length: 0."""
    exchange.respond(reply(b""))


async def unmodified(exchange: Exchange, _: str) -> None:
    """unmodified: 304, asked or not, with a Content-Length of 500 and no body."""
    exchange.start(304, "Content-Length: 500", 'ETag: "as-before"')


async def no_validators(exchange: Exchange, _: str) -> None:
    """no_validators: the usual page from a site that knows no conditions: no ETag, no Last-Modified, never a 304."""
    exchange.respond(reply(exchange.usual.body))


async def gzip_body(exchange: Exchange, _: str) -> None:
    """gzip_body: the usual body compressed, whatever the client accepts."""
    exchange.respond(gzipped(exchange.usual))


async def gzip_bomb(exchange: Exchange, argument: str) -> None:
    """gzip_bomb[/bytes=104857600]: a small gzip body that decompresses to so many bytes."""
    exchange.respond(gzipped(reply(bytes(int(argument or 104_857_600)))))


async def cut_gzip(exchange: Exchange, _: str) -> None:
    """cut_gzip: a gzip body without its last ten bytes; the length is right."""
    cut = gzip_format.compress(exchange.usual.body)[:-10]
    exchange.respond(reply(cut, extra="Content-Encoding: gzip\r\n"))


async def mislabelled_gzip(exchange: Exchange, _: str) -> None:
    """mislabelled_gzip: says Content-Encoding: gzip, but the body is plain."""
    exchange.respond(reply(exchange.usual.body, extra="Content-Encoding: gzip\r\n"))


async def unlabelled_gzip(exchange: Exchange, _: str) -> None:
    """unlabelled_gzip: a gzip body without Content-Encoding."""
    exchange.respond(reply(gzip_format.compress(exchange.usual.body)))


async def retry_after(exchange: Exchange, argument: str) -> None:
    """retry_after[/code=429][/seconds=1]: that status with a Retry-After of seconds, or of a date as given."""
    code, seconds = _code_and_rest(argument, 429)
    exchange.respond(_said(code, extra=f"Retry-After: {seconds or '1'}\r\n"))


async def say(exchange: Exchange, argument: str) -> None:
    """say[/JSON]: the answer in the argument: {"status": 200, "type": "text/html", "headers": "…", "body": base64}."""
    wanted = json.loads(argument)
    body = base64.b64decode(wanted.get("body", ""))
    kind, lines = wanted.get("type", "text/html"), wanted.get("headers", "")
    exchange.respond(reply(body, status=wanted.get("status", 200), content_type=kind, extra=lines))


async def sitemap_chain(exchange: Exchange, argument: str) -> None:
    """sitemap_chain[/level=0]: an index whose one sitemap is the same at the next level, without end."""
    level = int(argument or 0)
    exchange.respond(reply(sitemaps.index([f"/misbehave/sitemap_chain/{level + 1}"]), content_type="text/xml"))


async def sitemap_of(exchange: Exchange, argument: str) -> None:
    """sitemap_of[/entries=50000][/blanks=0]: a sitemap of so many pages that are not there, and so many blank lines."""
    entries, _, blanks = argument.partition("/")
    pages = ((f"/nowhere/{number}", None) for number in range(int(entries or 50_000)))
    listed = sitemaps.urlset(pages).replace("</urlset>", "\n" * int(blanks or 0) + "</urlset>")
    exchange.respond(reply(listed, content_type="text/xml"))


async def challenge(exchange: Exchange, argument: str) -> None:
    """challenge[/code=200]: instead of the page a challenge, as a well-known vendor sends it, with that status."""
    markup = (
        '<!DOCTYPE html><html><head><title>Just a moment...</title></head><body><div class="main-wrapper"></div>'
        "<script>(function(){window._cf_chl_opt={cvId:'3',cType:'managed'};})();</script></body></html>\n"
    )
    exchange.respond(reply(markup.encode(), status=int(argument or 200)))


async def login(exchange: Exchange, _: str) -> None:
    """login: instead of the page a login."""
    form = '<form action="/session"><input name="user"><input type="password" name="password"></form>'
    exchange.respond(reply(f"<html><head><title>Log in</title></head><body>{form}</body></html>\n".encode()))


async def early_hints(exchange: Exchange, _: str) -> None:
    """early_hints: 103 Early Hints first, then as usual."""
    exchange.line.write(status_line(103) + b"Link: </static/oscar/css/styles.css>; rel=preload; as=style\r\n\r\n")
    exchange.respond()


async def set_cookie(exchange: Exchange, argument: str) -> None:
    """set_cookie[/value=1]: as usual, with two cookies."""
    cookies = f"Set-Cookie: session={argument or '1'}; Path=/; HttpOnly\r\nSet-Cookie: seen=yes; Path=/\r\n"
    exchange.respond(reply(exchange.usual.body, extra=cookies))


async def header_flood(exchange: Exchange, argument: str) -> None:
    """header_flood[/lines=1000]: so many header lines of about 100 bytes, then as usual."""
    flood = "".join(f"X-Flood-{n}: {'0123456789' * 8}\r\n" for n in range(int(argument or 1000)))
    exchange.respond(reply(exchange.usual.body, extra=flood))


async def bad_header(exchange: Exchange, _: str) -> None:
    """bad_header: a header line without a colon among good ones."""
    exchange.respond(reply(exchange.usual.body, extra="this line is no header\r\n"))


async def garbage(exchange: Exchange, _: str) -> None:
    """garbage: bytes that are not HTTP, then close."""
    exchange.line.write(b"\x00\x01SSH-2.0-NotHTTP\r\n\r\n")
    exchange.line.close()


async def http10(exchange: Exchange, _: str) -> None:
    """http10: an HTTP/1.0 answer without a length, ended by closing."""
    exchange.line.note_status(200)
    exchange.line.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + exchange.usual.body)
    exchange.line.close()


async def close_after(exchange: Exchange, _: str) -> None:
    """close_after: as usual, then close without having said so (a reused connection turns out dead)."""
    exchange.respond()
    exchange.line.close()


async def extra_bytes(exchange: Exchange, _: str) -> None:
    """extra_bytes: as usual, then more bytes than Content-Length said, on a connection kept open."""
    exchange.respond()
    exchange.line.write(b"these bytes belong to no response")


async def calendar(exchange: Exchange, argument: str) -> None:
    """calendar[/reach=1]: the month ?m=2026-11 without an entry, linked to so many before and after it, for ever."""
    year, _, month = exchange.request.target.partition("m=")[2].partition("-")
    at = (int(year) * 12 + int(month) - 1) if year.isdigit() and month.isdigit() else 2026 * 12 + 10
    near = range(max(at - int(argument or 1), 0), at + int(argument or 1) + 1)
    ways = "".join(f'<a href="?m={n // 12:04}-{n % 12 + 1:02}">{n}</a>' for n in near if n not in (0, at))
    exchange.respond(reply(f"<h1>{at // 12}-{at % 12 + 1}</h1><table></table>{ways}", content_type=_UTF8))


async def echoed_query(exchange: Exchange, argument: str) -> None:
    """echoed_query[/html]: its next link repeats its own query, escaped once more (per cents, or as HTML)."""
    _, _, query = exchange.request.target.partition("?")
    once = query.replace("&", "&amp;") if argument == "html" else quote(query, safe="=")
    exchange.respond(reply(f'<a href="?{escape(once)}&amp;amp;p=2">next</a>', content_type=_UTF8))


async def stuck_listing(exchange: Exchange, argument: str) -> None:
    """stuck_listing[/last=3]: pages of items by ?page=, without an end; behind the last one they show its items."""
    _, _, number = exchange.request.target.partition("page=")
    at = int(number) if number.isdigit() else 1
    shown = min(at, int(argument or 3))
    items = "".join(f'<li><a class=item href="/item/{shown}-{n}">{n}</a></li>' for n in range(3))
    exchange.respond(reply(f'<ul>{items}</ul><a href="?page={at + 1}">next</a>', content_type=_UTF8))


async def expire_cursors(exchange: Exchange, argument: str) -> None:
    """expire_cursors[/status=410]: whatever cursor the API gave out is dead from here on; says so where it is used."""
    exchange.respond(api.expired(int(argument or 410)) if api.has_cursor(exchange.request) else None)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _said(code: int, *, extra: str = "") -> Reply:
    return reply(f"<html><body><h1>{code}</h1></body></html>\n", status=code, extra=extra)


def _moved(location: str, code: int = 302, *, extra: str = "") -> Reply:
    return _said(code, extra=f"Location: {location}\r\n{extra}")


def _cookies(request: Request) -> str:
    return "; ".join(value for name, value in request.headers.lines if name.lower() == "cookie")


async def _at_least(seconds: float) -> None:
    """Wait, by the clock of the log: uvloop counts in milliseconds of a time it read earlier, and wakes up too soon."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:  # noqa: ASYNC110  a time, not an event
        await asyncio.sleep(left)


def _code_and_rest(argument: str, default: int) -> tuple[int, str]:
    """Split `503/5` into (503, "5"); an argument without a leading status is (default, argument)."""
    first, _, rest = argument.partition("/")
    if len(first) == 3 and first.isdigit() and first[0] in "345":
        return int(first), rest
    return default, argument


_ALL: tuple[Misbehaviour, ...] = (
    delay, drop, reset, hang, hang_after_headers, drip, oversized, large_csv, endless,
    short_body, cut_chunked, chunked, status,
    flaky, redirect, redirect_loop, redirect_chain, empty_200, gzip_body, gzip_bomb, cut_gzip, mislabelled_gzip,
    unlabelled_gzip, retry_after, challenge, login, early_hints, set_cookie, header_flood, bad_header, garbage, http10,
    close_after,
    extra_bytes, unmodified, no_validators, say, sitemap_chain, sitemap_of,
    location, cookie_wall, cookie_trip, echo, calendar, echoed_query, stuck_listing,
    expire_cursors,
)  # fmt: skip
TABLE: dict[str, Misbehaviour] = {each.__name__: each for each in _ALL}


def described() -> str:
    """The table, one line each."""
    return "\n".join(str(each.__doc__) for each in _ALL)
