"""Pages that a script builds: the document by HTTP, then shown to a Chromium until it is what the kind waits for.

To the frontier it is a fetcher like the other. What the site answers to the request for the document is judged and kept
as by HTTP, byte for byte; only a good page in HTML is shown to the browser, so an error page, a redirect, a PDF or a
CSV costs none. A browser that crashed, hung or was ended is replaced at the next page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Final
from urllib.parse import quote, quote_plus

from collector_assets import cookies, decoding, urls
from collector_assets.contract import Browser, Fill, View
from collector_assets.fetch import Fetcher, FetchRequest, NoResponse, NotSent, Response
from collector_assets.fetch.acting import SecretUnset
from collector_assets.fetch.contexts import Contexts, StateUnreadable
from collector_assets.fetch.devtools import DevtoolsError
from collector_assets.fetch.egress import Egress
from collector_assets.fetch.gate import Gate
from collector_assets.fetch.tab import Document, Ending, Seen, Tab
from collector_assets.outcome import Outcome
from collector_assets.page import header_map
from collector_assets.request import Secret
from collector_assets.spool import whole

SHOWN: Final = ("text/html", "application/xhtml+xml")
ACCEPT: Final = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_OUTCOMES: Final[Mapping[Ending, Outcome]] = {
    "settled": Outcome.OK,
    "unsettled": Outcome.NEVER_SETTLED,
    "left": Outcome.REDIRECT,
    "astray": Outcome.NAVIGATED_AWAY,
    "crashed": Outcome.PAGE_CRASHED,
}


class BrowserFetcher:
    """Documents by `http`, everything else of a page by a browser behind the egress guard."""

    def __init__(
        self,
        *,
        http: Fetcher,
        egress: Egress,
        program: Path,
        browser: Browser,
        views: Mapping[str, View],
        max_decoded: int = 64 * 2**20,
    ) -> None:
        """`program`: the Chromium. `views`: by kind."""
        self.user_agent: Final = http.user_agent
        self._http, self._egress, self._views, self._max_decoded = http, egress, views, max_decoded
        self._browser = browser
        self._contexts = Contexts(program=program, browser=browser, user_agent=http.user_agent, egress=egress)

    async def fetch(self, request: FetchRequest, may_send: Callable[[], bool]) -> Response | NoResponse | NotSent:
        """Send `request` once (see `Fetcher.fetch`), and show a page that came to the browser."""
        async with self._contexts.places:
            return await self._visited(request, may_send)

    async def _visited(self, request: FetchRequest, may_send: Callable[[], bool]) -> Response | NoResponse | NotSent:
        deadline = monotonic() + request.total_s
        origin, asked = _origin(request.url), _asking(request)
        try:
            if not self._contexts.has_context(origin):  # no cookies: a page that is not shown needs no browser
                answer = await self._http.fetch(asked, may_send)
                if (document := self._document(request, answer)) is None:
                    return answer
                assert isinstance(answer, Response)  # noqa: S101  it has a document
                async with self._contexts.tab(origin) as tab:
                    return await self._shown(tab, document, answer, request, may_send, deadline)
            async with self._contexts.tab(origin) as tab:
                held = await tab.cookies(request.url)
                answer = await self._http.fetch(replace(asked, cookies=_together(held, request.cookies)), may_send)
                if (document := self._document(request, answer)) is None:
                    return answer
                assert isinstance(answer, Response)  # noqa: S101  it has a document
                return await self._shown(tab, document, answer, request, may_send, deadline)
        except StateUnreadable as error:
            return NoResponse(outcome=Outcome.SECRET_MISSING, reason=str(error), ended_at=monotonic(), sent=False)
        except DevtoolsError as error:
            return NoResponse(outcome=Outcome.PAGE_CRASHED, reason=str(error), ended_at=monotonic(), sent=True)

    async def close(self) -> None:
        """End the browser, then close every connection."""
        try:
            await self._contexts.close()
        finally:
            await self._http.close()
            self._egress.close()

    async def _shown(
        self, tab: Tab, document: Document, answer: Response, request: FetchRequest, may_send: Callable[[], bool],
        deadline: float,
    ) -> Response:  # fmt: skip
        """The answer with what the browser made of it."""
        view = self._views.get(request.kind) or View()
        gate = Gate(
            request.url, self._browser, gap_s=request.gap_s, ended_at=answer.ended_at, most_s=request.read_s,
            may_send=may_send, may_load=request.may_load,
        )  # fmt: skip
        await tab.take_cookies(request.url, request.cookies)
        with self._contexts.passing(gate):
            try:
                seen = await tab.visit(document, view, gate, deadline=deadline, max_bytes=self._max_decoded)
            except SecretUnset as error:
                return replace(answer, outcome=Outcome.SECRET_MISSING, reason=str(error), ended_at=monotonic())
        return self._seen(answer, _veiled(seen, view), gate)

    def _seen(self, answer: Response, seen: Seen, gate: Gate) -> Response:
        why = self._contexts.why_ended() if seen.ending == "crashed" else ""
        return replace(
            answer,
            outcome=_OUTCOMES[seen.ending],
            reason=" ".join(f"{seen.reason}{': ended for ' + why if why else ''}".split())[:300],
            refresh=seen.target if seen.ending == "left" else "",
            fetched_at=datetime.now(UTC),
            ended_at=monotonic(),
            parts=seen.parts,
            flags=(*answer.flags, *seen.flags),
            loads=dict(gate.loads),
        )

    def _document(self, request: FetchRequest, answer: Response | NoResponse | NotSent) -> Document | None:
        """What the browser is shown; nothing of what is no good page in HTML."""
        if not isinstance(answer, Response) or answer.outcome is not Outcome.OK or not answer.body:
            return None
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers]
        said = header_map(headers)
        if said.get("content-type", "text/html").partition(";")[0].strip().lower() not in SHOWN:
            return None
        try:
            decoded = decoding.decode(answer.body, said.get("content-encoding", ""), limit=self._max_decoded)
        except decoding.DecodingError:
            return None  # judged and kept as it is
        return Document(url=request.url, status=answer.status, headers=headers, body=whole(decoded.body))


def _veiled(seen: Seen, view: View) -> Seen:
    """What was seen, without the secrets that were put into fields; an address that holds one is not followed."""
    secrets = [each.text for each in view.actions if isinstance(each, Fill) and isinstance(each.text, Secret)]
    for secret in secrets:
        value = secret.read() or ""
        if not value:
            continue
        shown, forms = str(secret), {value, quote(value), quote_plus(value)}
        if any(form in seen.target for form in forms):
            seen = Seen(
                ending="astray", reason=f"the page goes to an address with {secret.name} in it", flags=seen.flags
            )
        parts = tuple(
            replace(part, url=_replaced(part.url, forms, shown), body=_replaced_bytes(part.body, forms, shown))
            for part in seen.parts
        )
        seen = replace(seen, parts=parts, reason=_replaced(seen.reason, forms, shown))
    return seen


def _replaced(text: str, forms: Iterable[str], shown: str) -> str:
    for form in forms:
        text = text.replace(form, shown)
    return text


def _replaced_bytes(body: bytes, forms: Iterable[str], shown: str) -> bytes:
    for form in forms:
        body = body.replace(form.encode(), shown.encode())
    return body


def _origin(url: str) -> str:
    """Whose context it is; of what is no URL nobody's: the HTTP fetcher says what is wrong with it."""
    try:
        return urls.origin(url)
    except ValueError:
        return ""


def _together(held: str, chain: str) -> str:
    """The cookies of a context and those of a chain of redirects."""
    return cookies.joined(held, chain) if held and chain else held or chain


def _asking(request: FetchRequest) -> FetchRequest:
    """The request as a browser would word it, where the source does not say otherwise."""
    if any(name.lower() == "accept" for name in request.headers):
        return request
    return replace(request, headers={"Accept": ACCEPT, **request.headers})
