"""Pages that are a refusal, whatever their status says: challenges, block pages, login walls. Pure.

A good page that mentions these things must pass: an article about CAPTCHAs, a book called "Access Denied", a contact
form with a widget, a shop with a login box. So no word alone decides. A header that a vendor sends with its challenge
does; else the page must bear the vendor's own mark, or say what it is in title and text, and hold little else.
Nothing here helps to get past one.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import ada_url

LARGEST: Final = 64 * 1024
"""Bytes of a page, decoded; these pages are small."""
LITTLE_TEXT: Final = 1_500
"""Characters that a reader sees; a page with more has something to say."""
_HEAD: Final = 4_096
_HTML: Final = re.compile(rb"<(?:!doctype html|html|head|title|meta|script|body|iframe)")

# --- What decides alone ----------------------------------------------------------------------------------------------

_HEADERS: Final = {
    b"cf-mitigated": ("Cloudflare", (b"challenge", b"block")),
    b"x-amzn-waf-action": ("AWS WAF", (b"challenge", b"captcha")),
    b"x-vercel-mitigated": ("Vercel", (b"challenge", b"deny")),
    b"sg-captcha": ("SiteGround", (b"challenge",)),
    b"x-sucuri-block": ("Sucuri", ()),
}
"""Sent with a challenge or a block page and with nothing else; without values any will do."""

_CHALLENGE_PATH: Final = re.compile(
    r"(?:^|/)(?:unblock|un-block|captcha|validatecaptcha|recaptcha|challenge|bot-?check|are-you-(?:a-)?(?:human|robot)"
    r"|access-?denied|blocked|sorry/index|_sec/cp_challenge)(?:[/.]|$)"
)
_CHALLENGE_HOST: Final = re.compile(
    r"(?:unblock|captcha|geo-captcha|challenge|challenges|validate|blocked)(?:\.|-)|.*\bcaptcha"
)
_LOGIN_PATH: Final = re.compile(
    r"(?:^|/)(?:log[-_]?in|log[-_]?on|sign[-_]?in|wp-login|servicelogin|sso|sessions?/new|authenticate|authorize)(?:[/.]|$)"
)
_LOGIN_HOST: Final = re.compile(r"(?:login|logon|signin|sso|auth|accounts|idp)\.")


LOGIN: Final = ("a login", "led to a login")
"""How what is found begins, where it is a login."""


def of_headers(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Whose challenge or block the answer is, by its headers."""
    for name, value in headers:
        if (known := _HEADERS.get(name.lower())) and (not known[1] or value.strip().lower() in known[1]):
            return f"a challenge or block of {known[0]} ({name.decode('latin-1').lower()})"
    return None


def of_address(asked: str, address: str) -> str | None:
    """What it means that a request for `asked` was led to `address`: a challenge, a login, or nothing of the kind."""
    if address == asked:
        return None
    (host, path), (own_host, own_path) = _parts(address), _parts(asked)
    shown = f"{host}{path}"[:100]
    for means, hosts, paths in (
        ("a challenge", _CHALLENGE_HOST, _CHALLENGE_PATH), ("a login", _LOGIN_HOST, _LOGIN_PATH)
    ):  # fmt: skip
        is_there = (host != own_host and hosts.match(host)) or paths.search(path)
        if is_there and not (hosts.match(own_host) or paths.search(own_path)):
            return f"led to {means}: {shown}"
    return None


def _parts(url: str) -> tuple[str, str]:
    parsed = ada_url.URL(url)
    return parsed.hostname, parsed.pathname.lower()


# --- What decides on a page that holds little else -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Mark:
    """All of these bytes, in lower case, on a page with little text, or with none at all."""

    of: str
    needles: tuple[bytes, ...]
    most_text: int = LITTLE_TEXT


