"""Use case: one page of a source through every stage, told stage by stage, without a trace.

Budget, fetch, decoding, discovery, extraction, schema and checks are those of a window; what is left out is everything
that would be kept: nothing is archived, no request enters the frontier, no record is stored. The budget's slot is real,
because the request is. A stored page goes the same way with no request at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from collector_assets import inputs, links, pages, sample, sitemap_links, soft_gone, visit
from collector_assets.archive import Archive
from collector_assets.contract import Kind, Source
from collector_assets.database import Database
from collector_assets.decoding import DecodingError
from collector_assets.deposit import explain, fresh_page
from collector_assets.errors import BadSelection, BrokenRecord, LoginFailed
from collector_assets.fetch import Fetcher, Response
from collector_assets.let_in import Opened
from collector_assets.links import Found
from collector_assets.outcome import Outcome
from collector_assets.page import Page
from collector_assets.politeness import Forbidden, Wait
from collector_assets.process import findings
from collector_assets.request import Link, NewRequest
from collector_assets.sample import Sample
from collector_assets.staging import Totals
from collector_assets.validation import Reject
from collector_assets.window import Window

MOST_PAGES: Final = 5
"""From a start to the first page with records: at most robots.txt, an index, a sitemap, a listing, a detail page."""
EXAMPLES: Final = 5


class Verdict(StrEnum):
    """What became of a stage."""

    PASSED = "passed"
    WARNED = "warned"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of one page."""

    name: str
    verdict: Verdict
    message: str
    examples: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTrial:
    """One page on its way."""

    url: str
    kind: str
    origin: str
    """Where the page is from: the site, or the archive."""
    stages: list[Stage] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    """As they would be stored."""

    @property
    def passed(self) -> bool:
        """No stage failed."""
        return all(stage.verdict is not Verdict.FAILED for stage in self.stages)

    def say(self, name: str, verdict: Verdict, message: str, examples: Iterable[str] = ()) -> None:
        """What became of one more stage."""
        shown = tuple(example for example, _ in zip(examples, range(EXAMPLES), strict=False))
        self.stages.append(Stage(name=name, verdict=verdict, message=message, examples=shown))


def of_site(
    source: Source,
    window: Window,
    *,
    url: str | None,
    kind: str | None,
    database: Database,
    fetcher: Callable[[], Fetcher],
) -> list[PageTrial]:
    """Fetch a page, or the first start and what it leads to until there are records, and try every stage on it.

    Raises `BadSelection` for a URL or a kind that the source cannot mean.
    """
    done: list[PageTrial] = []
    with inputs.opened(source, window, database) as given:
        waiting = [_asked(source, source.starts(window, given), url, kind)]
    session: Opened | None = None
    while waiting and len(done) < MOST_PAGES:
        request = waiting.pop(0)
        trial = PageTrial(url=request.url, kind=request.kind, origin="the site")
        done.append(trial)
        if source.session and session is None:
            session = _let_in(source, window, trial, database, fetcher)
            if session is None:
                break
        page = _fetched(source, window, request, trial, database, fetcher, session)
        found = _try(source, page, trial, depth=request.depth) if page else None
        # What leads nowhere is passed over for what was found beside it.
        waiting = [*_best(source, found), *waiting] if found and url is None else []
    return done


def of_archive(
    source: Source, *, url: str | None, kind: str | None, database: Database, archive: Archive, cut: bool = False
) -> list[PageTrial]:
    """Try every stage on the newest stored page of a kind, or of a URL; `cut`: on one whose body is. Sends nothing.

    Raises `BadSelection` where no such page is stored.
    """
    kinds = [_known(source, kind)] if kind else list(source.kind_map) if url else list(source.with_extract)
    with database.transaction() as connection:
        found = pages.newest(connection, source.name, kinds, url, cut=cut)
    if found is None:
        sought = "no cut page" if cut else "no good page"
        what = f"{sought} of {url}" if url else f"{sought} of kind {' or '.join(kinds)}"
        raise BadSelection(f"{source.name}: {what} is stored; collect a window first")
    stored, window = found
    trial = PageTrial(
        url=stored.url, kind=stored.kind, origin=f"the archive: window {window.key}, page {stored.page_id}"
    )
    try:
        page = pages.page_of(
            stored, pages.response_of(stored, archive.read), window, source, read=archive.read, cut=cut
        )
    except (DecodingError, BrokenRecord) as error:
        trial.say("decode", Verdict.FAILED, str(error))
    else:
        _decoded(page, trial)
        _try(source, page, trial, depth=stored.depth)
    return [trial]


# --- Which page ------------------------------------------------------------------------------------------------------


