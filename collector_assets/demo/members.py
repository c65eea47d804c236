"""The members' area: a login with a form, pages behind it, and an API behind a token.

| path            | what                                                                                         |
|-----------------|----------------------------------------------------------------------------------------------|
| /login          | a form with a hidden token; with `MEMBER` and `PASSWORD` it leads to /members/ with a cookie |
| /logout         | ends the session                                                                             |
| /members/       | the items that only members see, with links; without a session it leads to /login            |
| /members/<n>    | one of them                                                                                  |
| /oauth/token    | a token in exchange for `CLIENT_ID` and `CLIENT_SECRET` (client credentials)                 |
| /members/prices | the same prices as JSON, for who brings a token, ten at a time                               |

Switches: `session_pages`, after so many pages a session is over; `session_rotates`, each page sets another cookie, and
the one before it is no good any more; `token_seconds`, the life of a token.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from html import escape
from time import monotonic
from typing import TypeVar
from urllib.parse import parse_qs, unquote_plus

from .catalogue import draws
from .reply import Reply, json_reply, reply
from .request import Request
from .switches import Switches

MEMBER = "ada.lovelace"
PASSWORD = "analytical/engine+1843"  # noqa: S105  of a demo
CLIENT_ID = "prices-client"
CLIENT_SECRET = "not/so+secret=1843"  # noqa: S105  of a demo
PRICES = 30
_AT_ONCE = 10
_MOST_KEPT = 1_000
_UTF8 = "text/html; charset=utf-8"
_MEMBER_PAGE = re.compile(r"/members/(\d{1,2})")
T = TypeVar("T")


@dataclass(slots=True)
class _Visit:
    """One session."""

    host: str
    pages: int = 0


@dataclass(slots=True)
class Members:
    """Who is logged in, on all hosts; forgotten at a reset."""

    _forms: OrderedDict[str, str] = field(default_factory=OrderedDict)  # cookie of a form -> its hidden token
    _visits: OrderedDict[str, _Visit] = field(default_factory=OrderedDict)  # session id -> its session
    _tokens: OrderedDict[str, float] = field(default_factory=OrderedDict)  # token -> until when

    def answer(self, request: Request, switches: Switches) -> Reply | None:
        """The answer to a path of the members' area; None for any other."""
        match request.method, request.path:
            case "GET", "/login":
                return self._form()
            case "POST", "/login":
                return self._logged_in(request)
            case _, "/logout":
                self._visits.pop(_cookie(request, "sid"), None)
                return _moved("/login", "Set-Cookie: sid=; Path=/; Max-Age=0\r\n")
            case "POST", "/oauth/token":
                return self._token(request, switches)
            case _, "/members/prices":
                return self._prices(request)
            case _, path if path == "/members/" or _MEMBER_PAGE.fullmatch(path):
                return self._page(request, switches)
            case _:
                return None

    def _form(self, problem: str = "", user: str = "") -> Reply:
        cookie, token = secrets.token_hex(8), secrets.token_hex(16)
        _keep(self._forms, cookie, token)
        said = f'<p class="error">{escape(problem)}</p>' if problem else ""
        return reply(
            "<!DOCTYPE html><html><head><title>Log in</title></head><body><h1>Log in</h1>"
            f'{said}<form id="login" method="post" action="/login"><input type="hidden" name="csrf" value="{token}">'
            f'<input name="user" value="{escape(user)}"><input type="password" name="password">'
            "<button>Log in</button></form></body></html>\n",
            content_type=_UTF8,
            extra=f"Set-Cookie: form={cookie}; Path=/; HttpOnly\r\n",
        )

    def _logged_in(self, request: Request) -> Reply:
        form = _form_of(request)
        expected = self._forms.pop(_cookie(request, "form"), None)
        if expected is None or form.get("csrf") != expected:
            return reply("<h1>The form is too old</h1>", status=400, content_type=_UTF8)
        if (form.get("user"), form.get("password")) != (MEMBER, PASSWORD):
            return self._form("Wrong name or password.", form.get("user", ""))
        return _moved("/members/", self._new_session(_Visit(request.headers.host)), status=303)

    def _new_session(self, visit: _Visit) -> str:
        sid = secrets.token_hex(16)
        _keep(self._visits, sid, visit)
        return f"Set-Cookie: sid={sid}; Path=/; HttpOnly\r\n"

    def _page(self, request: Request, switches: Switches) -> Reply | None:
        sid = _cookie(request, "sid")
        visit = self._visits.get(sid)
        if visit is None or visit.host != request.headers.host:
            return _moved("/login")
        visit.pages += 1
        if 0 < switches.session_pages < visit.pages:
            del self._visits[sid]
            return _moved("/login", "Set-Cookie: sid=; Path=/; Max-Age=0\r\n")
        extra = ""
        if switches.session_rotates:
            del self._visits[sid]
            extra = self._new_session(visit)
        number = _MEMBER_PAGE.fullmatch(request.path)
        return _shown(int(number[1]), extra) if number else _list(extra)

    def _token(self, request: Request, switches: Switches) -> Reply:
        form = _form_of(request)
        said = _basic(request) or (form.get("client_id", ""), form.get("client_secret", ""))
        if said != (CLIENT_ID, CLIENT_SECRET):
            return json_reply({"error": "invalid_client", "error_description": f"no client {said[0]}"}, status=401)
        if form.get("grant_type") != "client_credentials":
            return json_reply({"error": "unsupported_grant_type"}, status=400)
        token = secrets.token_urlsafe(24)
        _keep(self._tokens, token, monotonic() + switches.token_seconds)
        return json_reply({"access_token": token, "token_type": "Bearer", "expires_in": switches.token_seconds})

    def _prices(self, request: Request) -> Reply:
        scheme, _, token = _header(request, "authorization").partition(" ")
        if scheme != "Bearer" or self._tokens.get(token, 0.0) < monotonic():
            return json_reply({"error": "invalid_token"}, status=401)
        after = int(parse_qs(request.target.partition("?")[2]).get("after", ["0"])[0])
        numbers = range(after + 1, min(after + _AT_ONCE, PRICES) + 1)
        following = f"/members/prices?after={numbers[-1]}" if numbers and numbers[-1] < PRICES else None
        return json_reply({"prices": [{"item": n, "price": price(n)} for n in numbers], "next": following})


