"""How one attempt ended: a closed list, each with its policy. `docs/outcomes.md` is generated from it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Policy(StrEnum):
    """What is done with the request next."""

    KEEP = "keep"
    """The page is good: the request is fetched."""
    RETRY = "retry"
    """Tried again after a growing, jittered wait, at most `max_attempts` times in all; then failed(fetch)."""
    FOLLOW = "follow"
    """Queued again at the address that the answer names, in the same attempt (`redirects.py`)."""
    FAIL = "fail"
    """failed at once, for inspection; the response is archived where there was one."""
    SKIP = "skip"
    """Not wanted: skipped with this reason."""
    SNOOZE = "snooze"
    """Later: put back until the site is ready, without an attempt charged; there is an end to it."""
    HALT = "halt"
    """failed at once, and a refusal: `refusal_limit` of them in a row halt the origin for everybody."""


class Outcome(StrEnum):
    """The end of one attempt to fetch, or of reading what was fetched."""

    OK = "ok"
    NOT_MODIFIED = "not_modified"
    # the way to the site
    HOST_UNRESOLVED = "host_unresolved"
    CONNECT_ERROR = "connect_error"
    TLS_ERROR = "tls_error"
    CONNECTION_LOST = "connection_lost"
    TIMEOUT = "timeout"
    TRUNCATED = "truncated"
    PROTOCOL_ERROR = "protocol_error"
    # its answer
    UNAVAILABLE = "unavailable"
    EMPTY_BODY = "empty_body"
    TOO_LARGE = "too_large"
    UNEXPECTED_TYPE = "unexpected_type"
    REDIRECT = "redirect"
    REDIRECT_INVALID = "redirect_invalid"
    REDIRECT_LOOP = "redirect_loop"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    REFUSED = "refused"
    BLOCKED = "blocked"
    THROTTLED = "throttled"
    GONE = "gone"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    UNEXPECTED_STATUS = "unexpected_status"
    CONDITION_FAILED = "condition_failed"
    REVISIT_LOST = "revisit_lost"
    # a page in a browser
    NEVER_SETTLED = "never_settled"
    PAGE_CRASHED = "page_crashed"
    NAVIGATED_AWAY = "navigated_away"
    # ours
    DESTINATION_REFUSED = "destination_refused"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    NO_SESSION = "no_session"
    SECRET_MISSING = "secret_missing"  # noqa: S105  a name, not a secret
    RENDERING_FAILED = "rendering_failed"
    RENDERING_REFUSED = "rendering_refused"
    FETCHER_ERROR = "fetcher_error"
    LEASE_EXPIRED = "lease_expired"
    # reading
    UNDECODABLE = "undecodable"
    EXTRACTION_FAILED = "extraction_failed"
    DISCOVERY_FAILED = "discovery_failed"
    CURSOR_EXPIRED = "cursor_expired"
    NO_RECORDS = "no_records"
    ALL_REJECTED = "all_rejected"
    # not wanted
    NOT_YET = "not_yet"
    UNWANTED = "unwanted"
    CHAIN_RESTARTED = "chain_restarted"
    SOFT_GONE = "soft_gone"
    GONE_CONFIRMED = "gone_confirmed"
    OUT_OF_SCOPE = "out_of_scope"
    ROBOTS_DISALLOWED = "robots_disallowed"
    KNOWN = "known"


POLICY: dict[Outcome, tuple[Policy, str]] = {
    Outcome.OK: (Policy.KEEP, "status 200 with a complete body"),
    Outcome.NOT_MODIFIED: (Policy.KEEP, "304 to a conditional request: the page that we hold is still the page"),
    Outcome.HOST_UNRESOLVED: (Policy.RETRY, "the name has no address (now)"),
    Outcome.CONNECT_ERROR: (Policy.RETRY, "no connection: refused, unreachable, or not within the connect deadline"),
    Outcome.TLS_ERROR: (Policy.FAIL, "no trustworthy TLS; verification is never switched off"),
    Outcome.CONNECTION_LOST: (Policy.RETRY, "reset or closed before an answer came"),
    Outcome.TIMEOUT: (Policy.RETRY, "silent longer than the read deadline, or not ready by the total deadline"),
    Outcome.TRUNCATED: (
        Policy.RETRY,
        "the body ended before its declared end, or its compressed form did; what came is archived with a mark",
    ),
    Outcome.PROTOCOL_ERROR: (Policy.RETRY, "not HTTP, or a head beyond the limits"),
    Outcome.UNAVAILABLE: (
        Policy.RETRY,
        "502, 503 or 504; with Retry-After, or three requests in a row, it closes the budget key as `throttled` does",
    ),
    Outcome.EMPTY_BODY: (Policy.RETRY, "status 200 and not one byte, compressed or not"),
    Outcome.TOO_LARGE: (Policy.FAIL, "more than max_bytes; what came is archived with a mark"),
    Outcome.UNEXPECTED_TYPE: (
        Policy.FAIL,
        "another type of file than the kind reads (`accepts`), by its first bytes; or markup that is a PDF, an image …",
    ),
    Outcome.REDIRECT: (Policy.FOLLOW, "301, 302, 303, 307 or 308: archived, and followed as a request of its own"),
    Outcome.REDIRECT_INVALID: (Policy.FAIL, "a redirect without one usable Location"),
    Outcome.REDIRECT_LOOP: (Policy.FAIL, "a redirect to what was sent before in the same chain, with the same cookies"),
    Outcome.TOO_MANY_REDIRECTS: (Policy.FAIL, "more than max_redirects of the source"),
    Outcome.REFUSED: (Policy.HALT, "401, 403, 407 or 451: the site says no"),
    Outcome.BLOCKED: (
        Policy.HALT,
        "a challenge, a block page or a login wall instead of the page, whatever the status; archived, never read",
    ),
    Outcome.THROTTLED: (
        Policy.SNOOZE,
        "429: the budget key is closed for everybody, as long as Retry-After says or for a growing time",
    ),
    Outcome.GONE: (Policy.FAIL, "404 or 410; skipped where the kind says `gone`"),
    Outcome.CLIENT_ERROR: (Policy.FAIL, "another 4xx"),
    Outcome.SERVER_ERROR: (Policy.FAIL, "another 5xx"),
    Outcome.UNEXPECTED_STATUS: (Policy.FAIL, "any other status than 200, such as 204, 206, or 304 unasked"),
    Outcome.CONDITION_FAILED: (Policy.RETRY, "412 to a condition of ours; the next attempt is without one"),
    Outcome.REVISIT_LOST: (
        Policy.RETRY,
        "unchanged since a page whose bytes are gone or unreadable by now; the next attempt is without condition",
    ),
    Outcome.NEVER_SETTLED: (
        Policy.RETRY,
        "in a browser: what the kind waits for did not come, or the page was too busy with itself to be read",
    ),
    Outcome.PAGE_CRASHED: (Policy.RETRY, "the page or its browser crashed, hung, or was ended for its memory"),
    Outcome.NAVIGATED_AWAY: (
        Policy.FAIL,
        "the page left by itself to where it cannot be followed: a form that is sent, no web address",
    ),
    Outcome.DESTINATION_REFUSED: (Policy.FAIL, "not a place that this installation may send to; nothing was sent"),
    Outcome.ROBOTS_UNREACHABLE: (
        Policy.SNOOZE,
        "the origin's robots.txt cannot be had, so nothing was sent; until the window closes no attempt is counted",
    ),
    Outcome.NO_SESSION: (
        Policy.SNOOZE,
        "the source's session is over (no `proof` on the page, led to a login, 401), or its login waits; not charged",
    ),
    Outcome.SECRET_MISSING: (
        Policy.FAIL,
        "a Secret that the source names is not in the environment, or no header can carry it; nothing was sent",
    ),
    Outcome.RENDERING_FAILED: (
        Policy.RETRY,
        "the rendering service gave no page: its own error, or no answer of it; nothing is known about the site",
    ),
    Outcome.RENDERING_REFUSED: (
        Policy.FAIL,
        "the rendering service will never give this page, or it was asked for what a service is not given",
    ),
    Outcome.FETCHER_ERROR: (Policy.RETRY, "an error of our own around this request; the reason names it"),
    Outcome.LEASE_EXPIRED: (Policy.RETRY, "the worker that held it went away"),
    Outcome.UNDECODABLE: (Policy.FAIL, "the stored bytes cannot be decoded within the limits"),
    Outcome.EXTRACTION_FAILED: (Policy.FAIL, "extract() raised on the stored page"),
    Outcome.DISCOVERY_FAILED: (Policy.FAIL, "discover() raised on the stored page; mended from stored bytes later"),
    Outcome.CURSOR_EXPIRED: (
        Policy.FAIL,
        "its cursor is dead, and its chain has started over `max_restarts` times or has nothing to start over from",
    ),
    Outcome.NO_RECORDS: (Policy.FAIL, "extract() yielded nothing and the kind does not say may_be_empty"),
    Outcome.ALL_REJECTED: (Policy.FAIL, "every record of the page was rejected"),
    Outcome.NOT_YET: (
        Policy.SNOOZE,
        "a status of which the kind says `not_yet`: asked again until the window has closed, then skipped",
    ),
    Outcome.UNWANTED: (Policy.SKIP, "a status of which the kind says `skip`"),
    Outcome.CHAIN_RESTARTED: (
        Policy.SKIP,
        "its cursor is dead (status `restart`, or RestartChain): the first request of its chain is fetched once more",
    ),
    Outcome.SOFT_GONE: (Policy.SKIP, "status 200, but the source's `soft_gone` marker says that there is no such item"),
    Outcome.GONE_CONFIRMED: (Policy.SKIP, "soft_gone once more, at least 20 hours after the first time: it is gone"),
    Outcome.OUT_OF_SCOPE: (Policy.SKIP, "a redirect to a host outside the source's scope; it was not followed"),
    Outcome.ROBOTS_DISALLOWED: (Policy.SKIP, "the origin's robots.txt forbids it; nothing was sent"),
    Outcome.KNOWN: (Policy.SKIP, "collected before and not to be fetched again"),
}


def policy(outcome: Outcome) -> Policy:
    """What to do after this outcome."""
    return POLICY[outcome][0]


_NAMED: Final = {
    200: Outcome.OK,
    301: Outcome.REDIRECT, 302: Outcome.REDIRECT, 303: Outcome.REDIRECT, 307: Outcome.REDIRECT, 308: Outcome.REDIRECT,
    401: Outcome.REFUSED, 403: Outcome.REFUSED, 407: Outcome.REFUSED, 451: Outcome.REFUSED,
    404: Outcome.GONE, 410: Outcome.GONE,
    429: Outcome.THROTTLED,
    502: Outcome.UNAVAILABLE, 503: Outcome.UNAVAILABLE, 504: Outcome.UNAVAILABLE,
}  # fmt: skip
_BY_CLASS: Final = {4: Outcome.CLIENT_ERROR, 5: Outcome.SERVER_ERROR}


def of_status(status: int) -> Outcome:
    """The outcome that a response's status means, before its body is looked at."""
    return _NAMED.get(status) or _BY_CLASS.get(status // 100, Outcome.UNEXPECTED_STATUS)


def outcome_table() -> str:
    """All outcomes as the Markdown table of `docs/outcomes.md`."""
    rows = [f"| `{outcome}` | {policy(outcome)} | {when} |" for outcome, (_, when) in POLICY.items()]
    return "\n".join(["| outcome | policy | when |", "|---|---|---|", *rows]) + "\n"