def _asked(source: Source, starts: Iterator[Link], url: str | None, kind: str | None) -> NewRequest:
    if url is None and kind is None:
        first = next(starts, None)
        if first is None:
            raise BadSelection(f"{source.name}: the window starts with nothing; name a URL")
        return _request(source, first)
    if url is None:
        return _request(source, _of_kind(starts, _known(source, kind or "")))
    same = next((link for link in starts if link.url == url), None)
    chosen = _known(source, kind) if kind else same.kind if same else source.with_extract[0]
    return _request(
        source, replace(same, kind=chosen) if same else Link(url, kind=chosen, entity=_entity(source, chosen))
    )


def _entity(source: Source, kind: str) -> str | None:
    """A link says what it is about where that is what makes two links the same work; here nobody knows."""
    return "(unknown)" if source.kind_map[kind].dedupe == "entity" else None


def _of_kind(starts: Iterable[Link], kind: str) -> Link:
    for link in starts:
        if link.kind == kind:
            return link
    raise BadSelection(f"no window starts with a page of kind {kind!r}; name a URL")


def _known(source: Source, kind: str) -> str:
    if kind not in source.kind_map:
        raise BadSelection(f"{source.name} has no kind {kind!r}; it has {', '.join(source.kind_map)}")
    return kind


def _request(source: Source, link: Link) -> NewRequest:
    found = links.of_starts(source, [link])
    if not found.requests:
        raise BadSelection(f"{link.url}: {found.rejected[0].reason}; the scope is {', '.join(source.scope_hosts)}")
    return found.requests[0]


def _best(source: Source, found: Found) -> list[NewRequest]:
    """The first links to pages with records, then to those that lead on."""
    return sorted(found.requests, key=lambda request: source.kind_map[request.kind].extract is None)[:MOST_PAGES]


# --- The stages ------------------------------------------------------------------------------------------------------


def _let_in(
    source: Source, window: Window, trial: PageTrial, database: Database, fetcher: Callable[[], Fetcher]
) -> Opened | None:
    """A session for all pages of the trial, or why there is none."""
    try:
        ended = visit.log_in(source, window, database=database, fetcher=fetcher)
    except LoginFailed as error:
        trial.say("login", Verdict.FAILED, error.problem)
        return None
    if isinstance(ended, Opened):
        proof = "with" if ended.is_proven else "without"
        said = "a token" if ended.token else f"{len(ended.cookies)} cookies, {proof} the proof on the page after it"
        trial.say("login", Verdict.PASSED, said)
        return ended
    trial.say("login", Verdict.FAILED, ended.reason if ended else "")
    return None


def _fetched(
    source: Source,
    window: Window,
    request: NewRequest,
    trial: PageTrial,
    database: Database,
    fetcher: Callable[[], Fetcher],
    session: Opened | None,
) -> Page | None:
    answer = visit.run(source, window, request, database=database, fetcher=fetcher, session=session)
    match answer:
        case visit.Busy():
            closed = f"; it is closed for {answer.closed_for_s:.0f} s" if answer.closed_for_s else ""
            said = f"no slot of {request.budget_key} came free within {answer.waited_s:.0f} s{closed}"
            trial.say("budget", Verdict.FAILED, said)
            return None
        case Forbidden() | Wait():
            trial.say("robots", Verdict.FAILED, answer.reason)
            return None
        case visit.Answer():
            slots = "1 slot" if answer.slots == 1 else f"{answer.slots} slots"
            said = f"a slot of {request.budget_key} after {answer.waited_s:.1f} s ({slots}, gap {answer.gap_s:g} s)"
            trial.say("robots", Verdict.PASSED, answer.robots_rule)
            trial.say("budget", Verdict.PASSED, said)
    got = answer.got
    if not isinstance(got, Response) or got.outcome is not Outcome.OK:
        trial.say("fetch", Verdict.FAILED, f"{got.outcome}: {got.reason}")
        return None
    led = "" if got.final_url == request.url else f", redirected to {got.final_url}"
    trial.say("fetch", Verdict.PASSED, f"{got.status}, {len(got.body):,} bytes in {answer.seconds:.2f} s{led}")
    try:
        page = fresh_page(request, got, window, source)
    except DecodingError as error:
        trial.say("decode", Verdict.FAILED, str(error))
        return None
    _decoded(page, trial)
    return page


def _decoded(page: Page, trial: PageTrial) -> None:
    coding = page.headers.get("content-encoding") or "no coding"
    said = f"{page.headers.get('content-type', 'no type')}, {coding}, {len(page.body):,} bytes, text in {page.encoding}"
    doubts = sorted(page.flags)
    trial.say("decode", Verdict.WARNED if doubts else Verdict.PASSED, "; ".join([said, *doubts]))


