"""HTTP/1.1 by aiohttp: each request is sent once, and its answer is kept as the bytes that came.

What aiohttp would do by itself is off or refused here and in `connector.py`: redirects, cookies, decompression, proxies
from the environment, and the second sending of a request whose connection was dropped (rule 8).
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from time import monotonic
from typing import Final

import aiohttp
from yarl import URL

from collector_assets import cookies, decoding, outcome, placeholders, urls
from collector_assets.errors import DestinationRefused
from collector_assets.facts import fact
from collector_assets.fetch import FetchRequest, NoResponse, NotSent, Response, Truncated
from collector_assets.fetch.connector import Attempt, Connector, PermissionOver, Resent, current
from collector_assets.fetch.egress import Egress
from collector_assets.fetch.names import NameUnresolved
from collector_assets.outcome import Outcome
from collector_assets.placeholders import Veil
from collector_assets.request import Secret
from collector_assets.spool import Body, Sink, whole

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
"""What `decoding.py` can undo."""
MAX_HEADER_BYTES = 32_768
"""Of one header line; real sites exceed aiohttp's 8,190."""
MAX_HEADERS = 256
MAX_REASON = 300
MOST_SEARCHED: Final = 32 * 2**20
"""Decoded bytes of a body that is searched for the secrets of its request."""
_ORIGINAL: Final = {b"content-encoding": b"X-Archive-Orig-Content-Encoding"}
"""What is not true any more of a body in which something was masked."""

_OURS = frozenset(
    (
        "user-agent",
        "accept-encoding",
        "host",
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "upgrade",
        "expect",
    )
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class HttpFetcher:
    """One pool of connections; of more than `connections` requests at once, the rest wait for a free connection."""

    def __init__(
        self, *, user_agent: str, egress: Egress, connections: int, trust: ssl.SSLContext | None = None
    ) -> None:
        """`trust`: whose certificates are believed, and how; by default the system's."""
        self.user_agent: Final = user_agent
        self._egress, self._trust = egress, trust
        self._identity = {"User-Agent": user_agent, "Accept": "*/*", "Accept-Encoding": ACCEPT_ENCODING}
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def fetch(self, request: FetchRequest, may_send: Callable[[], bool]) -> Response | NoResponse | NotSent:
        """Send `request` once (see `Fetcher.fetch`)."""
        attempt, secrets = Attempt(may_send=may_send), _Secrets()
        attempt_before = current.set(attempt)
        try:
            return await self._exchange(request, attempt, secrets)
        except PermissionOver:
            return NotSent(ended_at=monotonic())
        except Exception as error:  # noqa: BLE001  every end of an attempt is an outcome
            await attempt.abandon()
            what, reason = _explained(error, request, is_sent=attempt.is_sent)
            return NoResponse(
                outcome=what,
                reason=secrets.shown(reason),
                ended_at=monotonic(),
                sent=attempt.is_sent,
                wait_s=_wait_s(error),
            )
        except BaseException:
            attempt.abort()
            raise
        finally:
            current.reset(attempt_before)

    async def close(self) -> None:
        """Close every connection."""
        self._egress.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, request: FetchRequest, attempt: Attempt, secrets: _Secrets) -> Response:
        answer = await (self._session or self._open()).request(
            request.method,
            URL(secrets.filled(request) if request.secrets else request.url, encoded=True),
            headers=secrets.revealed(request) if request.headers or request.cookies or request.authorization else None,
            data=secrets.filled_body(request) if request.secrets else request.body,
            allow_redirects=False,
            timeout=_timeout(request.connect_s, request.read_s, request.total_s),
        )
        body = await _received(answer, request, attempt)
        fetched_at, ended_at = datetime.now(UTC), monotonic()
        version = answer.version
        what, reason = _judged(answer, body, request.method)
        headers, content = secrets.veiled(answer.raw_headers, body.content)
        return Response(
            outcome=what,
            reason=secrets.shown(reason) if reason else "",
            url=request.url,
            final_url=request.url,
            http_version=f"{version.major}.{version.minor}" if version else "",
            status=answer.status,
            status_text=secrets.shown(answer.reason or "") if secrets.values else answer.reason or "",
            headers=headers,
            body=content,
            truncated=body.truncated,
            request_headers=secrets.masked(answer.request_info.headers),
            requested_at=attempt.requested_at,
            fetched_at=fetched_at,
            ended_at=ended_at,
            ip=attempt.ip,
        )

    def _open(self) -> aiohttp.ClientSession:
        """The session, made at the first request because it belongs to the running loop."""
        self._session = aiohttp.ClientSession(
            connector=Connector(self._egress, self._connections, trust=self._trust),
            headers=self._identity,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )
        return self._session


