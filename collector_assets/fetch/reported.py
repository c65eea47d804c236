"""What the answer of a rendering service says of the site's answer, by the places that its declaration names. Pure.

Unknown means no: what is neither an error that is declared nor clearly the site's answer is no page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from collector_assets import decoding, retry_after, urls
from collector_assets.contract import InHeader, InJson, RenderingService
from collector_assets.fetch import FetchRequest, Response
from collector_assets.outcome import Outcome
from collector_assets.spool import whole

STOPPING: Final = frozenset((401, 402, 403, 404, 405, 407))
"""Of a service: our key, our plan, our money, or no such service. Nothing that another page would change."""
PASSING: Final = frozenset((200, 202, 408, 425, 429))
NOT_KEPT: Final = frozenset((
    "connection", "content-encoding", "content-length", "keep-alive", "set-cookie", "transfer-encoding", "upgrade",
))  # fmt: skip
"""Headers of the site that say nothing true of what the service gives us; cookies stay with the service."""
MOST_HEADERS: Final = 256

_TEXT: Final = re.compile(r"text/|application/(?:[a-z0-9.-]+\+)?(?:json|xml|javascript)|application/xhtml\+xml")
_SAID: Final = 120
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]+")

Place = InHeader | InJson
Meaning = Literal["retry", "refused", "fail", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The site answered."""

    status: int
    final_url: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """The service has no page for us."""

    meaning: Meaning
    reason: str
    wait_s: float = 0.0
    outcome: Outcome | None = None
    """Where it has one of its own."""


class _Unreadable(Exception):
    """The answer is not what its declaration says."""


def read(service: RenderingService, got: Response, request: FetchRequest) -> Reported | Trouble:
    """What the answer means."""
    try:
        answer = _Answer(service, got, limit=4 * request.max_bytes + 2**21)
        return answer.trouble() or answer.page(request)
    except (_Unreadable, decoding.DecodingError) as error:
        return Trouble(meaning="retry", reason=str(error))