def _try(source: Source, page: Page, trial: PageTrial, *, depth: int) -> Found | None:
    """Discovery and extraction, as far as the kind has them; the links, for whoever goes on."""
    kind = source.kind_map[page.kind]
    found = _discover(source, page, trial, depth) if page.kind in source.with_discover else None
    if soft_gone.says_gone(source, page):
        trial.say(
            "soft_gone", Verdict.WARNED, "the page bears the source's marker: it would be skipped, and never read"
        )
    elif kind.extract:
        _extract(source, page, trial, kind)
    return None if kind.extract else found


def _discover(source: Source, page: Page, trial: PageTrial, depth: int) -> Found | None:
    try:
        reads = sitemap_links if source.is_sitemap(page.kind) else links
        found = reads.of_page(source, page, depth)
    except Exception as error:  # noqa: BLE001  the source's code
        trial.say("discover", Verdict.FAILED, explain(error))
        return None
    kinds = Counter(request.kind for request in found.requests)
    said = ", ".join(f"{number} to {kind}" for kind, number in kinds.most_common()) or "no link"
    out = Counter(link.reason for link in found.rejected)
    if out:
        said += "; stay out: " + ", ".join(f"{number} {reason}" for reason, number in out.most_common())
    if found.too_deep:
        said += f"; {found.too_deep} beyond max_depth"
    examples = [f"{request.kind} {request.url}" for request in found.requests]
    trial.say("discover", Verdict.WARNED if out or not found.requests else Verdict.PASSED, said, examples)
    return found


def _extract(source: Source, page: Page, trial: PageTrial, kind: Kind) -> None:
    try:
        taken = sample.take(source, page)
    except Exception as error:  # noqa: BLE001  the source's code
        trial.say("extract", Verdict.FAILED, explain(error))
        return
    empty = not taken.yielded
    said = f"{taken.yielded} rows{', and more that are not looked at' if taken.is_cut else ''}"
    if empty:
        said = "no rows" if kind.may_be_empty else 'no rows, and the kind does not say may_be_empty ("no_records")'
    trial.say("extract", Verdict.FAILED if empty and not kind.may_be_empty else Verdict.PASSED, said)
    if empty:
        return
    trial.records.extend(taken.rows[:EXAMPLES])
    if source.combine and taken.lacks_values_alone:
        said = f"{len(taken.rejects)} of {taken.yielded} rows lack what other pages of their entities bring (combine)"
        trial.say("schema", Verdict.WARNED, said, _reasons(taken.rejects))
        return
    _judged(taken, trial)
    _checked(source, taken, trial)


def _judged(taken: Sample, trial: PageTrial) -> None:
    """What the schema says: a page without a single good record fails in reading."""
    if not taken.rejects:
        trial.say("schema", Verdict.PASSED, f"{len(taken.records)} records hold")
        return
    said = f"{len(taken.rejects)} of {taken.yielded} rows are rejected"
    verdict = Verdict.WARNED if taken.records else Verdict.FAILED
    trial.say("schema", verdict, said, _reasons(taken.rejects))


def _reasons(rejects: Iterable[Reject]) -> Iterator[str]:
    for row in rejects:
        for reason in row.reasons:
            value = "" if reason.value is None else f" ({reason.value})"
            yield f"row {row.ordinal}, {reason.column or 'the whole row'}: {reason.check}{value}"


def _checked(source: Source, taken: Sample, trial: PageTrial) -> None:
    """The checks of a window as far as one page can answer them; how many records there must be is not among them."""
    repeated = taken.repeated
    totals = Totals(
        pages=1, unread=0, yielded=taken.yielded, accounted=taken.yielded, rejects=len(taken.rejects) + len(repeated),
        duplicates=len(repeated), cleaned=0, records={"all": len(taken.records) - len(repeated)},
        outcomes={Outcome.OK: 1}, flags={}, reasons=(), problems=(),
    )  # fmt: skip
    for finding in findings(totals, source.expect):
        if finding.check in ("reject_rate_within_limit", "entities_unique"):
            failed = Verdict.FAILED if finding.severity == "ERROR" else Verdict.WARNED
            trial.say(finding.check, Verdict.PASSED if finding.passed else failed, finding.message, repeated)
    cleaned = sum(good.cleaned for _, good in taken.records)
    if cleaned:
        trial.say(
            "text", Verdict.WARNED, f"{cleaned} records held characters that cannot be stored; they were left out"
        )