@lru_cache(maxsize=64)
def _timeout(connect_s: float, read_s: float, total_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, connect=connect_s, sock_read=read_s, ceil_threshold=float("inf"))


# --- Secrets ----------------------------------------------------------------------------------------------------------


class _SecretUnusable(Exception):
    """A secret is not in the environment, or no header can carry it; the message is without its value."""


class _Secrets:
    """The secrets of one request: put in their places when it is sent, and masked in everything that is kept."""

    def __init__(self) -> None:
        self.values: list[tuple[str, str]] = []
        """What is masked, and what stands for it."""
        self._by_header: dict[str, Secret | str] = {}
        self._in_text: dict[str, str] = {}
        """Values by variable, of URL and body."""

    def filled(self, request: FetchRequest) -> str:
        """The URL with the values of its secrets, read now."""
        for name in request.secrets:
            where = "the query" if placeholders.placeholder(name) in request.url else "the body"
            self._in_text[name] = self._read(Secret(name), where)
        return placeholders.filled(request.url, self._in_text)

    def filled_body(self, request: FetchRequest) -> bytes | None:
        """The body with the same values; it is longer or shorter than what is kept, and so is its length as kept."""
        if request.body is None:
            return None
        self._by_header["content-length"] = str(len(request.body))
        return placeholders.filled(request.body.decode("latin-1"), self._in_text).encode("latin-1")

    def revealed(self, request: FetchRequest) -> dict[str, str]:
        """The headers with their secrets' values, read now, and with what a session and a chain of redirects add."""
        found = {name: self._value(name, value) for name, value in request.headers.items() if name.lower() not in _OURS}
        if request.cookies:
            own = [found.pop(name) for name in list(found) if name.lower() == "cookie"]
            found["Cookie"] = cookies.joined("; ".join(own), request.cookies)
            self._by_header["cookie"] = "{cookies}"
        if request.authorization:
            found = {name: value for name, value in found.items() if name.lower() != "authorization"}
            found["Authorization"] = request.authorization
            scheme, _, credentials = request.authorization.partition(" ")
            self._by_header["authorization"] = f"{scheme} {{credentials}}"
            self.values.append((credentials, "{credentials}"))
        return found

    def _value(self, name: str, value: str | Secret) -> str:
        if isinstance(value, str):
            return value
        revealed = self._read(value, f"header {name}")
        if _CONTROL.search(revealed):
            raise _SecretUnusable(f"header {name}: {value.name} holds a line break or another control character")
        self._by_header[name.lower()] = value
        return revealed

    def _read(self, secret: Secret, where: str) -> str:
        revealed = secret.read()
        if revealed is None:
            raise _SecretUnusable(f"{where}: {secret.name} is not set in the environment")
        shown = placeholders.placeholder(secret.name)
        self.values += [(revealed, secret.prefix + shown), (revealed.removeprefix(secret.prefix), shown)]
        return revealed

    def masked(self, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The headers as sent, secrets by their names."""
        if not self._by_header:
            return tuple(headers.items())
        return tuple((name, str(self._by_header.get(name.lower(), value))) for name, value in headers.items())

    def veiled(
        self, headers: tuple[tuple[bytes, bytes], ...], body: Body
    ) -> tuple[tuple[tuple[bytes, bytes], ...], Body]:
        """Headers and body of the answer, without what they repeat of the secrets; mostly as they are."""
        if not self.values:
            return headers, body
        veil = Veil(self.values)
        shown = tuple((name, veil.raw(value)) for name, value in headers)
        if not isinstance(body, bytes):  # too large to be searched for a word
            return shown, body
        coding = b", ".join(value for name, value in headers if name.lower() == b"content-encoding").decode("latin-1")
        try:
            plain = whole(decoding.decode(body, coding, limit=MOST_SEARCHED).body) if coding else body
        except decoding.DecodingError:
            return shown, body
        hidden = veil.raw(plain)
        if hidden is plain:
            return shown, body
        return tuple((_ORIGINAL.get(name.lower(), name), value) for name, value in shown), hidden

    def shown(self, reason: str) -> str:
        """The reason on one short line, without secrets."""
        reason = Veil(self.values).text(reason) if self.values else reason
        return " ".join(_CONTROL.sub(" ", reason).split())[:MAX_REASON]


# --- The body ---------------------------------------------------------------------------------------------------------


@fact
class _Body:
    """What came, and why it is not all."""

    content: Body
    outcome: Outcome = Outcome.OK
    truncated: Truncated | None = None
    reason: str = ""


async def _received(answer: aiohttp.ClientResponse, request: FetchRequest, attempt: Attempt) -> _Body:
    """The body up to its end, the cap, a deadline or a disconnect; the connection is free or closed after it."""
    attempt.content = answer.content
    if answer.content.at_eof():
        if answer.connection is not None:  # 101: no longer HTTP
            await attempt.abandon()
        return _Body(content=b"")
    declared = answer.content_length
    if declared is not None and declared > request.max_bytes:
        await attempt.abandon()
        return _too_large(b"", f"{declared:,} bytes declared", request.max_bytes)
    sink, room = Sink(), request.max_bytes
    try:
        while part := await answer.content.readany():
            sink.add(part[:room])
            if len(part) > room:
                await attempt.abandon()
                return _too_large(sink.body(), "longer", request.max_bytes)
            room -= len(part)
            if answer.content.at_eof():
                break
    except (aiohttp.ClientError, OSError) as error:
        content = sink.body()
        await attempt.abandon()
        what, reason = _explained(error, request, is_sent=True)
        is_late = what is Outcome.TIMEOUT
        return _Body(
            content=content,
            outcome=what if is_late else Outcome.TRUNCATED,
            truncated="time" if is_late else "disconnect",
            reason=f"{reason}; {len(content):,} bytes of the body came",
        )
    return _Body(content=sink.body())


def _too_large(content: Body, found: str, most: int) -> _Body:
    reason = f"{found}, at most {most:,} are taken"
    return _Body(content=content, outcome=Outcome.TOO_LARGE, truncated="length", reason=reason)


# --- Outcomes ---------------------------------------------------------------------------------------------------------


def _judged(answer: aiohttp.ClientResponse, body: _Body, method: str) -> tuple[Outcome, str]:
    """The status decides; only a 200 is judged by its body."""
    by_status = outcome.of_status(answer.status)
    if method == "HEAD" and by_status in _OF_THE_PAGE:  # many servers answer HEAD with an error, and GET with the page
        by_status = Outcome.UNEXPECTED_STATUS
    if by_status is not Outcome.OK:
        location = answer.headers.get("Location") if by_status is Outcome.REDIRECT else None
        said = (str(answer.status), answer.reason, location and f"to {urls.shown(location)}", body.reason)
        return by_status, " ".join(filter(None, said))
    if body.outcome is Outcome.OK and not body.content and method != "HEAD":
        return Outcome.EMPTY_BODY, "status 200 without a byte"
    return body.outcome, body.reason


_OF_THE_PAGE = frozenset((Outcome.GONE, Outcome.CLIENT_ERROR, Outcome.SERVER_ERROR))
_UNTRUSTED: Mapping[int, str] = {
    2: "incomplete chain", 9: "not valid yet", 10: "expired", 18: "self-signed", 19: "self-signed",
    20: "incomplete chain", 21: "incomplete chain", 62: "for another name", 64: "for another name",
}  # fmt: skip
"""What X509_verify_cert says of a certificate (openssl/x509_vfy.h). An issuer that is not known looks like a chain that
is not complete, and mostly is one."""


def _untrusted(error: Exception) -> str:
    """Why there is no trustworthy TLS: the kind of trouble, then OpenSSL's words."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"certificate {_UNTRUSTED.get(cause.verify_code, 'not trusted')}: {cause.verify_message}"
    reason = getattr(cause, "reason", None) or ""
    kind = {"WRONG_VERSION_NUMBER": "no TLS", "UNSAFE_LEGACY_RENEGOTIATION_DISABLED": "legacy renegotiation"}
    return f"{kind.get(reason, 'handshake failed')}: {reason or cause}"


_MEANINGS: tuple[tuple[type[Exception], Outcome, str], ...] = (
    (DestinationRefused, Outcome.DESTINATION_REFUSED, ""),
    (_SecretUnusable, Outcome.SECRET_MISSING, ""),
    (aiohttp.ClientConnectorDNSError, Outcome.HOST_UNRESOLVED, ""),
    (aiohttp.ClientSSLError, Outcome.TLS_ERROR, ""),
    (ssl.SSLError, Outcome.TLS_ERROR, ""),
    (aiohttp.ClientConnectorError, Outcome.CONNECT_ERROR, ""),
    (aiohttp.ClientPayloadError, Outcome.TRUNCATED, "the connection ended before the body did"),
    (aiohttp.ClientConnectionError, Outcome.CONNECTION_LOST, "closed or reset before an answer came"),
    (Resent, Outcome.CONNECTION_LOST, "closed or reset before an answer came"),
    (OSError, Outcome.CONNECTION_LOST, "closed or reset before an answer came"),
)
"""What an exception means: the first that fits; without words it speaks for itself."""


def _explained(error: Exception, request: FetchRequest, *, is_sent: bool) -> tuple[Outcome, str]:
    """The one outcome that an exception of this attempt means, and words for it."""
    if isinstance(error, TimeoutError):
        return _late(error, request, is_sent=is_sent)
    if isinstance(error, aiohttp.ClientResponseError):
        first_line = error.message.partition("\n")[0]  # the others quote what was received
        return Outcome.PROTOCOL_ERROR, f"not HTTP: {first_line.rstrip(':')}"
    for kind, what, words in _MEANINGS:
        if isinstance(error, kind):
            return what, words or (_untrusted(error) if what is Outcome.TLS_ERROR else str(error))
    return Outcome.FETCHER_ERROR, f"{type(error).__name__}: {error}"


def _wait_s(error: Exception) -> float:
    """How long another attempt is of no use."""
    found_by = error.os_error if isinstance(error, aiohttp.ClientConnectorDNSError) else None
    return found_by.retry_in_s if isinstance(found_by, NameUnresolved) else 0.0


def _late(error: TimeoutError, request: FetchRequest, *, is_sent: bool) -> tuple[Outcome, str]:
    if not is_sent:
        return Outcome.CONNECT_ERROR, f"no connection within {min(request.connect_s, request.total_s):g} s"
    if isinstance(error, aiohttp.SocketTimeoutError):
        return Outcome.TIMEOUT, f"silent for {request.read_s:g} s"
    return Outcome.TIMEOUT, f"not complete within {request.total_s:g} s"
