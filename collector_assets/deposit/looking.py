"""An answer is looked at before it is stored: its headers, its bytes, the page that they are, where it leads."""

from __future__ import annotations

from dataclasses import replace

from collector_assets import decoding, html, redirects, urls
from collector_assets.contract import Source
from collector_assets.fetch import Response
from collector_assets.inspection import inspected
from collector_assets.outcome import Outcome
from collector_assets.page import Page, at_hand, header_map
from collector_assets.request import Lease, NewRequest
from collector_assets.storable import clean_text
from collector_assets.window import Window


def seen(source: Source, window: Window, asked: Lease | NewRequest, answer: Response) -> Response:
    """The answer, judged by its bytes too; a page that leads on by itself is a redirect."""
    found = inspected(answer, source.kind_map[asked.kind], limit=source.max_decoded_bytes)
    return _refreshing(source, window, asked, found.answer) if found.may_refresh else found.answer


def _refreshing(source: Source, window: Window, asked: Lease | NewRequest, answer: Response) -> Response:
    """The page as a redirect, where a refresh leads on; one that cannot be followed leaves it the page it is."""
    if answer.outcome is not Outcome.OK:
        return answer
    try:
        target = html.refresh_target(fresh_page(asked, answer, window, source))
    except Exception:  # noqa: BLE001  a page that no parser should be let loose on is one when it is read, too
        return answer
    moved = target and replace(answer, outcome=Outcome.REDIRECT, reason=f"refresh to {target}", refresh=target)
    return moved if moved and isinstance(follow(source, asked, moved), redirects.Chain) else answer


def follow(source: Source, asked: Lease | NewRequest, answer: Response) -> redirects.Chain | redirects.Ended:
    """Where a redirect leads, within the source's scope and its limit."""
    chain = redirects.follow(
        redirects.chain_of(asked),
        status=answer.status,
        headers=answer.headers,
        now=answer.fetched_at,
        most=source.max_redirects,
        target=answer.refresh,
    )
    if isinstance(chain, redirects.Chain) and not source.in_scope(urls.host(chain.url)):
        said = f"{answer.status} to {chain.url}, outside the scope"
        return redirects.Ended(outcome=Outcome.OUT_OF_SCOPE, reason=said, url=chain.url)
    return chain


def texts(answer: Response) -> list[tuple[str, str]]:
    """Headers as text that may be stored."""
    return [(name.decode("latin-1"), clean_text(value.decode("latin-1"))) for name, value in answer.headers]


def fresh_page(asked: Lease | NewRequest, answer: Response, window: Window, source: Source) -> Page:
    """An answer as a source's code sees it, before it is stored; `DecodingError` when it cannot be decoded."""
    headers = header_map(texts(answer))
    decoded = decoding.decode(answer.body, headers.get("content-encoding", ""), limit=source.max_decoded_bytes)
    return Page(
        url=asked.url, final_url=answer.final_url, status=answer.status, headers=headers, body=decoded.body,
        fetched_at=answer.fetched_at, window=window, kind=asked.kind, entity=asked.entity, lane=asked.lane,
        referrer=asked.referrer, hints=asked.hints, flags=decoded.flags,
        encoding=source.encoding_of(asked.kind), parts=at_hand(answer.parts),
        shows_rendered=source.kind_map[asked.kind].view.text == "rendered",
    )  # fmt: skip