class _Answer:
    """The answer of a service, its JSON read once."""

    def __init__(self, service: RenderingService, got: Response, *, limit: int) -> None:
        self._service, self._got = service, got
        self._headers: dict[str, str] = {}
        for name, value in got.headers:
            self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        self.body = whole(decoding.decode(got.body, self._headers.get("content-encoding", ""), limit=limit).body)
        self._json = self._parsed() if self._has_json_places() else None

    def _has_json_places(self) -> bool:
        service = self._service
        places = (service.html, service.status, service.final_url, service.content_type, service.answered)
        return any(isinstance(place, InJson) for place in (*places, service.site_headers, *service.errors))

    def _parsed(self) -> Any:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def at(self, place: Place | None) -> Any:
        """What is there; None where nothing is."""
        match place:
            case None:
                return None
            case InHeader(name=name):
                return self._headers.get(name.lower())
            case InJson(path=path):
                found = self._json
                for key in path.split("."):
                    found = found.get(key) if isinstance(found, dict) else None
                return found

    # --- Errors of the service ---------------------------------------------------------------------------------------

    def trouble(self) -> Trouble | None:
        """What keeps this from being an answer of the site."""
        service = self._service
        for place in service.errors:
            if (error := self.at(place)) not in (None, "", False, [], {}):
                return self._meant(str(error))
        if service.answered is not None:
            return None if self.at(service.answered) is not None else self._meant("")
        if service.status is not None:
            return None if self.at(service.status) is not None else self._meant("")
        return None

    def _meant(self, error: str) -> Trouble:
        status, meanings = self._got.status, self._service.meanings
        named: list[Meaning] = [
            meaning
            for pattern, meaning in meanings.items()
            if error and isinstance(pattern, str) and fnmatchcase(error, pattern)
        ]
        said = _CONTROL.sub(" ", error or self._words())[:_SAID]
        reason = f"{status} {said}".strip() if status != 200 or not said else said
        meaning = named[0] if named else meanings.get(status, _by_status(status))
        return Trouble(meaning=meaning, reason=reason or "an answer without a page", wait_s=self._wait_s(meaning))

    def _words(self) -> str:
        """What a service without a declared place for errors says."""
        return self.body[:_SAID].decode("utf-8", "replace") if self._got.status != 200 else ""

    def _wait_s(self, meaning: str) -> float:
        values = [value for name, value in self._headers.items() if name == "retry-after"]
        asked = retry_after.read(values, date=self._headers.get("date"), received_at=self._got.fetched_at)
        return asked.wait.total_seconds() if meaning == "retry" and asked and asked.wait else 0.0

    # --- The site's answer -------------------------------------------------------------------------------------------

    def page(self, request: FetchRequest) -> Reported | Trouble:
        """The site's answer."""
        if self._got.outcome in (Outcome.TIMEOUT, Outcome.TRUNCATED):
            raise _Unreadable(self._got.reason)
        if self._got.outcome is Outcome.TOO_LARGE and self._service.html:
            return Trouble(meaning="fail", reason=self._got.reason, outcome=Outcome.TOO_LARGE)
        status = self._status()
        headers = self._site_headers()
        mime = self._type(headers)
        body = self.body
        if self._service.html:
            if status == 200 and mime and not _TEXT.match(mime.lower()):
                reason = f'the page is {mime[:_SAID]}, and a service gives texts: fetch it with fetcher="http"'
                return Trouble(meaning="fail", reason=reason, outcome=Outcome.UNEXPECTED_TYPE)
            body = self._text(status)
            mime = f"{(mime or 'text/html').partition(';')[0].strip()}; charset=utf-8"
        kept = [(name, value) for name, value in headers if name.lower() != "content-type"]
        typed = [("Content-Type", mime), *kept] if mime else kept
        return Reported(
            status=status,
            final_url=self._final_url(request.url),
            headers=tuple(
                (name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in typed
            ),
            body=body,
        )

    def _status(self) -> int:
        said = self._got.status if self._service.status is None else self.at(self._service.status)
        if isinstance(said, bool) or not str(said).isdigit() or not 100 <= int(str(said)) <= 599:
            raise _Unreadable(f"{str(said)[:_SAID]!r} is no status of the site")
        return int(str(said))

    def _text(self, status: int) -> bytes:
        found = self.at(self._service.html)
        if found is None and status != 200:
            return b""
        if not isinstance(found, str):
            raise _Unreadable(f"no page at {self._service.html and self._service.html.path!r}")
        return found.encode("utf-8", "replace")

    def _final_url(self, asked: str) -> str:
        """Where the page is from: the address that was asked for, unless another one is named."""
        said = self.at(self._service.final_url)
        if not isinstance(said, str) or not said:
            return asked
        address = urls.resolve(said, asked)
        if isinstance(address, urls.Rejected):
            raise _Unreadable(f"{said[:_SAID]!r} is no address that a page could be from")
        return asked if urls.key(address.url) == urls.key(asked) else address.url

    def _site_headers(self) -> list[tuple[str, str]]:
        match self._service.site_headers:
            case InHeader(name=prefix):
                start = prefix.lower()
                named = {name[len(start) :]: value for name, value in self._headers.items() if name.startswith(start)}
            case InJson() as place:
                given = self.at(place)
                named = given if isinstance(given, Mapping) else {}
            case None:
                named = {}
        plain = [(str(name), _line(value)) for name, value in named.items()]
        return [(name, value) for name, value in plain if name and name.lower() not in NOT_KEPT][:MOST_HEADERS]

    def _type(self, headers: list[tuple[str, str]]) -> str:
        said = self.at(self._service.content_type)
        if said is None:
            said = next((value for name, value in headers if name.lower() == "content-type"), None)
        if said is None and self._service.html is None:
            said = self._headers.get("content-type")
        return _line(said) if isinstance(said, str) else ""


def _line(value: Any) -> str:
    """A header's value as one line."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return _CONTROL.sub(" ", text).strip()[:8_192]


def _by_status(status: int) -> Meaning:
    if status in STOPPING:
        return "stop"
    return "retry" if status in PASSING or status >= 500 else "fail"