def price(number: int) -> str:
    """What members pay for an item; the same on any machine."""
    drawn = draws(f"members:{number}")
    return f"{next(drawn) % 90 + 10}.{next(drawn) % 100:02}"


def _list(extra: str) -> Reply:
    links = "".join(f'<li><a href="/members/{n}">Item {n}</a></li>' for n in range(1, PRICES + 1))
    return _framed("Prices for members", f"<ul>{links}</ul>", extra)


def _shown(number: int, extra: str) -> Reply | None:
    if not 1 <= number <= PRICES:
        return None
    return _framed(f"Item {number}", f'<p class="price">£{price(number)}</p>', extra)


def _framed(title: str, body: str, extra: str) -> Reply:
    return reply(
        f"<!DOCTYPE html><html><head><title>{title}</title></head><body><nav>Hello {MEMBER} "
        f'<a class="logout" href="/logout">Log out</a></nav><h1>{title}</h1>{body}</body></html>\n',
        content_type=_UTF8,
        extra=extra,
    )


def _moved(target: str, extra: str = "", *, status: int = 302) -> Reply:
    return reply("", status=status, extra=f"Location: {target}\r\n{extra}")


def _keep(kept: OrderedDict[str, T], key: str, value: T) -> None:
    kept[key] = value
    while len(kept) > _MOST_KEPT:
        kept.popitem(last=False)


def _header(request: Request, name: str) -> str:
    return next((value for key, value in request.headers.lines if key.lower() == name), "")


def _cookie(request: Request, name: str) -> str:
    pairs = (pair.strip().partition("=") for pair in _header(request, "cookie").split(";"))
    return next((value for key, _, value in pairs if key == name), "")


def _form_of(request: Request) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(request.body.decode("utf-8", "replace")).items()}


def _basic(request: Request) -> tuple[str, str] | None:
    scheme, _, coded = _header(request, "authorization").partition(" ")
    if scheme != "Basic":
        return None
    user, _, password = base64.b64decode(coded).decode("utf-8", "replace").partition(":")
    return unquote_plus(user), unquote_plus(password)