_MARKS: Final = (
    _Mark("Cloudflare", (b"_cf_chl_opt",)),  # not challenge-platform: that is on good pages too
    _Mark("Cloudflare", (b"cf-browser-verification",)),
    _Mark("Cloudflare", (b"cf-error-details", b"you have been blocked")),
    _Mark("DataDome", (b"captcha-delivery.com", b"dd={")),
    _Mark("DataDome", (b"geo.captcha-delivery.com/", b'"url"')),
    _Mark("HUMAN", (b'"px-captcha"',)),
    _Mark("Imperva", (b"incapsula incident id",)),
    _Mark("Imperva", (b"/_incapsula_resource?",), 100),
    _Mark("Imperva", (b"pardon our interruption", b"distil")),
    _Mark("Akamai", (b"access denied", b"reference&#32;&#35;")),
    _Mark("Akamai", (b"access denied", b"errors.edgesuite.net")),
    _Mark("Akamai", (b"bm-verify=", b"interstitial")),
    _Mark("Akamai", (b"sec-if-cpt-container",)),
    _Mark("AWS WAF", (b"awswaf", b"challenge.js"), 300),
    _Mark("AWS WAF", (b"awswafcookiedomainlist",), 300),
    _Mark("Sucuri", (b"sucuri website firewall", b"access denied")),
    _Mark("Sucuri", (b"sucuri_cloudproxy_js",)),
    _Mark("F5", (b"the requested url was rejected", b"support id")),
    _Mark("Kasada", (b"kpsdk", b"ips.js"), 100),
    _Mark("DDoS-Guard", (b"check.ddos-guard.net",), 500),
    _Mark("Google", (b"unusual traffic from your computer network",)),
)
_WIDGETS: Final = (
    b"g-recaptcha", b"recaptcha/api.js", b"h-captcha", b"hcaptcha.com", b"cf-turnstile", b"turnstile/v0/api.js",
    b"arkoselabs.com", b"geetest",
)  # fmt: skip
_TITLES: Final = re.compile(
    r"just a moment|attention required|access (?:is |to this page has been )?denied|robot check"
    r"|are you (?:a |not a )?(?:human|robot)|human verification|bot verification|security (?:check|verification)"
    r"|pardon our interruption|request rejected|one moment,? please|please (?:wait|verify)|checking your browser"
    r"|verif(?:y|ying) (?:that )?you are|you have been blocked|captcha|40[13] |forbidden|blocked|not a robot"
    r"|unusual (?:traffic|activity)"
)
_IN_TITLES: Final = (
    "40", "access", "attention", "blocked", "captcha", "checking", "forbidden", "human", "moment", "pardon", "please",
    "rejected", "robot", "security", "unusual", "verif",
)  # fmt: skip
"""Each of those titles holds one of these: that is seen at once."""
_SAYS_SO: Final = re.compile(
    r"you (?:do not|don't|don’t) have permission|(?:have|has) been blocked|is blocked|enable javascript and cookies"
    r"|(?:verify|confirm|prove|make sure)(?: that)? you(?:'re|’re| are)|not a robot"
    r"|checking (?:your browser|if the site)|security (?:service|check|of your connection)"
    r"|unusual (?:traffic|activity)|suspicious activity|automated (?:queries|requests|access|traffic|tools)"
    r"|request (?:was|has been) (?:rejected|blocked|denied)"
    r"|access (?:to this (?:page|site|resource|server) )?(?:is|was|has been) denied"
    r"|complete the captcha|solve the captcha|enter the characters"
)
_LOGIN_TITLE: Final = re.compile(
    r"(?:please )?(?:log ?in|log ?on|sign ?in|anmelden|connexion|iniciar sesi[oó]n|accedi)\b"
)
_PASSWORD: Final = re.compile(rb"type\s*=\s*[\"']?password")
_OTHER_FIELDS: Final = re.compile(rb"<textarea|type\s*=\s*[\"']?(?:email|search|tel|password)")
_HEADING: Final = re.compile(r"<(title|h1|h2)\b[^>]*>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_UNSEEN: Final = re.compile(
    r"<(script|style|template|noscript|head|svg)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE
)
_TAG: Final = re.compile(r"<[^>]*>")


def of_page(asked: str, body: bytes) -> str | None:
    """What the page is instead of the one asked for; `body` is decoded, and larger ones than `LARGEST` are pages.

    Every page passes here, so most are let go by their first bytes: by a title of several words that are none of these.
    """
    head = body[:_HEAD].lower()
    if not body or len(body) > LARGEST or not (_is_page(head) and _has_odd_title(head)):
        return None
    lower = body.lower()
    marks = [mark for mark in _MARKS if all(needle in lower for needle in mark.needles)]
    return _looked_at(asked, body, lower, marks)


def _is_page(head: bytes) -> bool:
    """HTML, or the JSON that DataDome sends to programmes."""
    opening = head[:512]
    if opening.lstrip().startswith(b"{"):
        return b"captcha-delivery.com" in head
    return _HTML.search(opening) is not None


def _has_odd_title(head: bytes) -> bool:
    """No title, a single word (a host name, a URL), or one that a refusal could have."""
    start = head.find(b"<title")
    title = head[start : head.find(b"</", start)].decode("utf-8", "replace") if start >= 0 else ""
    said = _plain(title.partition(">")[2])
    return " " not in said or _is_title(said)


def _is_title(said: str) -> bool:
    """Whether a refusal could be called this."""
    for word in _IN_TITLES:
        if word in said:
            return bool(_TITLES.search(said) or _LOGIN_TITLE.match(said))
    return _LOGIN_TITLE.match(said) is not None


def _looked_at(asked: str, body: bytes, lower: bytes, marks: Sequence[_Mark]) -> str | None:
    markup = body.decode("utf-8", "replace")
    text = _plain(_UNSEEN.sub(" ", markup))
    if found := next((mark for mark in marks if len(text) <= mark.most_text), None):
        return f"a challenge or block of {found.of}"
    if len(text) > LITTLE_TEXT:
        return None
    headings = [_plain(match[2]) for match in _HEADING.finditer(markup)]
    said = next(filter(None, headings), "")[:80]
    is_suspect = any(_TITLES.search(heading.lower()) for heading in headings)
    if is_suspect and any(widget in lower for widget in _WIDGETS) and not _OTHER_FIELDS.search(lower):
        return f"a CAPTCHA: {said}"
    if is_suspect and _SAYS_SO.search(text.lower()):
        return f"a block page: {said}"
    is_login = any(_LOGIN_TITLE.match(heading.lower()) for heading in headings)
    if is_login and _PASSWORD.search(lower) and not _LOGIN_PATH.search(_parts(asked)[1]):
        return f"a login: {said}"
    return None


def _plain(markup: str) -> str:
    """What a reader sees of it, blanks as one."""
    text = html.unescape(_TAG.sub(" ", markup)) if "<" in markup or "&" in markup else markup
    return " ".join(text.split())
