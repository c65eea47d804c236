"""Pages by a rendering service, as the source's `RenderingService` declares it.

Nothing about the site changes with it: robots.txt, halts and the budget of the *site* were asked for the page's address
before this is called, and what the service reports of the site (its status, where it led) is judged like an answer of
our own. The service itself is reached by our HTTP fetcher, through the egress guard; the page's address passes the
source's guard too, because a service inside a network can reach what is inside of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from collector_assets import outcome, placeholders, urls
from collector_assets.contract import RenderingService
from collector_assets.errors import DestinationRefused, RenderingStopped
from collector_assets.fetch import Fetcher, FetchRequest, NoResponse, NotSent, Response
from collector_assets.fetch.egress import Egress
from collector_assets.fetch.names import NameUnresolved
from collector_assets.fetch.reported import Reported, Trouble, read
from collector_assets.outcome import Outcome
from collector_assets.request import Secret

MARGIN_S: Final = 5.0
"""So long before our own deadline the service is to be done: what we have given up may still be asking the site."""
ENVELOPE: Final = 4
"""How many times as long as the page the answer may be that holds it: JSON escapes."""
MOST_BESIDE: Final = 2**20
"""Bytes of an answer beside the page."""
MAX_REASON: Final = 300
UNKNOWN_LANDING: Final = "final_url_unknown"
"""Flag: the service does not say which address its page is from; it is taken for the one that was asked for."""


class Purse(Protocol):
    """What may be spent: asked before each call that has a price."""

    async def take(self) -> bool:
        """The price of one call; False where it would pass the cap."""
        ...

    async def give_back(self) -> None:
        """The price of a call that was not made."""
        ...


class RenderingFetcher:
    """One service; `by` sends to it, `target` is the guard of the source, and no `purse` is a service that is free."""

    def __init__(self, service: RenderingService, *, by: Fetcher, target: Egress, purse: Purse | None) -> None:
        self.user_agent: Final = by.user_agent
        self._service, self._by, self._target, self._purse = service, by, target, purse

    async def fetch(self, request: FetchRequest, may_send: Callable[[], bool]) -> Response | NoResponse | NotSent:
        """Have `request`'s page rendered once (see `Fetcher.fetch`)."""
        try:
            return await self._refusal(request) or await self._exchange(request, may_send)
        except RenderingStopped as error:
            return NotSent(ended_at=monotonic(), stop=error)
        except Exception as error:  # noqa: BLE001  every end of an attempt is an outcome
            reason = f"{type(error).__name__}: {error}"
            return self._without(Outcome.FETCHER_ERROR, reason, sent=True)

    async def close(self) -> None:
        """Close every connection."""
        self._target.close()
        await self._by.close()

    async def _refusal(self, request: FetchRequest) -> NoResponse | None:
        """Why this is nothing that a service may be asked for."""
        own = request.body is not None or request.headers or request.secrets or request.authorization
        if request.method != "GET" or own:
            reason = "a rendering service is given addresses and nothing else: no method, body, headers or secrets"
            return self._without(Outcome.RENDERING_REFUSED, reason, sent=False)
        address = urls.resolve(request.url, "")
        if isinstance(address, urls.Rejected) or address.url != request.url:
            # The service reads it with a parser of its own: what was judged must be what that one sees.
            reason = f"{urls.shown(request.url)[:100]!r} is not spelled as an address"
            return self._without(Outcome.DESTINATION_REFUSED, reason, sent=False)
        parts = urlsplit(request.url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            await self._target.addresses(parts.hostname or "", port)
        except DestinationRefused as error:
            return self._without(Outcome.DESTINATION_REFUSED, str(error), sent=False)
        except NameUnresolved as error:
            return self._without(Outcome.HOST_UNRESOLVED, str(error), sent=False, wait_s=error.retry_in_s)
        except OSError as error:
            return self._without(Outcome.HOST_UNRESOLVED, str(error), sent=False)
        return None

    async def _exchange(self, request: FetchRequest, may_send: Callable[[], bool]) -> Response | NoResponse | NotSent:
        asked, secrets = self._asked(request)
        if self._purse and not await self._purse.take():
            raise RenderingStopped(self._cap_reached())
        try:
            got = await self._by.fetch(asked, may_send)
            end = self._end(got, request, secrets)
        except RenderingStopped:
            await self._give_back()
            raise
        if isinstance(end, NotSent) or (isinstance(end, NoResponse) and not end.sent):
            await self._give_back()
        return end

    async def _give_back(self) -> None:
        if self._purse:
            await self._purse.give_back()

    # --- What is asked -----------------------------------------------------------------------------------------------

    def _asked(self, request: FetchRequest) -> tuple[FetchRequest, list[str]]:
        """The request to the service, and the values in it that nobody may see."""
        service, filling = self._service, _Filling(request, self._service)
        endpoint = service.endpoint.replace("{url}", quote(request.url, safe=""))
        query = {name: filling.checked(value) for name, value in service.query.items()}
        url, names = placeholders.with_query(endpoint, query) if query else (endpoint, ())
        asked = FetchRequest(
            url=url,
            secrets=names,
            method=service.method,
            headers={name: filling.checked(value) for name, value in service.headers.items()}
            | ({"Content-Type": "application/json"} if service.body is not None else {}),
            body=None if service.body is None else json.dumps(filling.whole(service.body)).encode(),
            connect_s=request.connect_s,
            read_s=request.total_s,  # nothing comes while the service works
            total_s=request.total_s,
            max_bytes=(ENVELOPE if service.html else 1) * request.max_bytes + (MOST_BESIDE if service.html else 0),
        )
        return asked, filling.secrets

    # --- What comes of it --------------------------------------------------------------------------------------------

    def _end(
        self, got: Response | NoResponse | NotSent, request: FetchRequest, secrets: list[str]
    ) -> Response | NoResponse | NotSent:
        if isinstance(got, NotSent):
            return got
        if isinstance(got, NoResponse):
            return self._unanswered(got, secrets)
        match read(self._service, got, request):
            case Trouble(meaning="stop", reason=reason):
                raise RenderingStopped(
                    self._shown(f"{reason}; nothing more is sent until somebody has seen to it", secrets)
                )
            case Trouble() as trouble:
                what = _MEANINGS[trouble.meaning]
                return self._without(
                    trouble.outcome or what, self._shown(trouble.reason, secrets), sent=True, wait_s=trouble.wait_s,
                    ended_at=got.ended_at,
                )  # fmt: skip
            case Reported() as page:
                return self._response(got, page, request, secrets)

    def _unanswered(self, got: NoResponse, secrets: list[str]) -> NoResponse:
        """The service could not be reached, or did not answer; the site has no part in it."""
        reason = self._shown(f"{got.outcome}: {got.reason}", secrets)
        if got.outcome in (Outcome.DESTINATION_REFUSED, Outcome.SECRET_MISSING, Outcome.TLS_ERROR):
            raise RenderingStopped(f"{self._service.name}: {reason}")
        return self._without(Outcome.RENDERING_FAILED, reason, sent=got.sent, wait_s=got.wait_s, ended_at=got.ended_at)

    def _response(self, got: Response, page: Reported, request: FetchRequest, secrets: list[str]) -> Response:
        what, reason = outcome.of_status(page.status), f"{page.status}, as {self._service.name} says"
        body, truncated = page.body, None
        if what is Outcome.OK:
            reason = ""
            if got.outcome is Outcome.TOO_LARGE or len(body) > request.max_bytes:
                what, reason = Outcome.TOO_LARGE, f"longer, at most {request.max_bytes:,} are taken"
                truncated = "length"
            elif not body:
                what, reason = Outcome.EMPTY_BODY, f"status 200 without a byte, by {self._service.name}"
        return Response(
            outcome=what,
            reason=self._shown(reason, secrets, is_named=True),
            url=request.url,
            final_url=page.final_url,
            http_version="",
            status=page.status,
            status_text="",
            headers=page.headers,
            body=body[: request.max_bytes] if truncated else body,
            truncated=truncated,
            request_headers=(),
            requested_at=got.requested_at,
            fetched_at=got.fetched_at,
            ended_at=got.ended_at,
            ip=None,
            flags=() if self._service.final_url else (UNKNOWN_LANDING,),
            rendered_by=f"{self._service.name} ({urls.host(self._service.endpoint)})",
        )

    def _without(
        self, what: Outcome, reason: str, *, sent: bool, wait_s: float = 0.0, ended_at: float | None = None
    ) -> NoResponse:
        ended_at = monotonic() if ended_at is None else ended_at
        return NoResponse(outcome=what, reason=reason[:MAX_REASON], ended_at=ended_at, sent=sent, wait_s=wait_s)

    def _shown(self, reason: str, secrets: list[str], *, is_named: bool = False) -> str:
        """The reason on one line with the service's name, without secrets."""
        for value in secrets:
            reason = reason.replace(value, "{secret}").replace(quote(value, safe=""), "{secret}")
        said = reason if is_named or not reason else f"{self._service.name}: {reason}"
        return " ".join(said.split())[:MAX_REASON]

    def _cap_reached(self) -> str:
        service = self._service
        return (
            f"{service.name}: one more call ({service.price:g}) would pass the cap of this window ({service.cap:g}): "
            "raise RenderingService.cap, or leave the rest"
        )


_MEANINGS: Final[Mapping[str, Outcome]] = {
    "retry": Outcome.RENDERING_FAILED,
    "fail": Outcome.RENDERING_REFUSED,
    "refused": Outcome.REFUSED,
}


class _Filling:
    """Fills the blanks of a declaration for one request."""

    def __init__(self, request: FetchRequest, service: RenderingService) -> None:
        self.secrets: list[str] = []
        self._name = service.name
        within_s = max(request.total_s - MARGIN_S, request.total_s / 2)
        self._blanks: dict[str, Any] = {
            "{url}": request.url, "{timeout_ms}": int(within_s * 1000), "{timeout_s}": int(within_s),
        }  # fmt: skip

    def checked(self, value: str | Secret) -> str | Secret:
        """A value of a header or of the query: secrets stay what they are, the fetcher below reads and masks them."""
        if isinstance(value, Secret):
            self._read(value)
            return value
        return str(self._blanks.get(value, value))

    def whole(self, value: Any) -> Any:
        """A value of the body, whatever is in it."""
        match value:
            case Secret():
                return self._read(value)
            case str():
                return self._blanks.get(value, value)
            case Mapping():
                return {name: self.whole(each) for name, each in value.items()}
            case list() | tuple():
                return [self.whole(each) for each in value]
            case _:
                return value

    def _read(self, secret: Secret) -> str:
        revealed = secret.read()
        if revealed is None:
            raise RenderingStopped(f"{self._name}: {secret.name} is not set in the environment")
        self.secrets += [each for each in (revealed, revealed.removeprefix(secret.prefix)) if each]
        return revealed
